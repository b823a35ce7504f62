//! Files that the command keeps for the user: approvals, credentials. Only their owner can read and write them.

mod private_file;

use std::{env, path::PathBuf};

use crate::failure::Failure;

pub(crate) use private_file::{read_private, write_private};

/// Returns the directory of the command's own files, and creates it for its owner only.
///
/// `$XDG_STATE_HOME/pintle` or `~/.local/state/pintle`, on macOS `~/Library/Application Support/pintle`, on Windows
/// `%LOCALAPPDATA%\pintle`.
pub(crate) fn directory() -> Result<PathBuf, Failure> {
    let path = path().ok_or_else(|| {
        Failure::usage("there is no home directory to keep files in: `HOME` is not set", "export HOME=~")
    })?;
    create(&path).map_err(|error| {
        let shown = path.display();
        Failure::usage(
            format!("the directory `{shown}` cannot be created: {error}"),
            format!("ls -ld {shown}"),
        )
    })?;
    Ok(path)
}

/// Returns the path of the directory, which may not exist.
pub(crate) fn path() -> Option<PathBuf> {
    let variable = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = match env::consts::OS {
        "windows" => variable("LOCALAPPDATA")?,
        "macos" => variable("HOME")?.join("Library/Application Support"),
        _ => variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")))?,
    };
    Some(base.join("pintle"))
}

fn create(path: &std::path::Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
