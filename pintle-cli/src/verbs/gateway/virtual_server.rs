use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use pintle::{
    Server,
    proto::Peer,
    server::{
        Access, AuditRecord, ConnectionEvent, Cx, Decision, GateRequest, ListKind, Lookup, Outcome,
        PageRequest, Provider, ProviderChanges, ProviderInfo, ProviderPage, ProviderSubscription, ReportPart,
        RequestError, ResultLimit, Rule, RuleDecision, RuleSet, Rules, Scope, SessionHandle, Target,
        Transform, Watch, WatchFuture,
    },
    types::{Notification, RpcError},
};
#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    backend::Backend,
    fleet::GatewayFleet,
    logs::CurrentLogs,
    target::{ChoiceEntry, ToolChangeEntry, chosen as chosen_of},
};

/// The error of a request that could not be written down.
const UNAUDITED: &str = "the audit log of the gateway cannot be written, and calls are refused without it: try again later, or contact the operator of the gateway";

/// A virtual server: a choice of what the gateway offers, at a path of its own.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(super) struct VirtualServerEntry {
    /// The names of its targets and APIs; all by default.
    targets: Vec<String>,
    /// Whether it has the tools, prompts and resources of the file itself: by default if it names no `targets`.
    own: Option<bool>,
    /// Instructions for the models of clients, in place of those of the gateway.
    pub(super) instructions: Option<String>,
    /// Whether it offers `search_tools` and `call_tool` in place of the tools.
    pub(super) search: bool,
    /// The limit of bytes of the result of a tool. The rest is a link to the whole, which its caller can read for ten minutes.
    max_result_bytes: Option<usize>,
    /// Patterns of the tools that are offered, by the names that the gateway has for them; all by default.
    only: Vec<String>,
    /// Patterns of the tools that are not offered.
    hide: Vec<String>,
    /// Changes of single tools, by the names that the gateway has for them.
    tools: BTreeMap<String, ToolChangeEntry>,
    /// Which prompts are offered, by the names that the gateway has for them.
    prompts: ChoiceEntry,
    /// Which resources are offered, also of those that a template has, by the URIs that the gateway has for them.
    resources: ChoiceEntry,
    /// Which resource templates are offered, with all of their resources.
    templates: ChoiceEntry,
    /// Rules in addition to those of the gateway: the strictest decision counts. They have the names that the gateway has.
    rules: Vec<Rule>,
    /// The decision if none of its rules decides: `hide` by default.
    default: Option<RuleDecision>,
}

impl VirtualServerEntry {
    /// Returns what is wrong with the entry, in a file with these targets and APIs.
    pub(super) fn fault(&self, targets: &[String]) -> Option<String> {
        if let Some(unknown) = self.targets.iter().find(|name| !targets.contains(*name)) {
            let near = crate::args::near(unknown, targets.iter().map(String::as_str));
            let meant = near.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
            return Some(format!("there is no target `{unknown}`{meant}"));
        }
        let changed =
            || self.transform(Server::new("check", "0")).report(ReportPart::Faults).into_iter().next();
        let fault = self.tools.values().find_map(|tool| tool.fault(str::to_owned)).or_else(changed);
        fault.or_else(|| Rules::new(self.rule_set()).err().map(|error| error.to_string()))
    }

    pub(super) fn rule_set(&self) -> RuleSet {
        rule_set(&self.rules, self.default)
    }

    /// Returns its choice of what a server with the entries of the file and these backends offers.
    pub(super) fn offered(
        &self,
        server: Server,
        own: &Server,
        backends: &[Arc<Backend>],
    ) -> Transform<Server> {
        let server = match self.own.unwrap_or(self.targets.is_empty()) {
            true => server.provider(own.clone()),
            false => server,
        };
        let backends = chosen(self, backends).into_iter();
        self.transform(backends.fold(server, |server, backend| server.provider(backend)))
    }

    /// Returns whether the server has the target of this name.
    pub(super) fn has(&self, target: &str) -> bool {
        self.targets.is_empty() || self.targets.iter().any(|name| name == target)
    }

    fn transform(&self, server: Server) -> Transform<Server> {
        let changed = chosen_of(Transform::new(server), ListKind::Tools, &self.only, &self.hide);
        let changed = self.prompts.of(changed, ListKind::Prompts);
        let changed = self.resources.of(changed, ListKind::Resources);
        let changed = self.templates.of(changed, ListKind::Templates);
        let changed =
            self.tools.iter().fold(changed, |changed, (name, tool)| changed.tool(name, tool.edit()));
        match self.max_result_bytes {
            Some(bytes) => changed.max_result(ResultLimit::new(bytes)),
            None => changed,
        }
    }
}

/// The rules of the gateway, where decisions of those of a virtual server are reported, and the processes that count calls together.
#[derive(Clone)]
pub(super) struct VirtualServerGates {
    /// The tools, prompts and resources of the file itself.
    pub(super) own: Server,
    pub(super) rules: Rules,
    pub(super) audit: Arc<dyn Fn(&AuditRecord<'_>) + Send + Sync>,
    pub(super) logs: CurrentLogs,
    pub(super) fleet: Option<GatewayFleet>,
}

impl VirtualServerGates {
    /// Has the rules of the gateway judge what a server does.
    pub(super) fn guard(&self, server: Server) -> Server {
        let logs = self.logs.clone();
        server.gate(self.rules.clone()).gate(move |request: &GateRequest<'_>| match request.access {
            Access::List => Decision::Allow,
            _ if logs.get().refuse() => Decision::Deny(UNAUDITED.to_owned()),
            _ => Decision::Allow,
        })
    }

    /// Returns the rules of an entry, in addition to those of the gateway.
    fn own_rules(&self, name: &str, entry: &VirtualServerEntry) -> pintle::Result<Rules> {
        let audit = self.audit.clone();
        let own = Rules::audited(entry.rule_set(), move |record: &AuditRecord<'_>| {
            // What it allows is decided, and reported, by the rules of the gateway.
            if record.decision != "allow" {
                audit(record);
            }
        })?;
        Ok(match &self.fleet {
            Some(fleet) => fleet.share_rates_of(name, own),
            None => own,
        })
    }
}

/// A virtual server that runs. Its choice can change while clients are connected.
pub(super) struct VirtualServer {
    name: String,
    gates: VirtualServerGates,
    /// The rules of the entry. Their counts of calls last as long as the server.
    rules: Rules,
    current: RwLock<Arc<OfferedChoice>>,
    attached: Mutex<Vec<ProviderChanges>>,
}

/// The part of a gateway that a virtual server offers at the moment.
struct OfferedChoice {
    entry: VirtualServerEntry,
    backends: Vec<Arc<Backend>>,
    /// The rules judge names and arguments as the backends get them, whatever the changes of the entry are.
    provider: Transform<Server>,
}

impl VirtualServer {
    /// Creates the server of an entry.
    pub(super) fn new(
        name: &str,
        entry: &VirtualServerEntry,
        gates: VirtualServerGates,
        backends: &[Arc<Backend>],
    ) -> pintle::Result<Self> {
        let rules = gates.own_rules(name, entry)?;
        let choice = OfferedChoice::new(name, entry, (&gates, &rules), backends)?;
        let current = RwLock::new(Arc::new(choice));
        Ok(Self { name: name.to_owned(), gates, rules, current, attached: Mutex::default() })
    }

    /// Offers what an entry chooses of these backends from now on, and notifies clients if that is something else.
    pub(super) fn replace(
        &self,
        entry: &VirtualServerEntry,
        backends: &[Arc<Backend>],
    ) -> pintle::Result<()> {
        let current = self.current();
        let chosen = chosen(entry, backends);
        let is_same = current.entry == *entry
            && current.backends.len() == chosen.len()
            && current.backends.iter().zip(&chosen).all(|(one, other)| Arc::ptr_eq(one, other));
        if is_same {
            return Ok(());
        }
        let gates = (&self.gates, &self.rules);
        let choice = Arc::new(OfferedChoice::new(&self.name, entry, gates, backends)?);
        self.rules.replace(entry.rule_set())?;
        let attached = {
            let mut attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
            attached.retain(ProviderChanges::is_connected);
            attached.clone()
        };
        for changes in &attached {
            choice.provider.watch().attach(changes.clone());
        }
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = choice;
        for changes in attached {
            changes.capabilities_changed();
            changes.tools_changed();
            changes.prompts_changed();
            changes.resources_changed();
        }
        Ok(())
    }

    fn current(&self) -> Arc<OfferedChoice> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl OfferedChoice {
    fn new(
        name: &str,
        entry: &VirtualServerEntry,
        (gates, rules): (&VirtualServerGates, &Rules),
        backends: &[Arc<Backend>],
    ) -> pintle::Result<Self> {
        let server = gates.guard(Server::new(name, env!("CARGO_PKG_VERSION"))).gate(rules.clone());
        let provider = entry.offered(server, &gates.own, backends);
        let faults = provider.report(ReportPart::Faults);
        if !faults.is_empty() {
            return Err(pintle::Error::Misuse(faults.join("\n")));
        }
        Ok(Self { entry: entry.clone(), backends: chosen(entry, backends), provider })
    }
}

fn chosen(entry: &VirtualServerEntry, backends: &[Arc<Backend>]) -> Vec<Arc<Backend>> {
    backends.iter().filter(|backend| entry.has(Backend::name(backend))).cloned().collect()
}

impl Provider for VirtualServer {
    fn info(&self, caller: Option<&Scope<'_>>) -> ProviderInfo {
        let mut info = self.current().provider.info(caller);
        info.name.clone_from(&self.name);
        (info.is_whole_server, info.servers) = (false, Vec::new());
        info
    }

    async fn list(&self, cx: Cx, list: ListKind, page: PageRequest) -> Result<ProviderPage, RequestError> {
        self.current().provider.list(cx, list, page).await
    }

    fn find(&self, scope: &Scope<'_>, target: &Target<'_>) -> Lookup {
        let current = self.current();
        current.provider.find(scope, target).and_then(|entry| Some(entry.found_in(current.clone())))
    }

    async fn handle(&self, cx: Cx) -> Outcome {
        // It may have been replaced since the entry was found and judged.
        let current = cx.found_in::<OfferedChoice>().unwrap_or_else(|| self.current());
        current.provider.handle(cx).await
    }

    fn report(&self, part: ReportPart) -> Vec<String> {
        self.current().provider.report(part)
    }

    fn watch(&self) -> &dyn Watch {
        self
    }
}

impl Watch for VirtualServer {
    fn attach(&self, changes: ProviderChanges) {
        self.current().provider.watch().attach(changes.clone());
        let mut attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        attached.retain(ProviderChanges::is_connected);
        attached.push(changes);
    }

    fn watched(&self, uri: &str) {
        self.current().provider.watch().watched(uri);
    }

    fn unwatched(&self, uri: &str) {
        self.current().provider.watch().unwatched(uri);
    }

    fn subscribe(
        &self,
        cx: Cx,
        uris: Vec<String>,
    ) -> WatchFuture<'_, Result<ProviderSubscription, RequestError>> {
        let current = self.current();
        Box::pin(async move { current.provider.watch().subscribe(cx, uris).await })
    }

    fn unsubscribe(&self, cx: Cx, uri: String) -> WatchFuture<'_, ()> {
        let current = self.current();
        Box::pin(async move { current.provider.watch().unsubscribe(cx, uri).await })
    }

    fn connection_event(&self, event: ConnectionEvent<'_>) -> Result<(), RpcError> {
        self.current().provider.watch().connection_event(event)
    }

    fn notified(
        &self,
        notification: Notification,
        peer: Option<Arc<Peer>>,
        session: Option<SessionHandle>,
    ) -> WatchFuture<'_, ()> {
        let current = self.current();
        Box::pin(async move { current.provider.watch().notified(notification, peer, session).await })
    }
}
/// Returns a set of rules; without any, everything is allowed.
pub(super) fn rule_set(rules: &[Rule], default: Option<RuleDecision>) -> RuleSet {
    let mut set = RuleSet::default();
    set.rules = rules.to_vec();
    set.default = match rules.is_empty() {
        true => default.or(Some(RuleDecision::Allow)),
        false => default,
    };
    set
}
