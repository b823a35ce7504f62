use std::{error::Error, fmt, io};

/// Why something cannot be content.
#[non_exhaustive]
#[derive(Debug)]
pub enum ContentError {
    /// There are no bytes.
    Empty {
        /// What it should be: `image` or `audio`.
        kind: &'static str,
    },
    /// There are too many bytes.
    TooLarge {
        /// What it should be: `image` or `audio`.
        kind: &'static str,
        /// How many there are, if all of them were counted.
        bytes: Option<u64>,
        /// How many there may be.
        most: usize,
    },
    /// The declared media type is of another kind, or is none.
    Type {
        /// What it should be: `image` or `audio`.
        kind: &'static str,
        /// The declared type.
        declared: String,
    },
    /// The bytes are not what the declared media type says.
    Mismatch {
        /// The declared type.
        declared: String,
        /// What they look like, if that is known.
        found: Option<&'static str>,
    },
    /// The bytes are of no format that is known here.
    Unknown {
        /// What it should be: `image` or `audio`.
        kind: &'static str,
    },
    /// The text is not base64.
    Base64 {
        /// What it should be: `image` or `audio`.
        kind: &'static str,
        /// What is wrong with it.
        said: String,
    },
    /// The file cannot be read.
    File {
        /// The file.
        path: String,
        /// Why not.
        source: io::Error,
    },
}

impl fmt::Display for ContentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { kind } => write!(f, "the {kind} has no bytes: give at least one"),
            Self::TooLarge { kind, bytes, most } => {
                match bytes {
                    Some(bytes) => write!(f, "the {kind} has {bytes} bytes")?,
                    None => write!(f, "the {kind} has more bytes than it may have")?,
                }
                write!(f, ", and {most} are the most: make it smaller, or give a link to it")
            }
            Self::Type { kind, declared } => {
                write!(f, "`{declared}` is no media type of {kind}: it should be `{kind}/…`")
            }
            Self::Mismatch { declared, found: Some(found) } => {
                write!(f, "the bytes are `{found}`, and are said to be `{declared}`: say what they are")
            }
            Self::Mismatch { declared, found: None } => {
                write!(f, "the bytes do not begin as `{declared}` does: say what they are")
            }
            Self::Unknown { kind } => {
                write!(f, "the bytes are of no known format of {kind}: say which with `new`")
            }
            Self::Base64 { kind, said } => write!(f, "the {kind} is not in base64: {said}"),
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
