use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use super::{EditedFile, beside};
use crate::config::{ConfigError, Location, Scope};

/// How long to wait for another process that changes the file.
const WAIT: Duration = Duration::from_secs(5);
/// The interval between two attempts to begin.
const INTERVAL: Duration = Duration::from_millis(50);
/// The age at which a new file counts as left by a process that died.
const ABANDONED: Duration = Duration::from_secs(30);

/// The end of the name of a file that is kept as it was.
pub(super) const BACKUP: &str = ".pintle.bak";

/// A new file beside the one that it is to replace. While it exists, no other process replaces that file in this way. Dropping it
/// removes it.
pub(super) struct Replacement {
    /// The file to replace.
    target: PathBuf,
    new: PathBuf,
    scope: Scope,
    /// Whether it has its place: what is at the path of the new file then is another process's.
    is_done: bool,
}

impl Replacement {
    /// Creates the new file. Waits if another process has one.
    pub(super) fn begin(location: &Location) -> io::Result<Self> {
        let target = followed(&location.path)?;
        if let Some(directory) = target.parent() {
            create_directory(directory, location.scope)?;
        }
        let new = beside(&target, ".pintle.new");
        for _ in 0..WAIT.as_millis() / INTERVAL.as_millis() {
            match create(&new) {
                Ok(_) => return Ok(Self { target, new, scope: location.scope, is_done: false }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            let age = fs::symlink_metadata(&new).and_then(|new| new.modified()).map(|at| at.elapsed());
            if matches!(age, Ok(Ok(age)) if age > ABANDONED) {
                // The next attempt may succeed.
                let _ = fs::remove_file(&new);
            }
            thread::sleep(INTERVAL);
        }
        let message = format!("another process changes it; if there is none, delete `{}`", new.display());
        Err(io::Error::new(io::ErrorKind::ResourceBusy, message))
    }

    /// Replaces the file, unless its text is another now: then nothing is changed and `None` is returned.
    pub(super) fn write(
        &mut self,
        before: Option<&str>,
        after: &str,
        current: impl Fn() -> Result<Option<String>, ConfigError>,
    ) -> io::Result<Option<EditedFile>> {
        let mut file = fs::OpenOptions::new().write(true).truncate(true).open(&self.new)?;
        file.write_all(after.as_bytes())?;
        match fs::metadata(&self.target) {
            Ok(target) => file.set_permissions(target.permissions())?,
            // What a user has configured may contain secrets; the file of a project is for all of it.
            Err(_) if self.scope == Scope::Project => share(&file)?,
            Err(_) => {}
        }
        file.sync_all()?;
        drop(file);
        let backup = match before {
            Some(before) => Some(self.back_up(before)?),
            None => None,
        };
        if current().ok().as_ref().map(Option::as_deref) != Some(before) {
            return Ok(None);
        }
        fs::rename(&self.new, &self.target)?;
        self.is_done = true;
        Ok(Some(EditedFile { path: self.target.clone(), backup }))
    }

    /// Keeps the file as it was, with its permissions. Another backup is replaced.
    fn back_up(&self, text: &str) -> io::Result<PathBuf> {
        let backup = beside(&self.target, BACKUP);
        let new = beside(&self.target, ".pintle.bak.new");
        // Left by a process that died.
        let _ = fs::remove_file(&new);
        let mut file = create(&new)?;
        file.write_all(text.as_bytes())?;
        file.set_permissions(fs::metadata(&self.target)?.permissions())?;
        drop(file);
        fs::rename(&new, &backup)?;
        Ok(backup)
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.is_done {
            let _ = fs::remove_file(&self.new);
        }
    }
}

/// Creates a directory: that of a user for its owner only, as the file. One that exists is left as it is.
fn create_directory(path: &Path, scope: Scope) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    if scope != Scope::Project {
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    }
    #[cfg(not(unix))]
    let _ = scope;
    builder.recursive(true).create(path)
}

/// Creates a file for its owner only.
fn create(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(unix)]
fn share(file: &fs::File) -> io::Result<()> {
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
}

#[cfg(not(unix))]
fn share(_: &fs::File) -> io::Result<()> {
    Ok(())
}

/// Returns the file that a path leads to, so that a symbolic link stays one.
fn followed(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Ok(target) => Ok(target),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Err(_) if fs::symlink_metadata(path).is_ok() => {
            Err(io::Error::new(io::ErrorKind::NotFound, "it is a symbolic link that leads nowhere"))
        }
        Err(_) => Ok(path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Host;

    #[test]
    fn a_file_that_changed_meanwhile_is_not_replaced() {
        let path = std::env::temp_dir().join(format!("pintle-replace-{}.json", std::process::id()));
        fs::write(&path, "theirs").unwrap();
        let location = Location { host: Host::Cursor, scope: Scope::User, path: path.clone() };
        let mut replacement = Replacement::begin(&location).unwrap();
        let theirs = || Ok(Some("theirs".to_owned()));
        assert_eq!(replacement.write(Some("old"), "old and new", theirs).unwrap(), None);
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        let edited = replacement.write(Some("theirs"), "theirs and new", theirs).unwrap().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs and new");
        // The new file of another process now.
        let new = beside(&edited.path, ".pintle.new");
        fs::write(&new, "").unwrap();
        drop(replacement);
        assert!(new.exists());
        for file in [&path, &new, &edited.backup.unwrap()] {
            fs::remove_file(file).unwrap();
        }
    }
}
