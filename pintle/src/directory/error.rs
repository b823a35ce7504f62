use std::{error::Error, fmt, io};

/// The reason why a file was not read.
#[non_exhaustive]
#[derive(Debug)]
pub enum ReadError {
    /// The file does not exist or is not served.
    NotFound {
        /// The URI.
        uri: String,
    },
    /// The file is too large.
    TooLarge {
        /// The URI.
        uri: String,
        /// The size of the file in bytes.
        size: u64,
        /// The maximum size in bytes.
        limit: u64,
    },
    /// The file could not be read.
    Io {
        /// The URI.
        uri: String,
        /// The cause.
        source: io::Error,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { uri } => write!(f, "no such resource: `{uri}`"),
            Self::TooLarge { uri, size, limit } => {
                write!(f, "resource `{uri}` has {size} bytes; the limit is {limit}")
            }
            Self::Io { uri, source } => write!(f, "resource `{uri}` could not be read: {source}"),
        }
    }
}

impl Error for ReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
