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
mod live;
mod lock;
mod loopback;
mod oauth;
mod paste;
mod pkce;
mod places;
mod registration;
mod resource_metadata;
mod settings;
mod store;
mod token;

use crate::shared::{clock, form, identity, jwt, metadata, noise, reach, registered, scope, secret, web};

pub use assertion::{Assertion, IdentityProvider};
pub use consent::{Consent, Visit};
pub use credentials::Credentials;
pub use device::DeviceCode;
pub use file::File;
pub use loopback::{Listening, Loopback};
pub use oauth::OAuth;
pub use paste::Paste;
pub use store::{Memory, Store, StoreLock};

pub use crate::shared::{
    reach::Reach,
    registered::Registered,
    secret::Secret,
    web::{Network, Web},
};
