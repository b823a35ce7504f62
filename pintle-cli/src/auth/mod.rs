//! Logins: which servers the user has logged in to, and their tokens.

mod browser;
mod consent;
mod logins;

pub(crate) use browser::open_browser;
pub(crate) use consent::NoConsent;
pub(crate) use logins::{APPLICATION, Grant, Login, Logins, credentials, unusable};
