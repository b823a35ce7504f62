//! Notifications of what changed, merged for each listener.

pub(crate) mod hearing;
pub(crate) mod hub;
