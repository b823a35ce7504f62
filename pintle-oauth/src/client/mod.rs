//! Logging in to servers over HTTP, and staying logged in.
//!
//! [`OAuth`] is the authorization of a transport. When a server refuses a request, it finds out who authorizes for that
//! server, registers the client there if need be, has the user log in, and keeps the tokens; before they expire they are
//! replaced, once for all calls that wait for it. The user's part is a [`Consent`], where credentials are kept is a
//! [`Store`], and what requests go through is a [`Web`].

mod authorization;
mod challenge;
mod consent;
mod discovery;
mod dpop;
mod grant;
mod oauth;
mod store;

pub use consent::{
    Consent, Visit,
    loopback::{Listening, Loopback},
    paste::Paste,
};
pub use grant::{
    assertion::{Assertion, IdentityProvider},
    device::DeviceCode,
};
pub use oauth::OAuth;
pub use store::{Memory, Store, StoreLock, credentials::Credentials, file::File};

pub use crate::shared::{
    reach::Reach,
    registered::Registered,
    secret::Secret,
    web::{Network, Web},
};
