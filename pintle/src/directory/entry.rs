use std::{ffi::OsStr, ffi::OsString, fs::File, io, path::Path, time::SystemTime};

/// The maximum depth of subdirectories. Each level holds one file descriptor.
pub(super) const MAX_DEPTH: usize = 32;

/// The rules that determine which files are served.
#[derive(Clone, Debug)]
pub(super) struct DirectoryRules {
    pub(super) recursive: bool,
    pub(super) hidden: bool,
    pub(super) links: bool,
    pub(super) max_files: usize,
}

/// A listed file.
#[derive(Debug)]
pub(super) struct FileEntry {
    /// The components of its path, relative to the directory.
    pub(super) names: Vec<OsString>,
    pub(super) size: u64,
    pub(super) modified: Option<SystemTime>,
}

/// A directory that no path leads out of.
pub(super) trait Confined: Sized {
    fn open(path: &Path) -> io::Result<Self>;

    /// Opens a regular file and returns its size. Anything else is [`NotFound`](io::ErrorKind::NotFound).
    fn file(&self, names: &[OsString], rules: &DirectoryRules) -> io::Result<(File, u64)>;

    /// Lists the files in order, and returns whether there are more than `rules` allow.
    fn list(&self, rules: &DirectoryRules) -> io::Result<(Vec<FileEntry>, bool)>;
}

pub(super) fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

pub(super) fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

/// The first names in sorted order, in bounded memory.
#[derive(Debug)]
pub(super) struct Least {
    names: std::collections::BinaryHeap<OsString>,
    limit: usize,
    pub(super) more: bool,
}

impl Least {
    pub(super) fn new(limit: usize) -> Self {
        Self { names: std::collections::BinaryHeap::new(), limit, more: false }
    }

    pub(super) fn push(&mut self, name: OsString) {
        self.names.push(name);
        if self.names.len() > self.limit {
            self.names.pop();
            self.more = true;
        }
    }

    pub(super) fn into_sorted(self) -> Vec<OsString> {
        self.names.into_sorted_vec()
    }
}
