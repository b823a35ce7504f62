use std::{fs, io, path::Path};

use pintle_serve::{read_file, read_own_file};

/// The limit of bytes of a file.
const MAX_BYTES: u64 = 1 << 20;

/// Reads the text of a file.
pub(in crate::verbs::gateway) fn read_text(path: &Path) -> io::Result<String> {
    read_limited(path).map(|(_, text)| text)
}

/// Reads a file, and its metadata.
pub(super) fn read_limited(path: &Path) -> io::Result<(fs::Metadata, String)> {
    read_file(path, MAX_BYTES)
}

/// Reads a file that nobody but this user and the administrator may write.
pub(super) fn read_own(path: &Path) -> io::Result<String> {
    read_own_file(path, MAX_BYTES)
}
