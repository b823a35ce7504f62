//! The grants: how tokens are requested from an authorization server, and how a client registers with it.

pub(crate) mod assertion;
pub(crate) mod bearer;
pub(crate) mod credentials;
pub(crate) mod device;
pub(crate) mod exchange;
pub(crate) mod flow;
pub(crate) mod issued;
mod pkce;
pub(crate) mod registration;
pub(crate) mod revocation;
pub(crate) mod settings;
pub(crate) mod token;
