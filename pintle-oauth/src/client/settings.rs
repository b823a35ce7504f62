use std::sync::Arc;

use super::{flow::Grant, registered::Registered, scope::Scopes, store::AnyStore, web::AnyWeb};

/// What a login goes by.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) grant: Arc<Grant>,
    pub(super) registered: Option<Registered>,
    /// The address of a document about the client, which is its id.
    pub(super) document: Option<String>,
    /// Asked for besides what the server asks for.
    pub(super) scopes: Scopes,
    pub(super) store: Arc<dyn AnyStore>,
    pub(super) web: Arc<dyn AnyWeb>,
    pub(super) dpop: bool,
}

impl Settings {
    /// The only authorization server that may be shown what the client proves itself with. `None`: it has nothing to show
    /// but what each of them gave it.
    pub(super) fn issuer(&self) -> Option<&str> {
        match &*self.grant {
            Grant::Workload { issuer, .. } => Some(issuer),
            _ => self.registered.as_ref().map(|client| client.issuer.as_str()),
        }
    }
}
