//! Verbs that check a server.

mod catalogue;
pub(super) mod doctor;
pub(super) mod lint;
pub(super) mod lock;
