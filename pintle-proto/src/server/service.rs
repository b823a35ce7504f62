use std::sync::Arc;

use pintle_types::{
    ErrorCode, RawObject, RpcError,
    method::{self, Capability},
    schema::{CacheScope, DiscoverResult, Implementation, ServerCapabilities, UnsupportedVersionData},
};

use super::{Extension, budget::Budget, lowered_cache::LoweredCache, peer_cache::PeerCache};
use crate::{
    Limits, Revision,
    inputs::Seal,
    print,
    revision::{Knows, MessageKind},
    shown::shown,
};

/// What a server is, in any era: its name, what it can do, which revisions it speaks.
///
/// One value serves all connections. What never changes is printed once, here.
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
    pub(super) extensions: Arc<[Extension]>,
    seal: Option<Arc<dyn Seal>>,
    limits: Limits,
    identity: Identity,
    discover_hint: CacheHint,
    peers: Arc<PeerCache>,
    /// Peers by the params of `initialize`: thousands of sessions of one kind of client share one description.
    handshakes: Arc<PeerCache>,
    lowered: Arc<LoweredCache>,
    budget: Arc<Budget>,
}

/// How long a result may be kept, and by whom.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct CacheHint {
    /// Milliseconds.
    pub ttl_ms: u64,
    /// By whom.
    pub scope: CacheScope,
}

impl CacheHint {
    /// A hint. The default is the careful one: not at all, and by the asker only.
    pub fn new(ttl_ms: u64, scope: CacheScope) -> Self {
        Self { ttl_ms, scope }
    }
}

impl Default for CacheHint {
    fn default() -> Self {
        Self { ttl_ms: 0, scope: CacheScope::Private }
    }
}

/// Whether, and how, results say who made them.
#[derive(Clone, Debug)]
enum Identity {
    /// The member of `_meta`, printed.
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
    /// A server that speaks every revision.
    pub fn new(info: Implementation, capabilities: ServerCapabilities) -> Self {
        let identity = Identity::shown(&info);
        Self {
            info,
            capabilities,
            instructions: None,
            revisions: Revision::all().collect(),
            methods: Arc::default(),
            extensions: Arc::default(),
            seal: None,
            limits: Limits::default(),
            identity,
            discover_hint: CacheHint::default(),
            peers: Arc::default(),
            handshakes: Arc::default(),
            lowered: Arc::default(),
            budget: Arc::default(),
        }
    }

    /// Gives it another name, title or version.
    #[must_use]
    pub fn named(mut self, info: Implementation) -> Self {
        if matches!(self.identity, Identity::Shown(_)) {
            self.identity = Identity::shown(&info);
        }
        self.info = info;
        // Results that were lowered hold the name.
        self.lowered = Arc::default();
        self
    }

    /// Tells every client how to use the server.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// Speaks these revisions only. None at all counts as every one.
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

    /// Admits methods that no revision defines: an application's own, or an extension's.
    #[must_use]
    pub fn methods<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.methods = self.methods.iter().cloned().chain(names.into_iter().map(Into::into)).collect();
        self
    }

    /// Seals what a call remembers between its rounds. Without a seal no call can ask a stateless client.
    #[must_use]
    pub fn seal(mut self, seal: Arc<dyn Seal>) -> Self {
        self.seal = Some(seal);
        self
    }

    /// Bounds what peers can make this side hold.
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

    /// How long a client may keep what `server/discover` says.
    #[must_use]
    pub fn discover_hint(mut self, hint: CacheHint) -> Self {
        self.discover_hint = hint;
        self
    }

    /// Changes what the server can do, for requests from now on.
    pub fn set_capabilities(&mut self, capabilities: ServerCapabilities) {
        self.capabilities = capabilities;
        // What a client is told depends on them.
        self.peers = Arc::default();
    }

    /// What it calls itself.
    pub fn info(&self) -> &Implementation {
        &self.info
    }

    /// What it can do.
    pub fn capabilities(&self) -> &ServerCapabilities {
        &self.capabilities
    }

    /// The revisions it speaks, newest first.
    pub fn revisions(&self) -> &[Revision] {
        &self.revisions
    }

    /// What peers can make it hold.
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

    pub(super) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    pub(super) fn instructions_text(&self) -> Option<&String> {
        self.instructions.as_ref()
    }

    pub(super) fn sealer(&self) -> Option<&dyn Seal> {
        self.seal.as_deref()
    }

    /// The revision of that name, if it is one the server speaks in the asked-for era.
    pub(super) fn spoken(&self, name: &str, stateless: bool) -> Option<Revision> {
        self.revisions
            .iter()
            .copied()
            .find(|revision| revision.is_stateless() == stateless && revision.as_str() == name)
    }

    /// The newest revision of the session era that the server speaks.
    pub(super) fn newest_session(&self) -> Option<Revision> {
        self.revisions.iter().copied().find(|revision| !revision.is_stateless())
    }

    /// Whether a request of this method can be dispatched: the revision has it, and the server offers it.
    ///
    /// A method behind a capability that was not declared is as unknown as one that does not exist.
    pub(super) fn offers(&self, method: &str, revision: Revision) -> bool {
        if self.methods.iter().any(|own| own == method) {
            return true;
        }
        let capability = method::find(method).and_then(|row| row.capability);
        capability.is_none_or(|capability| self.declares(capability))
            && revision.knows(MessageKind::Request, method) == Knows::Has
    }

    /// Whether the server declares what a method of a client depends on.
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
            // Tasks are an extension's: it names its methods.
            Capability::Tasks => false,
            // A client's: no server is asked for it.
            Capability::Sampling | Capability::Roots | Capability::Elicitation => false,
        }
    }

    /// Whether there is anything to subscribe to.
    fn announces(&self) -> bool {
        let can = &self.capabilities;
        let on = |flag: Option<bool>| flag == Some(true);
        self.extensions.iter().any(|extension| !extension.listens.is_empty())
            || can.tools.as_ref().is_some_and(|tools| on(tools.list_changed))
            || can.prompts.as_ref().is_some_and(|prompts| on(prompts.list_changed))
            || can.resources.as_ref().is_some_and(|known| on(known.list_changed) || on(known.subscribe))
    }

    /// The names of all revisions, for a client that named another.
    pub(super) fn unsupported(&self, requested: &str) -> RpcError {
        let supported: Vec<_> = self.revisions.iter().map(|revision| revision.as_str().to_owned()).collect();
        let requested = &*shown(requested);
        let message = format!("unsupported protocol version: `{requested}`: {}", self.ways());
        RpcError::new(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, message)
            .with_data(&UnsupportedVersionData::new(supported, requested))
    }

    /// How a client gets an answer here, whichever era it is of.
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

    /// The answer to `server/discover`, without what every stateless result has.
    pub(super) fn discovered(&self) -> RawObject {
        let supported = self.revisions.iter().map(|revision| revision.as_str().to_owned()).collect();
        let mut result = DiscoverResult::new(supported, self.capabilities.clone());
        result.instructions.clone_from(&self.instructions);
        RawObject::from_serialize(&result).expect("a description of the server prints")
    }

    pub(super) fn discover_hint_ref(&self) -> &CacheHint {
        &self.discover_hint
    }

    /// The member of `_meta` that says who made a result.
    pub(super) fn signature(&self) -> Option<&str> {
        match &self.identity {
            Identity::Shown(member) => Some(member),
            Identity::Hidden => None,
        }
    }
}
