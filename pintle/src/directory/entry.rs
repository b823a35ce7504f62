use std::{ffi::OsStr, ffi::OsString, fs::File, io, path::Path, time::SystemTime};

/// How deep subdirectories are listed. Each level holds one file descriptor.
pub(super) const MAX_DEPTH: usize = 32;

/// What is served.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) recursive: bool,
    pub(super) hidden: bool,
    pub(super) links: bool,
    pub(super) max_files: usize,
}

/// A file that is listed.
#[derive(Debug)]
pub(super) struct Entry {
    /// The names from the directory to it.
    pub(super) names: Vec<OsString>,
    pub(super) size: u64,
    pub(super) modified: Option<SystemTime>,
}

/// A directory that nothing leads out of.
pub(super) trait Confined: Sized {
    fn open(path: &Path) -> io::Result<Self>;

    /// A regular file and its size. [`NotFound`](io::ErrorKind::NotFound) if it is anything else, or elsewhere.
    fn file(&self, names: &[OsString], rules: &Rules) -> io::Result<(File, u64)>;

    /// The files in order, and whether there are more than `rules` allow.
    fn list(&self, rules: &Rules) -> io::Result<(Vec<Entry>, bool)>;
}

pub(super) fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

pub(super) fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

/// The least of many names, without holding all of them.
#[derive(Debug)]
pub(super) struct Least {
    names: std::collections::BinaryHeap<OsString>,
    most: usize,
    pub(super) more: bool,
}

impl Least {
    pub(super) fn new(most: usize) -> Self {
        Self { names: std::collections::BinaryHeap::new(), most, more: false }
    }

    pub(super) fn push(&mut self, name: OsString) {
        self.names.push(name);
        if self.names.len() > self.most {
            self.names.pop();
            self.more = true;
        }
    }

    pub(super) fn into_sorted(self) -> Vec<OsString> {
        self.names.into_sorted_vec()
    }
}
