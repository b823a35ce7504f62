use std::sync::Arc;

use super::flow::Grant;
use crate::{
    client::store::AnyStore,
    shared::{registered::Registered, scope::Scopes, web::AnyWeb},
};

/// What a login goes by.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) grant: Arc<Grant>,
    pub(crate) registered: Option<Registered>,
    /// The address of a document about the client, which is its id.
    pub(crate) document: Option<String>,
    /// Asked for besides what the server asks for.
    pub(crate) scopes: Scopes,
    pub(crate) store: Arc<dyn AnyStore>,
    pub(crate) web: Arc<dyn AnyWeb>,
    pub(crate) dpop: bool,
}

impl Settings {
    /// The only authorization server that may be shown what the client proves itself with. `None`: it has nothing to show
    /// but what each of them gave it.
    pub(crate) fn issuer(&self) -> Option<&str> {
        match &*self.grant {
            Grant::Workload { issuer, .. } => Some(issuer),
            _ => self.registered.as_ref().map(|client| client.issuer.as_str()),
        }
    }
}
