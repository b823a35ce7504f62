//! Verbs that show, record and produce traffic.

pub(super) mod bench;
mod http;
pub(super) mod replay;
pub(super) mod tap;
