use std::{error::Error, fmt, io};

/// Why a file was not read.
#[non_exhaustive]
#[derive(Debug)]
pub enum ReadError {
    /// There is no such file here, or none that is served.
    NotFound {
        /// The URI.
        uri: String,
    },
    /// The file is larger than what is read.
    TooLarge {
        /// The URI.
        uri: String,
        /// Its size in bytes.
        size: u64,
        /// How many bytes would have been read.
        limit: u64,
    },
    /// The file could not be read.
    Io {
        /// The URI.
        uri: String,
        /// Why not.
        source: io::Error,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { uri } => write!(f, "no such resource: `{uri}`"),
            Self::TooLarge { uri, size, limit } => {
                write!(f, "resource `{uri}` has {size} bytes; at most {limit} are read")
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
