use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A lock between processes: a file that exists while one of them holds it. Dropping it releases it.
///
/// On Unix the operating system locks the file, so that the lock of a process that died is free at once, even if the file
/// is left. Elsewhere the existence of the file is the lock, and one older than [`ABANDONED`] is taken over.
#[derive(Debug)]
pub(crate) struct FileLock {
    path: PathBuf,
    _file: fs::File,
}

impl FileLock {
    /// Takes the lock, unless it is held.
    pub(crate) fn try_take(path: &Path) -> io::Result<Option<Self>> {
        #[cfg(unix)]
        let taken = flocked(path);
        #[cfg(not(unix))]
        let taken = created(path);
        Ok(taken?.map(|file| Self { path: path.to_owned(), _file: file }))
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Removed while it is locked: a process that opened it before finds that the path is another file.
        let _ = fs::remove_file(&self.path);
    }
}

/// Opens and locks the file at this path, unless it is locked.
#[cfg(unix)]
fn flocked(path: &Path) -> io::Result<Option<fs::File>> {
    use std::os::unix::fs::OpenOptionsExt;

    use rustix::{
        fs::{FlockOperation, flock},
        io::Errno,
    };

    let file = fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    Ok(is_at(&file, path)?.then_some(file))
}

/// Whether this file is still the one at this path.
#[cfg(unix)]
fn is_at(file: &fs::File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;

    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The age at which a lock file counts as abandoned.
#[cfg(any(not(unix), test))]
const ABANDONED: std::time::Duration = std::time::Duration::from_secs(120);

/// Creates the file at this path, unless it exists.
#[cfg(any(not(unix), test))]
fn created(path: &Path) -> io::Result<Option<fs::File>> {
    match fs::OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let age = fs::metadata(path).and_then(|there| there.modified()).map(|since| since.elapsed());
            if matches!(age, Ok(Ok(age)) if age > ABANDONED) {
                // The next attempt may succeed.
                fs::remove_file(path)?;
            }
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::{
        env,
        io::{BufRead, BufReader},
        process::{Command, Stdio},
        time::SystemTime,
    };

    use super::*;
    use crate::shared::noise;

    /// What the other process of a test is told to lock.
    const TO_LOCK: &str = "PINTLE_TEST_LOCKS";

    fn path() -> PathBuf {
        env::temp_dir().join(format!("pintle-lock-{}", noise::random().unwrap()))
    }

    #[test]
    fn one_has_it_at_a_time_and_leaves_nothing_behind() {
        let path = path();
        let lock = FileLock::try_take(&path).unwrap().unwrap();
        assert!(FileLock::try_take(&path).unwrap().is_none());
        drop(lock);
        assert!(!path.exists());
        drop(FileLock::try_take(&path).unwrap().unwrap());
    }

    #[test]
    fn who_opened_what_is_removed_meanwhile_has_nothing() {
        let path = path();
        let lock = FileLock::try_take(&path).unwrap().unwrap();
        let late = fs::File::open(&path).unwrap();
        assert!(is_at(&late, &path).unwrap());
        drop(lock);
        assert!(!is_at(&late, &path).unwrap());
        let next = FileLock::try_take(&path).unwrap().unwrap();
        rustix::fs::flock(&late, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
        assert!(!is_at(&late, &path).unwrap(), "it is another file of the same name");
        assert!(FileLock::try_take(&path).unwrap().is_none());
        drop(next);
    }

    /// Plays the other process: not a test by itself.
    #[test]
    fn another_process() {
        let Ok(path) = env::var(TO_LOCK) else { return };
        let _lock = FileLock::try_take(Path::new(&path)).unwrap().unwrap();
        println!("locked");
        // Until it is ended, or who started it is gone.
        let _ = io::stdin().read_line(&mut String::new());
    }

    #[test]
    fn a_lock_of_a_process_that_has_died_is_free() {
        let path = path();
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "client::store::lock::tests::another_process", "--nocapture"])
            .env(TO_LOCK, &path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let text = BufReader::new(child.stdout.take().unwrap());
        assert!(text.lines().take(50).any(|line| line.unwrap().ends_with("locked")));
        assert!(FileLock::try_take(&path).unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(path.exists(), "nobody has cleaned up");
        drop(FileLock::try_take(&path).unwrap().unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn without_the_systems_help_a_file_is_a_lock_for_a_while() {
        let path = path();
        let file = created(&path).unwrap().unwrap();
        assert!(created(&path).unwrap().is_none());
        file.set_modified(SystemTime::now() - 2 * ABANDONED).unwrap();
        assert!(created(&path).unwrap().is_none(), "it is only cleaned up");
        assert!(created(&path).unwrap().is_some());
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_lock_that_cannot_be_looked_at_is_an_error() {
        let path = path();
        let lock = FileLock::try_take(&path).unwrap().unwrap();
        // There is nothing below a file.
        let below = path.join("below");
        assert!(is_at(&fs::File::open(&path).unwrap(), &below).is_err());
        assert!(created(&below).is_err());
        drop(lock);
    }
}
