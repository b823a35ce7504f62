use std::fmt;

use crate::{Revision, Unsayable};

/// Why a request or a notification of ours was not sent.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SendError {
    /// The connection is not open yet.
    NotOpen,
    /// The revision that the server speaks has no such method.
    Unavailable {
        /// The method.
        method: Box<str>,
        /// The revision.
        revision: Revision,
    },
    /// The revision that the server speaks cannot express what the params say.
    Unsayable(Unsayable),
    /// The params are JSON that cannot be read back, such as one nested too deep.
    Unreadable {
        /// What is wrong with it.
        reason: Box<str>,
    },
    /// As many requests are in flight as the limit allows.
    TooMany {
        /// The limit.
        limit: usize,
    },
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOpen => f.write_str("the connection is not open: finish the opening first"),
            Self::Unavailable { method, revision } => {
                write!(f, "the server speaks revision `{revision}`, which has no `{method}`")
            }
            Self::Unsayable(unsayable) => unsayable.fmt(f),
            Self::Unreadable { reason } => write!(f, "the params cannot be read back: {reason}"),
            Self::TooMany { limit } => {
                write!(f, "{limit} requests are in flight already: wait for their answers")
            }
        }
    }
}

impl std::error::Error for SendError {}
