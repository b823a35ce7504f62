//! Calls to the server behind: how they run, wait for answers, and are tried again.

pub(crate) mod attempts;
pub(crate) mod parked;
pub(crate) mod questions;
pub(crate) mod upstream_call;
