//! Verbs about logins.

mod listing;
pub(super) mod login;
pub(super) mod logout;
pub(super) mod ls;
pub(super) mod whoami;
