//! Checking who calls a server over HTTP, and what they may do.
//!
//! [`Protected`] is a `tower` layer. It admits requests with a token that a [`Verify`] accepts: a [`Jwt`] signed by an
//! authorization server, a token that is checked by [`Introspection`], or one that the application checks itself
//! ([`Checked`]). Other requests get a challenge that names the authorization server. Handlers take the [`Principal`].

mod algorithm;
mod cache;
mod challenge;
mod checked;
mod claims;
mod document;
mod dpop;
mod introspection;
mod jwk;
mod jwt;
mod keys;
#[cfg(test)]
mod kit;
mod principal;
mod protected;
mod questions;
mod replay;
mod service;
mod token;
mod verify;

use crate::shared::{address, clock, form, identity, metadata, noise, reach, registered, scope, secret, web};

pub use algorithm::Algorithm;
pub use checked::Checked;
pub use document::Metadata;
pub use introspection::Introspection;
pub use jwt::Jwt;
pub use principal::Principal;
pub use protected::Protected;
pub use service::ProtectedService;
pub use token::{CallerToken, Token};
pub use verify::{Rejection, Verify};

pub use crate::shared::{
    reach::Reach,
    registered::Registered,
    secret::Secret,
    web::{Network, Web},
};
