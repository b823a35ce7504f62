use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use http::Extensions;
use pintle_proto::{Peer, Revision, server::Outcome};
use pintle_types::{
    JsonObject, RawObject, RpcError,
    schema::{CacheScope, ServerCapabilities, Tool},
};

use super::{
    Provider,
    any::AnyProvider,
    definition::Definition,
    definitions::DefinitionCache,
    info::{ListHints, ProviderInfo, ReportPart},
    lookup::Lookup,
    page::ProviderPage,
    tasks::watched_tasks::WatchedTasks,
};
use crate::{
    runtime::join_all,
    server::{
        ConnectionEvent, Cx, ListKind, PageRequest, RequestError, Scope, Target,
        core::lookup::{EntryOwner, Found, ServerLookup},
        core::unread_lists::FailedRead,
    },
};

/// The providers of a server, in their order.
#[derive(Clone, Default)]
pub(crate) struct Providers(Vec<RegisteredProvider>);

/// A provider with its facts, which are read outside of the lock of the server, because its code is that of others.
#[derive(Clone)]
pub(crate) struct RegisteredProvider {
    pub(crate) provider: Arc<dyn AnyProvider>,
    pub(crate) info: Arc<ProviderInfo>,
    definitions: Arc<DefinitionCache>,
    /// Whether it is still a provider of the server.
    pub(crate) link: RemovalMark,
    /// The tasks that clients of the server are notified of.
    pub(crate) watched_tasks: Arc<WatchedTasks>,
    /// The last time that it could not tell what it lists.
    pub(crate) failed_read: FailedRead,
}

/// A mark that a provider was removed from its server. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct RemovalMark(Arc<AtomicBool>);

impl RemovalMark {
    pub(crate) fn is_removed(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Returns whether this removes it.
    pub(crate) fn remove(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

/// The place of a provider that was removed.
struct RemovedProvider;

impl Provider for RemovedProvider {
    fn info(&self, _: Option<&Scope<'_>>) -> ProviderInfo {
        ProviderInfo { may_require: false, ..ProviderInfo::new("", ServerCapabilities::default()) }
    }

    async fn list(&self, _: Cx, _: ListKind, _: PageRequest) -> Result<ProviderPage, RequestError> {
        Ok(ProviderPage::default())
    }

    fn find(&self, _: &Scope<'_>, _: &Target<'_>) -> Lookup {
        Lookup::None
    }

    async fn handle(&self, cx: Cx) -> Outcome {
        Outcome::Failed(RpcError::method_not_found(cx.method()))
    }
}

impl FromIterator<RegisteredProvider> for Providers {
    fn from_iter<I: IntoIterator<Item = RegisteredProvider>>(providers: I) -> Self {
        Self(providers.into_iter().collect())
    }
}

impl ProviderInfo {
    /// Adds the capabilities that depend on methods which the protocol does not define. Those of the server come first.
    fn declare_extensions(&self, capabilities: &mut ServerCapabilities) {
        fn unite(all: &mut Option<JsonObject>, more: Option<&JsonObject>) {
            for (name, settings) in more.into_iter().flatten() {
                all.get_or_insert_default().entry(name).or_insert_with(|| settings.clone());
            }
        }
        let provided = &self.capabilities;
        unite(&mut capabilities.extensions, provided.extensions.as_ref());
        unite(&mut capabilities.experimental, provided.experimental.as_ref());
        match (&mut capabilities.tasks, &provided.tasks) {
            (Some(all), Some(more)) => {
                all.list = all.list.take().or_else(|| more.list.clone());
                all.cancel = all.cancel.take().or_else(|| more.cancel.clone());
                all.requests = all.requests.take().or_else(|| more.requests.clone());
            }
            (all, Some(more)) => *all = Some(more.clone()),
            (_, None) => {}
        }
        for (name, settings) in provided.extra.iter().filter(|_| self.is_whole_server) {
            capabilities.extra.entry(name).or_insert_with(|| settings.clone());
        }
    }

    /// Returns the instructions under a heading with the name.
    fn headed_instructions(&self) -> Option<String> {
        let text = self.instructions.as_deref().filter(|text| !text.trim().is_empty())?;
        Some(format!("## {}\n\n{text}", self.name))
    }
}

impl RegisteredProvider {
    /// Reads the facts of a provider.
    pub(crate) fn new(provider: Arc<dyn AnyProvider>) -> Self {
        let info = Arc::new(provider.info(None));
        Self {
            provider,
            info,
            definitions: Arc::default(),
            link: RemovalMark::default(),
            watched_tasks: Arc::default(),
            failed_read: FailedRead::default(),
        }
    }

    fn removed() -> Self {
        let removed = Self::new(Arc::new(RemovedProvider));
        removed.link.remove();
        removed
    }

    /// Returns the provider with other facts.
    pub(crate) fn with_info(&self, info: ProviderInfo) -> Self {
        Self { info: Arc::new(info), ..self.clone() }
    }

    /// Returns whether the provider has a handler of a method.
    pub(crate) fn has_method(&self, method: &str) -> bool {
        self.info.methods.iter().any(|own| own == method)
    }

    /// Returns the names of the extensions that it has declared.
    pub(crate) fn extensions(&self) -> impl Iterator<Item = &str> {
        self.info.capabilities.extensions.iter().flat_map(|declared| declared.keys().map(String::as_str))
    }

    /// Reads the facts of the provider again. Returns it with them if they have changed.
    pub(crate) fn refreshed(&self) -> Option<Self> {
        let info = self.provider.info(None);
        (info != *self.info).then(|| self.with_info(info))
    }

    /// Returns the tools that are known without I/O, whoever may see them.
    pub(crate) fn known_tools(&self) -> Vec<Tool> {
        let (peer, extensions) = (Peer::new(Revision::LATEST), Extensions::default());
        let nobody = Scope::new(&peer, None, &extensions);
        let names = self.provider.report(ReportPart::Names(ListKind::Tools));
        let entry = |name: String| self.provider.find(&nobody, &Target::Tool(name.into())).known();
        names.into_iter().filter_map(|name| entry(name)?.tool()).collect()
    }

    pub(crate) fn offers(&self, list: ListKind) -> bool {
        list.is_offered(&self.info.capabilities)
    }

    /// Returns the definition of an entry that the provider has listed.
    pub(crate) fn decode(&self, list: ListKind, entry: &RawObject) -> Option<Arc<Definition>> {
        self.definitions.decode(list, entry)
    }

    /// Has the provider read a list again that may have changed.
    async fn refresh(&self, cx: &Cx, list: ListKind) -> Result<(), FindError> {
        if !self.offers(list) {
            return Ok(());
        }
        let read = self.provider.list(cx.clone(), list, PageRequest::refresh()).await;
        read.map(drop).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: RequestError) -> FindError {
        FindError { backend: self.info.name.clone(), error }
    }

    fn may_have(&self, target: &Target<'_>) -> bool {
        match target {
            Target::Method(name) => self.has_method(name),
            _ => ListKind::of(target).is_some_and(|list| self.offers(list)),
        }
    }
}

/// The failure of a provider to find an entry.
pub(crate) struct FindError {
    backend: String,
    pub(crate) error: RequestError,
}

impl FindError {
    /// Returns whether the gates hide an entry of this name of this provider, so that nothing may be known of the failure either.
    pub(crate) fn is_hidden(&self, cx: &Cx, target: &Target<'_>) -> bool {
        let gates = &cx.snapshot().gates;
        !gates.shows_read(&cx.scope(), Some(&self.backend), || Definition::of_name(target))
    }
}

impl From<FindError> for RequestError {
    fn from(failed: FindError) -> Self {
        failed.error
    }
}

impl Providers {
    /// Adds a provider: in the place of one that was removed, or as the last one.
    pub(crate) fn push(&mut self, provider: RegisteredProvider) {
        self.log_settings(&provider);
        match self.0.iter_mut().find(|known| known.link.is_removed()) {
            Some(place) => *place = provider,
            None => self.0.push(provider),
        }
    }

    /// Removes a provider. Its place stays, because cursors of lists name the others by number.
    pub(crate) fn remove(&mut self, removed: &RegisteredProvider) {
        if let Some(known) = self.0.iter_mut().find(|known| Arc::ptr_eq(&known.provider, &removed.provider)) {
            *known = RegisteredProvider::removed();
        }
    }

    /// Replaces a provider by itself, refreshed, unless it was removed.
    pub(crate) fn replace(&mut self, refreshed: &RegisteredProvider) {
        if let Some(known) = self.0.iter_mut().find(|known| Arc::ptr_eq(&known.provider, &refreshed.provider))
        {
            *known = refreshed.clone();
            self.log_settings(refreshed);
        }
    }

    /// Logs the extensions of a provider that another one has declared with different settings.
    fn log_settings(&self, provider: &RegisteredProvider) {
        let declared = provider.info.capabilities.extensions.iter().flatten();
        for (name, settings) in declared.filter(|_| provider.info.has_methods()) {
            let others = self.0.iter().filter(|known| !Arc::ptr_eq(&known.provider, &provider.provider));
            let of_other = |known: &RegisteredProvider| {
                let extensions = known.info.capabilities.extensions.as_ref()?;
                extensions.get(name).filter(|other| *other != settings).map(drop)
            };
            if let Some(other) = others.into_iter().find(|known| of_other(known).is_some()) {
                let (one, other) = (&provider.info.name, &other.info.name);
                tracing::warn!(
                    "`{one}` and `{other}` declare the extension `{name}` with different settings; those of the first are used"
                );
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, number: usize) -> Option<&RegisteredProvider> {
        self.0.get(number)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &RegisteredProvider> {
        self.0.iter()
    }

    /// Continues a lookup among the first `count` providers. The most exact entry counts, of equals the first.
    pub(crate) fn find<'s>(
        &self,
        scope: impl FnOnce() -> Scope<'s>,
        target: &Target<'_>,
        count: usize,
        found: Option<Found>,
    ) -> ServerLookup {
        let mut lookup = ServerLookup { found, ..ServerLookup::default() };
        let is_exact = |lookup: &ServerLookup| lookup.found.as_ref().is_some_and(Found::is_exact);
        if is_exact(&lookup) {
            return lookup;
        }
        let scope = scope();
        let known = self.0.iter().enumerate().take(count);
        for (number, known) in known.filter(|(_, known)| known.may_have(target)) {
            let entry = match known.provider.find(&scope, target) {
                Lookup::None => None,
                Lookup::Found(entry) => Some(entry),
                Lookup::Stale(entry) => {
                    lookup.stale.push(number);
                    entry
                }
                Lookup::Failed(error) => {
                    lookup.failed.get_or_insert_with(|| known.failed(error));
                    None
                }
            };
            let ranked = entry.map(|entry| (entry.rank(target), entry));
            let best = lookup.found.as_ref().map(|best| best.rank);
            if let Some((rank, entry)) = ranked.filter(|(rank, _)| best.is_none_or(|best| *rank < best)) {
                let owner = EntryOwner::Provider(known.clone(), number);
                lookup.found = Some(Found { entry, rank, owner });
            }
            if is_exact(&lookup) {
                break;
            }
        }
        lookup
    }

    /// Has providers read the lists again that a target may be in, all at the same time. Returns the first failure.
    pub(crate) async fn refresh(
        &self,
        cx: &Cx,
        target: &Target<'_>,
        numbers: impl IntoIterator<Item = usize>,
    ) -> Option<FindError> {
        let stale = numbers.into_iter().filter_map(|number| self.get(number));
        let failures = join_all(stale.map(async |known| {
            for list in ListKind::all_of(target) {
                if let Err(failed) = known.refresh(cx, *list).await {
                    return Some(failed);
                }
            }
            None
        }));
        failures.await.into_iter().flatten().next()
    }

    /// Has the providers of a mounted server read a list again, those whose lists may be stale.
    pub(crate) async fn refresh_all(&self, cx: &Cx, list: ListKind) -> Result<(), FindError> {
        let stale = self.0.iter().filter(|known| known.info.may_be_stale);
        join_all(stale.map(|known| known.refresh(cx, list))).await.into_iter().collect()
    }

    /// Has every provider handle an event of a connection, until one refuses it.
    pub(crate) fn connection_event(&self, event: ConnectionEvent<'_>) -> Result<(), RpcError> {
        self.0.iter().try_for_each(|known| {
            // A provider that panics harms nobody else.
            catch_unwind(AssertUnwindSafe(|| known.provider.watch().connection_event(event))).unwrap_or_else(
                |_| {
                    tracing::error!("a provider panicked");
                    Err(RpcError::internal("the server cannot open the connection: see its log"))
                },
            )
        })
    }

    /// Returns whether a provider answers methods that neither the protocol nor the server defines.
    pub(crate) fn has_methods(&self) -> bool {
        self.0.iter().any(|known| known.info.has_methods())
    }

    /// Returns whether the server is that of one provider, as far as clients see.
    pub(crate) fn is_whole_server(&self) -> bool {
        self.0.iter().any(|known| known.info.is_whole_server)
    }

    /// Returns the methods that providers have handlers of.
    pub(crate) fn methods(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|known| &known.info.methods).map(String::as_str)
    }

    /// Returns whether a provider has gates of its own.
    pub(crate) fn is_gated(&self) -> bool {
        self.0.iter().any(|known| known.info.is_gated)
    }

    /// Returns whether a provider decides by URIs.
    pub(crate) fn judges_uris(&self) -> bool {
        self.0.iter().any(|known| known.info.judges_uris)
    }

    /// Returns whether an entry of a provider may require rights.
    pub(crate) fn may_require(&self) -> bool {
        self.0.iter().any(|known| known.info.may_require)
    }

    /// Adds the capabilities of the providers.
    pub(crate) fn declare(&self, capabilities: &mut ServerCapabilities) {
        for known in self.0.iter().filter(|known| known.info.has_methods()) {
            known.info.declare_extensions(capabilities);
        }
        let is_true = |flag: Option<bool>| flag == Some(true);
        for declared in self.0.iter().map(|known| &known.info.capabilities) {
            if let Some(tools) = &declared.tools {
                let all = capabilities.tools.get_or_insert_default();
                all.list_changed = all.list_changed.filter(|set| *set).or(tools.list_changed);
            }
            if let Some(prompts) = &declared.prompts {
                let all = capabilities.prompts.get_or_insert_default();
                all.list_changed = all.list_changed.filter(|set| *set).or(prompts.list_changed);
            }
            if let Some(resources) = &declared.resources {
                let all = capabilities.resources.get_or_insert_default();
                all.list_changed = all.list_changed.filter(|set| *set).or(resources.list_changed);
                if is_true(resources.subscribe) {
                    all.subscribe = Some(true);
                }
            }
            if declared.completions.is_some() {
                capabilities.completions.get_or_insert_default();
            }
            if declared.logging.is_some() {
                capabilities.logging.get_or_insert_default();
            }
        }
    }

    /// Returns the instructions of the server with those of the providers.
    pub(crate) fn instructions(&self, own: Option<&str>) -> Option<String> {
        let provided = self.0.iter().filter_map(|known| known.info.headed_instructions());
        let own = own.filter(|own| !own.is_empty()).map(str::to_owned);
        let texts: Vec<_> = own.into_iter().chain(provided).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    /// Makes the hints of these lists as strict as those of the providers.
    pub(crate) fn restrict(&self, lists: &[ListKind], hints: &mut ListHints) {
        for known in &self.0 {
            let mut offered = lists.iter().copied().filter(|list| known.offers(*list)).peekable();
            if offered.peek().is_none() {
                continue;
            }
            let info = known.provider.info(None);
            for list in offered {
                let (hint, provided) = (hints.get_mut(list), info.hints.get(list));
                hint.ttl_ms = hint.ttl_ms.min(provided.ttl_ms);
                if provided.scope != CacheScope::Public {
                    hint.scope = provided.scope.clone();
                }
            }
        }
    }
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|known| &known.info.name)).finish()
    }
}
