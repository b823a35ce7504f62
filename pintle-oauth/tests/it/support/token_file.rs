use std::{
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use pintle_oauth::client::FileStore;

/// A file of credentials in a folder of its own, which is removed at the end.
pub(crate) struct TokenFolder(PathBuf);

impl TokenFolder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("pintle-tokens-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// The file, as another process would open it.
    pub(crate) fn file(&self) -> FileStore {
        FileStore::at(self.0.join("tokens.json"))
    }

    /// The number of files in the folder.
    pub(crate) fn files(&self) -> usize {
        std::fs::read_dir(&self.0).unwrap().count()
    }
}

impl Drop for TokenFolder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}
