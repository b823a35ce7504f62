//! Extensions of a server. Those of `pintle-tasks` and `pintle-skills` use nothing else.
//!
//! An installation is data until `Server::install` checks it against what is there, and then adds all of it or nothing. Checks of the final
//! server (`needs`, `check`, `check_catalogue`) run in `Snapshot::check`.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use pintle_proto::{
    Peer, Revision,
    ledger::Held,
    server::{Extension as Wire, Grant, Outcome},
};
use pintle_types::{
    JsonObject, Notification,
    schema::{Resource, ResultType, ServerCapabilities, SubscriptionFilter, Tool},
};
use serde_json::Value;
use tower_layer::Layer;
use tower_service::Service;

use super::{
    custom::{MethodRoute, OnNotification, check_method},
    source::SourceRoute,
};
use crate::{
    Error, Result,
    server::{
        CatalogueEdits, Cx, Next, Notice, Route, Server, StateKeys, ToolStart,
        core::{
            cx::detached::{Detacher, Interceptor},
            driver::layer::outcome,
        },
    },
};

/// An extension of the protocol: methods, notifications and result types that some clients support.
///
/// A server supports the extensions that are [added to it](Server::with). Only clients that declare an extension in their
/// capabilities can use it.
///
/// ```
/// use pintle::server::{Cx, ProtocolExtension, Installation, Notice, Server, method};
/// use pintle::types::RpcError;
///
/// struct Clock;
///
/// #[derive(serde::Deserialize)]
/// struct Wind {
///     turns: u32,
/// }
///
/// impl ProtocolExtension for Clock {
///     fn name(&self) -> &str {
///         "com.example/clock"
///     }
///
///     fn install(self, clock: Installation) -> Installation {
///         clock.listens("clockTicks").method(method("clock/wind", |cx: Cx, Wind { turns }| async move {
///             cx.server().tell(Notice::new("clockTicks", "notifications/clock/tick", turns));
///             Ok::<_, RpcError>(serde_json::json!({ "wound": turns }))
///         }))
///     }
/// }
///
/// let server = Server::new("clock", "1.0.0").with(Clock);
/// # server.check().unwrap();
/// ```
pub trait ProtocolExtension: Send + Sync + 'static {
    /// Returns the identifier: a reversed domain name as the prefix, a slash and a name.
    fn name(&self) -> &str;

    /// Returns the settings that are declared to clients.
    fn settings(&self) -> JsonObject {
        JsonObject::new()
    }

    /// Registers the methods, notifications and result types.
    fn install(self, installation: Installation) -> Installation;
}

/// The methods, notifications and result types that an extension registers.
pub struct Installation {
    wire: Wire,
    settings: JsonObject,
    methods: Vec<MethodRoute>,
    notified: Vec<(String, Arc<OnNotification>)>,
    hooks: ExtensionHooks,
    layers: Vec<Box<dyn FnOnce(Next) -> Next + Send>>,
    routes: CatalogueEdits,
    sources: Vec<SourceRoute>,
}

/// The checks of extensions, and the functions of them that run in the calls of others.
#[derive(Clone, Default)]
pub(crate) struct ExtensionHooks {
    /// The capabilities and extensions that extensions need: who needs it, and what.
    pub(crate) needs: Vec<(String, String)>,
    pub(crate) checks: Vec<Arc<ConfigurationCheck>>,
    pub(crate) catalogue_checks: Vec<Arc<CatalogueCheck>>,
    pub(crate) start_hooks: Vec<Arc<StartHook>>,
    pub(crate) capability_edits: Vec<Arc<CapabilityEdit>>,
    /// The functions that decide how calls of tools start.
    pub(crate) interceptors: Vec<Arc<Interceptor>>,
    /// The function that takes over calls whose handlers detach them.
    pub(crate) detacher: Option<Arc<Detacher>>,
}

impl ExtensionHooks {
    /// Adds those of another extension.
    fn extend(&mut self, other: Self) {
        self.needs.extend(other.needs);
        self.checks.extend(other.checks);
        self.catalogue_checks.extend(other.catalogue_checks);
        self.start_hooks.extend(other.start_hooks);
        self.capability_edits.extend(other.capability_edits);
        self.interceptors.extend(other.interceptors);
        self.detacher = other.detacher.or(self.detacher.take());
    }
}

impl Installation {
    pub(crate) fn of(extension: impl ProtocolExtension) -> Self {
        let empty = Self {
            wire: Wire::new(extension.name()),
            settings: extension.settings(),
            methods: Vec::new(),
            notified: Vec::new(),
            hooks: ExtensionHooks::default(),
            layers: Vec::new(),
            routes: CatalogueEdits::new(),
            sources: Vec::new(),
        };
        extension.install(empty)
    }

    /// Adds a method. Any caller may call it that the [gates](Server::gate) allow to: check [`Cx::identity`], or let it
    /// [require](MethodRoute::requires) rights.
    ///
    /// A name that is already registered is an error: [`Server::check`] reports it, and `serve` refuses to start. Nothing is
    /// overwritten.
    #[must_use]
    pub fn method(mut self, route: MethodRoute) -> Self {
        self.wire.methods.push(route.name.clone());
        self.methods.push(route);
        self
    }

    /// Adds a method that the protocol itself has in some revisions with sessions, and leaves to an extension in later ones, as
    /// those of tasks. Clients of those revisions need not declare the extension; the server has to
    /// [declare](Self::capabilities) the capability that the method depends on.
    #[must_use]
    pub fn session_method(mut self, route: MethodRoute) -> Self {
        self.methods.push(route);
        self
    }

    /// Changes the capabilities that the server declares, besides the extension itself.
    #[must_use]
    pub fn capabilities(mut self, edit: impl Fn(&mut ServerCapabilities) + Send + Sync + 'static) -> Self {
        self.hooks.capability_edits.push(Arc::new(edit));
        self
    }

    /// Declares that the extension needs something of the final server: a capability such as `resources`, or another extension by
    /// its name. [`Server::check`] reports what is missing, and `serve` refuses to start.
    #[must_use]
    pub fn needs(mut self, name: impl Into<String>) -> Self {
        self.hooks.needs.push((self.wire.name.clone(), name.into()));
        self
    }

    /// Adds a check of the final server, by its keys: what an extension with a store needs to know. The function returns the fault, if
    /// there is one. [`Server::check`] reports it, and `serve` refuses to start.
    #[must_use]
    pub fn check(mut self, check: impl Fn(&StateKeys) -> Option<String> + Send + Sync + 'static) -> Self {
        self.hooks.checks.push(Arc::new(check));
        self
    }

    /// Adds a function that runs each time the server starts to serve, on any transport. It must not block.
    #[must_use]
    pub fn on_start(mut self, hook: impl Fn(&Server) + Send + Sync + 'static) -> Self {
        self.hooks.start_hooks.push(Arc::new(hook));
        self
    }

    /// Adds an interceptor of tool calls. It is called once the caller may use the tool and the arguments are valid, and decides
    /// how the handler runs.
    #[must_use]
    pub fn intercept_tools(
        mut self,
        decide: impl Fn(&Cx, &Tool) -> ToolStart + Send + Sync + 'static,
    ) -> Self {
        self.hooks.interceptors.push(Arc::new(decide));
        self
    }

    /// Has the extension take over calls whose handlers call [`Cx::detach`], and those that an interceptor starts with
    /// [`ToolStart::DetachOnWait`]. The function returns a [`ToolStart::Detach`], or `None` for a client that cannot follow the call.
    ///
    /// A server has one such extension; a second one is an error.
    #[must_use]
    pub fn takes_detached(
        mut self,
        adopt: impl Fn(&Cx) -> Option<ToolStart> + Send + Sync + 'static,
    ) -> Self {
        self.hooks.detacher = Some(Arc::new(adopt));
        self
    }

    /// Puts a `tower` layer around every request and every notification, as [`Server::layer`] does. It is outside of the layers that
    /// the server has when the extension is added.
    #[must_use]
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<Next> + Send + 'static,
        L::Service: Service<Cx, Response = Outcome> + Clone + Send + Sync + 'static,
        <L::Service as Service<Cx>>::Error: fmt::Display + Send,
        <L::Service as Service<Cx>>::Future: Send + 'static,
    {
        self.layers.push(Box::new(move |next| next.wrapped(&layer, outcome)));
        self
    }

    /// Adds a tool, a prompt, a resource or a resource template.
    ///
    /// A name that is already registered is an error, and then nothing of the extension is added.
    #[must_use]
    pub fn route(mut self, route: impl Into<Route>) -> Self {
        self.routes = self.routes.add(route);
        self
    }

    /// Adds a source of resources, as [`Server::source`] does.
    #[must_use]
    pub fn source(mut self, source: impl Into<SourceRoute>) -> Self {
        self.sources.push(source.into());
        self
    }

    /// Adds a check of the final server: of all its tools and resources. It returns what is wrong, which
    /// [`Server::check`] reports, and with which `serve` refuses to start.
    ///
    /// Tools and resources of providers and sources are not among them.
    #[must_use]
    pub fn check_catalogue(
        mut self,
        check: impl Fn(&[Tool], &[Resource]) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        self.hooks.catalogue_checks.push(Arc::new(check));
        self
    }

    /// Offers the extension to clients that do not declare it too.
    #[must_use]
    pub fn for_all_clients(mut self) -> Self {
        self.wire.open = true;
        self
    }

    /// Restricts the extension to these revisions. It does not exist for clients of others.
    #[must_use]
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.wire.revisions = revisions.into_iter().collect();
        self
    }

    /// Adds a handler for a notification that clients send.
    ///
    /// A name that is already registered is an error: [`Server::check`] reports it, and `serve` refuses to start. Nothing is
    /// overwritten.
    #[must_use]
    pub fn on_notification<F, Fut>(mut self, name: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Notification, Option<Arc<Peer>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let handler: Arc<OnNotification> = Arc::new(move |notification, peer, _| {
            let handling: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(handler(notification, peer));
            handling
        });
        self.notified.push((name.into(), handler));
        self
    }

    /// Adds a value of `resultType`. A result that has it fails for clients that did not declare the extension.
    #[must_use]
    pub fn result_type(mut self, name: impl Into<String>) -> Self {
        self.wire.result_types.push(name.into());
        self
    }

    /// Adds a member of the filter of subscriptions, for [notices](Notice).
    #[must_use]
    pub fn listens(mut self, member: impl Into<String>) -> Self {
        self.wire.listens.push(member.into());
        self
    }

    /// Sets the function that decides what a subscription is granted, from the member of the filter, its value and the
    /// principal.
    ///
    /// A session has no filter: it requests `true`, and receives no notices of the member if nothing is granted.
    #[must_use]
    pub fn grants<F>(mut self, grant: F) -> Self
    where
        F: Fn(&str, &Value, Option<&str>) -> Option<Value> + Send + Sync + 'static,
    {
        struct Granting<F>(F);
        impl<F: Fn(&str, &Value, Option<&str>) -> Option<Value> + Send + Sync> Grant for Granting<F> {
            fn grant(&self, member: &str, wanted: &Value, principal: Option<&str>) -> Option<Value> {
                (self.0)(member, wanted, principal)
            }
        }
        self.wire.grant = Some(Arc::new(Granting(grant)));
        self
    }

    /// Declares the member of the params that requests of `method` repeat in the `Mcp-Name` header.
    #[must_use]
    pub fn named_by(mut self, method: impl Into<String>, member: impl Into<String>) -> Self {
        self.wire.names.push((method.into(), member.into()));
        self
    }

    /// Restricts the extension to stateless clients.
    #[must_use]
    pub fn stateless_only(mut self) -> Self {
        self.wire.stateless_only = true;
        self
    }
}

impl Server {
    /// Adds an extension.
    ///
    /// An extension, method, notification, result type or filter member that is already registered, or that the protocol
    /// defines, is an error: [`check`](Self::check) reports it, and `serve` refuses to start. Nothing is overwritten.
    #[must_use]
    pub fn with(self, extension: impl ProtocolExtension) -> Self {
        self.noting(|server| server.install(Installation::of(extension)))
    }

    /// Installs all that an extension has, or nothing.
    fn install(&self, installation: Installation) -> Result<()> {
        let Installation { wire, settings, methods, notified, hooks, layers, mut routes, sources } =
            installation;
        let name = wire.name.clone();
        if !is_extension_name(&name) {
            return Err(Error::misuse(format!(
                "`{name}` is not an extension's name: use a domain of yours turned round, as in `com.example/name`"
            )));
        }
        routes.prepare()?;
        self.change(|state| {
            let mut extensions = state.settings.capabilities.extensions.clone();
            declare(&mut extensions, "extension", name.clone(), Value::Object(settings))?;
            let (mut custom, mut catalogue) = (state.custom.clone(), state.catalogue.clone());
            for MethodRoute { name: method, method: handler } in methods {
                if let Some(owner) = owner_of_method(state.service.extensions(), &method) {
                    return Err(Error::misuse(format!(
                        "the method `{method}` of `{name}` is one of the extension `{owner}`; choose another name"
                    )));
                }
                check_method(&custom, &method)?;
                catalogue.requires.add(&handler.required);
                custom.insert(method, handler);
            }
            check_owned(state.service.extensions(), &wire)?;
            if hooks.detacher.is_some() && state.settings.extensions.detacher.is_some() {
                return Err(Error::misuse(format!(
                    "`{name}` takes over detached calls, and so does another extension; add one of them"
                )));
            }
            routes.apply(&mut catalogue)?;
            for source in sources {
                catalogue.requires.add(&source.required);
                catalogue.sources.push(source);
            }
            self.add_notification_handlers(notified)?;
            state.catalogue = catalogue;
            state.settings.extensions.extend(hooks);
            (state.custom, state.settings.capabilities.extensions) = (custom, extensions);
            state.service = state.service.clone().extend(wire);
            layers.into_iter().for_each(|layer| state.add_layer(layer));
            Ok(())
        })
    }

    /// Sends a notice of an extension to its listeners.
    pub fn tell(&self, notice: Notice) {
        self.publish_notice(&Arc::new(notice));
    }

    /// Sends a notice to its listeners, who are charged for it.
    pub(crate) fn publish_notice(&self, notice: &Arc<Notice>) {
        let ceiling = self.snapshot().service.bounds().ceiling(Held::Notice);
        self.changes().publish_notice(notice, ceiling);
    }
}

/// A check of the final server. Returns the fault.
pub(crate) type ConfigurationCheck = dyn Fn(&StateKeys) -> Option<String> + Send + Sync;

/// A function that runs when the server starts to serve.
pub(crate) type StartHook = dyn Fn(&Server) + Send + Sync;

/// A check of the final tools and resources. It returns what is wrong.
pub(crate) type CatalogueCheck = dyn Fn(&[Tool], &[Resource]) -> Vec<String> + Send + Sync;

/// A change of the declared capabilities.
pub(crate) type CapabilityEdit = dyn Fn(&mut ServerCapabilities) + Send + Sync;

/// Returns whether this can be the name of an extension: a prefix, a slash and a name, in which further slashes may be. Some official
/// names have two, so the grammar of `_meta` keys is not theirs.
fn is_extension_name(name: &str) -> bool {
    let mut parts = name.split('/');
    let fits = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    parts.next().is_some_and(|prefix| fits(prefix) && prefix.contains('.'))
        && parts.clone().next().is_some()
        && parts.all(fits)
}

/// Returns the extension that has a method.
fn owner_of_method<'a>(known: &'a [Wire], method: &str) -> Option<&'a str> {
    let owner = known.iter().find(|extension| extension.methods.iter().any(|own| own == method));
    owner.map(|extension| extension.name.as_str())
}

/// Refuses a result type or a member of subscription filters that another extension, or the protocol, defines.
fn check_owned(known: &[Wire], new: &Wire) -> Result<()> {
    let taken = |what: &str, name: &str, owner: &str| {
        Error::misuse(format!("the {what} `{name}` of `{}` is one of {owner}; choose another name", new.name))
    };
    for (at, kind) in new.result_types.iter().enumerate() {
        if [ResultType::Complete, ResultType::InputRequired].iter().any(|own| own.as_str() == kind) {
            return Err(taken("result type", kind, "the protocol"));
        }
        let owner = known.iter().find(|other| other.result_types.contains(kind));
        let owner = owner.or_else(|| new.result_types[..at].contains(kind).then_some(new));
        if let Some(owner) = owner {
            return Err(taken("result type", kind, &format!("the extension `{}`", owner.name)));
        }
    }
    for (at, member) in new.listens.iter().enumerate() {
        if SubscriptionFilter::defines(member) {
            return Err(taken("filter member", member, "the protocol"));
        }
        let owner = known.iter().find(|other| other.listens.contains(member));
        let owner = owner.or_else(|| new.listens[..at].contains(member).then_some(new));
        if let Some(owner) = owner {
            return Err(taken("filter member", member, &format!("the extension `{}`", owner.name)));
        }
    }
    Ok(())
}

/// Adds a capability with its settings, unless there is one of this name.
pub(crate) fn declare(known: &mut JsonObject, kind: &str, name: String, settings: Value) -> Result<()> {
    if known.contains_key(&name) {
        return Err(Error::misuse(format!("an {kind} named `{name}` is already registered; add it once")));
    }
    known.insert(name, settings);
    Ok(())
}

impl fmt::Debug for Installation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Installation").field(&self.wire).finish()
    }
}
