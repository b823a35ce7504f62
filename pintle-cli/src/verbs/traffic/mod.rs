//! Verbs that show, record and produce traffic.

pub(super) mod bench;
pub(super) mod replay;
pub(super) mod tap;
