use std::{
    fs,
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::Path,
};

use serde::{Deserialize, Serialize};

/// The version of the format. Others are not read.
pub(super) const VERSION: u32 = 1;

/// The first line of a recording. A file to which several were appended has several.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct RecordingHeader {
    pub(super) version: u32,
    /// The program that wrote it.
    #[serde(default)]
    by: String,
}

/// The start of every recording.
const START: &[u8] = br#"{"recording":"#;

#[derive(Serialize)]
struct HeaderLine {
    recording: RecordingHeader,
}

/// Appends the header to a file that was opened for recording before.
pub(super) fn append(path: &Path) -> io::Result<()> {
    let by = concat!("pintle ", env!("CARGO_PKG_VERSION")).to_owned();
    let line = HeaderLine { recording: RecordingHeader { version: VERSION, by } };
    let mut text = serde_json::to_string(&line)?;
    text.push('\n');
    let mut file = fs::OpenOptions::new().read(true).append(true).open(path)?;
    let mut start = Vec::new();
    (&mut file).take(START.len() as u64).read_to_end(&mut start)?;
    if !start.is_empty() && start != START {
        let message = format!("`{}` is not a recording: choose another path", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    // A recording that was cut off in its last line ends there.
    let mut last = [b'\n'];
    if file.seek(SeekFrom::End(-1)).is_ok() {
        file.read_exact(&mut last)?;
    }
    if last != [b'\n'] {
        text.insert(0, '\n');
    }
    file.write_all(text.as_bytes())
}
