use std::mem;

use pintle_proto::server::CacheHint;
use pintle_types::schema::ServerCapabilities;

use crate::server::ListKind;

/// The facts of a [`Provider`](crate::server::Provider), apart from its entries.
///
/// The server reads them when the provider is added, when it starts, and when the provider
/// [reports a change](crate::server::ProviderChanges).
///
/// ```
/// use pintle::{server::ProviderInfo, types::schema::{ServerCapabilities, ToolsCapability}};
///
/// let mut capabilities = ServerCapabilities::default();
/// capabilities.tools = Some(ToolsCapability::default());
/// let mut info = ProviderInfo::new("greeter", capabilities);
/// info.instructions = Some("Greet the user first.".into());
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderInfo {
    /// The name, for errors, logs and gates.
    pub name: String,
    /// The kinds that the provider may offer: `tools`, `prompts`, `resources`, `completions` and `logging`. The server declares it too. A list of
    /// which nothing is declared is not requested, and `listChanged` and `subscribe` are for providers that report changes.
    ///
    /// A provider with [methods](Self::methods), or that [answers any](Self::handles_any_method), may also offer `extensions`,
    /// `experimental` capabilities and `tasks`. The server declares those of all of its providers; of two that declare different
    /// settings for the same extension, those of the first.
    pub capabilities: ServerCapabilities,
    /// The instructions, which are appended to those of the server under a heading with the name.
    pub instructions: Option<String>,
    /// How long each list may be cached, and by whom. The hint of the server's list is the strictest of those of its providers and its
    /// own. The default allows no caching. They are read with each list.
    pub hints: ListHints,
    /// The methods that neither the protocol nor the server defines and that the provider handles. The first provider that has a method
    /// gets its requests.
    pub methods: Vec<String>,
    /// Whether the provider also handles any other method that neither the protocol nor the server defines, such as those of extensions,
    /// and of tasks.
    ///
    /// Of several such providers, the first gets a request that declares the extension that its method is named after: `clock/wind` is
    /// one of `com.example/clock`. If none does, the request is refused.
    pub handles_any_method: bool,
    /// Whether the server claims the `requestState` of a call before the provider handles it, so that it is used once. The default is
    /// `true`; a provider that passes calls on to a server that does so sets `false`.
    pub claims_state: bool,
    /// Whether the provider is the whole server, as far as clients see: ids of tasks are not changed.
    pub is_whole_server: bool,
    /// Whether the provider may answer for names that it does not find, if a prefix shows that they are its own: layers of a server may.
    pub has_unlisted: bool,
    /// Whether [`Provider::find`](crate::server::Provider::find) may return [`Lookup::Stale`](crate::server::Lookup::Stale).
    pub may_be_stale: bool,
    /// Whether the provider itself hides entries from callers, or decides about subscriptions.
    pub is_gated: bool,
    /// Whether the provider decides by URIs: gates, hidden ones, prefixes.
    pub judges_uris: bool,
    /// Whether an entry may [require](crate::server::ProvidedEntry::requires) rights. The default is `true`.
    pub may_require: bool,
    /// The servers that the provider contains, directly or not: a server must not contain itself.
    pub servers: Vec<ServerKey>,
}

impl ProviderInfo {
    /// Creates the facts of a provider with this name, which may offer this.
    pub fn new(name: impl Into<String>, capabilities: ServerCapabilities) -> Self {
        Self {
            name: name.into(),
            capabilities,
            instructions: None,
            hints: ListHints::default(),
            methods: Vec::new(),
            handles_any_method: false,
            claims_state: true,
            is_whole_server: false,
            has_unlisted: false,
            may_be_stale: false,
            is_gated: false,
            judges_uris: false,
            may_require: true,
            servers: Vec::new(),
        }
    }

    /// Returns whether the provider answers methods that the protocol does not define.
    pub(crate) fn has_methods(&self) -> bool {
        self.handles_any_method || !self.methods.is_empty()
    }

    /// Removes what is declared to clients, for a caller who may not see the provider.
    pub(crate) fn declare_nothing(&mut self) {
        self.capabilities = ServerCapabilities::default();
        self.instructions = None;
    }

    /// Keeps the lists and completions as all that is declared.
    pub(crate) fn declare_lists(&mut self) {
        let declared = mem::take(&mut self.capabilities);
        self.declare_nothing();
        self.capabilities.tools = declared.tools;
        self.capabilities.prompts = declared.prompts;
        self.capabilities.resources = declared.resources;
        self.capabilities.completions = declared.completions;
    }
}

/// How long each list of a provider may be cached, and by whom.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListHints([CacheHint; 4]);

impl ListHints {
    /// Returns the hint of a list.
    pub fn get(&self, list: ListKind) -> &CacheHint {
        &self.0[list as usize]
    }

    /// Returns the hint of a list, to change it.
    pub fn get_mut(&mut self, list: ListKind) -> &mut CacheHint {
        &mut self.0[list as usize]
    }

    /// Returns the hints of all lists, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut CacheHint> {
        self.0.iter_mut()
    }
}

/// A part of what is known of a provider without I/O: see [`Provider::report`](crate::server::Provider::report).
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReportPart {
    /// The names, URIs or URI templates of a list. [`Server::check`](crate::server::Server::check) reports those that two providers, or
    /// a provider and the server, have both, unless the provider [handles any method](ProviderInfo::handles_any_method): a server behind
    /// may offer anything, and the first of a name is used.
    Names(ListKind),
    /// The reasons why the provider cannot be used as it is, for [`Server::check`](crate::server::Server::check).
    Faults,
    /// Warnings about what is valid and could be better, for [`Server::lint`](crate::server::Server::lint).
    Warnings,
}

/// The identity of a server, to find out whether one contains itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ServerKey(pub(crate) usize);
