use std::{
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// The files of a document, as they were when they were read.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DocumentFiles(Vec<(PathBuf, Option<FileState>)>);

/// The length and the time of the last change.
type FileState = (u64, SystemTime);

impl DocumentFiles {
    /// Notes a file that is about to be read: a later change of it is one.
    pub(super) fn note(&mut self, path: PathBuf) {
        let state = state(&path);
        self.0.push((path, state));
    }

    /// Returns the paths of the files, the document's first.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|(path, _)| &**path)
    }

    /// Returns whether a file has another length or time than when it was read, is gone, or is there now. It blocks.
    pub fn have_changed(&self) -> bool {
        self.0.iter().any(|(path, before)| state(path) != *before)
    }
}

fn state(path: &Path) -> Option<FileState> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH)))
}
