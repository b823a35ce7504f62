use std::fmt;

/// How a connection ended.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ended {
    /// The connection was closed locally.
    Stopped,
    /// The peer disconnected.
    ByPeer {
        /// Details, such as the exit status of a process.
        known: Option<Box<str>>,
    },
    /// Reading or writing failed.
    Failed {
        /// The reason.
        reason: Box<str>,
    },
    /// The peer did not answer keep-alive pings.
    Dead,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("it was closed locally"),
            Self::ByPeer { known: None } => f.write_str("the peer disconnected"),
            Self::ByPeer { known: Some(known) } => write!(f, "the peer disconnected: {known}"),
            Self::Failed { reason } => write!(f, "{reason}"),
            Self::Dead => f.write_str("the peer did not answer keep-alive pings"),
        }
    }
}
