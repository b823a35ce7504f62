use std::{
    fs::{File, Metadata, OpenOptions},
    io::{self, Read as _},
    path::Path,
};

/// Reads the text of a regular file of at most so many bytes, and its metadata. What is no file, such as a pipe, is refused without a wait.
///
/// # Errors
///
/// The file cannot be read, is no file or no text, or is longer.
pub fn read_file(path: &Path, limit: u64) -> io::Result<(Metadata, String)> {
    let file = open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is no file: write the path of one"));
    }
    let mut text = String::new();
    file.take(limit + 1).read_to_string(&mut text)?;
    match text.len() as u64 > limit {
        true => Err(io::Error::other(format!(
            "it has more than {limit} bytes: move a part of it into another file, or shorten it"
        ))),
        false => Ok((metadata, text)),
    }
}

/// Opens a file. The end of a pipe is opened at once, also if nobody has the other.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;

        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    options.read(true).open(path)
}

/// Reads a file as [`read_file`] does, which nobody but this user and the administrator may write.
///
/// # Errors
///
/// Those of `read_file`, and others may write the file.
pub fn read_own_file(path: &Path, limit: u64) -> io::Result<String> {
    let (metadata, text) = read_file(path, limit)?;
    // What is judged is what is read, whatever replaces the file meanwhile.
    match written_by_others(&metadata) {
        Some(remedy) => Err(io::Error::other(format!("others than you may write it: `{remedy}` it"))),
        None => Ok(text),
    }
}

/// Returns the command that takes a file from others, if others than this user and the administrator may write it. A group that has the
/// number of the owner is the owner's own.
#[cfg(unix)]
pub fn written_by_others(metadata: &Metadata) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt as _;

    let (owner, group, mode) = (metadata.uid(), metadata.gid(), metadata.mode());
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return Some("sudo chown $USER");
    }
    (mode & 0o002 != 0 || (mode & 0o020 != 0 && group != owner)).then_some("chmod go-w")
}

/// Returns the command that takes a file from others, if others may write it, which is not known here.
#[cfg(not(unix))]
pub fn written_by_others(_: &Metadata) -> Option<&'static str> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, process::Command};

    use super::*;

    /// A folder of a test, which is removed.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("pintle-disk-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).expect("a folder can be made");
            Self(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_is_no_file_or_too_long_is_refused_at_once() {
        let folder = Folder::new("kinds");
        let path = folder.0.join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        for path in [&*path, &folder.0, Path::new("/dev/zero")] {
            let error = read_file(path, 9).unwrap_err().to_string();
            assert_eq!(error, "it is no file: write the path of one", "{}", path.display());
        }
        let path = folder.0.join("file");
        fs::write(&path, "123456789").unwrap();
        assert_eq!(read_file(&path, 9).unwrap().1, "123456789");
        let error = read_file(&path, 8).unwrap_err().to_string();
        assert_eq!(error, "it has more than 8 bytes: move a part of it into another file, or shorten it");
    }

    #[test]
    fn a_file_that_others_can_write_is_not_ones_own() {
        let folder = Folder::new("modes");
        let path = folder.0.join("file");
        fs::write(&path, "a").unwrap();
        for (mode, is_own) in [(0o644, true), (0o600, true), (0o444, true), (0o666, false), (0o602, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_own_file(&path, 9).is_ok(), is_own, "{mode:o}");
        }
        let error = read_own_file(&path, 9).unwrap_err().to_string();
        assert_eq!(error, "others than you may write it: `chmod go-w` it");
    }
}
