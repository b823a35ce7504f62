#[cfg(test)]
mod replaced;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::Extensions;
use pintle::{
    proto::Peer,
    server::{
        ConnectionEvent, Cx, ListKind, Lookup, Mount, Outcome, PageRequest, Principal, Provider,
        ProviderChanges, ProviderInfo, ProviderPage, ProviderSubscription, ReportPart, RequestError, Scope,
        SessionHandle, Target, Transform, Watch, WatchFuture,
    },
    types::{
        JsonObject, Notification, RpcError,
        schema::{PromptsCapability, ResourcesCapability, ServerCapabilities, ToolsCapability},
    },
};
use tokio::time::Instant;

use super::{
    api::BackendProvider,
    caller_targets::{CallerError, CallerTargets},
    login::{LoginTool, login_required},
    names::HostNames,
    whole_list::{LIST_TIMEOUT, whole_list},
};

/// The time in which a target is connected for a token of a client.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// A target that is connected, as clients of the gateway see it.
pub(super) type ConnectedTarget = HostNames<Mount<Transform<BackendProvider>>>;

/// A backend of a gateway, by its name. It is connected later, may fail and may be replaced; none of that fails the lists of the others.
pub(super) struct Backend {
    name: String,
    /// The targets that the file has chosen for extensions.
    chosen: BTreeMap<String, String>,
    state: RwLock<BackendState>,
    /// The number of targets that it has had. Attempts to connect to an earlier one end.
    target: AtomicU64,
    attached: Mutex<Vec<ProviderChanges>>,
}

#[derive(Clone)]
enum BackendState {
    Down(Arc<Outage>),
    Up(Arc<ConnectedTarget>),
    /// Connected for each token of a client.
    PerCaller(Arc<CallerTargets>),
    /// No longer in the file.
    Removed,
}

/// Why and since when a target is not connected.
struct Outage {
    since: Instant,
    reason: String,
    /// The text before the `_` of its names; it is empty if they have no prefix.
    prefix: String,
}

/// The name of the backend that answered a request, for the log. The first one is kept.
#[derive(Clone, Default)]
pub(super) struct AnsweredBy(Arc<OnceLock<String>>);

impl AnsweredBy {
    pub(super) fn get(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

impl Backend {
    /// Creates the backend of a target whose names have a prefix; it is empty if they have none.
    pub(super) fn new(name: &str, prefix: &str) -> Self {
        Self {
            name: name.to_owned(),
            chosen: BTreeMap::new(),
            state: RwLock::new(being_connected(prefix)),
            target: AtomicU64::new(0),
            attached: Mutex::default(),
        }
    }

    /// Leaves the extensions that the file has chosen another target for to that.
    pub(super) fn extensions(mut self, chosen: &BTreeMap<String, String>) -> Self {
        self.chosen.clone_from(chosen);
        self
    }

    /// Begins with another target, and returns its number. The one before is offered until [`wait`](Self::wait) or
    /// [`connect`](Self::connect).
    pub(super) fn replace(&self) -> u64 {
        self.target.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Offers nothing until the target of this number is connected.
    pub(super) fn wait(&self, number: u64, prefix: &str) {
        self.set_if(number, being_connected(prefix));
        self.notify();
    }

    /// Returns whether the target of this number is still the one of the file.
    pub(super) fn has_target(&self, number: u64) -> bool {
        self.target.load(Ordering::Acquire) == number
    }

    /// Offers what the target of this number offers, and notifies clients.
    pub(super) fn connect(&self, number: u64, connected: ConnectedTarget) {
        let connected = Arc::new(connected);
        for changes in self.attached() {
            connected.watch().attach(changes);
        }
        self.set_if(number, BackendState::Up(connected));
        self.notify();
    }

    /// Offers what the target of this number offers to each token of a client.
    pub(super) fn connect_callers(&self, number: u64, callers: CallerTargets) {
        for changes in self.attached() {
            callers.attach(&changes);
        }
        self.set_if(number, BackendState::PerCaller(Arc::new(callers)));
        self.notify();
    }

    /// Notes why the target of this number is not connected.
    pub(super) fn fail(&self, number: u64, reason: String) {
        let BackendState::Down(outage) = self.state() else { return };
        let outage = Outage { since: outage.since, reason, prefix: outage.prefix.clone() };
        self.set_if(number, BackendState::Down(Arc::new(outage)));
    }

    /// Removes everything of the target.
    pub(super) fn remove(&self) {
        self.target.fetch_add(1, Ordering::AcqRel);
        self.set(BackendState::Removed);
    }

    /// Returns whether the target was connected.
    pub(super) fn is_up(&self) -> bool {
        matches!(self.state(), BackendState::Up(_) | BackendState::PerCaller(_))
    }

    pub(super) fn is_removed(&self) -> bool {
        matches!(self.state(), BackendState::Removed)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Notifies clients that everything may have changed.
    pub(super) fn notify(&self) {
        for changes in self.attached() {
            changes.capabilities_changed();
            changes.tools_changed();
            changes.prompts_changed();
            changes.resources_changed();
        }
    }

    fn set(&self, state: BackendState) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
        self.notify();
    }

    /// Sets the state, unless the target was replaced meanwhile.
    fn set_if(&self, number: u64, state: BackendState) {
        let mut current = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if self.has_target(number) {
            *current = state;
        }
    }

    fn state(&self) -> BackendState {
        self.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn attached(&self) -> Vec<ProviderChanges> {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn connected(&self) -> Option<Arc<ConnectedTarget>> {
        match self.state() {
            BackendState::Up(connected) => Some(connected),
            BackendState::Down(_) | BackendState::PerCaller(_) | BackendState::Removed => None,
        }
    }

    /// Returns all targets that are connected.
    fn all_connected(&self) -> Vec<Arc<ConnectedTarget>> {
        match self.state() {
            BackendState::Up(connected) => vec![connected],
            BackendState::PerCaller(callers) => callers.all(),
            BackendState::Down(_) | BackendState::Removed => Vec::new(),
        }
    }

    /// Returns the target for a request.
    async fn connected_for(&self, cx: &Cx) -> Option<Result<Arc<ConnectedTarget>, CallerError>> {
        match self.state() {
            BackendState::Up(connected) => Some(Ok(connected)),
            BackendState::PerCaller(callers) => {
                let connected = tokio::time::timeout(OPEN_TIMEOUT, callers.connected(cx)).await;
                let late = || CallerError { message: "it cannot be reached in time".to_owned(), link: None };
                Some(connected.unwrap_or_else(|_| Err(late())))
            }
            BackendState::Down(_) | BackendState::Removed => None,
        }
    }

    /// Returns the error of a request of a caller that cannot use the target. A client that can is asked to open the page of a login.
    fn refusal(&self, cx: &Cx, error: CallerError) -> RpcError {
        let message = format!("the backend `{}` cannot be used: {}", self.name, error.message);
        match error.link.filter(|_| cx.can_elicit_url()) {
            Some(link) => login_required(&self.name, &link, message),
            None => RpcError::internal(message),
        }
    }

    /// Returns every kind of capability, because what the target offers is known later and may change.
    fn capabilities(&self, connected: Option<&ProviderInfo>) -> ServerCapabilities {
        let mut capabilities = ServerCapabilities::default();
        if self.is_removed() {
            return capabilities;
        }
        capabilities.tools.get_or_insert_with(ToolsCapability::default).list_changed = Some(true);
        capabilities.prompts.get_or_insert_with(PromptsCapability::default).list_changed = Some(true);
        let resources = capabilities.resources.get_or_insert_with(ResourcesCapability::default);
        (resources.list_changed, resources.subscribe) = (Some(true), Some(true));
        capabilities.completions = Some(JsonObject::new());
        capabilities.logging = Some(JsonObject::new());
        if let Some(connected) = connected {
            let offered = connected.capabilities.clone();
            capabilities.extensions = offered.extensions.map(|declared| {
                let is_own = |name: &str| self.chosen.get(name).is_none_or(|target| *target == self.name);
                declared.into_iter().filter(|(name, _)| is_own(name)).collect()
            });
            capabilities.experimental = offered.experimental;
            capabilities.tasks = offered.tasks;
        }
        capabilities
    }

    /// Returns the tool of a caller that has to log in first.
    fn login_tool<'a>(
        &'a self,
        callers: &'a CallerTargets,
        identity: Principal<'_>,
        extensions: &Extensions,
    ) -> Option<LoginTool<'a>> {
        let link = callers.link(identity, extensions)?;
        Some(LoginTool { target: &self.name, prefix: callers.prefix(), link })
    }

    /// Returns the list of a caller for which the target cannot be listed.
    fn login_page(&self, cx: &Cx, list: ListKind) -> Result<ProviderPage, RequestError> {
        match (self.state(), list) {
            (BackendState::PerCaller(callers), ListKind::Tools) => Ok(ProviderPage::of(
                self.login_tool(&callers, cx.identity(), cx.extensions()).map(|tool| tool.entry()),
            )?),
            _ => Ok(ProviderPage::default()),
        }
    }
}

impl Outage {
    fn describe(&self, name: &str) -> String {
        let seconds = self.since.elapsed().as_secs();
        format!("the backend `{name}` has been down for {seconds} s, call again later: {}", self.reason)
    }
}

/// Returns whether a target whose names have this prefix, or none if it is empty, may have a tool or prompt.
fn may_have(prefix: &str, target: &Target<'_>) -> bool {
    let rest = target.name().strip_prefix(prefix);
    matches!(target, Target::Tool(_) | Target::Prompt(_))
        && rest.is_some_and(|rest| prefix.is_empty() || rest.starts_with('_'))
}

/// Looks up an entry of a target, which handles the calls of it.
fn found_in(connected: &Arc<ConnectedTarget>, scope: &Scope<'_>, target: &Target<'_>) -> Lookup {
    connected.find(scope, target).and_then(|entry| Some(entry.found_in(connected.clone())))
}

fn is_uri(target: &Target<'_>) -> bool {
    matches!(target, Target::Resource(_) | Target::Template(_))
}

fn being_connected(prefix: &str) -> BackendState {
    let reason = "it is being connected".to_owned();
    BackendState::Down(Arc::new(Outage { since: Instant::now(), reason, prefix: prefix.to_owned() }))
}

impl Provider for Backend {
    fn info(&self, caller: Option<&Scope<'_>>) -> ProviderInfo {
        let connected = self.connected().map(|connected| connected.info(caller));
        let mut info = ProviderInfo::new(&self.name, self.capabilities(connected.as_ref()));
        // Also while it is down: a request for it must not go to another backend.
        info.handles_any_method = !self.is_removed();
        // Its entries are those of a relay.
        (info.may_require, info.may_be_stale) = (false, true);
        if let Some(connected) = connected {
            info.claims_state = connected.claims_state;
            (info.instructions, info.hints) = (connected.instructions, connected.hints);
        }
        info
    }

    async fn list(&self, cx: Cx, list: ListKind, page: PageRequest) -> Result<ProviderPage, RequestError> {
        let connected = match self.connected_for(&cx).await {
            Some(Ok(connected)) => connected,
            // Somebody calls a tool or gets a prompt of it.
            Some(Err(error)) if page.is_refresh() && matches!(list, ListKind::Tools | ListKind::Prompts) => {
                return Err(self.refusal(&cx, error).into());
            }
            Some(Err(_)) => return self.login_page(&cx, list),
            None => return Ok(ProviderPage::default()),
        };
        if page.is_refresh() {
            return connected.list(cx, list, page).await;
        }
        let offered = connected.info(None).capabilities;
        let is_offered = match list {
            ListKind::Tools => offered.tools.is_some(),
            ListKind::Prompts => offered.prompts.is_some(),
            _ => offered.resources.is_some(),
        };
        if !is_offered {
            return Ok(ProviderPage::default());
        }
        let listing = whole_list(&connected, cx.clone(), list, page);
        // One backend that fails must not fail the lists of the others.
        match tokio::time::timeout(LIST_TIMEOUT, listing).await {
            Ok(Ok(page)) => Ok(page),
            Ok(Err(_)) | Err(_) => self.login_page(&cx, list),
        }
    }

    fn find(&self, scope: &Scope<'_>, target: &Target<'_>) -> Lookup {
        match self.state() {
            BackendState::Up(connected) => found_in(&connected, scope, target),
            BackendState::PerCaller(callers) => {
                let login = self.login_tool(&callers, scope.identity(), scope.extensions);
                if let Some(tool) = login.filter(|tool| tool.is(target)) {
                    return Lookup::Found(tool.entry().into());
                }
                match callers.known(scope) {
                    Some(connected) => found_in(&connected, scope, target),
                    None if is_uri(target) || may_have(callers.prefix(), target) => Lookup::Stale(None),
                    None => Lookup::None,
                }
            }
            BackendState::Removed => Lookup::None,
            BackendState::Down(outage) => match may_have(&outage.prefix, target) {
                true => Lookup::Failed(RequestError::new(outage.describe(&self.name))),
                false => Lookup::None,
            },
        }
    }

    async fn handle(&self, cx: Cx) -> Outcome {
        if let Some(answered_by) = cx.extensions().get::<AnsweredBy>() {
            let _ = answered_by.0.set(self.name.clone());
        }
        // The target may have been replaced since the entry was found and judged.
        let connected = match cx.found_in::<ConnectedTarget>() {
            Some(connected) => Some(Ok(connected)),
            None => self.connected_for(&cx).await,
        };
        if let BackendState::PerCaller(callers) = self.state()
            && let Some(tool) = self.login_tool(&callers, cx.identity(), cx.extensions())
            && cx.target().is_some_and(|target| tool.is(&target))
        {
            return tool.result();
        }
        match connected {
            Some(Ok(connected)) => connected.handle(cx).await,
            Some(Err(error)) => Outcome::Failed(self.refusal(&cx, error)),
            None => Outcome::Failed(RpcError::internal(format!(
                "the backend `{}` was disconnected: list again, and repeat the call",
                self.name
            ))),
        }
    }

    /// Returns what is known of a target that is the same for all callers.
    fn report(&self, part: ReportPart) -> Vec<String> {
        match part {
            ReportPart::Names(_) => self.connected().map(|it| it.report(part)).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    fn watch(&self) -> &dyn Watch {
        self
    }
}

impl Watch for Backend {
    fn attach(&self, changes: ProviderChanges) {
        match self.state() {
            BackendState::Up(connected) => connected.watch().attach(changes.clone()),
            BackendState::PerCaller(callers) => callers.attach(&changes),
            BackendState::Down(_) | BackendState::Removed => {}
        }
        let mut attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        attached.retain(ProviderChanges::is_connected);
        attached.push(changes);
    }

    fn watched(&self, uri: &str) {
        for connected in self.all_connected() {
            connected.watch().watched(uri);
        }
    }

    fn unwatched(&self, uri: &str) {
        for connected in self.all_connected() {
            connected.watch().unwatched(uri);
        }
    }

    fn subscribe(
        &self,
        cx: Cx,
        uris: Vec<String>,
    ) -> WatchFuture<'_, Result<ProviderSubscription, RequestError>> {
        Box::pin(async move {
            match self.connected_for(&cx).await {
                Some(Ok(connected)) => connected.watch().subscribe(cx, uris).await,
                Some(Err(_)) | None => Ok(ProviderSubscription::new()),
            }
        })
    }

    fn unsubscribe(&self, cx: Cx, uri: String) -> WatchFuture<'_, ()> {
        Box::pin(async move {
            if let Some(Ok(connected)) = self.connected_for(&cx).await {
                connected.watch().unsubscribe(cx, uri).await;
            }
        })
    }

    fn connection_event(&self, event: ConnectionEvent<'_>) -> Result<(), RpcError> {
        self.all_connected().iter().try_for_each(|connected| connected.watch().connection_event(event))
    }

    fn notified(
        &self,
        notification: Notification,
        peer: Option<Arc<Peer>>,
        session: Option<SessionHandle>,
    ) -> WatchFuture<'_, ()> {
        let connected = self.all_connected();
        Box::pin(async move {
            for connected in connected {
                connected.watch().notified(notification.clone(), peer.clone(), session.clone()).await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{future::ready, io, sync::atomic::AtomicUsize};

    use pintle::{
        Client, Server,
        server::{Prefix, around, tool},
        types::{RawObject, schema::Tool},
    };
    use pintle_relay::Relay;

    use super::{
        super::whole_list::{MAX_ENTRIES, MAX_PAGES},
        *,
    };

    /// A server whose list of tools never ends, or never comes.
    struct Hostile {
        answers: bool,
        /// The length of each description.
        description: usize,
    }

    impl Provider for Hostile {
        fn info(&self, _: Option<&Scope<'_>>) -> ProviderInfo {
            let mut capabilities = ServerCapabilities::default();
            capabilities.tools = Some(ToolsCapability::default());
            ProviderInfo::new("hostile", capabilities)
        }

        async fn list(&self, _: Cx, _: ListKind, page: PageRequest) -> Result<ProviderPage, RequestError> {
            if !self.answers {
                return std::future::pending().await;
            }
            let first: usize = page.cursor.as_deref().unwrap_or("0").parse()?;
            let tools = (first..first + 100).map(|number| {
                let mut tool = Tool::new(format!("t{number}"), JsonObject::new());
                tool.description = Some("x".repeat(self.description));
                tool
            });
            Ok(ProviderPage::of(tools)?.next((first + 100).to_string()))
        }

        fn find(&self, _: &Scope<'_>, _: &Target<'_>) -> Lookup {
            Lookup::None
        }

        async fn handle(&self, _: Cx) -> Outcome {
            Outcome::Failed(RpcError::internal("it is hostile"))
        }
    }

    pub(super) async fn backend(name: &str, server: Server) -> Arc<Backend> {
        let open = move || ready(server.in_process().map_err(io::Error::other));
        let relay = Relay::connect(Client::new("gateway", "0"), open).await.unwrap();
        let backend = Arc::new(Backend::new(name, name));
        let mounted = Mount::new(Prefix::new(name), Transform::new(BackendProvider::Relay(relay)));
        backend.connect(0, HostNames::new(mounted, |_, _| {}));
        backend
    }

    /// The tools of a gateway with a backend and an honest one after it.
    async fn listed(hostile: Server) -> (usize, bool) {
        let honest = Server::new("honest", "0").tool(tool("work", || async { "worked" }));
        let gateway = Server::new("gateway", "0")
            .provider(backend("hostile", hostile).await)
            .provider(backend("honest", honest).await)
            .provider(Arc::new(Backend::new("down", "down")));
        let client = Client::new("client", "0").connect(gateway.in_process().unwrap()).await.unwrap();
        let tools = client.tools().await.unwrap();
        let worked = client.call_tool("honest_work", ()).await.unwrap().text() == "worked";
        let has_work = tools.iter().any(|tool| tool.name == "honest_work");
        (tools.len() - usize::from(has_work), has_work && worked)
    }

    #[tokio::test(start_paused = true)]
    async fn a_hostile_backend_leaves_the_lists_of_others_alone() {
        let hostile = |answers| Server::new("hostile", "0").provider(Hostile { answers, description: 0 });
        assert_eq!(listed(hostile(true)).await, (MAX_ENTRIES, true), "an endless list is cut");
        assert_eq!(listed(hostile(false)).await, (0, true), "a list that never comes is left out");
        let many = (0..6_000).map(|number| tool(format!("t{number}"), || async { "" }));
        let many = many.fold(Server::new("many", "0"), |server, tool| server.tool(tool));
        assert_eq!(listed(many).await, (MAX_ENTRIES, true), "a huge list is cut");
        let long = Server::new("hostile", "0").provider(Hostile { answers: true, description: 20_000 });
        let (count, others) = listed(long).await;
        assert!((300..420).contains(&count) && others, "8 MiB are offered: {count} tools");
        let lists = Arc::new(AtomicUsize::new(0));
        let counted = lists.clone();
        let empty = Server::new("empty", "0").tool(tool("never", || async { "" }));
        let empty = empty.layer(&around(move |cx, next| {
            let number = counted.fetch_add(usize::from(cx.method() == "tools/list"), Ordering::SeqCst);
            async move {
                if cx.method() != "tools/list" {
                    return next.run(cx).await;
                }
                let page = format!(r#"{{"tools":[],"nextCursor":"{number}"}}"#);
                Outcome::Complete(page.parse::<RawObject>().unwrap().into())
            }
        }));
        assert_eq!(listed(empty).await, (0, true), "empty pages are not read for ever");
        assert_eq!(lists.load(Ordering::SeqCst), MAX_PAGES);
        let imitator = Server::new("imitator", "0").tool(tool("work", || async { "stolen" }));
        assert_eq!(listed(imitator).await, (1, true), "a name of another backend has another prefix");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_of_a_backend_that_is_down_says_for_how_long_and_why() {
        let (prefixed, bare) = (Backend::new("notes", "n"), Backend::new("bare", ""));
        prefixed.fail(0, "the port is closed".to_owned());
        bare.fail(0, "it is asleep".to_owned());
        tokio::time::advance(Duration::from_secs(90)).await;
        for (backend, name, expected) in [
            (prefixed, "n_write", "`notes` has been down for 90 s, call again later: the port is closed"),
            (bare, "anything", "`bare` has been down for 90 s, call again later: it is asleep"),
        ] {
            let gateway = Server::new("gateway", "0").provider(backend);
            let client = Client::new("client", "0").connect(gateway.in_process().unwrap()).await.unwrap();
            let error = client.call_tool(name, ()).await.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let other = Server::new("gateway", "0").provider(Backend::new("notes", "n"));
        let client = Client::new("client", "0").connect(other.in_process().unwrap()).await.unwrap();
        let error = client.call_tool("notes_write", ()).await.unwrap_err().to_string();
        assert!(error.contains("no such tool"), "it is not of this backend: {error}");
    }
}
