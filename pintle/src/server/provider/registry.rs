use std::{
    borrow::Cow,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use pintle_proto::server::{CacheHint, Outcome};
use pintle_types::{
    JsonObject, RawObject, RpcError,
    schema::{CacheScope, ServerCapabilities},
};

use super::{
    Provider,
    any::AnyProvider,
    definitions::DefinitionCache,
    entry::{Definition, EntryRank, ProvidedEntry},
    page::ProviderPage,
    watched_tasks::WatchedTasks,
};
use crate::server::{
    ConnectionEvent, Cx, ListKind, PageRequest, RequestError, Scope, Target, catalogue::lists,
};

/// The providers of a server, in their order.
#[derive(Clone, Default)]
pub(crate) struct Providers(Vec<RegisteredProvider>);

/// A provider, and what it declared.
#[derive(Clone)]
pub(crate) struct RegisteredProvider {
    pub(crate) provider: Arc<dyn AnyProvider>,
    declared: Arc<DeclaredFacts>,
    definitions: Arc<DefinitionCache>,
    /// Whether it is still a provider of the server.
    pub(crate) link: RemovalMark,
    /// The tasks that clients of the server are notified of.
    pub(crate) watched_tasks: Arc<WatchedTasks>,
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
    fn name(&self) -> Cow<'_, str> {
        "".into()
    }

    fn capabilities(&self) -> ServerCapabilities {
        ServerCapabilities::default()
    }

    async fn list(&self, _: Cx, _: ListKind, _: PageRequest) -> Result<ProviderPage, RequestError> {
        Ok(ProviderPage::default())
    }

    fn describe(&self, _: &Scope<'_>, _: &Target<'_>) -> Option<ProvidedEntry> {
        None
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

/// A declaration of a provider to a caller.
#[doc(hidden)]
#[non_exhaustive]
#[derive(Clone, Debug, Default)]
pub struct Declaration {
    /// The capabilities.
    pub capabilities: ServerCapabilities,
    /// The instructions.
    pub instructions: Option<String>,
}

/// The facts that a provider declares. They are read outside of the lock of the server, because its code is that of others.
#[derive(Clone, PartialEq)]
struct DeclaredFacts {
    capabilities: ServerCapabilities,
    instructions: Option<String>,
    handles_any_method: bool,
    methods: Vec<String>,
    is_whole_server: bool,
    is_gated: bool,
    judges_uris: bool,
    may_require: bool,
}

/// Returns instructions of a provider under a heading with its name.
fn headed(name: &str, instructions: Option<String>) -> Option<String> {
    let instructions = instructions.filter(|text| !text.trim().is_empty());
    instructions.map(|text| format!("## {name}\n\n{text}"))
}

impl DeclaredFacts {
    fn of(provider: &dyn AnyProvider) -> Self {
        Self {
            capabilities: provider.capabilities(),
            instructions: headed(&provider.name(), provider.instructions()),
            handles_any_method: provider.handles_any_method(),
            methods: provider.methods(),
            is_whole_server: provider.is_whole_server(),
            is_gated: provider.is_gated(),
            judges_uris: provider.judges_uris(),
            may_require: provider.may_require(),
        }
    }
}

impl DeclaredFacts {
    /// Returns whether the provider answers methods that the protocol does not define.
    fn has_methods(&self) -> bool {
        self.handles_any_method || !self.methods.is_empty()
    }

    /// Adds the capabilities that depend on methods which the protocol does not define. Those of the server come first.
    fn declare_rest(&self, capabilities: &mut ServerCapabilities) {
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
}

impl RegisteredProvider {
    /// Reads what a provider declares.
    pub(crate) fn new(provider: Arc<dyn AnyProvider>) -> Self {
        let declared = Arc::new(DeclaredFacts::of(&*provider));
        Self {
            provider,
            declared,
            definitions: Arc::default(),
            link: RemovalMark::default(),
            watched_tasks: Arc::default(),
        }
    }

    fn removed() -> Self {
        let removed = Self::new(Arc::new(RemovedProvider));
        removed.link.remove();
        removed
    }

    /// Returns what it has declared.
    pub(crate) fn declared(&self) -> &ServerCapabilities {
        &self.declared.capabilities
    }

    /// Returns it as one that declares something else.
    pub(crate) fn declaring(&self, declared: Declaration) -> Self {
        let Declaration { capabilities, instructions } = declared;
        let instructions = headed(&self.provider.name(), instructions);
        let declared = DeclaredFacts { capabilities, instructions, ..DeclaredFacts::clone(&self.declared) };
        Self { declared: Arc::new(declared), ..self.clone() }
    }

    /// Returns the methods that the provider has handlers of.
    pub(crate) fn methods(&self) -> impl Iterator<Item = &str> {
        self.declared.methods.iter().map(String::as_str)
    }

    /// Returns whether the provider has a handler of a method.
    pub(crate) fn has_method(&self, method: &str) -> bool {
        self.declared.methods.iter().any(|own| own == method)
    }

    /// Returns whether the provider answers any method.
    pub(crate) fn handles_any_method(&self) -> bool {
        self.declared.handles_any_method
    }

    /// Returns the names of the extensions that it has declared.
    pub(crate) fn extensions(&self) -> impl Iterator<Item = &str> {
        self.declared.capabilities.extensions.iter().flat_map(|declared| declared.keys().map(String::as_str))
    }

    /// Reads again what the provider declares. Returns it if that is something else now.
    pub(crate) fn refreshed(&self) -> Option<Self> {
        let refreshed = Self {
            definitions: self.definitions.clone(),
            link: self.link.clone(),
            watched_tasks: self.watched_tasks.clone(),
            ..Self::new(self.provider.clone())
        };
        (refreshed.declared != self.declared).then_some(refreshed)
    }

    pub(crate) fn offers(&self, list: ListKind) -> bool {
        list.is_offered(&self.declared.capabilities)
    }

    /// Returns the definition of an entry that the provider has listed.
    pub(crate) fn decode(&self, list: ListKind, entry: &RawObject) -> Option<Arc<Definition>> {
        self.definitions.decode(list, entry)
    }

    fn may_have(&self, target: &Target<'_>) -> bool {
        let is_offered = match target {
            Target::Method(name) => self.has_method(name),
            _ => ListKind::of(target).is_some_and(|list| self.offers(list)),
        };
        is_offered && self.provider.may_have(target)
    }
}

/// An entry of a provider.
pub(crate) struct FoundEntry {
    /// The number of the provider.
    pub(crate) number: usize,
    pub(crate) provider: Arc<dyn AnyProvider>,
    pub(crate) entry: ProvidedEntry,
}

/// The failure of a provider to find an entry.
pub(crate) struct FindError {
    backend: String,
    pub(crate) error: RequestError,
}

impl FindError {
    /// Returns whether the gates hide an entry of this name of this provider, so that nothing may be known of the failure either.
    pub(crate) fn is_hidden(&self, cx: &Cx, target: &Target<'_>) -> bool {
        !cx.snapshot().gates.is_empty()
            && Definition::of_name(target)
                .is_none_or(|definition| !lists::is_shown(cx, definition.entry(), Some(&self.backend)))
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
        let declared = provider.declared.capabilities.extensions.iter().flatten();
        for (name, settings) in declared.filter(|_| provider.declared.has_methods()) {
            let others = self.0.iter().filter(|known| !Arc::ptr_eq(&known.provider, &provider.provider));
            let of_other = |known: &RegisteredProvider| {
                let extensions = known.declared.capabilities.extensions.as_ref()?;
                extensions.get(name).filter(|other| *other != settings).map(drop)
            };
            if let Some(other) = others.into_iter().find(|known| of_other(known).is_some()) {
                let (one, other) = (provider.provider.name(), other.provider.name());
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

    /// Returns the entry of the first `count` providers that is the most exact one of a target, and more exact than `than`, of equals the
    /// first. An error counts only if none has it.
    pub(crate) async fn find(
        &self,
        cx: &Cx,
        target: &Target<'_>,
        count: usize,
        than: Option<EntryRank>,
    ) -> Result<Option<FoundEntry>, FindError> {
        if than == Some(EntryRank::Exact) {
            return Ok(None);
        }
        let (mut failed, mut best) = (None, None);
        let known = self.0.iter().enumerate().take(count);
        for (number, known) in known.filter(|(_, known)| known.may_have(target)) {
            match known.provider.find(cx.clone(), target).await {
                Ok(Some(entry)) => {
                    let rank = entry.rank(target);
                    let found = FoundEntry { number, provider: known.provider.clone(), entry };
                    if rank == EntryRank::Exact {
                        return Ok(Some(found));
                    }
                    let best_known = best.as_ref().map(|(known, _)| *known).or(than);
                    if best_known.is_none_or(|known| rank < known) {
                        best = Some((rank, found));
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    let backend = || known.provider.name().into_owned();
                    failed = failed.or_else(|| Some(FindError { backend: backend(), error }));
                }
            }
        }
        match best {
            Some((_, found)) => Ok(Some(found)),
            None => failed.map_or(Ok(None), Err),
        }
    }

    /// Returns the name of the provider that [`find`](Self::find) would return, and what it knows of the entry without I/O.
    pub(crate) fn describe(
        &self,
        scope: &Scope<'_>,
        target: &Target<'_>,
        than: Option<EntryRank>,
    ) -> Option<(String, ProvidedEntry)> {
        if than == Some(EntryRank::Exact) {
            return None;
        }
        let mut best: Option<(EntryRank, _, _)> = None;
        for known in self.0.iter().filter(|known| known.may_have(target)) {
            let Some(entry) = known.provider.describe(scope, target) else { continue };
            let rank = entry.rank(target);
            let best_known = best.as_ref().map(|(known, ..)| *known).or(than);
            if best_known.is_none_or(|best| rank < best) {
                best = Some((rank, known, entry));
            }
            if rank == EntryRank::Exact {
                break;
            }
        }
        best.map(|(_, known, entry)| (known.provider.name().into_owned(), entry))
    }

    /// Has every provider handle an event of a connection, until one refuses it.
    pub(crate) fn connection_event(&self, event: ConnectionEvent<'_>) -> Result<(), RpcError> {
        self.0.iter().try_for_each(|known| {
            // A provider that panics harms nobody else.
            catch_unwind(AssertUnwindSafe(|| known.provider.connection_event(event))).unwrap_or_else(|_| {
                tracing::error!("a provider panicked");
                Err(RpcError::internal("the server cannot open the connection: see its log"))
            })
        })
    }

    /// Returns whether a provider answers methods that neither the protocol nor the server defines.
    pub(crate) fn has_methods(&self) -> bool {
        self.0.iter().any(|known| known.declared.has_methods())
    }

    /// Returns whether the server is that of one provider, as far as clients see.
    pub(crate) fn is_whole_server(&self) -> bool {
        self.0.iter().any(|known| known.declared.is_whole_server)
    }

    /// Returns the methods that providers have handlers of.
    pub(crate) fn methods(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(RegisteredProvider::methods)
    }

    /// Returns whether a provider has gates of its own.
    pub(crate) fn is_gated(&self) -> bool {
        self.0.iter().any(|known| known.declared.is_gated)
    }

    /// Returns whether a provider decides by URIs.
    pub(crate) fn judges_uris(&self) -> bool {
        self.0.iter().any(|known| known.declared.judges_uris)
    }

    /// Returns whether an entry of a provider may require rights.
    pub(crate) fn may_require(&self) -> bool {
        self.0.iter().any(|known| known.declared.may_require)
    }

    /// Adds the capabilities of the providers.
    pub(crate) fn declare(&self, capabilities: &mut ServerCapabilities) {
        for known in self.0.iter().filter(|known| known.declared.has_methods()) {
            known.declared.declare_rest(capabilities);
        }
        let is_true = |flag: Option<bool>| flag == Some(true);
        for declared in self.0.iter().map(|known| &known.declared.capabilities) {
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
        let provided = self.0.iter().filter_map(|known| known.declared.instructions.as_deref());
        let texts: Vec<_> = own.into_iter().chain(provided).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    /// Makes a cache hint as strict as those of the providers.
    pub(crate) fn restrict(&self, list: ListKind, hint: &mut CacheHint) {
        for known in self.0.iter().filter(|known| known.offers(list)) {
            let provided = known.provider.cache_hint(list);
            hint.ttl_ms = hint.ttl_ms.min(provided.ttl_ms);
            if provided.scope != CacheScope::Public {
                hint.scope = provided.scope;
            }
        }
    }
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|known| known.provider.name())).finish()
    }
}
