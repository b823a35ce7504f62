use std::sync::{Arc, Mutex, PoisonError, RwLock};

use pintle::server::{Mount, Prefix, Provider as _, ProviderChanges, Transform};

use super::ConnectedTarget;
use crate::{
    output::Output,
    verbs::gateway::{
        api::{ApiEntry, BackendProvider},
        names::HostNames,
        target::TargetEntry,
    },
};

/// The part of a backend that clients see, apart from its connection: the prefix of its names, and the changes of its entries.
pub(in crate::verbs::gateway) struct TargetOffer {
    prefix: Prefix,
    prefix_text: String,
    /// The target whose changes are applied; an API has none.
    target: Option<TargetEntry>,
    output: Output,
}

impl TargetOffer {
    pub(in crate::verbs::gateway) fn of_target(name: &str, entry: &TargetEntry, output: &Output) -> Self {
        let prefix_text = entry.prefix_text(name).to_owned();
        Self { prefix: entry.prefix(name), prefix_text, target: Some(entry.clone()), output: output.clone() }
    }

    pub(in crate::verbs::gateway) fn of_api(name: &str, entry: &ApiEntry, output: &Output) -> Self {
        let prefix_text = entry.prefix_text(name).to_owned();
        Self { prefix: entry.prefix(name), prefix_text, target: None, output: output.clone() }
    }

    /// Returns the text before the `_` of the names; it is empty if they have no prefix.
    pub(super) fn prefix_text(&self) -> &str {
        &self.prefix_text
    }

    /// Returns what clients see of a provider. Tools and prompts have names that every host accepts; others are noted.
    fn wrap(&self, provider: BackendProvider) -> ConnectedTarget {
        let changed = match &self.target {
            Some(target) => target.transform(provider),
            None => Transform::new(provider),
        };
        let output = self.output.clone();
        HostNames::new(Mount::new(self.prefix.clone(), changed), move |name, offered| {
            let name = shown(name);
            output.note(format!("`{name}` is offered as `{offered}`, because some hosts refuse the name"));
        })
    }
}

/// Returns the beginning of a name, which may be of any length.
pub(in crate::verbs::gateway) fn shown(name: &str) -> String {
    name.chars().take(100).collect()
}

/// The current offer of a backend, and the servers that the backend is a part of.
pub(in crate::verbs::gateway) struct Offering {
    offer: RwLock<Arc<TargetOffer>>,
    attached: Mutex<Vec<ProviderChanges>>,
}

impl Offering {
    pub(in crate::verbs::gateway) fn new(offer: TargetOffer) -> Self {
        Self { offer: RwLock::new(Arc::new(offer)), attached: Mutex::default() }
    }

    pub(super) fn offer(&self) -> Arc<TargetOffer> {
        self.offer.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn replace(&self, offer: TargetOffer) {
        *self.offer.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(offer);
    }

    pub(super) fn attached(&self) -> Vec<ProviderChanges> {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn attach(&self, changes: ProviderChanges) {
        let mut attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        attached.retain(ProviderChanges::is_connected);
        attached.push(changes);
    }

    /// Returns what clients see of a provider, which reports its changes from then on.
    fn wrap(&self, offer: &TargetOffer, provider: &BackendProvider) -> Arc<ConnectedTarget> {
        let connected = Arc::new(offer.wrap(provider.clone()));
        for changes in self.attached() {
            connected.watch().attach(changes);
        }
        connected
    }
}

/// A server behind that is connected, or an API, as the current offer has it. The offer may change; the connection stays.
pub(in crate::verbs::gateway) struct OpenTarget {
    provider: BackendProvider,
    offering: Arc<Offering>,
    /// The offer that was applied last, and the result.
    offered: Mutex<(Arc<TargetOffer>, Arc<ConnectedTarget>)>,
}

impl OpenTarget {
    pub(in crate::verbs::gateway) fn new(provider: BackendProvider, offering: Arc<Offering>) -> Self {
        let offer = offering.offer();
        let offered = Mutex::new((offer.clone(), offering.wrap(&offer, &provider)));
        Self { provider, offering, offered }
    }

    /// Returns the target as it is offered at the moment.
    pub(in crate::verbs::gateway) fn current(&self) -> Arc<ConnectedTarget> {
        let offer = self.offering.offer();
        let mut offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&offered.0, &offer) {
            let connected = self.offering.wrap(&offer, &self.provider);
            *offered = (offer, connected);
        }
        offered.1.clone()
    }
}
