//! FastMCP, as its requirements in `bench/peers` have it.

use std::io;

use super::survey::Maker;
use crate::pip;
use crate::workspace::{root, target};

/// Installs it, unless it is there.
pub(super) fn fastmcp() -> io::Result<Maker> {
    let place = target().join("bench/peers/fastmcp-redis");
    pip::install(&["bench/peers/fastmcp/requirements.txt"], &place)?;
    let script = root().join("bench/peers/fastmcp/from_openapi.py");
    let words = [place.join("venv/bin/python"), script].map(|path| path.display().to_string());
    Ok(Maker { name: "fastmcp", words: words.into() })
}
