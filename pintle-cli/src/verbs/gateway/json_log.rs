use std::{
    fs::{File, OpenOptions},
    io::Write as _,
    path::Path,
    sync::{Mutex, PoisonError},
};

use serde::Serialize;

use crate::failure::Failure;

/// A file of JSON objects, one a line, which is appended to.
#[derive(Debug)]
pub(super) struct JsonLog(Mutex<File>);

impl JsonLog {
    /// Opens a file, and creates it if there is none.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(|error| {
            let message = format!("the log `{}` cannot be written: {error}", path.display());
            Failure::usage(message, format!("touch {}", path.display()))
        })?;
        Ok(Self(Mutex::new(file)))
    }

    /// Appends a line.
    pub(super) fn write(&self, record: &impl Serialize) {
        let Ok(mut line) = serde_json::to_vec(record) else { return };
        line.push(b'\n');
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A log that cannot be written must not fail calls: `/metrics` still counts them.
        let _ = file.write_all(&line);
    }
}
