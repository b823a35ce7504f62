//! Logging in to servers over HTTP, and staying logged in.
//!
//! [`OAuth`] is the authorization of a transport. When a server refuses a request, it finds out who authorizes for that
//! server, registers the client there if need be, has the user log in, and keeps the tokens; before they expire they are
//! replaced, once for all calls that wait for it. The user's part is a [`Consent`], where credentials are kept is a
//! [`Store`], and what requests go through is a [`Web`].

mod assertion;
mod callback;
mod challenge;
mod consent;
mod credentials;
mod device;
mod discovery;
mod dpop;
mod file;
mod flow;
pub(crate) mod form;
pub(crate) mod jwt;
mod live;
mod loopback;
mod metadata;
mod oauth;
mod paste;
pub(crate) mod pkce;
pub(crate) mod places;
mod reach;
mod registered;
mod registration;
mod scope;
mod secret;
mod settings;
mod store;
mod token;
pub(crate) mod web;

pub use assertion::{Assertion, IdentityProvider};
pub use consent::{Consent, Visit};
pub use credentials::Credentials;
pub use device::DeviceCode;
pub use file::File;
pub use loopback::{Listening, Loopback};
pub use oauth::OAuth;
pub use paste::Paste;
pub use reach::Reach;
pub use registered::Registered;
pub use secret::Secret;
pub use store::{Memory, Store};
pub use web::{Network, Web};
