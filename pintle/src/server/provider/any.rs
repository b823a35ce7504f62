use std::{borrow::Cow, future::Future, pin::Pin, sync::Arc};

use pintle_proto::{Peer, server::CacheHint};
use pintle_types::{
    Notification, RpcError,
    schema::{ServerCapabilities, Tool},
};

use super::{
    Provider, ServerKey, changes::ProviderChanges, entry::ProvidedEntry, page::ProviderPage,
    registry::Declaration, subscription::ProviderSubscription,
};
use crate::server::{
    ConnectionEvent, Cx, ListKind, PageRequest, RequestError, Scope, SessionHandle, Target,
    call::run::HandlerFuture,
};

/// A [`Provider`] of any type.
pub(crate) trait AnyProvider: Send + Sync {
    fn name(&self) -> Cow<'_, str>;
    fn capabilities(&self) -> ServerCapabilities;
    fn instructions(&self) -> Option<String>;
    fn declared_to(&self, scope: &Scope<'_>) -> Declaration;
    fn cache_hint(&self, list: ListKind) -> CacheHint;
    fn list(&self, cx: Cx, list: ListKind, page: PageRequest) -> ProviderFuture<'_, ProviderPage>;
    fn describe(&self, scope: &Scope<'_>, target: &Target<'_>) -> Option<ProvidedEntry>;
    fn may_have(&self, target: &Target<'_>) -> bool;
    fn find<'a>(&'a self, cx: Cx, target: &'a Target<'_>) -> ProviderFuture<'a, Option<ProvidedEntry>>;
    fn handle(self: Arc<Self>, cx: Cx) -> HandlerFuture;
    fn handles_any_method(&self) -> bool;
    fn methods(&self) -> Vec<String>;
    fn is_whole_server(&self) -> bool;
    fn claims_state(&self) -> bool;
    fn names(&self, list: ListKind) -> Vec<String>;
    fn check(&self) -> crate::Result<()>;
    fn attach(&self, changes: ProviderChanges);
    fn watch(&self, uri: &str);
    fn unwatch(&self, uri: &str);
    fn subscribe(self: Arc<Self>, cx: Cx, uris: Vec<String>)
    -> ProviderFuture<'static, ProviderSubscription>;
    fn unsubscribe(self: Arc<Self>, cx: Cx, uri: String) -> Pin<Box<dyn Future<Output = ()> + Send>>;
    fn connection_event(&self, event: ConnectionEvent<'_>) -> Result<(), RpcError>;
    fn notified(
        self: Arc<Self>,
        notification: Notification,
        peer: Option<Arc<Peer>>,
        session: Option<SessionHandle>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>>;
    fn is_gated(&self) -> bool;
    fn judges_uris(&self) -> bool;
    fn may_require(&self) -> bool;
    fn known_tools(&self) -> Vec<Tool>;
    fn lint(&self) -> Vec<String>;
    fn contains(&self, server: ServerKey) -> bool;
}

pub(crate) type ProviderFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, RequestError>> + Send + 'a>>;

impl<P: Provider> AnyProvider for P {
    fn name(&self) -> Cow<'_, str> {
        Provider::name(self)
    }

    fn capabilities(&self) -> ServerCapabilities {
        Provider::capabilities(self)
    }

    fn instructions(&self) -> Option<String> {
        Provider::instructions(self)
    }

    fn declared_to(&self, scope: &Scope<'_>) -> Declaration {
        Provider::declared_to(self, scope)
    }

    fn cache_hint(&self, list: ListKind) -> CacheHint {
        Provider::cache_hint(self, list)
    }

    fn list(&self, cx: Cx, list: ListKind, page: PageRequest) -> ProviderFuture<'_, ProviderPage> {
        Box::pin(Provider::list(self, cx, list, page))
    }

    fn describe(&self, scope: &Scope<'_>, target: &Target<'_>) -> Option<ProvidedEntry> {
        Provider::describe(self, scope, target)
    }

    fn may_have(&self, target: &Target<'_>) -> bool {
        Provider::may_have(self, target)
    }

    fn find<'a>(&'a self, cx: Cx, target: &'a Target<'_>) -> ProviderFuture<'a, Option<ProvidedEntry>> {
        Box::pin(Provider::find(self, cx, target))
    }

    fn handle(self: Arc<Self>, cx: Cx) -> HandlerFuture {
        Box::pin(async move { Provider::handle(&*self, cx).await })
    }

    fn handles_any_method(&self) -> bool {
        Provider::handles_any_method(self)
    }

    fn methods(&self) -> Vec<String> {
        Provider::methods(self)
    }

    fn is_whole_server(&self) -> bool {
        Provider::is_whole_server(self)
    }

    fn claims_state(&self) -> bool {
        Provider::claims_state(self)
    }

    fn names(&self, list: ListKind) -> Vec<String> {
        Provider::names(self, list)
    }

    fn check(&self) -> crate::Result<()> {
        Provider::check(self)
    }

    fn attach(&self, changes: ProviderChanges) {
        Provider::attach(self, changes);
    }

    fn watch(&self, uri: &str) {
        Provider::watch(self, uri);
    }

    fn unwatch(&self, uri: &str) {
        Provider::unwatch(self, uri);
    }

    fn subscribe(
        self: Arc<Self>,
        cx: Cx,
        uris: Vec<String>,
    ) -> ProviderFuture<'static, ProviderSubscription> {
        Box::pin(async move { Provider::subscribe(&*self, cx, uris).await })
    }

    fn unsubscribe(self: Arc<Self>, cx: Cx, uri: String) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { Provider::unsubscribe(&*self, cx, uri).await })
    }

    fn connection_event(&self, event: ConnectionEvent<'_>) -> Result<(), RpcError> {
        Provider::connection_event(self, event)
    }

    fn notified(
        self: Arc<Self>,
        notification: Notification,
        peer: Option<Arc<Peer>>,
        session: Option<SessionHandle>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { Provider::notified(&*self, notification, peer, session).await })
    }

    fn is_gated(&self) -> bool {
        Provider::is_gated(self)
    }

    fn judges_uris(&self) -> bool {
        Provider::judges_uris(self)
    }

    fn may_require(&self) -> bool {
        Provider::may_require(self)
    }

    fn known_tools(&self) -> Vec<Tool> {
        Provider::known_tools(self)
    }

    fn lint(&self) -> Vec<String> {
        Provider::lint(self)
    }

    fn contains(&self, server: ServerKey) -> bool {
        Provider::contains(self, server)
    }
}
