use std::{fmt, future::Future, pin::Pin, sync::Arc};

use pintle_proto::{
    Peer,
    server::{Extension as Wire, Grant},
};
use pintle_types::{
    JsonObject, Meta, MetaKeyError, Notification,
    schema::{ResultType, SubscriptionFilter},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::custom::{CustomMethod, OnNotification, check_method};
use crate::{
    Error, Result,
    server::{Cx, HandlerError, Notice, RequestError, Server},
};

/// An extension of the protocol: methods, notifications and result types that some clients support.
///
/// A server supports the extensions that are [added to it](Server::with). Only clients that declare an extension in their
/// capabilities can use it.
///
/// ```
/// use pintle::server::{Cx, ProtocolExtension, Installation, Notice, Server};
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
///         clock.listens("clockTicks").method("clock/wind", |cx: Cx, Wind { turns }| async move {
///             cx.server().tell(Notice::new("clockTicks", "notifications/clock/tick", turns));
///             Ok::<_, RpcError>(serde_json::json!({ "wound": turns }))
///         })
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
    methods: Vec<(String, CustomMethod)>,
    notified: Vec<(String, Arc<OnNotification>)>,
}

impl Installation {
    pub(crate) fn of(extension: impl ProtocolExtension) -> Self {
        let empty = Self {
            wire: Wire::new(extension.name()),
            settings: extension.settings(),
            methods: Vec::new(),
            notified: Vec::new(),
        };
        extension.install(empty)
    }

    /// Adds a handler for a method. Any caller may call it: check [`Cx::identity`].
    ///
    /// A name that is already registered is an error: [`Server::check`] reports it, and `serve` refuses to start. Nothing is
    /// overwritten.
    #[must_use]
    pub fn method<P, R, E, F, Fut>(mut self, name: impl Into<String>, handler: F) -> Self
    where
        P: DeserializeOwned + Send,
        R: Serialize,
        F: Fn(Cx, P) -> Fut + Send + Sync + 'static,
        E: HandlerError<RequestError>,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
    {
        let name = name.into();
        self.wire.methods.push(name.clone());
        self.methods.push((name, CustomMethod::new(handler)));
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

    fn install(&self, Installation { wire, settings, methods, notified }: Installation) -> Result<()> {
        let name = wire.name.clone();
        // A prefix that the protocol keeps for itself is right here: its own extensions have one.
        let shaped = matches!(Meta::check_key(&name), Ok(()) | Err(MetaKeyError::Reserved { .. }));
        if !shaped || !name.contains('/') {
            return Err(Error::misuse(format!(
                "`{name}` is not an extension's name: use a domain of yours turned round, as in `com.example/name`"
            )));
        }
        self.change(|state| {
            let mut extensions = state.settings.extensions.clone();
            declare(&mut extensions, "extension", name, Value::Object(settings))?;
            let mut custom = state.custom.clone();
            for (method, handler) in methods {
                check_method(&custom, &method)?;
                custom.insert(method, handler);
            }
            check_owned(state.service.extensions(), &wire)?;
            self.add_notification_handlers(notified)?;
            (state.custom, state.settings.extensions) = (custom, extensions);
            state.service = state.service.clone().extend(wire);
            Ok(())
        })
    }

    /// Sends a notice of an extension to its listeners.
    pub fn tell(&self, notice: Notice) {
        self.changes().publish_notice(&Arc::new(notice));
    }
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
