use std::{
    collections::BTreeMap,
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use pintle::{Error, Result};
use tokio::time::{Instant, sleep};

use super::{Store, StoreLock, credentials::Credentials, lock::FileLock, stored_login::StoredLogin};
use crate::shared::{clock, noise};

/// How long to wait for another process that refreshes tokens: longer than its requests may take.
const RENEWING: Duration = Duration::from_secs(90);
/// How long to wait for another process that writes.
const WRITING: Duration = Duration::from_secs(5);
/// The interval between two attempts to take a lock.
const LOOK: Duration = Duration::from_millis(50);

/// Keeps credentials in a file that only its owner can read.
///
/// The file is replaced as a whole, so that a crash leaves the old or the new one. Processes may share it: one at a time
/// refreshes the tokens of an issuer, and the others use the result. Meanwhile there is a lock file beside it, with `.lock`
/// appended to its name. A lock of a process that died is free at once on Unix, and after two minutes elsewhere.
///
/// ```no_run
/// use pintle_oauth::client::{FileStore, Loopback, OAuth};
///
/// let oauth = OAuth::login("My app", Loopback::browser()).store(FileStore::at("tokens.json"));
/// ```
#[derive(Clone, Debug)]
pub struct FileStore(Arc<Kept>);

#[derive(Debug)]
struct Kept {
    path: PathBuf,
    /// The limit of issuers.
    max_issuers: usize,
    /// Held while the file is read, changed and written.
    turn: Mutex<()>,
}

type All = BTreeMap<String, Credentials>;

impl FileStore {
    /// Stores credentials at this path. The file is created when needed; its directory has to exist.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Kept { path: path.into(), max_issuers: usize::MAX, turn: Mutex::new(()) }))
    }

    /// Sets the limit of issuers. When those of one more are saved, the credentials that have no tokens are removed first, and then those
    /// that were not saved for the longest time: tokens that are used are refreshed, and saved again. Default: no limit.
    ///
    /// ```
    /// use pintle_oauth::client::FileStore;
    ///
    /// let file = FileStore::at("tokens.json").max_issuers(1_000);
    /// ```
    #[must_use]
    pub fn max_issuers(self, limit: usize) -> Self {
        let path = self.0.path.clone();
        Self(Arc::new(Kept { path, max_issuers: limit.max(1), turn: Mutex::new(()) }))
    }

    /// Returns the logins whose tokens the file has, by issuer and resource.
    ///
    /// # Errors
    ///
    /// The file cannot be read or parsed.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// use pintle_oauth::client::FileStore;
    ///
    /// for login in FileStore::at("no-such-tokens.json").logins().await? {
    ///     println!("{} at {}", login.resource, login.issuer);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn logins(&self) -> Result<Vec<StoredLogin>> {
        self.apart(|path| {
            let all = read(path)?;
            Ok(all
                .iter()
                .flat_map(|(issuer, credentials)| StoredLogin::all_of(issuer, credentials))
                .collect())
        })
        .await
    }

    /// Removes the tokens of a login. Returns whether there were any. The authorization server is not notified.
    ///
    /// # Errors
    ///
    /// The file cannot be read, parsed or written.
    pub async fn forget(&self, login: &StoredLogin) -> Result<bool> {
        let (issuer, resource) = (login.issuer.clone(), login.resource.clone());
        self.apart(move |path| {
            let mut found = false;
            update(path, |all| {
                found = all.get_mut(&issuer).is_some_and(|known| known.tokens.remove(&resource).is_some());
            })?;
            Ok(found)
        })
        .await
    }

    /// Takes the lock of an issuer, or of any other name, without waiting. `None` if another process holds it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// use pintle_oauth::client::FileStore;
    ///
    /// # let folder = std::env::temp_dir().join(format!("pintle-try-lock-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// let file = FileStore::at(folder.join("tokens.json"));
    /// let lock = file.try_lock("login").await?;
    /// assert!(lock.is_some() && file.try_lock("login").await?.is_none());
    /// # drop(lock);
    /// # std::fs::remove_dir_all(folder)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The lock file beside the file cannot be created.
    pub async fn try_lock(&self, issuer: &str) -> Result<Option<StoreLock>> {
        let name = format!(".{}.lock", &noise::sha256(issuer.as_bytes())[..16]);
        let path = beside(&self.0.path, &name);
        // Not under the mutex: reading and writing go on while the lock is held.
        let taken = tokio::task::spawn_blocking(move || FileLock::try_take(&path)).await;
        let taken = taken.map_err(|_| Error::Io(io::Error::other("the program is ending")))?;
        Ok(taken?.map(StoreLock::new))
    }

    async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> Result<T> {
        let kept = self.0.clone();
        let done = tokio::task::spawn_blocking(move || {
            let _turn = kept.turn.lock().unwrap_or_else(PoisonError::into_inner);
            work(&kept.path).map_err(|error| {
                let shown = kept.path.display();
                Error::Io(io::Error::new(error.kind(), format!("the credentials in `{shown}`: {error}")))
            })
        });
        done.await.unwrap_or_else(|_| Err(Error::Io(io::Error::other("the program is ending"))))
    }
}

impl Store for FileStore {
    async fn load(&self, issuer: &str) -> Result<Option<Credentials>> {
        let issuer = issuer.to_owned();
        self.apart(move |path| Ok(read(path)?.remove(&issuer))).await
    }

    async fn save(&self, issuer: &str, credentials: &Credentials) -> Result<()> {
        let (issuer, mut credentials, limit) = (issuer.to_owned(), credentials.clone(), self.0.max_issuers);
        credentials.saved_at = clock::now();
        self.apart(move |path| {
            update(path, |all| {
                make_room(all, &issuer, limit);
                all.insert(issuer, credentials);
            })
        })
        .await
    }

    async fn lock(&self, issuer: &str) -> Result<StoreLock> {
        let end = Instant::now() + RENEWING;
        loop {
            if let Some(lock) = self.try_lock(issuer).await? {
                return Ok(lock);
            }
            if Instant::now() >= end {
                let message = "another process holds the lock for refreshing tokens; end it and try again";
                return Err(Error::Io(io::Error::new(io::ErrorKind::TimedOut, message)));
            }
            sleep(LOOK).await;
        }
    }
}

/// Removes issuers so that one more can be added.
fn make_room(all: &mut All, issuer: &str, limit: usize) {
    let room = limit.saturating_sub(usize::from(!all.contains_key(issuer)));
    while all.len() > room {
        let others = all.iter().filter(|(known, _)| *known != issuer);
        let oldest = others.min_by_key(|(_, kept)| (!kept.tokens.is_empty(), kept.saved_at));
        let Some(oldest) = oldest.map(|(known, _)| known.clone()) else { return };
        all.remove(&oldest);
    }
}

/// Waits for a lock, on a thread that may block. `None`: another process does not release it, and the work is done without
/// it.
fn locked(path: &Path) -> io::Result<Option<FileLock>> {
    for _ in 0..WRITING.as_millis() / LOOK.as_millis() {
        if let Some(lock) = FileLock::try_take(path)? {
            return Ok(Some(lock));
        }
        thread::sleep(LOOK);
    }
    tracing::warn!(lock = %path.display(), "another process holds the lock for writing credentials; going on without it");
    Ok(None)
}

/// Changes the file, one process at a time.
fn update(path: &Path, change: impl FnOnce(&mut All)) -> io::Result<()> {
    // Another process may be writing the credentials of another issuer.
    let _lock = locked(&beside(path, ".lock")).unwrap_or_else(|error| {
        // Some file systems have no locks. Writing without one is better than not writing.
        tracing::warn!(%error, "writing credentials without a lock");
        None
    });
    let mut all = read(path)?;
    change(&mut all);
    write(path, &serde_json::to_vec_pretty(&all)?)
}

/// Returns this path with a suffix.
fn beside(path: &Path, more: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(more);
    path.with_file_name(name)
}

fn read(path: &Path) -> io::Result<All> {
    match fs::read(path) {
        // The error would quote the contents.
        Ok(text) => serde_json::from_slice(&text).map_err(|_| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "the file cannot be parsed; delete it and log in again",
            )
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(All::new()),
        Err(error) => Err(error),
    }
}

fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let unique = noise::random().map_err(|error| io::Error::other(error.to_string()))?;
    let beside = beside(path, &format!(".{}", &unique[..12]));
    let written = write_new(&beside, text).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // It may not exist.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn write_new(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text)?;
    file.sync_all()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            let folder = std::env::temp_dir().join(format!("pintle-oauth-{}", noise::random().unwrap()));
            fs::create_dir(&folder).unwrap();
            Self(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn credentials(token: &str) -> Credentials {
        serde_json::from_str(&format!(r#"{{"tokens":{{"https://h":{{"access":"{token}"}}}}}}"#)).unwrap()
    }

    #[tokio::test]
    async fn logins_are_listed_and_forgotten_one_by_one() {
        let folder = Folder::new();
        let file = FileStore::at(folder.0.join("tokens.json"));
        assert_eq!(file.logins().await.unwrap(), []);
        let text = r#"{"tokens":{"https://a":{"access":"t0ken","refresh":"refr3sh","stale_at":60,"requested":["x"],"client_id":"c"},
            "https://b":{"access":"t0ken","stale_at":18446744073709551615}}}"#;
        file.save("https://i", &serde_json::from_str(text).unwrap()).await.unwrap();
        let logins = file.logins().await.unwrap();
        assert!(!format!("{logins:?}").contains("t0ken"));
        let StoredLogin { issuer, resource, client_id, scopes, stale_at, refreshable } = &logins[0];
        assert_eq!((&**issuer, &**resource, &**client_id), ("https://i", "https://a", "c"));
        assert_eq!((scopes.len(), *refreshable), (1, true));
        assert_eq!(*stale_at, Some(std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(60)));
        assert!(file.forget(&logins[0]).await.unwrap());
        assert!(!file.forget(&logins[0]).await.unwrap());
        assert_eq!(file.logins().await.unwrap(), logins[1..]);
    }

    #[tokio::test]
    async fn a_file_is_for_its_owner_and_holds_every_issuer_apart() {
        let folder = Folder::new();
        let path = folder.0.join("tokens.json");
        let file = FileStore::at(&path);
        assert!(file.load("https://a").await.unwrap().is_none());
        file.save("https://a", &credentials("one")).await.unwrap();
        file.save("https://b", &credentials("two")).await.unwrap();
        file.save("https://a", &credentials("three")).await.unwrap();
        let again = FileStore::at(&path);
        assert_eq!(
            again.load("https://a").await.unwrap().unwrap().tokens["https://h"].access.reveal(),
            "three"
        );
        assert_eq!(
            again.load("https://b").await.unwrap().unwrap().tokens["https://h"].access.reveal(),
            "two"
        );
        assert!(again.load("https://c").await.unwrap().is_none());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn a_file_with_a_limit_forgets_what_has_no_tokens_and_then_what_was_saved_first() {
        let folder = Folder::new();
        let path = folder.0.join("tokens.json");
        let file = FileStore::at(&path).max_issuers(3);
        let saved = |name: &str, seconds: u64| {
            let mut kept = credentials(name);
            kept.saved_at = seconds;
            (name.to_owned(), kept)
        };
        let mut all = All::from_iter([saved("a", 2), saved("b", 1), saved("c", 3)]);
        all.get_mut("c").unwrap().tokens.clear();
        write(&path, &serde_json::to_vec(&all).unwrap()).unwrap();
        let known = || read(&path).unwrap().into_keys().collect::<Vec<_>>();
        file.save("b", &credentials("b")).await.unwrap();
        assert_eq!(known(), ["a", "b", "c"], "what is known needs no room");
        file.save("d", &credentials("d")).await.unwrap();
        assert_eq!(known(), ["a", "b", "d"], "`c` has no tokens");
        file.save("e", &credentials("e")).await.unwrap();
        assert_eq!(known(), ["b", "d", "e"], "`a` was saved before all others");
        assert_eq!(file.load("b").await.unwrap().unwrap().tokens["https://h"].access.reveal(), "b");
    }

    #[tokio::test]
    async fn credentials_are_saved_where_no_lock_can_be_taken() {
        let folder = Folder::new();
        let path = folder.0.join("tokens.json");
        // A folder cannot be opened as a lock file.
        fs::create_dir(folder.0.join("tokens.json.lock")).unwrap();
        assert!(FileLock::try_take(&folder.0.join("tokens.json.lock")).is_err());
        FileStore::at(&path).save("https://a", &credentials("one")).await.unwrap();
        let kept = FileStore::at(&path).load("https://a").await.unwrap().unwrap();
        assert_eq!(kept.tokens["https://h"].access.reveal(), "one");
    }

    #[tokio::test]
    async fn a_broken_file_is_not_shown_and_not_overwritten() {
        let folder = Folder::new();
        let path = folder.0.join("tokens.json");
        fs::write(&path, "s3cret").unwrap();
        let file = FileStore::at(&path);
        let error = file.load("https://a").await.unwrap_err().to_string();
        assert!(error.contains("delete it and log in again") && !error.contains("s3cret"), "{error}");
        assert!(file.save("https://a", &credentials("one")).await.is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "s3cret");
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_read_is_not_an_empty_one() {
        let folder = Folder::new();
        // A folder cannot be read as a file.
        assert!(FileStore::at(&folder.0).load("https://a").await.is_err());
    }

    #[test]
    fn a_free_lock_for_writing_is_taken() {
        let folder = Folder::new();
        let path = folder.0.join("lock");
        let lock = locked(&path).unwrap().unwrap();
        assert!(FileLock::try_take(&path).unwrap().is_none());
        drop(lock);
    }
}
