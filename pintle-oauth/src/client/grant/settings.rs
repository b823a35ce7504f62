use std::sync::Arc;

use super::flow::Grant;
use crate::{
    client::store::AnyStore,
    shared::{reach::Reach, registered::Registered, scope::Scopes, web::AnyWeb},
};

/// The settings of an `OAuth`.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) grant: Arc<Grant>,
    pub(crate) registered: Option<Registered>,
    /// The address of the client's metadata document, which is its id.
    pub(crate) document: Option<String>,
    /// Requested in addition to the scopes that the server asks for.
    pub(crate) scopes: Scopes,
    pub(crate) store: Arc<dyn AnyStore>,
    pub(crate) web: Arc<dyn AnyWeb>,
    pub(crate) dpop: bool,
    /// The networks that may be reached, if the server's own name does not decide it.
    pub(crate) reach: Option<Reach>,
}

impl Settings {
    /// Returns the only authorization server that the client's credentials may be sent to. `None`: it has none but those
    /// that each server issued.
    pub(crate) fn issuer(&self) -> Option<&str> {
        match &*self.grant {
            Grant::Workload { issuer, .. } => Some(issuer),
            _ => self.registered.as_ref().map(|client| client.issuer.as_str()),
        }
    }
}
