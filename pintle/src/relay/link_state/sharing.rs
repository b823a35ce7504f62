//! The clients that share connections, and how those are kept.

use super::limits::LinkLimits;

/// How connections are shared and kept.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::relay) struct LinkOptions {
    pub(in crate::relay) sharing: LinkSharing,
    pub(in crate::relay) limits: LinkLimits,
}

/// The clients that share connections to a server with sessions.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(in crate::relay) enum LinkSharing {
    /// Those of one principal, without a session.
    #[default]
    Principals,
    /// Anonymous ones too.
    Anonymous,
    /// All.
    Everybody,
}
