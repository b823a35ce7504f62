use std::{
    collections::HashSet,
    ffi::OsString,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use super::entry::{Confined, DirectoryRules, FileEntry, Least, MAX_DEPTH, is_hidden, not_found};

/// A directory by its resolved path, for systems without directory handles.
#[derive(Debug)]
pub(super) struct DirectoryPath {
    path: PathBuf,
}

impl Confined for DirectoryPath {
    fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        if path.is_dir() { Ok(Self { path }) } else { Err(io::ErrorKind::NotADirectory.into()) }
    }

    fn file(&self, names: &[OsString], rules: &DirectoryRules) -> io::Result<(File, u64)> {
        let path = self.resolve(names, rules)?;
        // Pipes and devices are never opened, not even to check their type.
        if !fs::metadata(&path)?.is_file() {
            return Err(not_found());
        }
        let file = File::open(&path)?;
        let metadata = file.metadata()?;
        if metadata.is_file() { Ok((file, metadata.len())) } else { Err(not_found()) }
    }

    fn list(&self, rules: &DirectoryRules) -> io::Result<(Vec<FileEntry>, bool)> {
        let mut walk = PathWalk {
            root: self,
            rules,
            names: Vec::new(),
            seen: HashSet::new(),
            entries: Vec::new(),
            more: false,
        };
        walk.directory(&self.path)?;
        Ok((walk.entries, walk.more))
    }
}

impl DirectoryPath {
    /// Resolves a path below the directory.
    fn resolve(&self, names: &[OsString], rules: &DirectoryRules) -> io::Result<PathBuf> {
        let mut path = self.path.clone();
        for name in names {
            path.push(name);
            let metadata = fs::symlink_metadata(&path).map_err(plain)?;
            if metadata.is_symlink() && !(rules.links && fs::read_link(&path)?.is_relative()) {
                return Err(not_found());
            }
        }
        let path = path.canonicalize().map_err(plain)?;
        let below = path.strip_prefix(&self.path).map_err(|_| not_found())?;
        if !rules.hidden && below.iter().any(is_hidden) { Err(not_found()) } else { Ok(path) }
    }
}

struct PathWalk<'a> {
    root: &'a DirectoryPath,
    rules: &'a DirectoryRules,
    names: Vec<OsString>,
    /// The directories that were already listed, because links may lead to one twice.
    seen: HashSet<PathBuf>,
    entries: Vec<FileEntry>,
    more: bool,
}

impl PathWalk<'_> {
    fn directory(&mut self, path: &Path) -> io::Result<()> {
        if !self.seen.insert(path.to_owned()) {
            return Ok(());
        }
        let mut least = Least::new(self.rules.max_files);
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let name = entry.file_name();
            let served = entry.file_type().is_ok_and(|kind| {
                kind.is_file()
                    || (kind.is_dir() && self.rules.recursive)
                    || (kind.is_symlink() && self.rules.links)
            });
            if served && (self.rules.hidden || !is_hidden(&name)) {
                least.push(name);
            }
        }
        self.more |= least.more;
        for name in least.into_sorted() {
            if self.entries.len() >= self.rules.max_files {
                self.more = true;
                break;
            }
            self.names.push(name);
            // Entries that were removed meanwhile or are inaccessible are omitted.
            let _left_out = self.entry();
            self.names.pop();
        }
        Ok(())
    }

    fn entry(&mut self) -> io::Result<()> {
        let path = self.root.resolve(&self.names, self.rules)?;
        let metadata = fs::metadata(&path)?;
        if metadata.is_file() {
            let (size, modified) = (metadata.len(), metadata.modified().ok());
            self.entries.push(FileEntry { names: self.names.clone(), size, modified });
        } else if metadata.is_dir() && self.rules.recursive && self.names.len() < MAX_DEPTH {
            self.directory(&path)?;
        }
        Ok(())
    }
}

/// Returns whether a name is an ordinary file name: no separators, streams, devices, or trailing characters that are dropped.
#[cfg_attr(unix, allow(dead_code, reason = "tested everywhere"))]
pub(super) fn is_plain(name: &str) -> bool {
    const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];
    let stem = name.split('.').next().unwrap_or(name).trim_end().to_ascii_lowercase();
    let numbered = (stem.starts_with("com") || stem.starts_with("lpt")) && stem.chars().count() == 4;
    !name.contains(|c: char| c.is_control() || r#"<>:"/\|?*"#.contains(c))
        && !name.ends_with(['.', ' '])
        && !numbered
        && !DEVICES.contains(&stem.as_str())
}

fn plain(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotADirectory | io::ErrorKind::InvalidInput | io::ErrorKind::InvalidFilename => {
            not_found()
        }
        _ => error,
    }
}
