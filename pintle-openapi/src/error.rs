use std::{error::Error, fmt, io};

/// The reason why a document cannot be used.
#[non_exhaustive]
#[derive(Debug)]
pub enum OpenApiError {
    /// A file cannot be read.
    Io {
        /// The file.
        file: String,
        /// The cause.
        error: io::Error,
    },
    /// The document is not one of OpenAPI 3.
    Document {
        /// The file, or `the document` for a text.
        file: String,
        /// The fault, and what to do.
        reason: String,
    },
    /// A setting does not fit the document.
    Setting {
        /// The fault, and what to do.
        reason: String,
    },
}

impl OpenApiError {
    pub(crate) fn document(file: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Document { file: file.into(), reason: reason.into() }
    }

    pub(crate) fn setting(reason: impl Into<String>) -> Self {
        Self::Setting { reason: reason.into() }
    }
}

impl fmt::Display for OpenApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { file, error } => write!(f, "`{file}` cannot be read: {error}"),
            Self::Document { file, reason } => write!(f, "`{file}`: {reason}"),
            Self::Setting { reason } => f.write_str(reason),
        }
    }
}

impl Error for OpenApiError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}
