//! The clients that share connections, and how those are kept.

use super::limits::LinkLimits;

/// How connections are shared and kept.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkOptions {
    pub(crate) sharing: LinkSharing,
    pub(crate) limits: LinkLimits,
}

/// The clients that share connections to a server with sessions.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum LinkSharing {
    /// Those of one principal, without a session.
    #[default]
    Principals,
    /// Anonymous ones too.
    Anonymous,
    /// All.
    Everybody,
}
