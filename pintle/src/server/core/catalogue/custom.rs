use std::{collections::HashMap, fmt, future::Future, pin::Pin, sync::Arc};

use pintle_proto::{Peer, server::Outcome};
use pintle_types::{
    Notification, RawObject, RpcError,
    method::{self, Capability},
    plain_error,
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Error, Result,
    server::{
        Cx, HandlerError, RequestError, Server,
        access::required::Required,
        core::{driver::run::HandlerFuture, sessions::handle::SessionHandle},
    },
};

impl Server {
    /// Adds a method that the protocol does not define. Any caller may call it that the [gates](Self::gate) allow to: check
    /// [`Cx::identity`], or let it [require](MethodRoute::requires) rights.
    ///
    /// A name that is already registered, or that is a method of the protocol, is an error: [`check`](Self::check) reports it, and
    /// `serve` refuses to start. Nothing is overwritten.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// use pintle::{Server, server::{Cx, RequestError, method}};
    ///
    /// let server = Server::new("fleet", "1.0.0")
    ///     .method(method("fleet/count", |_cx: Cx, kind: serde_json::Value| async move {
    ///         Ok::<_, RequestError>(serde_json::json!({ "kind": kind["kind"], "count": 12 }))
    ///     }));
    /// # #[cfg(feature = "client")] {
    /// let fleet = pintle::Client::new("demo", "0.1.0").connect(server.in_process()?).await?;
    /// let params = pintle::types::RawObject::from_serialize(&serde_json::json!({"kind": "tug"})).unwrap();
    /// let counted = fleet.call_raw("fleet/count", params).await?;
    /// assert!(counted.as_str().contains(r#""count":12"#));
    /// # }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn method(self, route: MethodRoute) -> Self {
        let MethodRoute { name, method } = route;
        self.noting(|server| {
            server.change(|state| {
                check_method(&state.custom, &name)?;
                state.service = state.service.clone().methods([name.clone()]);
                state.catalogue.requires.add(&method.required);
                state.custom.insert(name, method);
                Ok(())
            })
        })
    }

    /// Adds a handler for notifications of this name: one that the protocol does not define, or
    /// `notifications/roots/list_changed`, which clients with a session send.
    ///
    /// A name that is already registered is an error: [`check`](Self::check) reports it, and `serve` refuses to start. Nothing is
    /// overwritten.
    ///
    /// ```
    /// use pintle::Server;
    ///
    /// let server = Server::new("demo", "1.0.0").on_notification(
    ///     "notifications/roots/list_changed",
    ///     |_notification, client| async move {
    ///         let name = client.and_then(|client| client.info.as_ref().map(|info| info.name.clone()));
    ///         tracing::info!(?name, "works elsewhere now");
    ///     },
    /// );
    /// ```
    #[must_use]
    pub fn on_notification<F, Fut>(self, name: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Notification, Option<Arc<Peer>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let handler: Arc<OnNotification> =
            Arc::new(move |notification, peer, _| Box::pin(handler(notification, peer)));
        self.noting(|server| server.add_notification_handlers(vec![(name.into(), handler)]))
    }

    /// Adds a handler for changed roots of a client with a session: `notifications/roots/list_changed`. Clients of the stateless
    /// era have no such notification; [`Cx::roots`] requests their roots with each call.
    ///
    /// A second handler of this notification is an error, as for [`on_notification`](Self::on_notification).
    ///
    /// ```
    /// use pintle::Server;
    ///
    /// let server = Server::new("demo", "1.0.0").on_roots_changed(|session| async move {
    ///     match session.roots().await {
    ///         Ok(roots) => tracing::info!(?roots, "works elsewhere now"),
    ///         Err(error) => tracing::warn!(%error, "the new roots are not known"),
    ///     }
    /// });
    /// ```
    #[must_use]
    pub fn on_roots_changed<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(SessionHandle) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let handler: Arc<OnNotification> = Arc::new(move |_, _, session| match session {
            Some(session) => Box::pin(handler(session)),
            // There is nobody to ask.
            None => Box::pin(std::future::ready(())),
        });
        let name = method::NOTIFICATIONS_ROOTS_LIST_CHANGED.to_owned();
        self.noting(|server| server.add_notification_handlers(vec![(name, handler)]))
    }
}

/// A method that the protocol does not define, with the rights that it requires: see [`method()`] and
/// [`raw_method`].
#[derive(Clone)]
pub struct MethodRoute {
    pub(super) name: String,
    pub(super) method: CustomMethod,
}

/// Creates a method that the protocol does not define, for [`Server::method`] or an
/// [extension](crate::server::Installation::method).
///
/// `E` is any error that `?` converts into a [`RequestError`]; an `RpcError` is sent as it is.
///
/// ```
/// use pintle::{Server, server::{Cx, RequestError, method}};
///
/// let count = method("fleet/count", |_cx: Cx, _: serde_json::Value| async {
///     Ok::<_, RequestError>(serde_json::json!({ "count": 12 }))
/// });
/// let server = Server::new("fleet", "1.0.0").method(count.requires(["fleet:read"]));
/// # server.check().unwrap();
/// ```
pub fn method<P, R, E, F, Fut>(name: impl Into<String>, handler: F) -> MethodRoute
where
    P: DeserializeOwned + Send,
    R: Serialize,
    F: Fn(Cx, P) -> Fut + Send + Sync + 'static,
    E: HandlerError<RequestError>,
    Fut: Future<Output = Result<R, E>> + Send + 'static,
{
    MethodRoute { name: name.into(), method: CustomMethod::new(handler) }
}

/// Creates a method whose handler reads the params itself and returns the outcome: for results that are printed already, and are not to
/// be decoded and printed again for each request.
///
/// ```
/// use std::sync::Arc;
/// use pintle::{Server, server::{Cx, Outcome, raw_method}, types::RawObject};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let rates: Arc<RawObject> = Arc::new(r#"{"EUR":1.08}"#.parse()?);
/// let server = Server::new("bank", "1.0.0").method(raw_method("rates/current", move |_cx: Cx| {
///     std::future::ready(Outcome::Complete(rates.clone().into()))
/// }));
/// # #[cfg(feature = "client")] {
/// let bank = pintle::Client::new("demo", "0.1.0").connect(server.in_process()?).await?;
/// let rates = bank.call_raw("rates/current", RawObject::empty()).await?;
/// assert_eq!(rates.get("EUR"), Some("1.08"));
/// # }
/// # Ok(()) }
/// ```
pub fn raw_method<F, Fut>(name: impl Into<String>, handler: F) -> MethodRoute
where
    F: Fn(Cx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + Send + 'static,
{
    MethodRoute { name: name.into(), method: CustomMethod::raw(handler) }
}

impl MethodRoute {
    /// Adds rights that a caller needs. Without them the call is refused; over HTTP with a response that names them.
    #[must_use]
    pub fn requires<T: Into<String>>(mut self, rights: impl IntoIterator<Item = T>) -> Self {
        self.method.required.add(rights);
        self
    }

    /// Hides the method from callers who lack a right that it [requires](Self::requires): it is unknown to them.
    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.method.required.hide();
        self
    }
}

impl fmt::Debug for MethodRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MethodRoute").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The handler of a notification.
pub(crate) type OnNotification =
    dyn Fn(Notification, Option<Arc<Peer>>, Option<SessionHandle>) -> NotificationFuture + Send + Sync;

type NotificationFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Refuses a method that has a handler, or that the protocol defines: its handler would never run. The methods of tasks are
/// left to extensions.
pub(super) fn check_method(known: &HashMap<String, CustomMethod>, name: &str) -> Result<()> {
    if method::find(name).is_some_and(|row| row.capability != Some(Capability::Tasks)) {
        return Err(Error::misuse(format!("`{name}` is a method of the protocol; choose another name")));
    }
    if known.contains_key(name) {
        return Err(Error::misuse(format!(
            "a handler for the method `{name}` is already registered; choose another name"
        )));
    }
    Ok(())
}

/// The handler of a method that the application or an extension defines.
#[derive(Clone)]
pub(crate) struct CustomMethod {
    run: Arc<dyn Fn(Cx) -> HandlerFuture + Send + Sync>,
    pub(crate) required: Required,
}

impl CustomMethod {
    /// Runs the handler.
    pub(crate) fn run(&self, cx: Cx) -> HandlerFuture {
        (self.run)(cx)
    }

    /// Creates a handler that reads its params itself.
    pub(crate) fn raw<F, Fut>(handler: F) -> Self
    where
        F: Fn(Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Outcome> + Send + 'static,
    {
        Self::of(move |cx| Box::pin(handler(cx)))
    }

    fn of(run: impl Fn(Cx) -> HandlerFuture + Send + Sync + 'static) -> Self {
        Self { run: Arc::new(run), required: Required::default() }
    }

    pub(crate) fn new<P, R, E, F, Fut>(handler: F) -> Self
    where
        P: DeserializeOwned + Send,
        R: Serialize,
        F: Fn(Cx, P) -> Fut + Send + Sync + 'static,
        E: HandlerError<RequestError>,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
    {
        Self::of(move |cx| {
            let params = cx.params().without(&["_meta"]).decode::<P>();
            let running = params.map(|params| handler(cx.clone(), params));
            Box::pin(async move {
                let running = match running {
                    Ok(running) => running,
                    Err(error) => {
                        let reason = format!("`{}`: {}", cx.method(), plain_error(&error));
                        return Outcome::Failed(RpcError::invalid_params(reason));
                    }
                };
                match running.await.map(|result| RawObject::from_serialize(&result)) {
                    Ok(Ok(result)) => Outcome::Complete(result.into()),
                    Ok(Err(error)) => Outcome::Failed(RpcError::internal(error.to_string())),
                    Err(error) => error.into().outcome(cx.method(), None),
                }
            })
        })
    }
}
