use std::{error, fmt, io};

/// The error of serving or reading skills.
#[non_exhaustive]
#[derive(Debug)]
pub enum SkillError {
    /// A skill cannot be served as it is.
    Invalid {
        /// The URI or the path of the file.
        file: String,
        /// The fault, and what to do.
        reason: String,
    },
    /// A server sent something else than it listed. Do not use it; get the entry anew, and have the user approve it again.
    Unverified {
        /// The URI of the file.
        uri: String,
        /// The difference.
        reason: String,
    },
    /// A skill is larger, or a list longer, than the reader allows.
    TooLarge {
        /// The limit that is exceeded.
        reason: String,
    },
    /// The files of the skill are generated, so they cannot be verified, and the reader does not allow that.
    Dynamic {
        /// The URI of the skill.
        uri: String,
    },
    /// The server does not offer skills, or not this method.
    Unsupported {
        /// The missing part.
        what: &'static str,
    },
    /// The folder cannot be read.
    Io(io::Error),
    /// The request failed.
    Request(Box<pintle::Error>),
}

impl SkillError {
    #[cfg(feature = "server")]
    pub(crate) fn invalid(file: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Invalid { file: file.into(), reason: reason.into() }
    }

    #[cfg(feature = "client")]
    pub(crate) fn unverified(uri: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Unverified { uri: uri.into(), reason: reason.into() }
    }
}

impl fmt::Display for SkillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid { file, reason } => write!(f, "`{file}`: {reason}"),
            Self::Unverified { uri, reason } => {
                write!(f, "`{uri}` is not what was listed: {reason}; do not use it, and get the skill anew")
            }
            Self::TooLarge { reason } => {
                write!(f, "{reason}; raise the limit of the reader if you trust the server")
            }
            Self::Dynamic { uri } => write!(
                f,
                "the files of `{uri}` are generated and have no digests; allow that with `allow_dynamic` if you trust the server"
            ),
            Self::Unsupported { what } => {
                write!(f, "the server has no {what}; look at its capabilities first")
            }
            Self::Io(error) => write!(f, "the folder of skills cannot be read: {error}"),
            Self::Request(error) => error.fmt(f),
        }
    }
}

impl error::Error for SkillError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Request(error) => Some(&**error),
            _ => None,
        }
    }
}

impl From<io::Error> for SkillError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<pintle::Error> for SkillError {
    fn from(error: pintle::Error) -> Self {
        Self::Request(Box::new(error))
    }
}
