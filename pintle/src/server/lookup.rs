//! The entry that a name or URI leads to. Entries of that name come first, whoever has them, then templates, of which the most literal
//! counts; of equals that of the server itself, then that of the first provider.

use crate::{
    server::{
        Cx, ProvidedEntry, Scope, Target,
        gate::admission::refusal,
        provider::{
            conflicts::Offered,
            entry::{EntryRank, ProvidedRoute},
            registry::{FindError, FoundEntry},
        },
        snapshot::Snapshot,
        subscription,
    },
    uri::Uri,
};

impl Snapshot {
    /// Returns the routes and the providers.
    pub(crate) fn offered(&self) -> Offered<'_> {
        Offered { catalogue: &self.catalogue, providers: &self.providers }
    }

    /// Returns the entry of the server itself, whoever may see it.
    pub(crate) fn own_entry(&self, scope: &Scope<'_>, target: &Target<'_>) -> Option<ProvidedEntry> {
        let catalogue = &self.catalogue;
        match target {
            Target::Tool(name) => {
                let principal =
                    scope.principal.and_then(|principal| catalogue.principal_tools.get(principal));
                let own = principal.and_then(|tools| tools.get(name));
                own.or_else(|| catalogue.tools.get(name)).map(ProvidedRoute::provided)
            }
            Target::Prompt(name) => catalogue.prompts.get(name).map(ProvidedRoute::provided),
            Target::Resource(uri) => {
                let read = Uri::of(uri);
                if self.refuses_spelling(&read) {
                    return catalogue.resources.get(uri).map(ProvidedRoute::provided);
                }
                if let Some(route) = catalogue.resource(&read) {
                    return Some(route.provided());
                }
                if let Some((route, resource)) = catalogue.sources.describe(uri) {
                    let mut entry = ProvidedEntry::from(resource);
                    entry.required = route.required.clone();
                    return Some(entry);
                }
                catalogue.template(&read).map(|(route, _)| route.provided())
            }
            Target::Template(uri) => {
                let read = Uri::of(uri);
                let matching = || catalogue.template(&read).filter(|_| !self.refuses_spelling(&read));
                let route = catalogue.templates.get(uri).or_else(|| Some(matching()?.0))?;
                Some(route.provided())
            }
            Target::Method(name) => {
                Some(ProvidedEntry::method(name, self.custom.get(&**name)?.required.clone()))
            }
            Target::Task(_) => None,
        }
    }

    /// Returns how exactly the server itself has the entry of a target.
    pub(crate) fn own_rank(&self, scope: &Scope<'_>, target: &Target<'_>) -> Option<EntryRank> {
        self.own_entry(scope, target).map(|entry| entry.rank(target))
    }

    /// Returns the entry of the server itself, as the gates show it, whether or not a provider has it more exactly.
    pub(crate) fn describe_own(&self, scope: &Scope<'_>, target: &Target<'_>) -> Option<ProvidedEntry> {
        let entry = self.own_entry(scope, target)?;
        Some(match entry.required.shows(scope.extensions) {
            true => self.restrict(scope, entry, target, None),
            false => entry.hide(),
        })
    }

    /// Returns the entry of the provider that has it more exactly than the server itself. An error counts only if nobody has it.
    pub(crate) async fn find_provided(
        &self,
        cx: &Cx,
        target: &Target<'_>,
    ) -> Result<Option<FoundEntry>, FindError> {
        if self.providers.is_empty() {
            return Ok(None);
        }
        let own = self.own_rank(&cx.scope(), target);
        match self.providers.find(cx, target, usize::MAX, own).await {
            Err(_) if own.is_some() => Ok(None),
            found => found,
        }
    }

    /// Returns the name of the provider that [`find_provided`](Self::find_provided) would return, and what it knows of the entry without
    /// I/O.
    pub(crate) fn provided_entry(
        &self,
        scope: &Scope<'_>,
        target: &Target<'_>,
    ) -> Option<(String, ProvidedEntry)> {
        if self.providers.is_empty() {
            return None;
        }
        self.providers.describe(scope, target, self.own_rank(scope, target))
    }

    /// Returns what the provider that has an entry more exactly than the server itself knows of it without I/O, as the gates show it.
    pub(crate) fn describe_provided(&self, scope: &Scope<'_>, target: &Target<'_>) -> Option<ProvidedEntry> {
        let (backend, entry) = self.provided_entry(scope, target)?;
        Some(self.restrict(scope, entry, target, Some(&backend)))
    }

    /// Returns what is known of an entry without I/O, whoever has it, as the gates show it.
    pub(crate) fn describe(&self, scope: &Scope<'_>, target: &Target<'_>) -> Option<ProvidedEntry> {
        self.describe_provided(scope, target).or_else(|| self.describe_own(scope, target))
    }

    /// Hides an entry that was found for a request if the caller may not see it. A request for what is hidden is not dispatched to this
    /// server, and neither is a subscription, so the gates report here what they decide.
    pub(crate) fn found(
        &self,
        cx: &Cx,
        entry: ProvidedEntry,
        target: &Target<'_>,
        backend: Option<&str>,
    ) -> ProvidedEntry {
        let scope = cx.scope();
        let entry = if entry.required.shows(scope.extensions) { entry } else { entry.hide() };
        if self.gates.is_empty() || entry.owned {
            return entry;
        }
        let shown = self.restrict(&scope, entry.clone(), target, backend);
        // A request that names no entry reads a list.
        if subscription::subscribes(cx) || shown.is_hidden() && cx.target().is_some() {
            entry.report(cx, backend, target);
        }
        shown
    }

    /// Hides an entry that the gates hide.
    pub(crate) fn restrict(
        &self,
        scope: &Scope<'_>,
        entry: ProvidedEntry,
        target: &Target<'_>,
        backend: Option<&str>,
    ) -> ProvidedEntry {
        if self.gates.is_empty() || entry.is_hidden() || entry.owned {
            return entry;
        }
        let judged = entry.judged(|found| {
            let uri = target.judged_uri(found);
            let refused = uri.and_then(|uri| refusal(uri, self.gates.watching(scope, found, backend, uri)));
            (self.gates.shows_uri(scope, found, backend, uri), refused)
        });
        match judged {
            Some((true, None)) => entry,
            Some((true, Some(reason))) => entry.unwatched(reason),
            // Nothing is known of it that a gate could judge.
            Some((false, _)) | None => entry.hide(),
        }
    }
}
