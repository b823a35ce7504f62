//! The work that is measured, as functions of a count.

pub mod pair;
pub mod protocol;
pub mod server;
pub mod typed;
