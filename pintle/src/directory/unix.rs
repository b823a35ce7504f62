use std::{
    collections::{HashSet, VecDeque},
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat},
    io::Errno,
};

use super::entry::{Confined, DirectoryRules, FileEntry, Least, MAX_DEPTH, is_hidden, not_found};

/// The maximum number of links that are followed for one file.
const MAX_LINKS: usize = 16;

/// A directory that is held open by its file descriptor.
#[derive(Debug)]
pub(super) struct DirectoryHandle {
    fd: OwnedFd,
}

impl Confined for DirectoryHandle {
    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { fd: rustix::fs::open(path, DIRECTORY, Mode::empty())? })
    }

    fn file(&self, names: &[OsString], rules: &DirectoryRules) -> io::Result<(File, u64)> {
        match self.resolve(names, rules)? {
            Resolved::File(fd, stat) => Ok((File::from(fd), size(&stat))),
            Resolved::Directory(_) => Err(not_found()),
        }
    }

    fn list(&self, rules: &DirectoryRules) -> io::Result<(Vec<FileEntry>, bool)> {
        let mut walk = HandleWalk {
            root: self,
            rules,
            names: Vec::new(),
            seen: HashSet::new(),
            entries: Vec::new(),
            more: false,
        };
        walk.directory(self.fd.as_fd())?;
        Ok((walk.entries, walk.more))
    }
}

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Flags for opening a file. If a pipe or terminal replaces it after the check, opening it neither blocks nor makes it the
/// controlling terminal.
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

enum Resolved {
    File(OwnedFd, Stat),
    Directory(OwnedFd),
}

impl DirectoryHandle {
    /// Resolves a path by opening one directory after the other. The targets of links are resolved in the same way.
    fn resolve(&self, names: &[OsString], rules: &DirectoryRules) -> io::Result<Resolved> {
        let mut todo: VecDeque<OsString> = names.iter().cloned().collect();
        let mut way: Vec<OwnedFd> = Vec::new();
        let mut links = 0;
        while let Some(name) = todo.pop_front() {
            // Only links contain `..`; the names of a URI were checked.
            if name == ".." {
                way.pop().ok_or_else(not_found)?;
                continue;
            }
            let here = way.last().map_or(self.fd.as_fd(), AsFd::as_fd);
            match kind(&look(here, &name)?) {
                FileType::Directory => {
                    way.push(enter(here, &name)?);
                    if way.len() > MAX_DEPTH {
                        return Err(not_found());
                    }
                }
                FileType::RegularFile if todo.is_empty() => {
                    let fd = openat(here, &name, FILE, Mode::empty()).map_err(plain)?;
                    let stat = fstat(&fd)?;
                    return match kind(&stat) {
                        FileType::RegularFile => Ok(Resolved::File(fd, stat)),
                        _ => Err(not_found()),
                    };
                }
                FileType::Symlink if rules.links => {
                    links += 1;
                    let target = readlinkat(here, &name, Vec::new()).map_err(plain)?;
                    let target = target.to_bytes();
                    if links > MAX_LINKS || target.starts_with(b"/") {
                        return Err(not_found());
                    }
                    for part in
                        target.rsplit(|&byte| byte == b'/').filter(|part| !matches!(*part, b"" | b"."))
                    {
                        let part = OsStr::from_bytes(part);
                        if !rules.hidden && part != ".." && is_hidden(part) {
                            return Err(not_found());
                        }
                        todo.push_front(part.to_owned());
                    }
                }
                _ => return Err(not_found()),
            }
        }
        way.pop().map(Resolved::Directory).ok_or_else(not_found)
    }
}

struct HandleWalk<'a> {
    root: &'a DirectoryHandle,
    rules: &'a DirectoryRules,
    /// The path of the directory that is being listed.
    names: Vec<OsString>,
    /// The directories that were already listed, because links may lead to one twice.
    seen: HashSet<(u64, u64)>,
    entries: Vec<FileEntry>,
    more: bool,
}

impl HandleWalk<'_> {
    fn directory(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let stat = fstat(fd)?;
        #[allow(
            clippy::unnecessary_cast,
            clippy::useless_conversion,
            reason = "their types differ between systems"
        )]
        let identity = (stat.st_dev as u64, stat.st_ino as u64);
        if !self.seen.insert(identity) {
            return Ok(());
        }
        let mut least = Least::new(self.rules.max_files);
        for entry in Dir::read_from(fd)? {
            let entry = entry?;
            let name = OsString::from_vec(entry.file_name().to_bytes().to_owned());
            let served = match entry.file_type() {
                FileType::RegularFile | FileType::Unknown => true,
                FileType::Directory => self.rules.recursive,
                FileType::Symlink => self.rules.links,
                _ => false,
            };
            if served && name != "." && name != ".." && (self.rules.hidden || !is_hidden(&name)) {
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
            let _left_out = self.entry(fd);
            self.names.pop();
        }
        Ok(())
    }

    fn entry(&mut self, here: BorrowedFd<'_>) -> io::Result<()> {
        let Some(name) = self.names.last() else { return Ok(()) };
        let stat = look(here, name)?;
        match kind(&stat) {
            FileType::RegularFile => self.file(&stat),
            FileType::Directory => {
                let fd = enter(here, name)?;
                self.descend(&fd)?;
            }
            FileType::Symlink if self.rules.links => match self.root.resolve(&self.names, self.rules)? {
                Resolved::File(_, stat) => self.file(&stat),
                Resolved::Directory(fd) => self.descend(&fd)?,
            },
            _ => {}
        }
        Ok(())
    }

    fn file(&mut self, stat: &Stat) {
        self.entries.push(FileEntry {
            names: self.names.clone(),
            size: size(stat),
            modified: modified(stat),
        });
    }

    fn descend(&mut self, fd: &OwnedFd) -> io::Result<()> {
        if !self.rules.recursive || self.names.len() >= MAX_DEPTH {
            return Ok(());
        }
        self.directory(fd.as_fd())
    }
}

fn look(here: BorrowedFd<'_>, name: &OsStr) -> io::Result<Stat> {
    statat(here, name, AtFlags::SYMLINK_NOFOLLOW).map_err(plain)
}

fn enter(here: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    openat(here, name, DIRECTORY, Mode::empty()).map_err(plain)
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

#[allow(clippy::unnecessary_cast, clippy::useless_conversion, reason = "their types differ between systems")]
fn modified(stat: &Stat) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(stat.st_mtime).ok()?))
}

/// Maps errors of names that are not served, or were replaced meanwhile, to "not found".
fn plain(error: Errno) -> io::Error {
    match error {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG | Errno::INVAL | Errno::NXIO => {
            not_found()
        }
        other => other.into(),
    }
}
