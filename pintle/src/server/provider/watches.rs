use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use super::registry::{Providers, RegisteredProvider};
use crate::server::ListKind;

/// The resources that clients of a server with providers watch, and by how many. Listeners pay for their number and bytes.
#[derive(Debug, Default)]
pub(crate) struct Watches(Mutex<HashMap<Box<str>, usize>>);

impl Watches {
    /// Adds a listener of a resource. The first one is reported to the providers.
    pub(crate) fn watch(&self, providers: &Providers, uri: &str) {
        // Held while providers are called, so that they see the changes in their order.
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match watched.get_mut(uri) {
            Some(count) => *count += 1,
            None => {
                watched.insert(uri.into(), 1);
                resource_providers(providers).for_each(|known| known.provider.watch(uri));
            }
        }
    }

    /// Removes a listener of a resource. The last one is reported to the providers.
    pub(crate) fn unwatch(&self, providers: &Providers, uri: &str) {
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = watched.get_mut(uri) else { return };
        *count -= 1;
        if *count == 0 {
            watched.remove(uri);
            resource_providers(providers).for_each(|known| known.provider.unwatch(uri));
        }
    }

    /// Reports what is watched to a provider that was added.
    pub(crate) fn report_to(&self, added: &RegisteredProvider) {
        let watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watched.keys().for_each(|uri| added.provider.watch(uri));
    }

    /// Has a provider that was removed watch nothing.
    pub(crate) fn withdraw_from(&self, removed: &RegisteredProvider) {
        let watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watched.keys().for_each(|uri| removed.provider.unwatch(uri));
    }
}

fn resource_providers(providers: &Providers) -> impl Iterator<Item = &RegisteredProvider> {
    providers.iter().filter(|known| known.offers(ListKind::Resources))
}
