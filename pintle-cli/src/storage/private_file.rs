use std::{
    fs,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

/// Reads a file of the command, up to a size. `None` if there is none.
///
/// A file that others can write is an error: its contents are decisions of the user.
pub(crate) fn read_private(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    open(path)?.map(|file| read(file, limit)).transpose()
}

/// Reads a file with a secret, up to a size. `None` if there is none.
///
/// A file that others can read, or that belongs to another user, is an error. A group may read it: those of containers are mounted so.
pub(crate) fn read_secret(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let Some(file) = open(path)? else { return Ok(None) };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;

        let metadata = file.metadata()?;
        if metadata.mode() & 0o004 != 0 {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "others can read it"));
        }
        if ![0, rustix::process::geteuid().as_raw()].contains(&metadata.uid()) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
        }
    }
    read(file, limit).map(Some)
}

/// Opens a file that others cannot write.
fn open(path: &Path) -> io::Result<Option<fs::File>> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&file.metadata()?.permissions()) & 0o022 != 0 {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "others can write it"));
    }
    Ok(Some(file))
}

fn read(file: fs::File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too large")),
        false => Ok(bytes),
    }
}

/// Replaces a file as a whole. Only its owner can read it.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = beside(path);
    let written = write_new(&beside, bytes).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // It may not exist.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// Creates a file as a whole, unless there is one, also one that another process creates at the same time. Only its owner can read it.
pub(crate) fn create_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = beside(path);
    let created = write_new(&beside, bytes).and_then(|()| fs::hard_link(&beside, path));
    // It may not exist.
    let _ = fs::remove_file(&beside);
    match created {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        created => created,
    }
}

/// Returns a path in the same directory that nothing else uses.
fn beside(path: &Path) -> PathBuf {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let unique = format!(".{}-{}.new", process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(unique);
    path.with_file_name(name)
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Left by a process that died, with the same number.
    let _ = fs::remove_file(path);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_is_for_its_owner() {
        let path = std::env::temp_dir().join(format!("pintle-private-{}", process::id()));
        assert_eq!(read_private(&path, 10).unwrap(), None);
        write_private(&path, b"one").unwrap();
        write_private(&path, b"two").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read_private(&path, 3).unwrap().as_deref(), Some(&b"two"[..]));
        assert_eq!(read_private(&path, 2).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o622)).unwrap();
        assert_eq!(read_private(&path, 3).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_secret_is_read_if_others_cannot_and_a_file_that_is_there_is_kept() {
        let path = std::env::temp_dir().join(format!("pintle-secret-{}", process::id()));
        create_private(&path, b"one").unwrap();
        create_private(&path, b"two").unwrap();
        for (mode, is_read) in [(0o600, true), (0o440, true), (0o604, false), (0o620, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let read = read_secret(&path, 3);
            assert_eq!(
                read.as_ref().ok().and_then(Option::as_deref),
                is_read.then_some(&b"one"[..]),
                "{mode:o}"
            );
        }
        fs::remove_file(&path).unwrap();
    }
}
