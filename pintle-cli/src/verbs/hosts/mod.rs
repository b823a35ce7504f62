//! Verbs about the servers that hosts have configured.

pub(super) mod add;
pub(super) mod approve;
mod diff;
mod edit;
pub(super) mod rm;
pub(super) mod servers;
