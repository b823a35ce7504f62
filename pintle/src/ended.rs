use std::fmt;

/// How a connection ended.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ended {
    /// This side closed it.
    Stopped,
    /// The other side went away.
    ByPeer {
        /// What is known of it, such as a process's exit status.
        known: Option<Box<str>>,
    },
    /// Reading or writing failed.
    Failed {
        /// How.
        said: Box<str>,
    },
    /// The other side gave no sign of life.
    Dead,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("this side closed it"),
            Self::ByPeer { known: None } => f.write_str("the other side went away"),
            Self::ByPeer { known: Some(known) } => write!(f, "the other side went away: {known}"),
            Self::Failed { said } => write!(f, "{said}"),
            Self::Dead => f.write_str("the other side gave no sign of life"),
        }
    }
}
