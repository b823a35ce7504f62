//! Extensions of a client.

use std::{fmt, future::Future, sync::Arc};

use pintle_types::{JsonObject, RawObject, RpcError, method};
use serde::{Serialize, de::DeserializeOwned};
use tower_layer::Layer;

use super::{
    Client, Connection, Cx, Next, Question, Report, Unresolved,
    connection::{Prepare, ResultArm, SessionArm},
};
use crate::{Result, error::BoxError};

/// An extension of the protocol, as a client supports it: methods, result types and how they are resolved.
///
/// A client supports the extensions that are [added to it](Client::with), and declares them to every server.
///
/// ```
/// use pintle::{Client, client::{ClientExtension, ClientInstallation, Unresolved}, types::RawObject};
///
/// /// Some calls are answered with a ticket, which is exchanged for the result.
/// struct Tickets;
///
/// impl ClientExtension for Tickets {
///     fn name(&self) -> &str {
///         "com.example/tickets"
///     }
///
///     fn install(self, tickets: ClientInstallation) -> ClientInstallation {
///         tickets.result_type("ticket", ["tools/call"], |call: Unresolved| async move {
///             let ticket = call.result().without(&["resultType"]);
///             call.connection().call_raw("tickets/redeem", ticket).await
///         })
///     }
/// }
///
/// let client = Client::new("demo", "1.0.0").with(Tickets);
/// ```
pub trait ClientExtension: Send + Sync + 'static {
    /// Returns the identifier: a reversed domain name as the prefix, a slash and a name.
    fn name(&self) -> &str;

    /// Returns the settings that are declared to servers.
    fn settings(&self) -> JsonObject {
        JsonObject::new()
    }

    /// Registers the methods and the result types.
    fn install(self, installation: ClientInstallation) -> ClientInstallation;
}

/// The methods and the result types that an extension of a client registers.
#[must_use = "an extension has what is returned from `install`"]
pub struct ClientInstallation {
    name: String,
    client: Client,
    result_types: Vec<Arc<ResultArm>>,
}

impl ClientInstallation {
    /// Adds a value of `resultType`, and the function that makes the result of the call from it. A result of this type of any other
    /// than these methods is an error.
    pub fn result_type<M: Into<Box<str>>, F, Fut>(
        mut self,
        name: impl Into<Box<str>>,
        methods: impl IntoIterator<Item = M>,
        resolve: F,
    ) -> Self
    where
        F: Fn(Unresolved) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<RawObject>> + Send + 'static,
    {
        self.result_types.push(Arc::new(ResultArm {
            extension: self.name.clone(),
            result_type: name.into(),
            methods: methods.into_iter().map(Into::into).collect(),
            resolve: Box::new(move |unresolved| Box::pin(resolve(unresolved))),
            session: None,
        }));
        self
    }

    /// Has the last [result type](Self::result_type) exist in sessions too, where results have no type. `prepare` gets the params of
    /// a request, and returns those that ask for such a result; `recognize` returns whether a result is one.
    pub fn in_sessions<F, Fut>(mut self, prepare: F, recognize: fn(&RawObject) -> bool) -> Self
    where
        F: Fn(Connection, RawObject) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<RawObject>> + Send + 'static,
    {
        if let Some(arm) = self.result_types.last_mut().and_then(Arc::get_mut) {
            let prepare: Box<Prepare> =
                Box::new(move |connection, params| Box::pin(prepare(connection, params)));
            arm.session = Some(SessionArm { prepare, recognize });
        }
        self
    }

    /// Adds a handler of requests that servers send in a session, as [`Client::method`] does.
    pub fn method<P, R, F, Fut>(mut self, name: impl Into<Box<str>>, handle: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        R: Serialize,
        F: Fn(Question<P>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, RpcError>> + Send + 'static,
    {
        self.client = self.client.method(name, handle);
        self
    }

    /// Adds a handler of a notification that servers send, as [`Client::on_notification`] does.
    pub fn on_notification<P: DeserializeOwned>(
        mut self,
        name: impl Into<Box<str>>,
        handle: impl Fn(Report<P>) + Send + Sync + 'static,
    ) -> Self {
        self.client = self.client.on_notification(name, handle);
        self
    }

    /// Declares the member of the params that requests of `method` repeat in the `Mcp-Name` header, for servers that
    /// [require it](crate::server::Installation::named_by).
    pub fn named_by(mut self, method: impl Into<Box<str>>, member: impl Into<Box<str>>) -> Self {
        let method = method.into();
        if self.client.settings.names.contains_key(&method) || method::find(&method).is_some() {
            let fault =
                format!("the name of `{method}` in the header `Mcp-Name` is already defined; define it once");
            self.client.settings.fault = Some(fault);
        } else {
            self.client.settings.names.insert(method, member.into());
        }
        self
    }

    /// Puts a `tower` layer around every message, as [`Client::layer`] does.
    pub fn layer<L>(mut self, layer: &L) -> Self
    where
        L: Layer<Next>,
        L::Service: tower_service::Service<Cx, Response = RawObject> + Clone + Send + Sync + 'static,
        <L::Service as tower_service::Service<Cx>>::Error: Into<BoxError> + Send,
        <L::Service as tower_service::Service<Cx>>::Future: Send + 'static,
    {
        self.client = self.client.layer(layer);
        self
    }
}

impl Client {
    /// Sets a handler of a notification that the protocol does not define. It is called in order with other callbacks, and must not
    /// wait. Params that are no `P` are logged and ignored. [`Connection::changes`] returns such notifications too.
    ///
    /// A second handler of the same notification is an error of [`connect`](Self::connect).
    ///
    /// ```
    /// use pintle::{Client, client::Report};
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Tick { turns: u32 }
    ///
    /// let client = Client::new("demo", "0.1.0")
    ///     .on_notification("notifications/clock/tick", |tick: Report<Tick>| println!("{} turns", tick.turns));
    /// ```
    pub fn on_notification<P: DeserializeOwned>(
        mut self,
        name: impl Into<Box<str>>,
        handle: impl Fn(Report<P>) + Send + Sync + 'static,
    ) -> Self {
        let name = name.into();
        if self.settings.notified.contains_key(&name) || method::find(&name).is_some() {
            let fault = format!(
                "the notification `{name}` is handled already, or is one of the protocol; handle it in one function"
            );
            self.settings.fault = Some(fault);
            return self;
        }
        let method = name.clone();
        let call = move |report: Report<RawObject>| match report.params.decode() {
            Ok(params) => handle(Report::new(report.connection, params)),
            Err(error) => tracing::debug!(%error, method = &*method, "a notification that does not fit"),
        };
        self.settings.notified.insert(name, Arc::new(call));
        self
    }

    /// Adds an extension, and declares it to every server.
    ///
    /// An extension, a method, a notification or a result type that is added twice is an error of [`connect`](Self::connect), and then nothing of the second is
    /// added.
    pub fn with(self, extension: impl ClientExtension) -> Self {
        let (before, name, settings) = (self.clone(), extension.name().to_owned(), extension.settings());
        let installation = ClientInstallation { name: name.clone(), client: self, result_types: Vec::new() };
        let ClientInstallation { client, result_types, .. } = extension.install(installation);
        let fault = match before.settings.extensions.contains_key(&name) {
            true => Some(format!("an extension named `{name}` is already registered; add it once")),
            false => result_types.iter().find_map(|new| before.taken(new)),
        };
        // A method or a notification that is taken.
        let own = (before.settings.fault != client.settings.fault).then(|| client.settings.fault.clone());
        let fault = fault.or_else(|| own.flatten().map(|fault| format!("the extension `{name}`: {fault}")));
        if let Some(fault) = fault {
            let mut before = before;
            before.settings.fault = Some(fault);
            return before;
        }
        let mut client = client.extension(name, settings);
        client.settings.result_types.extend(result_types.iter().map(|arm| arm.result_type.clone()));
        client.arms = client.arms.iter().cloned().chain(result_types).collect();
        client
    }
}

impl Client {
    /// Returns why a result type cannot be added, if another extension has it.
    fn taken(&self, new: &ResultArm) -> Option<String> {
        let owner = self.arms.iter().find(|known| known.result_type == new.result_type)?;
        Some(format!(
            "the result type `{}` of `{}` is one of the extension `{}`; add one of them",
            new.result_type, new.extension, owner.extension
        ))
    }
}

impl fmt::Debug for ClientInstallation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientInstallation").field(&self.name).finish()
    }
}
