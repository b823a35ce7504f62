use std::sync::Arc;

use pintle_types::{
    ErrorCode, RawObject, RpcError,
    method::{self, Capability},
    schema::{CacheScope, DiscoverResult, Implementation, ServerCapabilities, UnsupportedVersionData},
};

use super::{Extension, WatchObserver, lowered_cache::LoweredCache, peer_cache::PeerCache, print};
use crate::{
    Limits, Revision,
    inputs::Seal,
    ledger::Ledger,
    revision::{Knows, MessageKind},
    shown::shown,
};

/// The description of a server, for both eras: its name, its capabilities, its revisions.
///
/// One value serves all connections. Constant parts of responses are serialized once.
///
/// ```
/// use pintle_proto::{Revision, server::Service};
/// use pintle_types::schema::{Implementation, ServerCapabilities};
///
/// let service = Service::new(Implementation::new("adder", "1.0.0"), ServerCapabilities::default())
///     .instructions("Adds numbers.");
/// assert_eq!(service.revisions().len(), Revision::all().count());
/// ```
#[derive(Clone, Debug)]
pub struct Service {
    info: Implementation,
    capabilities: ServerCapabilities,
    instructions: Option<String>,
    revisions: Arc<[Revision]>,
    methods: Arc<[String]>,
    /// Whether methods that no revision defines are admitted, whatever their names.
    any_method: bool,
    pub(super) extensions: Arc<[Extension]>,
    seal: Option<Arc<dyn Seal>>,
    limits: Limits,
    identity: Identity,
    discover_hint: CacheHint,
    peers: Arc<PeerCache>,
    /// Peers by the params of `initialize`: thousands of sessions of one kind of client share one description.
    handshakes: Arc<PeerCache>,
    lowered: Arc<LoweredCache>,
    ledger: Ledger,
    /// Whether methods that no revision defines are admitted, for the driver to refuse.
    unknown_methods: bool,
    /// The observer of the resources that listeners watch. Most services have none.
    watch_observer: Option<Arc<dyn WatchObserver>>,
}

/// A cache hint: how long a result may be cached, and by whom.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct CacheHint {
    /// The time to live, in milliseconds.
    pub ttl_ms: u64,
    /// The caches that may keep the result.
    pub scope: CacheScope,
}

impl CacheHint {
    /// Creates a hint. The default allows no caching, with private scope.
    pub fn new(ttl_ms: u64, scope: CacheScope) -> Self {
        Self { ttl_ms, scope }
    }
}

impl Default for CacheHint {
    fn default() -> Self {
        Self { ttl_ms: 0, scope: CacheScope::Private }
    }
}

/// Whether stateless results carry the server's name and version.
#[derive(Clone, Debug)]
enum Identity {
    /// The member of `_meta`, serialized.
    Shown(Arc<str>),
    Hidden,
}

impl Identity {
    fn shown(info: &Implementation) -> Self {
        let mut member = br#""io.modelcontextprotocol/serverInfo":"#.to_vec();
        print::json(&mut member, info);
        Self::Shown(String::from_utf8_lossy(&member).into())
    }
}

impl Service {
    /// Creates a server that supports every revision.
    pub fn new(info: Implementation, capabilities: ServerCapabilities) -> Self {
        let identity = Identity::shown(&info);
        Self {
            info,
            capabilities,
            instructions: None,
            revisions: Revision::all().collect(),
            methods: Arc::default(),
            any_method: false,
            extensions: Arc::default(),
            seal: None,
            limits: Limits::default(),
            identity,
            discover_hint: CacheHint::default(),
            peers: Arc::default(),
            handshakes: Arc::default(),
            lowered: Arc::default(),
            ledger: Ledger::default(),
            unknown_methods: false,
            watch_observer: None,
        }
    }

    /// Sets whether requests of methods that no revision defines are admitted, so that a driver can refuse them itself.
    pub fn set_unknown_methods(&mut self, admitted: bool) {
        self.unknown_methods = admitted;
    }

    /// Replaces the server's name, title and version.
    #[must_use]
    pub fn named(mut self, info: Implementation) -> Self {
        if matches!(self.identity, Identity::Shown(_)) {
            self.identity = Identity::shown(&info);
        }
        self.info = info;
        // Cached results contain the name.
        self.lowered = Arc::default();
        self
    }

    /// Sets the instructions for the use of the server.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// Sets the observer of the resources that listeners watch, for those that are created from now on.
    pub fn set_watch_observer(&mut self, observer: Arc<dyn WatchObserver>) {
        self.watch_observer = Some(observer);
    }

    pub(super) fn watch_observer(&self) -> Option<Arc<dyn WatchObserver>> {
        self.watch_observer.clone()
    }

    /// Replaces the instructions.
    pub fn set_instructions(&mut self, text: Option<String>) {
        self.instructions = text;
    }

    /// Restricts the supported revisions. An empty list means all.
    #[must_use]
    pub fn speaks(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        let wanted: Vec<_> = revisions.into_iter().collect();
        let mut chosen: Vec<_> = Revision::sorted(&wanted).collect();
        if chosen.is_empty() {
            chosen = Revision::all().collect();
        }
        self.revisions = chosen.into();
        self.peers = Arc::default();
        self.handshakes = Arc::default();
        self
    }

    /// Admits methods that no revision defines, of the application or of an extension.
    #[must_use]
    pub fn methods<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.methods = self.methods.iter().cloned().chain(names.into_iter().map(Into::into)).collect();
        self
    }

    /// Sets whether all methods are admitted that no revision defines, and those of tasks: for a server that passes them on.
    pub fn set_any_method(&mut self, admitted: bool) {
        self.any_method = admitted;
    }

    /// Whether requests of tasks are passed on to a server that declares their extension.
    pub(super) fn passes_tasks(&self) -> bool {
        let extensions = self.capabilities.extensions.as_ref();
        self.any_method
            && extensions.is_some_and(|declared| declared.contains_key(method::tasks_extension::NAME))
    }

    /// Sets the seal for the state that a call keeps between its rounds. Without one, no call can ask a stateless
    /// client.
    #[must_use]
    pub fn seal(mut self, seal: Arc<dyn Seal>) -> Self {
        self.seal = Some(seal);
        self
    }

    /// Sets the limits on the resources that peers can use.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Leaves the server's name and version out of stateless results.
    #[must_use]
    pub fn hide_identity(mut self) -> Self {
        self.identity = Identity::Hidden;
        self.lowered = Arc::default();
        self
    }

    /// Sets the cache hint of the `server/discover` result.
    #[must_use]
    pub fn discover_hint(mut self, hint: CacheHint) -> Self {
        self.discover_hint = hint;
        self
    }

    /// Replaces the server's capabilities for subsequent requests.
    pub fn set_capabilities(&mut self, capabilities: ServerCapabilities) {
        self.capabilities = capabilities;
        // A cached peer depends on them.
        self.peers = Arc::default();
    }

    /// Returns the server's name and version.
    pub fn info(&self) -> &Implementation {
        &self.info
    }

    /// Returns the server's capabilities.
    pub fn capabilities(&self) -> &ServerCapabilities {
        &self.capabilities
    }

    /// Returns the supported revisions, newest first.
    pub fn revisions(&self) -> &[Revision] {
        &self.revisions
    }

    /// Returns the limits.
    pub fn bounds(&self) -> &Limits {
        &self.limits
    }

    pub(super) fn peers(&self) -> &PeerCache {
        &self.peers
    }

    pub(super) fn handshakes(&self) -> &PeerCache {
        &self.handshakes
    }

    pub(super) fn lowered_cache(&self) -> &LoweredCache {
        &self.lowered
    }

    /// Returns the ledger of what clients make the server hold.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(super) fn instructions_text(&self) -> Option<&String> {
        self.instructions.as_ref()
    }

    pub(super) fn sealer(&self) -> Option<&dyn Seal> {
        self.seal.as_deref()
    }

    /// Returns the supported revision of that name, if it is of the given era.
    pub(super) fn spoken(&self, name: &str, stateless: bool) -> Option<Revision> {
        self.revisions
            .iter()
            .copied()
            .find(|revision| revision.is_stateless() == stateless && revision.as_str() == name)
    }

    /// Returns the newest supported revision of the session era.
    pub(super) fn newest_session(&self) -> Option<Revision> {
        self.revisions.iter().copied().find(|revision| !revision.is_stateless())
    }

    /// Returns whether a request of this method can be dispatched: the revision has it, and the server offers it.
    ///
    /// A method whose capability is not declared is treated as unknown.
    pub(super) fn offers(&self, method: &str, revision: Revision) -> bool {
        if self.methods.iter().any(|own| own == method) {
            return true;
        }
        let row = method::find(method);
        let capability = row.and_then(|row| row.capability);
        let lacks = || revision.knows(MessageKind::Request, method) == Knows::Lacks;
        let passed_on = match row {
            None => self.any_method || self.unknown_methods,
            Some(_) => self.any_method && capability == Some(Capability::Tasks),
        };
        // The rules of an extension of this server come first.
        let is_own =
            || self.extensions.iter().any(|extension| extension.methods.iter().any(|own| own == method));
        if passed_on && !lacks() && !is_own() {
            return true;
        }
        capability.is_none_or(|capability| self.declares(capability))
            && revision.knows(MessageKind::Request, method) == Knows::Has
    }

    /// Returns whether the server declares the capability that a method depends on.
    fn declares(&self, capability: Capability) -> bool {
        let can = &self.capabilities;
        match capability {
            Capability::Tools => can.tools.is_some(),
            Capability::Prompts => can.prompts.is_some(),
            Capability::Resources => can.resources.is_some(),
            Capability::ResourceSubscriptions => {
                can.resources.as_ref().is_some_and(|resources| resources.subscribe == Some(true))
            }
            Capability::Completions => can.completions.is_some(),
            Capability::Logging => can.logging.is_some(),
            Capability::Changes => self.announces(),
            // Those of sessions. The later extension lists its methods.
            Capability::Tasks => can.tasks.is_some(),
            // Capabilities of clients.
            Capability::Sampling | Capability::Roots | Capability::Elicitation => false,
        }
    }

    /// Returns whether there is anything to subscribe to.
    fn announces(&self) -> bool {
        let can = &self.capabilities;
        let on = |flag: Option<bool>| flag == Some(true);
        let declared = can.extensions.as_ref();
        // The driver grants those of others.
        let has_tasks =
            || declared.is_some_and(|declared| declared.contains_key(method::tasks_extension::NAME));
        self.extensions.iter().any(|extension| !extension.listens.is_empty())
            || has_tasks()
            || can.tools.as_ref().is_some_and(|tools| on(tools.list_changed))
            || can.prompts.as_ref().is_some_and(|prompts| on(prompts.list_changed))
            || can.resources.as_ref().is_some_and(|known| on(known.list_changed) || on(known.subscribe))
    }

    /// Returns the error for an unsupported revision, with the supported ones.
    pub(super) fn unsupported(&self, requested: &str) -> RpcError {
        let supported: Vec<_> = self.revisions.iter().map(|revision| revision.as_str().to_owned()).collect();
        let requested = &*shown(requested);
        let message = format!("unsupported protocol version: `{requested}`: {}", self.ways());
        RpcError::new(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, message)
            .with_data(&UnsupportedVersionData::new(supported, requested))
    }

    /// Describes how a client of either era can use this server.
    pub(super) fn ways(&self) -> String {
        let names = |stateless: bool| {
            let era = self.revisions.iter().filter(|revision| revision.is_stateless() == stateless);
            era.map(|revision| format!("`{revision}`")).collect::<Vec<_>>().join(", ")
        };
        let (alone, opened) = (names(true), names(false));
        match (alone.is_empty(), opened.is_empty()) {
            (_, true) => format!("name one of {alone} in `_meta`"),
            (true, false) => format!("send `initialize` with one of {opened}"),
            (false, false) => {
                format!("name one of {alone} in `_meta`, or send `initialize` with one of {opened}")
            }
        }
    }

    /// Returns the result of `server/discover`, without the members of every stateless result.
    pub(super) fn discovered(&self) -> RawObject {
        let supported = self.revisions.iter().map(|revision| revision.as_str().to_owned()).collect();
        let mut capabilities = self.capabilities.clone();
        // Here tasks are an extension.
        capabilities.tasks = None;
        let mut result = DiscoverResult::new(supported, capabilities);
        result.instructions.clone_from(&self.instructions);
        RawObject::from_serialize(&result).expect("a description of the server serializes")
    }

    pub(super) fn discover_hint_ref(&self) -> &CacheHint {
        &self.discover_hint
    }

    /// Returns the member of `_meta` with the server's name and version, unless it is hidden.
    pub(super) fn signature(&self) -> Option<&str> {
        match &self.identity {
            Identity::Shown(member) => Some(member),
            Identity::Hidden => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use pintle_types::{Message, Request, schema::ToolsCapability};

    use super::*;

    const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

    fn request() -> Request {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{META}}}}}"#);
        let Ok(Message::Request(request)) = Message::parse(text.as_bytes()) else { panic!("a request") };
        request
    }

    #[test]
    fn replaced_capabilities_apply_to_the_next_request() {
        let mut service = Service::new(Implementation::new("s", "0"), ServerCapabilities::default());
        service.stamped(&request()).unwrap();
        assert!(service.peers().find(META).is_some());
        let mut capabilities = ServerCapabilities::default();
        capabilities.tools = Some(ToolsCapability::default());
        service.set_capabilities(capabilities);
        assert!(service.capabilities().tools.is_some());
        assert!(service.peers().find(META).is_none(), "a cached peer depends on the capabilities");
    }

    #[test]
    fn a_description_that_was_read_before_names_the_same_revision() {
        let service = Service::new(Implementation::new("s", "0"), ServerCapabilities::default());
        for _ in 0..2 {
            let stamped = service.stamped(&request()).unwrap();
            assert_eq!(stamped.version(), Some("2026-07-28"));
            assert!(stamped.has_capabilities() && stamped.peer().is_some());
        }
    }
}
