//! Files that `pintle gateway` drafts: out of the configuration of hosts, of the help of programs, and of files of go-go-mcp.

pub(super) mod from_help;
pub(super) mod from_hosts;
pub(super) mod import;

use std::{fs::OpenOptions, io::Write as _, path::Path};

use super::file::GatewayFile;
use crate::failure::Failure;

/// Writes a file that is not there, if there is a path. What is drafted can be used.
fn write_new(path: Option<&Path>, text: &str, next: &str) -> Result<(), Failure> {
    GatewayFile::parse(text).map_err(|error| Failure::internal(&error))?;
    let Some(path) = path else { return Ok(()) };
    // A file that somebody has written is not replaced.
    let created = OpenOptions::new().write(true).create_new(true).open(path);
    created
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| Failure::usage(format!("`{}` cannot be written: {error}", path.display()), next))
}
