use std::{
    any::type_name,
    collections::{HashMap, HashSet},
    fmt,
    sync::{Arc, Once, OnceLock, PoisonError, RwLock},
};

use pintle_proto::{Limits, Revision, http::Served, server::Service};
use pintle_types::schema::{Icon, Implementation, Tool};
use serde_json::Value;
use tower_layer::Layer;

use super::{
    catalogue::{Catalogue, custom::OnNotification, extension::declare},
    dispatch,
    driver::layer,
    gate::registry::Gates,
    handler::blocking::BlockingThreads,
    provider::watch::Watches,
    sessions::registry::SessionRegistry,
    settings::ServerSettings,
    snapshot::Snapshot,
};
use crate::{
    Error, Result, ToolPredicate,
    directory::Directory,
    server::{
        CacheHint, Cx, IntoRoute, ListKind, Next, Outcome, PromptRoute, ResourceRoute, TemplateRoute,
        ToolRoute, changes::ChangeHub, form::FormCache,
    },
};

/// A server: what it offers, and how it is reached.
///
/// Cheap to clone: clones are the same server. Everything may be added, taken away and changed while it runs; clients
/// that want to know are notified.
///
/// ```
/// use pintle::server::{Args, Server, tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add {
///     a: i64,
///     b: i64,
/// }
///
/// async fn add(Args(Add { a, b }): Args<Add>) -> i64 {
///     a + b
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let server = Server::new("calculator", "1.0.0").tool(tool("add", add).description("Adds two numbers."));
/// // A program would now say `server.serve_stdio().await`. Here, a client within the process:
/// # #[cfg(feature = "client")] {
/// let client = pintle::Client::new("demo", "1.0.0").connect(server.in_process()?).await?;
/// let sum: i64 = client.call_tool_as("add", serde_json::json!({"a": 1, "b": 2})).await?;
/// assert_eq!(sum, 3);
/// # }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Server(pub(in crate::server) Arc<ServerInner>);

pub(in crate::server) struct ServerInner {
    pub(in crate::server) state: RwLock<Arc<Snapshot>>,
    pub(in crate::server) changes: ChangeHub,
    pub(in crate::server) sessions: SessionRegistry,
    pub(in crate::server) forms: FormCache,
    /// Lints are logged when the first connection is served, not with each.
    pub(in crate::server) linted: Once,
    pub(in crate::server) notified: RwLock<HashMap<String, Arc<OnNotification>>>,
    pub(in crate::server) watches: Watches,
    pub(in crate::server) blocking_threads: BlockingThreads,
}

impl Server {
    /// A server that offers nothing yet.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let settings = ServerSettings::default();
        let service = Service::new(Implementation::new(name, version), Default::default())
            .seal(Arc::new(settings.keys.clone()));
        let state = Snapshot {
            served: Served::new(service.revisions().iter().copied()),
            service,
            catalogue: Catalogue::default(),
            providers: Default::default(),
            settings,
            gates: Gates::default(),
            hooks: Default::default(),
            own: Default::default(),
            custom: HashMap::new(),
            stack: dispatch::innermost(),
            is_layered: false,
            faults: Vec::new(),
            verdict: OnceLock::new(),
        };
        Self(Arc::new(ServerInner {
            state: RwLock::new(Arc::new(state)),
            changes: ChangeHub::default(),
            sessions: SessionRegistry::default(),
            forms: FormCache::default(),
            linted: Once::new(),
            notified: RwLock::default(),
            watches: Watches::default(),
            blocking_threads: BlockingThreads::default(),
        }))
    }

    /// Adds a tool.
    ///
    /// A name that is already registered is an error: [`check`](Self::check) reports it, and `serve` refuses to start. Nothing is
    /// overwritten.
    #[must_use]
    pub fn tool(self, route: impl IntoRoute<ToolRoute>) -> Self {
        self.noting(|server| server.add_tool(route.into_route()))
    }

    /// Adds several tools.
    ///
    /// A name that is already registered is an error: [`check`](Self::check) reports it, and `serve` refuses to start. Nothing is
    /// overwritten.
    #[must_use]
    pub fn tools(self, routes: impl IntoIterator<Item = ToolRoute>) -> Self {
        self.noting(|server| server.extend_tools(routes))
    }

    /// Adds a prompt.
    ///
    /// A name that is already registered is an error: [`check`](Self::check) reports it, and `serve` refuses to start. Nothing is
    /// overwritten.
    #[must_use]
    pub fn prompt(self, route: impl IntoRoute<PromptRoute>) -> Self {
        self.noting(|server| server.add_prompt(route.into_route()))
    }

    /// Adds several prompts.
    ///
    /// A name that is already registered is an error: [`check`](Self::check) reports it, and `serve` refuses to start. Nothing is
    /// overwritten.
    #[must_use]
    pub fn prompts(self, routes: impl IntoIterator<Item = PromptRoute>) -> Self {
        self.noting(|server| server.extend_prompts(routes))
    }

    /// Adds a resource.
    ///
    /// A URI that is already registered is an error: [`check`](Self::check) reports it, and `serve` refuses to start. Nothing is
    /// overwritten.
    #[must_use]
    pub fn resource(self, route: impl IntoRoute<ResourceRoute>) -> Self {
        self.noting(|server| server.add_resource(route.into_route()))
    }

    /// Adds several resources.
    ///
    /// A URI that is already registered is an error: [`check`](Self::check) reports it, and `serve` refuses to start. Nothing is
    /// overwritten.
    #[must_use]
    pub fn resources(self, routes: impl IntoIterator<Item = ResourceRoute>) -> Self {
        self.noting(|server| server.extend_resources(routes))
    }

    /// Adds a resource template.
    ///
    /// A URI template that is already registered is an error: [`check`](Self::check) reports it, and `serve` refuses to start. Nothing is
    /// overwritten.
    #[must_use]
    pub fn template(self, route: impl IntoRoute<TemplateRoute>) -> Self {
        self.noting(|server| server.add_template(route.into_route()))
    }

    /// Adds several resource templates.
    ///
    /// A URI template that is already registered is an error: [`check`](Self::check) reports it, and `serve` refuses to start. Nothing is
    /// overwritten.
    #[must_use]
    pub fn templates(self, routes: impl IntoIterator<Item = TemplateRoute>) -> Self {
        self.noting(|server| server.extend_templates(routes))
    }

    /// Adds the files of a directory as a [source](Self::source). No URI leads to a file outside of it.
    ///
    /// The directory is not watched. Call [`resource_updated`](Self::resource_updated) or
    /// [`resources_changed`](Self::resources_changed) when a file has changed.
    #[must_use]
    pub fn directory(self, directory: Directory) -> Self {
        self.source(directory)
    }

    /// Adds a value for handlers that take [`State<S>`](crate::server::State).
    ///
    /// A type that is already registered is an error: [`check`](Self::check) reports it, and `serve` refuses to start. Nothing is
    /// overwritten.
    #[must_use]
    pub fn with_state<S: Clone + Send + Sync + 'static>(self, state: S) -> Self {
        self.noting(|server| {
            server.change(|snapshot| snapshot.own.put(state)).map_err(|_| {
                Error::misuse(format!(
                    "a state of type `{}` is already registered; wrap one of them in a type of its own",
                    type_name::<S>()
                ))
            })
        })
    }

    /// Tells every client how to use the server.
    #[must_use]
    pub fn instructions(self, text: impl Into<String>) -> Self {
        self.setting(|settings| settings.instructions = Some(text.into()))
    }

    /// Sets the title, which user interfaces show instead of the name.
    #[must_use]
    pub fn title(self, text: impl Into<String>) -> Self {
        self.edit_info(|info| info.title = Some(text.into()))
    }

    /// Sets the description.
    #[must_use]
    pub fn description(self, text: impl Into<String>) -> Self {
        self.edit_info(|info| info.description = Some(text.into()))
    }

    /// Sets the URL of the website.
    #[must_use]
    pub fn website(self, url: impl Into<String>) -> Self {
        self.edit_info(|info| info.website_url = Some(url.into()))
    }

    /// Adds an icon.
    #[must_use]
    pub fn icon(self, icon: Icon) -> Self {
        self.edit_info(|info| info.icons.get_or_insert_default().push(icon))
    }

    /// Speaks these revisions only.
    #[must_use]
    pub fn revisions(self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.service(|service| service.speaks(revisions))
    }

    /// Bounds what clients can make the server hold.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        self.service(|service| service.limits(limits))
    }

    /// Leaves the server's name out of stateless results.
    #[must_use]
    pub fn anonymous(self) -> Self {
        self.service(Service::hide_identity)
    }

    /// Lists at most this many entries on one page.
    #[must_use]
    pub fn page_size(self, entries: usize) -> Self {
        self.setting(|settings| settings.lists.page = entries.max(1))
    }

    /// Sets the limit of the bytes of a result. A larger result of a tool becomes an error. 16 MiB by default.
    #[must_use]
    pub fn max_content_bytes(self, bytes: usize) -> Self {
        self.setting(|settings| settings.calls.result_bytes = bytes)
    }

    /// Lets clients ask for log messages.
    #[must_use]
    pub fn logging(self) -> Self {
        self.setting(|settings| settings.capabilities.logging = true)
    }

    /// Completes arguments of tools too, for clients that know to ask (`ref/tool`, an extension of this SDK).
    #[must_use]
    pub fn tool_completion(self) -> Self {
        self.setting(|settings| settings.capabilities.tool_completion = true)
    }

    /// Sets how long clients may cache the lists, and for whom. [`cache_list`](Self::cache_list) takes precedence for its list.
    #[must_use]
    pub fn cache_lists(self, hint: CacheHint) -> Self {
        self.setting(|settings| settings.lists.hint = hint)
    }

    /// How long clients may keep this list, and who may.
    #[must_use]
    pub fn cache_list(self, list: ListKind, hint: CacheHint) -> Self {
        self.setting(|settings| drop(settings.lists.hints.insert(list, hint)))
    }

    /// Declares an extension, with its settings. [`with`](Self::with) adds one that is implemented here.
    ///
    /// A name that is already registered is an error: [`check`](Self::check) reports it, and `serve` refuses to start. Nothing is
    /// overwritten.
    #[must_use]
    pub fn extension(self, name: impl Into<String>, settings: Value) -> Self {
        let name = name.into();
        self.declaring(|declared| declare(&mut declared.extensions, "extension", name, settings))
    }

    /// Sets how long clients may cache the description of the server, and for whom.
    #[must_use]
    pub fn cache_discovery(self, hint: CacheHint) -> Self {
        self.service(|service| service.discover_hint(hint))
    }

    /// Declares an experimental capability, with its settings.
    ///
    /// A name that is already registered is an error: [`check`](Self::check) reports it, and `serve` refuses to start. Nothing is
    /// overwritten.
    #[must_use]
    pub fn experimental(self, name: impl Into<String>, settings: Value) -> Self {
        let (kind, name) = ("experimental capability", name.into());
        self.declaring(|declared| declare(&mut declared.experimental, kind, name, settings))
    }

    /// Declares tools, prompts and resources even while there are none, because some may be added while the server runs.
    #[must_use]
    pub fn may_change(self) -> Self {
        self.setting(|settings| settings.capabilities.may_change = true)
    }

    /// Puts a `tower` layer around every request and every notification, on every transport; [`around`](crate::server::around) makes one of a
    /// function. The last one added is the outermost.
    ///
    /// A layer sees what clients send once the protocol has accepted it: calls, lists, reads, and also what no handler
    /// answers, such as `initialize`, `ping`, `server/discover`, `logging/setLevel` and subscriptions. Of those:
    ///
    /// - [`Next::run`] returns the result, and the request takes effect when the outermost layer returns it. If one returns an error, there
    ///   is no session, level or subscription. Later messages of a connection wait for that.
    /// - `ping` is answered while a layer waits.
    /// - A notification has no response, see [`Cx::is_notification`]. If a layer returns without [`Next::run`], its handler
    ///   does not run. A cancellation has taken effect when layers see it.
    ///
    /// Requests that the protocol refuses are not seen: malformed ones, methods whose capability the server does not declare, unknown
    /// revisions, missing rights over HTTP. A method that nobody knows is seen, and a layer may answer it.
    ///
    /// A batch of an older revision is admitted as a whole: its calls may run in any order, as JSON-RPC has it, and a
    /// `logging/setLevel` among them has its effect for what comes after the batch.
    #[must_use]
    pub fn layer<L>(self, layer: &L) -> Self
    where
        L: Layer<Next>,
        L::Service: tower_service::Service<Cx, Response = Outcome> + Clone + Send + Sync + 'static,
        <L::Service as tower_service::Service<Cx>>::Error: fmt::Display + Send,
        <L::Service as tower_service::Service<Cx>>::Future: Send + 'static,
    {
        self.change(|state| state.add_layer(|inner| inner.wrapped(layer, layer::outcome)));
        self
    }

    /// Registers the handlers of notifications: all of them, or none if one of the names is taken.
    pub(in crate::server) fn add_notification_handlers(
        &self,
        handlers: Vec<(String, Arc<OnNotification>)>,
    ) -> Result<()> {
        let mut known = self.0.notified.write().unwrap_or_else(PoisonError::into_inner);
        let mut added = known.clone();
        for (name, handler) in handlers {
            if added.contains_key(&name) {
                return Err(Error::misuse(format!(
                    "a handler for the notification `{name}` is already registered; handle it in one function"
                )));
            }
            added.insert(name, handler);
        }
        *known = added;
        Ok(())
    }

    /// The tools that a question is about: a [`ToolQuery`](crate::ToolQuery), or a function such as
    /// `|tool: &Tool| tool.output_schema.is_some()`. Those of mounted servers are among them, and those that a relay has listed.
    #[expect(clippy::needless_pass_by_value, reason = "a closure is written where it is used")]
    pub fn tools_where(&self, query: impl ToolPredicate) -> Vec<Tool> {
        let state = self.snapshot();
        let own = state.catalogue.tools.iter().map(|route| &route.tool);
        let mut tools: Vec<Tool> = own.filter(|tool| query.matches(tool)).cloned().collect();
        // Of two with the same name, the first is used.
        let mut names: HashSet<String> =
            state.catalogue.tools.iter().map(|it| it.tool.name.clone()).collect();
        let provided = state.providers.iter().flat_map(|known| known.known_tools());
        tools.extend(provided.filter(|tool| names.insert(tool.name.clone()) && query.matches(tool)));
        tools
    }

    /// Returns the revisions that the server speaks, newest first: those of [`revisions`](Self::revisions), or all.
    pub fn spoken_revisions(&self) -> Vec<Revision> {
        self.snapshot().service.revisions().to_vec()
    }

    /// Returns an error that lists everything that is wrong with the registrations, one fault a line. Every `serve` method does
    /// the same.
    ///
    /// A state that no handler takes is a fault too, unless handlers may be added later: see [`may_change`](Self::may_change).
    pub fn check(&self) -> Result<()> {
        let snapshot = self.snapshot();
        let mut faults = snapshot.untaken_states();
        if let Err(error) = snapshot.check() {
            faults.insert(0, error.to_string());
        }
        if faults.is_empty() { Ok(()) } else { Err(Error::misuse(faults.join("\n"))) }
    }

    /// Fails if a registration is wrong, and logs what could be better when it is called for the first time.
    pub(in crate::server) fn start(&self) -> Result<()> {
        self.refresh_providers();
        // A server that has run may have lost the handlers that took a state.
        if self.0.linted.is_completed() { self.snapshot().check() } else { self.check() }?;
        self.0.linted.call_once(|| self.lint().iter().for_each(|warning| tracing::warn!("{warning}")));
        self.snapshot().settings.extensions.start_hooks.iter().for_each(|hook| hook(self));
        Ok(())
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.0.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn changes(&self) -> &ChangeHub {
        &self.0.changes
    }

    pub(crate) fn session_registry(&self) -> &SessionRegistry {
        &self.0.sessions
    }

    pub(crate) fn forms(&self) -> &FormCache {
        &self.0.forms
    }

    /// Returns the handler of notifications of this name. The caller runs it, so that no lock is held meanwhile.
    pub(in crate::server) fn notification_handler(&self, method: &str) -> Option<Arc<OnNotification>> {
        self.0.notified.read().unwrap_or_else(PoisonError::into_inner).get(method).cloned()
    }

    /// Changes the state. Running calls keep the previous one.
    pub(in crate::server) fn change<T>(&self, change: impl FnOnce(&mut Snapshot) -> T) -> T {
        let mut locked = self.0.state.write().unwrap_or_else(PoisonError::into_inner);
        let state = Arc::make_mut(&mut locked);
        state.verdict = OnceLock::new();
        let value = change(state);
        state.declare();
        drop(locked);
        // What it declares may be different.
        self.0.changes.each_link(|link| link.refresh());
        value
    }

    /// Changes the catalogue and nothing else.
    pub(in crate::server) fn change_catalogue<T>(&self, change: impl FnOnce(&mut Catalogue) -> T) -> T {
        let mut state = self.0.state.write().unwrap_or_else(PoisonError::into_inner);
        let state = Arc::make_mut(&mut state);
        state.verdict = OnceLock::new();
        let value = change(&mut state.catalogue);
        state.declare_catalogue();
        value
    }

    pub(in crate::server) fn noting(self, add: impl FnOnce(&Self) -> Result<()>) -> Self {
        if let Err(error) = add(&self) {
            self.change(|state| state.faults.push(error.to_string()));
        }
        self
    }

    pub(in crate::server) fn service(self, change: impl FnOnce(Service) -> Service) -> Self {
        self.change(|state| state.service = change(state.service.clone()));
        self
    }

    /// Sets the whole identity: name, version, title, description, website and icons.
    pub fn info(self, info: Implementation) -> Self {
        self.edit_info(|own| *own = info)
    }

    fn edit_info(self, change: impl FnOnce(&mut Implementation)) -> Self {
        self.service(|service| {
            let mut info = service.info().clone();
            change(&mut info);
            service.named(info)
        })
    }

    pub(in crate::server) fn setting(self, change: impl FnOnce(&mut ServerSettings)) -> Self {
        self.change(|state| change(&mut state.settings));
        self
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.snapshot();
        f.debug_struct("Server")
            .field("info", state.service.info())
            .field("catalogue", &state.catalogue)
            .finish_non_exhaustive()
    }
}
