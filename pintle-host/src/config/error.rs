use std::{error::Error, fmt, path::PathBuf, sync::Arc};

/// A position in a configuration file.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Source {
    /// The file, as it was given.
    pub file: Arc<PathBuf>,
    /// The line, from 1.
    pub line: usize,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

/// An error in a configuration file. It names the file and the server, and never contains the value of a variable, a header or an
/// argument.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConfigError {
    /// The file.
    pub file: Arc<PathBuf>,
    /// The line, if the error is in one.
    pub line: Option<usize>,
    /// The server whose entry is invalid; `None` if the file is.
    pub server: Option<String>,
    /// The kind of error, for programs.
    pub kind: ConfigErrorKind,
    reason: String,
}

/// The kinds of [`ConfigError`].
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ConfigErrorKind {
    /// The file could not be read.
    Io(std::io::ErrorKind),
    /// The file is not valid JSON or TOML.
    Syntax,
    /// The file exceeds a limit.
    Limit,
    /// An entry has a member with an invalid value, or lacks one.
    Invalid,
    /// An environment variable without a value and without a default.
    UnsetVariable(String),
    /// An input of the file that was not given: see [`Variables::input`](super::Variables::input).
    UnsetInput(String),
    /// The file has a server with this name already.
    AlreadyConfigured,
    /// The file has no server with this name.
    NotConfigured,
    /// The entry needs something that this build or this crate does not support.
    Unsupported,
}

impl ConfigError {
    pub(crate) fn file(file: &Arc<PathBuf>, kind: ConfigErrorKind, reason: impl Into<String>) -> Self {
        Self { file: file.clone(), line: None, server: None, kind, reason: reason.into() }
    }

    pub(crate) fn at(source: &Source, kind: ConfigErrorKind, reason: impl Into<String>) -> Self {
        let line = Some(source.line);
        Self { file: source.file.clone(), line, server: None, kind, reason: reason.into() }
    }

    pub(crate) fn of_server(mut self, name: &str) -> Self {
        self.server = Some(name.to_owned());
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if let Some(server) = &self.server {
            write!(f, ", server `{server}`")?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl Error for ConfigError {}
