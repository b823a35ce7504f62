//! A folder that is removed with the test.

use std::{
    env, fs,
    path::PathBuf,
    process,
    sync::atomic::{AtomicUsize, Ordering},
};

use tokio::sync::watch;

/// A folder of a test's own.
pub(crate) struct Folder {
    path: PathBuf,
    /// Counts the changes of the file of tasks in it.
    pub(crate) changes: watch::Sender<u64>,
}

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("pintle-sqlite-{}-{number}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Self { path, changes: watch::Sender::new(0) }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}
