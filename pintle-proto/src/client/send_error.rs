use std::fmt;

use crate::{Revision, Unsayable};

/// The error for a request or notification that cannot be sent.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SendError {
    /// The connection is not open yet.
    NotOpen,
    /// The server's revision does not have the method.
    Unavailable {
        /// The method.
        method: Box<str>,
        /// The revision.
        revision: Revision,
    },
    /// The server's revision cannot express the params.
    Unsayable(Unsayable),
    /// The params cannot be parsed again, for example because they are nested too deep.
    Unreadable {
        /// The error of the parser.
        reason: Box<str>,
    },
    /// The limit of requests in flight is reached.
    TooMany {
        /// The limit.
        limit: usize,
    },
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOpen => f.write_str("the connection is not open: complete the opening first"),
            Self::Unavailable { method, revision } => {
                write!(f, "the server speaks revision `{revision}`, which has no `{method}`")
            }
            Self::Unsayable(unsayable) => unsayable.fmt(f),
            Self::Unreadable { reason } => write!(f, "the params cannot be parsed: {reason}"),
            Self::TooMany { limit } => {
                write!(f, "{limit} requests are already in flight: wait for their responses")
            }
        }
    }
}

impl std::error::Error for SendError {}
