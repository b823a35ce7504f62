use std::{collections::BTreeMap, path::PathBuf};

#[cfg(feature = "schemars")]
use schemars::JsonSchema;
use serde::Deserialize;

use crate::SecretValue;

/// A worker of a file: a program that stays, and runs functions for calls of tools.
///
/// A call is a line of JSON on its standard input, and what it answers are lines on its standard output: see `docs/workers.md`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[cfg_attr(feature = "schemars", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct WorkerEntry {
    /// A program and its arguments.
    pub command: Vec<String>,
    /// The directory of the program: that of the file by default.
    pub cwd: Option<PathBuf>,
    /// Variables of the environment of the program.
    pub env: BTreeMap<String, SecretValue>,
    /// The names of variables that the program inherits, beside paths and locale; `NAME_*` for all that begin so.
    pub inherit: Vec<String>,
    /// The limit of processes: 1 by default, and 64 at most. The first is started with the first call, and another one if all have calls.
    pub processes: Option<u16>,
    /// The limit of calls that a process has at the same time: 8 by default, and 1 for a program that runs one after the other. Further
    /// calls wait.
    pub max_running: Option<u16>,
    /// The limit of bytes of a line that the program writes: 1 MiB by default. A longer one ends the process.
    pub max_message: Option<usize>,
}
