//! Files that the command keeps for the user: approvals, credentials. Only their owner can read and write them.

mod directories;
mod private_file;
mod unique;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::failure::Failure;

pub(crate) use directories::{cache_directory, state_directory as path};
pub(crate) use private_file::{create_private, read_private, read_secret, write_private};
pub(crate) use unique::{is_unique_name, unique_name};

/// Returns the directory of the command's own files, and creates it for its owner only.
///
/// `$PINTLE_STATE_DIR`, `$XDG_STATE_HOME/pintle` or `~/.local/state/pintle`, on macOS `~/Library/Application Support/pintle`, on Windows
/// `%LOCALAPPDATA%\pintle`.
pub(crate) fn directory() -> Result<PathBuf, Failure> {
    let path = path().ok_or_else(|| {
        Failure::usage("there is no home directory to keep files in: `HOME` is not set", "export HOME=~")
    })?;
    create_directory(&path).map_err(|error| {
        let shown = path.display();
        Failure::usage(
            format!("the directory `{shown}` cannot be created: {error}"),
            format!("ls -ld {shown}"),
        )
    })?;
    Ok(path)
}

/// Creates a directory that only its owner can enter. One that exists is left as it is.
pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
