mod caller_targets;
mod offering;
#[cfg(test)]
mod replaced;
#[cfg(test)]
mod tests;
mod watched;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::Extensions;
use pintle::{
    server::{
        Cx, ListKind, Lookup, Mount, Outcome, PageRequest, Principal, Provider, ProviderInfo, ProviderPage,
        ReportPart, RequestError, Scope, Target, Transform, Watch,
    },
    types::{
        JsonObject, RpcError,
        schema::{PromptsCapability, ResourcesCapability, ServerCapabilities, ToolsCapability},
    },
};
use tokio::time::Instant;

use self::{caller_targets::CallerError, watched::WatchedUris};
pub(super) use self::{
    caller_targets::{Caller, CallerTargets},
    offering::{Offering, OpenTarget, TargetOffer, shown},
};
use super::{
    api::BackendProvider,
    health::{BackendOutage, Health},
    login::{LoginTool, login_required},
    logs::AnsweredBy,
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
    offering: Arc<Offering>,
    state: RwLock<BackendState>,
    /// The number of targets that it has had. Attempts to connect to an earlier one end.
    target: AtomicU64,
    watched: WatchedUris,
    pub(super) health: Health,
}

#[derive(Clone)]
enum BackendState {
    Down(Arc<Outage>),
    Up(Arc<OpenTarget>),
    /// Connected for each token of a client.
    PerCaller(Arc<CallerTargets>),
    /// No longer in the file.
    Removed,
}

/// Why and since when a target is not connected.
struct Outage {
    since: Instant,
    reason: String,
}

impl Backend {
    /// Creates a backend that is offered like this when it is connected.
    pub(super) fn new(name: &str, offer: TargetOffer) -> Self {
        Self {
            name: name.to_owned(),
            chosen: BTreeMap::new(),
            offering: Arc::new(Offering::new(offer)),
            state: RwLock::new(being_connected()),
            target: AtomicU64::new(0),
            watched: WatchedUris::default(),
            health: Health::default(),
        }
    }

    /// Leaves the extensions that the file has chosen another target for to that.
    pub(super) fn extensions(mut self, chosen: &BTreeMap<String, String>) -> Self {
        self.chosen.clone_from(chosen);
        self
    }

    /// Offers what is connected like this from now on, and notifies clients. Connections stay.
    pub(super) fn offer(&self, offer: TargetOffer) {
        self.offering.replace(offer);
        let watched = self.watched.all();
        for connected in self.all_connected() {
            watched.iter().for_each(|uri| connected.watch().watched(uri));
        }
        self.notify();
    }

    /// Returns how the backend is offered at the moment.
    pub(super) fn offering(&self) -> Arc<Offering> {
        self.offering.clone()
    }

    /// Begins with another target, and returns its number. The one before is offered until [`wait`](Self::wait),
    /// [`connect`](Self::connect) or [`refuse`](Self::refuse).
    pub(super) fn replace(&self) -> u64 {
        let number = self.target.fetch_add(1, Ordering::AcqRel) + 1;
        self.health.reset();
        number
    }

    /// Offers nothing until the target of this number is connected.
    pub(super) fn wait(&self, number: u64) {
        self.set_if(number, being_connected());
        self.notify();
    }

    /// Offers nothing, because the target of this number cannot be used.
    pub(super) fn refuse(&self, number: u64, reason: String) {
        self.wait(number);
        self.fail(number, reason);
    }

    /// Returns whether the target of this number is still the one of the file.
    pub(super) fn has_target(&self, number: u64) -> bool {
        self.target.load(Ordering::Acquire) == number
    }

    /// Offers the target of this number, and notifies clients. What they watch is watched there.
    pub(super) fn connect(&self, number: u64, target: Arc<OpenTarget>) {
        let connected = target.current();
        self.watched.all().iter().for_each(|uri| connected.watch().watched(uri));
        self.set_if(number, BackendState::Up(target));
        self.notify();
    }

    /// Offers what the target of this number offers to each token of a client.
    pub(super) fn connect_callers(&self, number: u64, callers: CallerTargets) {
        self.set_if(number, BackendState::PerCaller(Arc::new(callers)));
        self.notify();
    }

    /// Notes why the target of this number is not connected. One before it stays.
    pub(super) fn fail(&self, number: u64, reason: String) {
        let BackendState::Down(outage) = self.state() else { return };
        let outage = Outage { since: outage.since, reason };
        self.set_if(number, BackendState::Down(Arc::new(outage)));
    }

    /// Removes everything of the target.
    pub(super) fn remove(&self) {
        self.replace();
        self.set(BackendState::Removed);
    }

    /// Returns whether the target was connected.
    pub(super) fn is_up(&self) -> bool {
        matches!(self.state(), BackendState::Up(_) | BackendState::PerCaller(_))
    }

    /// Returns why the target cannot be used: it is not connected, or does not answer.
    pub(super) fn outage(&self) -> Option<BackendOutage> {
        match self.state() {
            BackendState::Down(down) => Some(BackendOutage::new(down.since, &down.reason)),
            BackendState::Up(_) => self.health.outage(),
            BackendState::PerCaller(_) | BackendState::Removed => None,
        }
    }

    pub(super) fn is_removed(&self) -> bool {
        matches!(self.state(), BackendState::Removed)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Notifies clients that everything may have changed.
    pub(super) fn notify(&self) {
        for changes in self.offering.attached() {
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

    fn connected(&self) -> Option<Arc<ConnectedTarget>> {
        match self.state() {
            BackendState::Up(target) => Some(target.current()),
            BackendState::Down(_) | BackendState::PerCaller(_) | BackendState::Removed => None,
        }
    }

    /// Returns all targets that are connected.
    fn all_connected(&self) -> Vec<Arc<ConnectedTarget>> {
        match self.state() {
            BackendState::Up(target) => vec![target.current()],
            BackendState::PerCaller(callers) => callers.all(),
            BackendState::Down(_) | BackendState::Removed => Vec::new(),
        }
    }

    /// Returns the target for a request.
    async fn connected_for(&self, cx: &Cx) -> Option<Result<Arc<ConnectedTarget>, CallerError>> {
        match self.state() {
            BackendState::Up(target) => Some(Ok(target.current())),
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
        callers: &CallerTargets,
        identity: Principal<'_>,
        extensions: &Extensions,
    ) -> Option<LoginTool<'a>> {
        let link = callers.link(identity, extensions)?;
        let prefix = self.offering.offer().prefix_text().to_owned();
        Some(LoginTool { target: &self.name, prefix, link })
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

/// Returns whether a target that is offered like this may have a tool or prompt.
fn may_have(offer: &TargetOffer, target: &Target<'_>) -> bool {
    let prefix = offer.prefix_text();
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

fn being_connected() -> BackendState {
    let reason = "it is being connected".to_owned();
    BackendState::Down(Arc::new(Outage { since: Instant::now(), reason }))
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
        let listing = whole_list(&connected, cx.clone(), list, page, || self.health.cut(&self.name));
        // One backend that fails must not fail the lists of the others.
        match tokio::time::timeout(LIST_TIMEOUT, listing).await {
            Ok(Ok(page)) => Ok(self.health.listed(page)),
            Ok(Err(_)) | Err(_) => self.login_page(&cx, list),
        }
    }

    fn find(&self, scope: &Scope<'_>, target: &Target<'_>) -> Lookup {
        match self.state() {
            BackendState::Up(open) => found_in(&open.current(), scope, target),
            BackendState::PerCaller(callers) => {
                let login = self.login_tool(&callers, scope.identity(), scope.extensions);
                if let Some(tool) = login.filter(|tool| tool.is(target)) {
                    return Lookup::Found(tool.entry().into());
                }
                match callers.known(scope) {
                    Some(connected) => found_in(&connected, scope, target),
                    None if is_uri(target) || may_have(&self.offering.offer(), target) => Lookup::Stale(None),
                    None => Lookup::None,
                }
            }
            BackendState::Removed => Lookup::None,
            BackendState::Down(outage) => match may_have(&self.offering.offer(), target) {
                true => Lookup::Failed(RequestError::new(outage.describe(&self.name))),
                false => Lookup::None,
            },
        }
    }

    async fn handle(&self, cx: Cx) -> Outcome {
        if let Some(answered_by) = cx.extensions().get::<AnsweredBy>() {
            answered_by.set(&self.name);
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
            Some(Ok(connected)) => self.health.measured(connected.handle(cx)).await,
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
