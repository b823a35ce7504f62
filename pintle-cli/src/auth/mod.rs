//! Logins: which servers the user has logged in to, and their tokens.

mod background_login;
mod browser;
mod consent;
mod login_page;
mod logins;

pub(crate) use background_login::BackgroundLogin;
pub(crate) use browser::open_browser;
pub(crate) use consent::NoConsent;
pub(crate) use login_page::show_login_page;
pub(crate) use logins::{
    APPLICATION, Grant, Login, Logins, credentials, of_server, principal_credentials, unusable,
};
