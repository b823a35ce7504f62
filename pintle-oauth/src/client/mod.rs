//! Logging in to servers over HTTP, and staying logged in.
//!
//! [`OAuth`] is the authorization of a transport. When a server refuses a request, it discovers the authorization server,
//! registers the client if necessary, has the user log in, and stores the tokens. Tokens are refreshed before they expire,
//! once for all calls that wait for them. A [`Consent`] leads the user through the login, a [`Store`] keeps the credentials,
//! and a [`Web`] sends the requests.

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
    bearer::BearerTokens,
    credentials::ClientCredentials,
    device::DeviceCode,
    exchange::TokenExchange,
    issued::IssuedToken,
};
pub use oauth::OAuth;
pub use store::{
    MemoryStore, Store, StoreLock, credentials::Credentials, file::FileStore, stored_login::StoredLogin,
};

pub use crate::shared::{
    reach::Reach,
    registered::Registered,
    secret::Secret,
    web::{Network, Web},
};
