//! Providers: what a server offers besides its own routes.

pub(crate) mod any;
pub(crate) mod changes;
pub(crate) mod conflicts;
pub(crate) mod definitions;
pub(crate) mod entry;
pub(crate) mod list;
pub(crate) mod methods;
pub(crate) mod mount;
pub(crate) mod page;
pub(crate) mod prefix;
pub(crate) mod registry;
pub(crate) mod search;
pub(crate) mod subscribing;
pub(crate) mod subscription;
pub(crate) mod task_id;
pub(crate) mod tasks;
#[cfg(test)]
mod tests;
pub(crate) mod transform;
pub(crate) mod watched_tasks;
pub(crate) mod watches;

use std::{
    borrow::Cow,
    future::{Future, ready},
    sync::Arc,
};

use pintle_proto::{
    Peer,
    server::{CacheHint, Outcome},
};
use pintle_types::{
    Notification, RpcError,
    schema::{ServerCapabilities, Tool},
};

use self::{
    changes::ProviderChanges, entry::ProvidedEntry, page::ProviderPage, subscription::ProviderSubscription,
};
use crate::server::{
    ConnectionEvent, Cx, Declaration, ListKind, PageRequest, RequestError, Scope, SessionHandle, Target,
};

/// A source of tools, prompts, resources and templates besides the routes of a server: a [`Server`](crate::server::Server) that is mounted, a connection
/// to another server, the operations of an API.
///
/// A name is looked up among the routes of the server first, then in its providers in the order in which they were added. The
/// first that [finds](Self::find) it answers. A URI is first looked for among the resources of all, then among the templates, of which the
/// most literal answers. Filters and layers of the server apply to all; arguments and results are neither decoded nor checked by the server.
///
/// ```
/// use pintle::{Server, server::{Cx, ListKind, Outcome, PageRequest, ProvidedEntry, Provider, ProviderPage}};
/// use pintle::server::{RequestError, Scope, Target};
/// use pintle::types::{schema::{CallToolResult, ServerCapabilities, Tool, ToolsCapability}};
///
/// struct Greeter;
///
/// fn greet() -> Tool {
///     serde_json::from_value(serde_json::json!({"name": "greet", "inputSchema": {"type": "object"}})).unwrap()
/// }
///
/// impl Provider for Greeter {
///     fn name(&self) -> std::borrow::Cow<'_, str> {
///         "greeter".into()
///     }
///
///     fn capabilities(&self) -> ServerCapabilities {
///         let mut capabilities = ServerCapabilities::default();
///         capabilities.tools = Some(ToolsCapability::default());
///         capabilities
///     }
///
///     async fn list(&self, _: Cx, list: ListKind, _: PageRequest) -> Result<ProviderPage, RequestError> {
///         Ok(if list == ListKind::Tools { ProviderPage::of([greet()])? } else { ProviderPage::default() })
///     }
///
///     fn describe(&self, _: &Scope<'_>, target: &Target<'_>) -> Option<ProvidedEntry> {
///         (*target == Target::Tool("greet".into())).then(|| greet().into())
///     }
///
///     async fn handle(&self, _: Cx) -> Outcome {
///         Outcome::Complete(CallToolResult::raw_text("Hello.").into())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let server = Server::new("demo", "1.0.0").provider(Greeter);
/// # #[cfg(feature = "client")] {
/// let client = pintle::Client::new("demo", "1.0.0").connect(server.in_process()?).await?;
/// assert_eq!(client.call_tool("greet", ()).await?.text(), "Hello.");
/// # }
/// # Ok(()) }
/// ```
pub trait Provider: Send + Sync + 'static {
    /// Returns the name, for errors and logs.
    fn name(&self) -> Cow<'_, str>;

    /// Returns what the provider may offer: `tools`, `prompts`, `resources`, `completions` and `logging`. The server declares
    /// it too. A list of which nothing is declared is not requested, and `listChanged` and `subscribe` are for providers that
    /// report [changes](Self::attach).
    ///
    /// A provider with [methods](Self::methods) of its own, or that [answers any](Self::handles_any_method), may also offer `extensions`,
    /// `experimental` capabilities and `tasks`. The server declares those of all of its providers; of two that declare different
    /// settings for the same extension, those of the first.
    ///
    /// It is read when the provider is added, when the server starts, and when the provider
    /// [reports a change](ProviderChanges).
    fn capabilities(&self) -> ServerCapabilities;

    /// Returns the instructions, which are appended to those of the server under a heading with the
    /// [name](Self::name).
    fn instructions(&self) -> Option<String> {
        None
    }

    /// Returns how long a list may be cached, and by whom: all pages of it alike. The hint of the server's list is the strictest
    /// of those of its providers and its own. The default allows no caching.
    fn cache_hint(&self, list: ListKind) -> CacheHint {
        let _ = list;
        CacheHint::default()
    }

    /// Returns a page of a list, in an order that does not change. The entries are JSON objects as clients get them, with all of
    /// their members.
    ///
    /// An error fails the list of the whole server: a provider that cannot be reached returns its last list, or says so.
    fn list(
        &self,
        cx: Cx,
        list: ListKind,
        page: PageRequest,
    ) -> impl Future<Output = Result<ProviderPage, RequestError>> + Send;

    /// Returns what is known of an entry without I/O; `None` if it is not one of this provider. An entry that this caller may
    /// not see is [hidden](ProvidedEntry::hidden).
    ///
    /// It decides whether a client is notified of a changed resource, and which rights a request over HTTP needs.
    fn describe(&self, scope: &Scope<'_>, target: &Target<'_>) -> Option<ProvidedEntry>;

    /// Returns the entry that a request names; `None` if it is not one of this provider. The default is the result of
    /// [`describe`](Self::describe).
    ///
    /// An error is returned to the client unless another provider has the entry.
    fn find(
        &self,
        cx: Cx,
        target: &Target<'_>,
    ) -> impl Future<Output = Result<Option<ProvidedEntry>, RequestError>> + Send {
        ready(Ok(self.describe(&cx.scope(), target)))
    }

    /// Answers a `tools/call`, `prompts/get`, `resources/read` or `completion/complete` of an entry that
    /// [`find`](Self::find) returned. [`Cx::params`] are those of the request, and results are sent as they are.
    fn handle(&self, cx: Cx) -> impl Future<Output = Outcome> + Send;

    /// Returns whether [`handle`](Self::handle) also answers requests of methods that neither the protocol nor the server defines,
    /// such as those of extensions, and of tasks. It is read when the [capabilities](Self::capabilities) are. The default is `false`.
    ///
    /// Of several such providers, the first gets a request that [declares](Self::capabilities) the extension that its method is named
    /// after: `clock/wind` is one of `com.example/clock`. If none does, the request is refused.
    fn handles_any_method(&self) -> bool {
        false
    }

    /// Returns the methods that neither the protocol nor the server defines and that [`handle`](Self::handle) answers. The first provider
    /// that has a method gets its requests. It is read when the [capabilities](Self::capabilities) are.
    fn methods(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns whether the server claims the `requestState` of a call before [`handle`](Self::handle) runs, so that it is used
    /// once. The default is `true`; a provider that passes calls on to a server that does so returns `false`.
    fn claims_state(&self) -> bool {
        true
    }

    /// Returns the names, URIs or URI templates of a list that are known without I/O. [`Server::check`](crate::server::Server::check) reports those that two
    /// providers, or a provider and the server, have both, unless it [handles any method](Self::handles_any_method): a server behind
    /// may offer anything, and the first of a name is used.
    fn names(&self, list: ListKind) -> Vec<String> {
        let _ = list;
        Vec::new()
    }

    /// Returns an error if the provider cannot be used as it is. [`Server::check`](crate::server::Server::check) reports it.
    fn check(&self) -> crate::Result<()> {
        Ok(())
    }

    /// Called once for each server that the provider is added to, with a handle to report changes to it.
    fn attach(&self, changes: ProviderChanges) {
        let _ = changes;
    }

    /// Called when the first client of the server watches a resource that may be one of this provider. It must not block.
    ///
    /// A provider that reports updates of all of its resources need not care.
    fn watch(&self, uri: &str) {
        let _ = uri;
    }

    /// Called when no client of the server watches a resource any more. It must not block.
    fn unwatch(&self, uri: &str) {
        let _ = uri;
    }

    /// Prepares a subscription of a client, before it is acknowledged: a `resources/subscribe` of a session, or a
    /// `subscriptions/listen`, also one to changes of lists only. `uris` are the resources that may be of this provider. The tasks of this
    /// provider that the client wants to be notified of are in the params of the call: see [`ProviderSubscription::grant_task`].
    ///
    /// A provider that reports changes to all clients alike need not care. The default accepts everything.
    ///
    /// # Errors
    ///
    /// None of the resources can be watched.
    fn subscribe(
        &self,
        cx: Cx,
        uris: Vec<String>,
    ) -> impl Future<Output = Result<ProviderSubscription, RequestError>> + Send {
        let _ = (cx, uris);
        ready(Ok(ProviderSubscription::new()))
    }

    /// Ends a subscription of a session to a resource that may be of this provider, or one that was not acknowledged after all.
    fn unsubscribe(&self, cx: Cx, uri: String) -> impl Future<Output = ()> + Send {
        let _ = (cx, uri);
        ready(())
    }

    /// Called for connections of the server, as hooks of [`on_open`](crate::server::Server::on_open),
    /// [`on_session`](crate::server::Server::on_session) and [`on_close`](crate::server::Server::on_close) are. It must not
    /// block.
    ///
    /// # Errors
    ///
    /// The connection, session or request is refused.
    fn connection_event(&self, event: ConnectionEvent<'_>) -> Result<(), RpcError> {
        let _ = event;
        Ok(())
    }

    /// Handles a notification of a client, such as `notifications/roots/list_changed`, after the handler of the server.
    fn notified(
        &self,
        notification: Notification,
        peer: Option<Arc<Peer>>,
        session: Option<SessionHandle>,
    ) -> impl Future<Output = ()> + Send {
        let _ = (notification, peer, session);
        ready(())
    }

    /// Returns whether the provider decides by URIs: gates, hidden ones, prefixes.
    #[doc(hidden)]
    fn judges_uris(&self) -> bool {
        self.is_gated()
    }

    /// Returns whether an entry of this name may be one of this provider. [`find`](Self::find) is not called if it cannot.
    #[doc(hidden)]
    fn may_have(&self, target: &Target<'_>) -> bool {
        let _ = target;
        true
    }

    /// Returns whether [`find`](Self::find) looks at the target and not at the name in the params of the call, which need not be rewritten
    /// for it then.
    #[doc(hidden)]
    fn finds_by_target(&self) -> bool {
        false
    }

    /// Returns whether [`handle`](Self::handle) may answer for names that [`find`](Self::find) does not know, if a prefix shows
    /// that they are of this provider: layers of a server may.
    #[doc(hidden)]
    fn has_unlisted(&self) -> bool {
        false
    }

    /// Returns whether the server is the one behind, as far as clients see: ids of tasks are not changed.
    #[doc(hidden)]
    fn is_whole_server(&self) -> bool {
        false
    }

    /// Returns what the provider declares to a caller: less than to others, if it hides some of its parts.
    #[doc(hidden)]
    fn declared_to(&self, scope: &Scope<'_>) -> Declaration {
        let _ = scope;
        Declaration { capabilities: self.capabilities(), instructions: self.instructions() }
    }

    /// Returns whether gates of the provider itself hide entries, or decide about subscriptions.
    #[doc(hidden)]
    fn is_gated(&self) -> bool {
        false
    }

    /// Returns whether one of its entries may [require](ProvidedEntry::requires) rights.
    #[doc(hidden)]
    fn may_require(&self) -> bool {
        true
    }

    /// Returns the tools that are known without I/O, for [`Server::tools_where`](crate::server::Server::tools_where).
    #[doc(hidden)]
    fn known_tools(&self) -> Vec<Tool> {
        Vec::new()
    }

    /// Returns warnings about valid registrations that could be better, for [`Server::lint`](crate::server::Server::lint).
    #[doc(hidden)]
    fn lint(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns whether this provider contains a server, directly or not: a server must not contain itself.
    #[doc(hidden)]
    fn contains(&self, server: ServerKey) -> bool {
        let _ = server;
        false
    }
}

/// The identity of a server, to find out whether one contains itself.
#[doc(hidden)]
#[expect(unnameable_types, reason = "only servers compare it")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ServerKey(pub(crate) usize);

/// A provider that its program keeps a handle to.
impl<P: Provider> Provider for Arc<P> {
    fn name(&self) -> Cow<'_, str> {
        (**self).name()
    }

    fn capabilities(&self) -> ServerCapabilities {
        (**self).capabilities()
    }

    fn instructions(&self) -> Option<String> {
        (**self).instructions()
    }

    fn cache_hint(&self, list: ListKind) -> CacheHint {
        (**self).cache_hint(list)
    }

    fn list(
        &self,
        cx: Cx,
        list: ListKind,
        page: PageRequest,
    ) -> impl Future<Output = Result<ProviderPage, RequestError>> + Send {
        (**self).list(cx, list, page)
    }

    fn describe(&self, scope: &Scope<'_>, target: &Target<'_>) -> Option<ProvidedEntry> {
        (**self).describe(scope, target)
    }

    fn find(
        &self,
        cx: Cx,
        target: &Target<'_>,
    ) -> impl Future<Output = Result<Option<ProvidedEntry>, RequestError>> + Send {
        (**self).find(cx, target)
    }

    fn handle(&self, cx: Cx) -> impl Future<Output = Outcome> + Send {
        (**self).handle(cx)
    }

    fn handles_any_method(&self) -> bool {
        (**self).handles_any_method()
    }

    fn methods(&self) -> Vec<String> {
        (**self).methods()
    }

    fn claims_state(&self) -> bool {
        (**self).claims_state()
    }

    fn names(&self, list: ListKind) -> Vec<String> {
        (**self).names(list)
    }

    fn check(&self) -> crate::Result<()> {
        (**self).check()
    }

    fn attach(&self, changes: ProviderChanges) {
        (**self).attach(changes);
    }

    fn watch(&self, uri: &str) {
        (**self).watch(uri);
    }

    fn unwatch(&self, uri: &str) {
        (**self).unwatch(uri);
    }

    fn subscribe(
        &self,
        cx: Cx,
        uris: Vec<String>,
    ) -> impl Future<Output = Result<ProviderSubscription, RequestError>> + Send {
        (**self).subscribe(cx, uris)
    }

    fn unsubscribe(&self, cx: Cx, uri: String) -> impl Future<Output = ()> + Send {
        (**self).unsubscribe(cx, uri)
    }

    fn connection_event(&self, event: ConnectionEvent<'_>) -> Result<(), RpcError> {
        (**self).connection_event(event)
    }

    fn notified(
        &self,
        notification: Notification,
        peer: Option<Arc<Peer>>,
        session: Option<SessionHandle>,
    ) -> impl Future<Output = ()> + Send {
        (**self).notified(notification, peer, session)
    }

    fn may_have(&self, target: &Target<'_>) -> bool {
        (**self).may_have(target)
    }

    fn finds_by_target(&self) -> bool {
        (**self).finds_by_target()
    }

    fn has_unlisted(&self) -> bool {
        (**self).has_unlisted()
    }

    fn is_whole_server(&self) -> bool {
        (**self).is_whole_server()
    }

    fn declared_to(&self, scope: &Scope<'_>) -> Declaration {
        (**self).declared_to(scope)
    }

    fn is_gated(&self) -> bool {
        (**self).is_gated()
    }

    fn judges_uris(&self) -> bool {
        (**self).judges_uris()
    }

    fn may_require(&self) -> bool {
        (**self).may_require()
    }

    fn known_tools(&self) -> Vec<Tool> {
        (**self).known_tools()
    }

    fn lint(&self) -> Vec<String> {
        (**self).lint()
    }

    fn contains(&self, server: ServerKey) -> bool {
        (**self).contains(server)
    }
}
