use std::{
    io,
    path::{Path, PathBuf},
};

use pintle_oauth::client::{FileStore, StoreLock};
use ring::digest::{SHA256, digest};

use super::{credentials, open_browser};
use crate::{
    failure::Failure,
    output::{Output, Text},
    storage,
};

/// The maximum size of the file.
const MAX_BYTES: u64 = 64 << 10;

/// Opens the page of a login in a browser, unless that is not wanted, and prints its address to standard error.
pub(crate) fn show_login_page(url: &str, no_browser: bool, output: &Output) {
    let opened = if no_browser { Err(io::Error::other("not wanted")) } else { open_browser(url) };
    let mut text = Text::new();
    text.line(match opened {
        Ok(()) => "the login page opens in a browser; if it does not, open",
        Err(_) => "to log in, open",
    });
    output.question(text.end().add("  ").line(url).end());
}

/// The page of the login to one server that is open now, which processes of the same user share: a file with its address, and a lock
/// that the process has that opened it.
#[derive(Debug)]
pub(super) struct SharedLoginPage {
    path: PathBuf,
    file: FileStore,
    lock: String,
}

impl SharedLoginPage {
    /// Returns that of a server.
    pub(super) fn of(server: &str) -> Result<Self, Failure> {
        let hash: String = digest(&SHA256, server.as_bytes()).as_ref()[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let path = storage::directory()?.join(format!("login-{hash}.page"));
        Ok(Self { path, file: credentials()?, lock: format!("login to {server}") })
    }

    /// Takes the right to open the page. `None` if another process has it.
    pub(super) async fn lock(&self) -> pintle::Result<Option<StoreLock>> {
        self.file.try_lock(&self.lock).await
    }

    /// Writes the address for other processes, until the value is dropped.
    pub(super) fn open(&self, url: &str) -> io::Result<OpenPage> {
        storage::write_private(&self.path, url.as_bytes())?;
        Ok(OpenPage(self.path.clone()))
    }

    /// Returns the address that another process has opened.
    pub(super) fn read(&self) -> Option<String> {
        let read = storage::read_private(&self.path, MAX_BYTES).ok().flatten()?;
        String::from_utf8(read).ok().filter(|url| !url.is_empty())
    }
}

/// A page that is open. Dropping it removes its file.
#[derive(Debug)]
pub(super) struct OpenPage(PathBuf);

impl Drop for OpenPage {
    fn drop(&mut self) {
        let path: &Path = &self.0;
        // The user may have removed it.
        let _ = std::fs::remove_file(path);
    }
}
