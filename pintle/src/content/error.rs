use std::{error::Error, fmt, io};

/// The reason why data is not valid content.
#[non_exhaustive]
#[derive(Debug)]
pub enum ContentError {
    /// There are no bytes.
    Empty {
        /// The expected kind: `image` or `audio`.
        kind: &'static str,
    },
    /// There are too many bytes.
    TooLarge {
        /// The expected kind: `image` or `audio`.
        kind: &'static str,
        /// The number of bytes, if all of them were counted.
        bytes: Option<u64>,
        /// The maximum number of bytes.
        limit: usize,
    },
    /// The declared media type is invalid or of another kind.
    Type {
        /// The expected kind: `image` or `audio`.
        kind: &'static str,
        /// The declared type.
        declared: String,
    },
    /// The bytes do not match the declared media type.
    Mismatch {
        /// The declared type.
        declared: String,
        /// The detected type, if it is known.
        found: Option<&'static str>,
    },
    /// The format of the bytes is unknown.
    Unknown {
        /// The expected kind: `image` or `audio`.
        kind: &'static str,
    },
    /// The text is not base64.
    Base64 {
        /// The expected kind: `image` or `audio`.
        kind: &'static str,
        /// The reason.
        reason: String,
    },
    /// The file cannot be read.
    File {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
}

impl fmt::Display for ContentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { kind } => write!(f, "the {kind} is empty: pass at least one byte"),
            Self::TooLarge { kind, bytes, limit } => {
                match bytes {
                    Some(bytes) => write!(f, "the {kind} has {bytes} bytes")?,
                    None => write!(f, "the {kind} is too large")?,
                }
                write!(f, "; the limit is {limit} bytes: reduce its size, or return a link to it")
            }
            Self::Type { kind, declared } => {
                write!(f, "`{declared}` is not an {kind} type: use `{kind}/…`")
            }
            Self::Mismatch { declared, found: Some(found) } => {
                write!(
                    f,
                    "the bytes are `{found}`, but the declared type is `{declared}`: declare the actual type"
                )
            }
            Self::Mismatch { declared, found: None } => {
                write!(f, "the bytes are not `{declared}`: declare the actual type")
            }
            Self::Unknown { kind } => {
                write!(f, "the {kind} format of the bytes is unknown: declare it with `new`")
            }
            Self::Base64 { kind, reason } => write!(f, "the {kind} is not valid base64: {reason}"),
            Self::File { path, source } => write!(f, "`{path}` cannot be read: {source}"),
        }
    }
}

impl Error for ContentError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::File { source, .. } => Some(source),
            _ => None,
        }
    }
}
