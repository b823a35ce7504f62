//! The entry that a name or URI leads to. Entries of that name come first, of the server and all providers, then templates, of which the most literal
//! counts; of equals that of the server itself, then that of the first provider.

use std::sync::Arc;

use super::{
    catalogue::overlay::OverlayKey,
    gate::admission::refusal,
    provider::{
        conflicts::Offered,
        definition::Definition,
        entry::{EntryRank, ProvidedRoute as _},
        registry::{FindError, RegisteredProvider},
    },
    snapshot::Snapshot,
};
use crate::{
    server::{
        Cx, PromptRoute, ProvidedEntry, ResourceRoute, Scope, SourceRoute, Target, TemplateRoute, ToolRoute,
    },
    uri::{Uri, Vars},
};

/// An entry that a name or URI leads to.
pub(crate) struct Found {
    pub(crate) entry: ProvidedEntry,
    pub(crate) rank: EntryRank,
    pub(crate) owner: EntryOwner,
}

/// The owner of an entry, which handles the requests for it.
pub(crate) enum EntryOwner {
    Server(OwnRoute),
    Provider(RegisteredProvider, usize),
}

/// A route of the server itself, for everybody or for a session or principal.
pub(crate) enum OwnRoute {
    Tool(Arc<ToolRoute>),
    Prompt(Arc<PromptRoute>),
    Resource(Arc<ResourceRoute>),
    Source(SourceRoute),
    /// A template, with the values of its variables if it was found by a URI.
    Template(Arc<TemplateRoute>, Option<Vars>),
    Method,
}

/// The result of a lookup.
#[derive(Default)]
pub(crate) struct ServerLookup {
    /// The entry, as far as it is known.
    pub(crate) found: Option<Found>,
    /// The numbers of the providers that have to read lists first.
    pub(crate) stale: Vec<usize>,
    /// The failure of a provider, if there is no entry.
    pub(crate) failed: Option<FindError>,
}

impl ServerLookup {
    /// Returns whether providers have to read lists first.
    pub(crate) fn is_stale(&self) -> bool {
        !self.stale.is_empty()
    }

    /// Returns the entry, as far as it is known, and the numbers of the providers that may have a more exact one when they have read their
    /// lists.
    pub(crate) fn known(self) -> (Option<Found>, Vec<usize>) {
        let rank = self.found.as_ref().map(|found| found.rank);
        let number = self.found.as_ref().and_then(Found::number);
        let mut unread = self.stale;
        unread.retain(|stale| rank != Some(EntryRank::Exact) && Some(*stale) != number);
        (self.found, unread)
    }

    /// Returns the entry, or the failure of a provider that may have it.
    pub(crate) fn finish(self) -> Result<Option<Found>, FindError> {
        match (self.found, self.failed) {
            (None, Some(failed)) => Err(failed),
            (found, _) => Ok(found),
        }
    }
}

impl Found {
    fn own(entry: ProvidedEntry, route: OwnRoute) -> Self {
        Self { entry, rank: EntryRank::Exact, owner: EntryOwner::Server(route) }
    }

    /// Returns a template, with the values of its variables if it was found by a URI.
    fn template(route: &Arc<TemplateRoute>, vars: Option<Vars>) -> Self {
        let rank = match (&vars, &route.template) {
            (None, _) => EntryRank::Exact,
            (Some(_), Some(template)) => EntryRank::Template(template.rank()),
            (Some(_), None) => EntryRank::Unlisted,
        };
        Self { rank, ..Self::own(route.provided(), OwnRoute::Template(route.clone(), vars)) }
    }

    /// Returns whether nothing can be more exact.
    pub(crate) fn is_exact(&self) -> bool {
        self.rank == EntryRank::Exact
    }

    /// Returns the name of the provider that has it.
    pub(crate) fn backend(&self) -> Option<&str> {
        match &self.owner {
            EntryOwner::Server(_) => None,
            EntryOwner::Provider(known, _) => Some(&known.info.name),
        }
    }

    /// Returns the number of the provider that has it.
    fn number(&self) -> Option<usize> {
        match self.owner {
            EntryOwner::Server(_) => None,
            EntryOwner::Provider(_, number) => Some(number),
        }
    }
}

impl Snapshot {
    /// Returns the routes and the providers.
    pub(crate) fn offered(&self) -> Offered<'_> {
        Offered { catalogue: &self.catalogue, providers: &self.providers }
    }

    /// Returns the entry of the server itself, whoever may see it: that of the session or of the principal first.
    pub(crate) fn own(&self, key: OverlayKey<'_>, target: &Target<'_>) -> Option<Found> {
        let catalogue = &self.catalogue;
        Some(match target {
            Target::Tool(name) => {
                let route = key.tool(catalogue, name).or_else(|| catalogue.tools.get(name).cloned())?;
                Found::own(route.provided(), OwnRoute::Tool(route))
            }
            Target::Prompt(name) => {
                let route = catalogue.prompts.get(name)?.clone();
                Found::own(route.provided(), OwnRoute::Prompt(route))
            }
            Target::Resource(uri) => {
                let read = Uri::of(uri);
                // Readers may differ about this spelling: it is the listed one, or there is no such resource.
                let is_refused = self.refuses_spelling(&read);
                let listed =
                    if is_refused { catalogue.resources.get(uri) } else { catalogue.resource(&read) };
                if let Some(route) = listed {
                    return Some(Found::own(route.provided(), OwnRoute::Resource(route.clone())));
                }
                if is_refused {
                    return None;
                }
                if let Some((route, resource)) = catalogue.sources.describe(uri) {
                    let entry = ProvidedEntry::from(resource).requiring(route.required.clone());
                    return Some(Found::own(entry, OwnRoute::Source(route.clone())));
                }
                let (route, vars) = catalogue.template(&read)?;
                Found::template(route, Some(vars))
            }
            Target::Template(uri) => {
                if let Some(route) = catalogue.templates.get(uri) {
                    return Some(Found::template(route, None));
                }
                let read = Uri::of(uri);
                let (route, vars) = catalogue.template(&read).filter(|_| !self.refuses_spelling(&read))?;
                Found::template(route, Some(vars))
            }
            Target::Method(name) => {
                let required = self.custom.get(&**name)?.required.clone();
                Found::own(ProvidedEntry::method(name, required), OwnRoute::Method)
            }
            Target::Task(_) => return None,
        })
    }

    /// Looks up an entry for a caller, without waiting for anything: among what the server has itself, and then among what its providers
    /// have, unless that is more exact already.
    pub(crate) fn find<'s>(
        &self,
        key: OverlayKey<'_>,
        target: &Target<'_>,
        scope: impl FnOnce() -> Scope<'s>,
    ) -> ServerLookup {
        self.providers.find(scope, target, usize::MAX, self.own(key, target))
    }

    /// Looks up the entry of a request, without waiting for anything.
    #[inline]
    pub(crate) fn find_for(&self, cx: &Cx, target: &Target<'_>) -> ServerLookup {
        self.find(cx.overlay_key(), target, || cx.scope())
    }

    /// Returns the entry of a request. Providers that have to read lists first do so, once. An error counts only if nobody has the entry.
    pub(crate) async fn lookup(&self, cx: &Cx, target: &Target<'_>) -> Result<Option<Found>, FindError> {
        let first = self.find_for(cx, target);
        if !first.is_stale() {
            return first.finish();
        }
        let failed = self.providers.refresh(cx, target, first.stale).await;
        let again = self.find_for(cx, target);
        ServerLookup { failed: failed.or(again.failed), ..again }.finish()
    }

    /// Returns the entry of a target, as far as it is known.
    pub(crate) fn known(&self, scope: &Scope<'_>, target: &Target<'_>) -> Option<Found> {
        self.find(scope.overlay_key(), target, || *scope).found
    }

    /// Returns the entry of a target, as far as it is known and as the caller sees it.
    pub(crate) fn seen(&self, scope: &Scope<'_>, target: &Target<'_>) -> Option<ProvidedEntry> {
        Some(self.as_seen(scope, &self.known(scope, target)?, target))
    }

    /// Returns an entry as the caller sees it: hidden for want of rights, or by the gates.
    pub(crate) fn as_seen(&self, scope: &Scope<'_>, found: &Found, target: &Target<'_>) -> ProvidedEntry {
        let entry = found.entry.clone();
        match entry.required.shows(scope.extensions) {
            true => self.restrict(scope, entry, target, found.backend()),
            false => entry.hide(),
        }
    }

    /// Hides an entry that the gates hide.
    pub(crate) fn restrict(
        &self,
        scope: &Scope<'_>,
        entry: ProvidedEntry,
        target: &Target<'_>,
        backend: Option<&str>,
    ) -> ProvidedEntry {
        if entry.is_hidden() || entry.owned {
            return entry;
        }
        let judged = entry.judged(|found| {
            let uri = target.judged_uri(found);
            let refused = uri.and_then(|uri| refusal(uri, self.gates.watching(scope, found, backend, uri)));
            (self.gates.shows(scope, found, backend, uri), refused)
        });
        match judged {
            Some((true, None)) => entry,
            Some((true, Some(reason))) => entry.unwatched(reason),
            None if self.gates.shows_read(scope, backend, || None::<Definition>) => entry,
            Some((false, _)) | None => entry.hide(),
        }
    }
}
