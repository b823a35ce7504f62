use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
};

/// The limit of bytes of a file.
const MAX_BYTES: u64 = 1 << 20;

/// Reads the text of a file.
pub(in crate::verbs::gateway) fn read_text(path: &Path) -> io::Result<String> {
    read_limited(path).map(|(_, text)| text)
}

/// Reads a file, and its metadata.
pub(super) fn read_limited(path: &Path) -> io::Result<(fs::Metadata, String)> {
    let file = File::open(path)?;
    let (metadata, mut text) = (file.metadata()?, String::new());
    file.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    match text.len() as u64 > MAX_BYTES {
        true => Err(io::Error::other(format!(
            "it has more than {MAX_BYTES} bytes: move a part of it into files of `include`"
        ))),
        false => Ok((metadata, text)),
    }
}

/// Returns whether others than this user and the administrator may write a file. A group that has the number of the owner is the
/// owner's own.
#[cfg(unix)]
pub(super) fn is_writable_by_others(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let (owner, group, mode) = (metadata.uid(), metadata.gid(), metadata.mode());
    let is_foreign = owner != 0 && owner != rustix::process::geteuid().as_raw();
    is_foreign || mode & 0o002 != 0 || (mode & 0o020 != 0 && group != owner)
}

#[cfg(not(unix))]
pub(super) fn is_writable_by_others(_: &fs::Metadata) -> bool {
    false
}
