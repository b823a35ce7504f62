//! Verbs about the servers that hosts have configured.

pub(super) mod approve;
pub(super) mod servers;
