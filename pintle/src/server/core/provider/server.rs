//! Adding providers to a server, and servers as providers of others.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use pintle_proto::{
    Peer, TaskKind,
    server::{Change, Outcome, WatchObserver},
};
use pintle_types::{Notification, RawObject, RpcError, method, schema::ServerCapabilities};

use super::{
    super::server::ServerInner,
    any::AnyProvider,
    passed_gates::PassedGates,
    registry::{RegisteredProvider, RemovalMark},
    tasks::watched_tasks::{self, WatchedTasks},
};
use crate::{
    Error, Result,
    server::{
        ConnectionEvent, Cx, ListKind, Lookup, Notice, Opened, PageRequest, ProvidedEntry, Provider,
        ProviderChanges, ProviderInfo, ProviderPage, ProviderSubscription, ReportPart, RequestError, Scope,
        Server, ServerKey, SessionHandle, Target, Watch, WatchFuture,
        changes::{Audience, ChangeLink},
        core::{catalogue::lint, cx::Mounted, lookup::Found, provider, snapshot::Snapshot},
    },
};

impl Server {
    /// Adds a provider, whose names are kept. [`mount`](Self::mount) gives them a prefix.
    ///
    /// A name that two providers have, or a provider and the server, is an error: [`check`](Self::check) reports it, and `serve`
    /// refuses to start. Of names that meet later, while the server runs, the first is used, and a warning is logged.
    #[must_use]
    pub fn provider(self, provider: impl Provider) -> Self {
        self.noting(|server| server.register(provider))
    }

    /// Adds a provider while the server runs, and notifies clients.
    ///
    /// # Errors
    ///
    /// It has a name that the server has, the provider reports an error, or a server would contain itself. Then it is not added.
    pub fn add_provider(&self, provider: impl Provider) -> Result<()> {
        let faults = provider.report(ReportPart::Faults);
        if !faults.is_empty() {
            return Err(Error::misuse(faults.join("\n")));
        }
        if let Some(conflict) = self.snapshot().offered().conflicts_with(&provider).into_iter().next() {
            return Err(Error::misuse(conflict));
        }
        self.register(provider)
    }

    fn register(&self, provider: impl Provider) -> Result<()> {
        let provider: Arc<dyn AnyProvider> = Arc::new(provider);
        let added = RegisteredProvider::new(provider.clone());
        self.check_outside(&added.info)?;
        let observer = Arc::new(ServerLink::new(self, RemovalMark::default(), Arc::default()));
        self.change(|state| {
            state.providers.push(added.clone());
            state.service.set_watch_observer(observer);
        });
        // Of two servers that are mounted in each other at the same time, one sees it now.
        if let Err(error) = self.check_outside(&provider.info(None)) {
            added.link.remove();
            self.change(|state| state.providers.remove(&added));
            return Err(error);
        }
        self.0.watches.report_to(&added);
        let link = ServerLink::new(self, added.link, added.watched_tasks);
        provider.watch().attach(ProviderChanges::new(Arc::new(link)));
        self.publish_lists(&provider.info(None).capabilities);
        Ok(())
    }

    /// Fails if a provider contains this server.
    fn check_outside(&self, provider: &ProviderInfo) -> Result<()> {
        match provider.servers.contains(&self.key()) {
            false => Ok(()),
            true => Err(Error::misuse(format!(
                "`{}` cannot be mounted in itself; leave one of the mounts out",
                self.snapshot().service.info().name
            ))),
        }
    }

    /// Removes a provider, or a mounted server, while the server runs, and notifies clients. Calls that run in it go on. Of several of
    /// this name, the first is removed. Returns whether there was one.
    ///
    /// The name is that of [`ProviderInfo::name`]; that of a mount is its namespace.
    ///
    /// ```
    /// use pintle::{Server, server::tool};
    ///
    /// let git = Server::new("git", "1.0.0").tool(tool("status", || async { "clean" }));
    /// let desk = Server::new("desk", "1.0.0").mount("git", git);
    /// assert_eq!(desk.tools_where(|_: &_| true).len(), 1);
    /// assert!(desk.remove_provider("git"));
    /// assert!(desk.tools_where(|_: &_| true).is_empty());
    /// ```
    pub fn remove_provider(&self, name: &str) -> bool {
        let snapshot = self.snapshot();
        let mut named = snapshot.providers.iter().filter(|known| known.info.name == name);
        let Some(removed) = named.find(|known| known.link.remove()) else { return false };
        self.change(|state| state.providers.remove(removed));
        self.0.watches.withdraw_from(removed);
        self.publish_lists(&removed.info.capabilities);
        true
    }

    /// Notifies clients that the lists have changed of which this declares something.
    fn publish_lists(&self, declared: &ServerCapabilities) {
        let changed = [
            declared.tools.as_ref().map(|_| Change::Tools),
            declared.prompts.as_ref().map(|_| Change::Prompts),
            declared.resources.as_ref().map(|_| Change::Resources),
        ];
        changed.iter().flatten().for_each(|change| self.changes().publish(change));
    }

    /// Returns warnings about valid registrations that could be better: missing descriptions, duplicate tags, missing
    /// dependencies. Those of mounted servers follow, with their namespace. Every `serve` method and `http` log them at `warn`, once.
    pub fn lint(&self) -> Vec<String> {
        let snapshot = self.snapshot();
        let mut warnings = lint::lint(&snapshot.catalogue);
        warnings
            .extend(snapshot.providers.iter().flat_map(|known| known.provider.report(ReportPart::Warnings)));
        warnings
    }

    /// Reads the facts of the providers again.
    pub(crate) fn refresh_providers(&self) {
        let snapshot = self.snapshot();
        for known in snapshot.providers.iter() {
            if let Some(refreshed) = known.refreshed() {
                self.change(|state| state.providers.replace(&refreshed));
            }
        }
    }

    /// Runs the handler of a notification, if there is one, and those of the providers.
    pub(crate) async fn run_notified(
        &self,
        notification: Notification,
        peer: Option<Arc<Peer>>,
        session: Option<SessionHandle>,
    ) {
        if let Some(own) = self.notification_handler(&notification.method) {
            own(notification.clone(), peer.clone(), session.clone()).await;
        }
        for known in self.snapshot().providers.iter() {
            let watch = known.provider.watch();
            watch.notified(notification.clone(), peer.clone(), session.clone()).await;
        }
    }

    /// Logs the names that meet since the server runs: the first is used.
    fn log_conflicts(&self) {
        if self.0.linted.is_completed() {
            for conflict in self.snapshot().offered().conflicts() {
                tracing::warn!("{conflict}; until then the first is used");
            }
        }
    }

    /// Returns an entry of this server as the caller of the server around it sees it.
    fn entry(
        &self,
        snapshot: &Arc<Snapshot>,
        scope: &Scope<'_>,
        found: &Found,
        target: &Target<'_>,
    ) -> ProvidedEntry {
        let seen = snapshot.as_seen(scope, found, target).found_in_server(self.key(), snapshot.clone());
        let hides = seen.is_hidden();
        // Other requests come to the gates themselves.
        let is_reported = hides || matches!(target, Target::Resource(_));
        if seen.owned || !is_reported {
            return seen;
        }
        seen.behind(PassedGates {
            server: self.clone(),
            snapshot: snapshot.clone(),
            entry: found.entry.clone(),
            target: target.clone().into_owned(),
            backend: found.backend().map(str::to_owned),
            hides,
        })
    }

    pub(crate) fn key(&self) -> ServerKey {
        ServerKey(Arc::as_ptr(&self.0).addr())
    }
}

/// The link of a provider, or of a listener, to its server. It does not keep the server alive.
struct ServerLink {
    server: Weak<ServerInner>,
    mark: RemovalMark,
    tasks: Arc<WatchedTasks>,
}

impl ServerLink {
    fn new(server: &Server, mark: RemovalMark, tasks: Arc<WatchedTasks>) -> Self {
        Self { server: Arc::downgrade(&server.0), mark, tasks }
    }

    /// Returns the server, unless the provider was removed from it.
    fn server(&self) -> Option<Server> {
        if self.mark.is_removed() {
            return None;
        }
        self.server.upgrade().map(Server)
    }
}

impl fmt::Debug for ServerLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerLink")
    }
}

impl WatchObserver for ServerLink {
    fn watched(&self, uri: &str) {
        if let Some(server) = self.server() {
            server.0.watches.watch(&server.snapshot().providers, uri);
        }
    }

    fn unwatched(&self, uri: &str) {
        if let Some(server) = self.server() {
            server.0.watches.unwatch(&server.snapshot().providers, uri);
        }
    }
}

impl ChangeLink for ServerLink {
    fn is_alive(&self) -> bool {
        self.server.strong_count() > 0 && !self.mark.is_removed()
    }

    fn publish(&self, change: &Change) {
        let Some(server) = self.server() else { return };
        if !matches!(change, Change::Resource(_)) {
            server.refresh_providers();
            server.log_conflicts();
        }
        server.changes().publish(change);
    }

    fn publish_to(&self, change: &Change, audience: &Audience<'_>) {
        if let Some(server) = self.server() {
            server.changes().publish_to(change, audience);
        }
    }

    fn publish_notice(&self, notice: &Arc<Notice>) {
        let Some(server) = self.server() else { return };
        match &notice.task {
            // Clients know it by other ids.
            Some(task) => self.tasks.readdressed(task, notice, |notice| {
                server.publish_notice(&Arc::new(notice));
            }),
            None if notice.method.starts_with(method::tasks_extension::NOTIFICATIONS_TASKS) => {}
            None => server.publish_notice(notice),
        }
    }

    fn refresh(&self) {
        if let Some(server) = self.server() {
            server.refresh_providers();
        }
    }
}

/// A server is a provider of another one: see [`Server::mount`].
///
/// Its handlers run with its own state, layers, filters, required rights and timeouts, inside the layers of the outer server.
impl Provider for Server {
    fn info(&self, caller: Option<&Scope<'_>>) -> ProviderInfo {
        let snapshot = self.snapshot();
        let providers = &snapshot.providers;
        let (capabilities, instructions) = match caller {
            Some(caller) => snapshot.declared_to(caller),
            None => (
                snapshot.service.capabilities().clone(),
                providers.instructions(snapshot.settings.instructions.as_deref()),
            ),
        };
        let methods = snapshot.custom.keys().map(String::as_str).chain(providers.methods());
        let servers = providers.iter().flat_map(|known| known.info.servers.iter().copied());
        ProviderInfo {
            instructions,
            hints: snapshot.list_hints(&ListKind::ALL),
            methods: methods.map(str::to_owned).collect(),
            handles_any_method: providers.iter().any(|known| known.info.handles_any_method),
            // A state is claimed right before the handler of the call runs.
            claims_state: false,
            has_unlisted: snapshot.is_layered,
            may_be_stale: providers.iter().any(|known| known.info.may_be_stale),
            is_gated: snapshot.is_gated(),
            judges_uris: snapshot.judges_uris(),
            servers: [self.key()].into_iter().chain(servers).collect(),
            ..ProviderInfo::new(snapshot.service.info().name.clone(), capabilities)
        }
    }

    async fn list(&self, cx: Cx, list: ListKind, page: PageRequest) -> Result<ProviderPage, RequestError> {
        let params = match &page.cursor {
            None => cx.params().without(&["cursor"]),
            Some(cursor) => cx.params().with("cursor", &serde_json::value::to_raw_value(cursor)?),
        };
        let cx = cx.with_params(params).mounted(Mounted::new(self, self.snapshot()));
        if page.is_refresh() {
            cx.snapshot().providers.refresh_all(&cx, list).await?;
            return Ok(ProviderPage::default());
        }
        let listed = match cx.method() == list.method() {
            true => run(&cx).await,
            // A provider reads the list for another request, such as a search.
            false => provider::list::list(cx, list).await,
        };
        match listed {
            Outcome::Complete(body) | Outcome::Cacheable(body, _) => {
                let entries: Option<Vec<RawObject>> = body.decode_member(list.member())?;
                let cursor = body.decode_member("nextCursor")?;
                Ok(ProviderPage { entries: entries.unwrap_or_default(), cursor })
            }
            other => Err(RequestError::other(other)),
        }
    }

    fn find(&self, scope: &Scope<'_>, target: &Target<'_>) -> Lookup {
        let (snapshot, scope) = (self.snapshot(), scope.mounted());
        let lookup = snapshot.find(scope.overlay_key(), target, || scope);
        let is_stale = lookup.is_stale();
        let found = lookup.finish().map(|found| Some(self.entry(&snapshot, &scope, &found?, target)));
        match found {
            Ok(entry) if !is_stale => entry.into(),
            Err(failed) if !is_stale => Lookup::Failed(failed.into()),
            found => Lookup::Stale(found.ok().flatten()),
        }
    }

    async fn handle(&self, cx: Cx) -> Outcome {
        // What was found is handled by the server as it was then.
        let snapshot = cx.found_snapshot(&self.key()).unwrap_or_else(|| self.snapshot());
        // The server of the connection does not know the extensions of this one. Methods of tasks may be those of the protocol.
        if snapshot.custom.contains_key(cx.method())
            && (cx.facts().tasks != TaskKind::Protocol || method::find(cx.method()).is_none())
            && let Err(error) = snapshot.service.check_extension(cx.method(), cx.peer())
        {
            return Outcome::Failed(error);
        }
        run(&cx.handled_by(Mounted::new(self, snapshot))).await
    }

    fn report(&self, part: ReportPart) -> Vec<String> {
        match part {
            ReportPart::Names(list) => {
                let snapshot = self.snapshot();
                let mut names = snapshot.offered().route_names(list);
                names.extend(snapshot.providers.iter().flat_map(|known| known.provider.report(part)));
                names
            }
            ReportPart::Faults => {
                self.snapshot().check().err().map(|error| error.to_string()).into_iter().collect()
            }
            ReportPart::Warnings => self.lint(),
        }
    }

    fn watch(&self) -> &dyn Watch {
        self
    }
}

impl Watch for Server {
    fn attach(&self, changes: ProviderChanges) {
        self.changes().link(Arc::new(changes));
    }

    fn watched(&self, uri: &str) {
        self.0.watches.watch(&self.snapshot().providers, uri);
    }

    fn unwatched(&self, uri: &str) {
        self.0.watches.unwatch(&self.snapshot().providers, uri);
    }

    fn subscribe(
        &self,
        cx: Cx,
        uris: Vec<String>,
    ) -> WatchFuture<'_, Result<ProviderSubscription, RequestError>> {
        Box::pin(async move {
            let cx = cx.mounted(Mounted::new(self, self.snapshot()));
            let mut subscription = provider::subscribing::subscribe(&cx, uris).await;
            watched_tasks::grant_own(&cx, &mut subscription);
            Ok(subscription)
        })
    }

    fn unsubscribe(&self, cx: Cx, uri: String) -> WatchFuture<'_, ()> {
        Box::pin(async move {
            let cx = cx.mounted(Mounted::new(self, self.snapshot()));
            provider::subscribing::unsubscribe(&cx, &uri).await;
        })
    }

    fn connection_event(&self, event: ConnectionEvent<'_>) -> Result<(), RpcError> {
        let snapshot = self.snapshot();
        let opened = Opened { server: self.clone(), ..event.connection().clone() };
        let event = match event {
            ConnectionEvent::Opened(_) => ConnectionEvent::Opened(&opened),
            ConnectionEvent::SessionOpened(_) => ConnectionEvent::SessionOpened(&opened),
            ConnectionEvent::Request(_) => ConnectionEvent::Request(&opened),
            ConnectionEvent::Closed(_, ended) => ConnectionEvent::Closed(&opened, ended),
        };
        snapshot.hooks.run(event)?;
        snapshot.providers.connection_event(event)
    }

    fn notified(
        &self,
        notification: Notification,
        peer: Option<Arc<Peer>>,
        session: Option<SessionHandle>,
    ) -> WatchFuture<'_, ()> {
        Box::pin(self.run_notified(notification, peer, session))
    }
}

/// Dispatches a call, inside the layers of the mounted server.
async fn run(cx: &Cx) -> Outcome {
    cx.snapshot().stack.go(cx.clone()).await
}
