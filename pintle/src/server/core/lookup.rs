//! The entry that a name or URI leads to. Entries of that name come first, whoever has them, then templates, of which the most literal
//! counts; of equals that of the server itself, then that of the first provider.

use std::sync::Arc;

use pintle_types::schema::Resource;

use super::{
    catalogue::{options::CatalogueRoute as _, overlay::OverlayKey},
    gate::admission::{Used, refusal},
    provider::{
        conflicts::Offered,
        definition::Definition,
        entry::{EntryRank, ProvidedRoute as _},
        registry::{FindError, FoundEntry, ProviderLookup},
    },
    snapshot::Snapshot,
};
use crate::{
    server::{
        Cx, Entry, PromptRoute, ProvidedEntry, ResourceRoute, Scope, SourceRoute, Target, TemplateRoute,
        ToolRoute, access::required::Required,
    },
    uri::{Uri, Vars},
};

/// An entry that a name or URI leads to.
pub(crate) enum Found {
    Own(OwnEntry),
    Provided(FoundEntry),
}

/// An entry of the server itself.
pub(crate) enum OwnEntry {
    Tool(Arc<ToolRoute>),
    Prompt(Arc<PromptRoute>),
    Resource(Arc<ResourceRoute>),
    /// A resource of a source, as that describes it.
    Source(SourceRoute, Box<Resource>),
    /// A template, with the values of its variables if it was found by a URI.
    Template(Arc<TemplateRoute>, Option<Vars>),
    /// A method, and the rights that it requires.
    Method(Box<str>, Required),
}

/// The result of a lookup.
pub(crate) struct ServerLookup {
    /// The entry, as far as it is known.
    pub(crate) found: Option<Found>,
    /// The numbers of the providers that have to read lists first.
    stale: Vec<usize>,
    /// The failure of a provider, if there is no entry.
    failed: Option<FindError>,
}

impl ServerLookup {
    /// Returns whether providers have to read lists first.
    pub(crate) fn is_stale(&self) -> bool {
        !self.stale.is_empty()
    }

    /// Returns the entry, as far as it is known, and the numbers of the providers that may have a more exact one when they have read their
    /// lists.
    pub(crate) fn known(self) -> (Option<Found>, Vec<usize>) {
        let (rank, number) = match &self.found {
            Some(Found::Own(own)) => (Some(own.rank()), None),
            Some(Found::Provided(found)) => (Some(found.rank), Some(found.number)),
            None => (None, None),
        };
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
    /// Returns the entry as gates judge it.
    pub(crate) fn entry(&self) -> ProvidedEntry {
        match self {
            Self::Own(own) => own.provided(),
            Self::Provided(found) => found.entry.clone(),
        }
    }

    /// Returns the name of the provider that has it.
    pub(crate) fn backend(&self) -> Option<&str> {
        match self {
            Self::Own(_) => None,
            Self::Provided(found) => Some(&found.info.name),
        }
    }
}

impl OwnEntry {
    pub(crate) fn required(&self) -> &Required {
        match self {
            Self::Tool(route) => &route.options.required,
            Self::Prompt(route) => &route.options.required,
            Self::Resource(route) => &route.options.required,
            Self::Source(route, _) => &route.required,
            Self::Template(route, _) => &route.options.required,
            Self::Method(_, required) => required,
        }
    }

    /// Returns the use that a request makes of the entry.
    pub(crate) fn used(&self) -> Used<'_> {
        let entry = match self {
            Self::Tool(route) => route.entry(),
            Self::Prompt(route) => route.entry(),
            Self::Resource(route) => route.entry(),
            Self::Source(_, resource) => Entry::Resource(resource),
            Self::Template(route, _) => route.entry(),
            Self::Method(name, _) => Entry::Method(name),
        };
        Used::own(self.required(), entry)
    }

    /// Returns how exactly it is the entry of the target that it was found by.
    pub(crate) fn rank(&self) -> EntryRank {
        match self {
            Self::Template(route, Some(_)) => match &route.template {
                Some(template) => EntryRank::Template(template.rank()),
                None => EntryRank::Unlisted,
            },
            _ => EntryRank::Exact,
        }
    }

    fn provided(&self) -> ProvidedEntry {
        match self {
            Self::Tool(route) => route.provided(),
            Self::Prompt(route) => route.provided(),
            Self::Resource(route) => route.provided(),
            Self::Source(route, resource) => {
                let mut entry = ProvidedEntry::from(Resource::clone(resource));
                entry.required = route.required.clone();
                entry
            }
            Self::Template(route, _) => route.provided(),
            Self::Method(name, required) => ProvidedEntry::method(name, required.clone()),
        }
    }
}

impl Snapshot {
    /// Returns the routes and the providers.
    pub(crate) fn offered(&self) -> Offered<'_> {
        Offered { catalogue: &self.catalogue, providers: &self.providers }
    }

    /// Returns the entry of the server itself, whoever may see it: that of the session or of the principal first.
    pub(crate) fn own(&self, key: OverlayKey<'_>, target: &Target<'_>) -> Option<OwnEntry> {
        let catalogue = &self.catalogue;
        Some(match target {
            Target::Tool(name) => {
                let own = key.tool(catalogue, name);
                OwnEntry::Tool(own.or_else(|| catalogue.tools.get(name).cloned())?)
            }
            Target::Prompt(name) => OwnEntry::Prompt(catalogue.prompts.get(name)?.clone()),
            Target::Resource(uri) => {
                let read = Uri::of(uri);
                // Readers may differ about this spelling: it is the listed one, or there is no such resource.
                if self.refuses_spelling(&read) {
                    return catalogue.resources.get(uri).cloned().map(OwnEntry::Resource);
                }
                if let Some(route) = catalogue.resource(&read) {
                    return Some(OwnEntry::Resource(route.clone()));
                }
                if let Some((route, resource)) = catalogue.sources.describe(uri) {
                    return Some(OwnEntry::Source(route.clone(), Box::new(resource)));
                }
                let (route, vars) = catalogue.template(&read)?;
                OwnEntry::Template(route.clone(), Some(vars))
            }
            Target::Template(uri) => {
                if let Some(route) = catalogue.templates.get(uri) {
                    return Some(OwnEntry::Template(route.clone(), None));
                }
                let read = Uri::of(uri);
                let (route, vars) = catalogue.template(&read).filter(|_| !self.refuses_spelling(&read))?;
                OwnEntry::Template(route.clone(), Some(vars))
            }
            Target::Method(name) => {
                OwnEntry::Method((**name).into(), self.custom.get(&**name)?.required.clone())
            }
            Target::Task(_) => return None,
        })
    }

    /// Looks up an entry for a caller, without waiting for anything.
    pub(crate) fn find<'s>(
        &self,
        key: OverlayKey<'_>,
        target: &Target<'_>,
        scope: impl FnOnce() -> Scope<'s>,
    ) -> ServerLookup {
        let own = self.own(key, target);
        let rank = own.as_ref().map(OwnEntry::rank);
        if rank == Some(EntryRank::Exact) {
            return ServerLookup { found: own.map(Found::Own), stale: Vec::new(), failed: None };
        }
        let ProviderLookup { found, stale, failed } = self.providers.find(&scope(), target, usize::MAX, rank);
        ServerLookup { found: found.map(Found::Provided).or(own.map(Found::Own)), stale, failed }
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
        let failed = self.providers.refresh(cx, target, &first.stale).await;
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
        let entry = found.entry();
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
