use std::{borrow::Cow, fmt, sync::Arc};

use http::Extensions;
use pintle_proto::Revision;
use pintle_types::{JsonObject, Meta, RawObject, schema::Implementation};
use serde_json::value::to_raw_value;

use crate::{
    Result, layer,
    message_log::{Direction, transport_kind::TransportKind},
    target::{Target, targets},
};

/// The future of a message in the layers.
pub(in crate::client) type MessageFuture = layer::BoxHandling<Result<RawObject>>;

/// Has a message take effect: sends it, or passes it to its handler. A layer may pass a message on more than once.
pub(in crate::client) trait Perform: Send + Sync + 'static {
    /// Starts to do so. The future shares `self`.
    fn perform(self: Arc<Self>, cx: Cx) -> MessageFuture;
}

impl<F: Fn(Cx) -> MessageFuture + Send + Sync + 'static> Perform for F {
    fn perform(self: Arc<Self>, cx: Cx) -> MessageFuture {
        self(cx)
    }
}

/// A request or notification of a connection, for the [layers](crate::Client::layer) of its client.
///
/// ```
/// use pintle::{Result, client::{Cx, Direction, Next}, types::{Meta, RawObject}};
///
/// async fn traced(cx: Cx, next: Next) -> Result<RawObject> {
///     let mut meta = Meta::new();
///     meta.insert("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
///     match cx.direction() {
///         Direction::Out => next.run(cx.with_meta(meta)).await,
///         Direction::In => next.run(cx).await,
///     }
/// }
/// # let _ = pintle::client::around(traced);
/// ```
#[derive(Clone)]
pub struct Cx {
    method: Cow<'static, str>,
    params: RawObject,
    direction: Direction,
    notification: bool,
    origin: CxOrigin,
    extensions: Extensions,
    perform: Arc<dyn Perform>,
}

/// The connection of a message.
#[derive(Clone, Debug)]
pub(in crate::client) struct CxOrigin {
    /// The name that the host gave the connection.
    pub(in crate::client) connection: Option<Arc<str>>,
    /// The server's description of itself.
    pub(in crate::client) server: Option<Arc<Implementation>>,
    /// The negotiated revision.
    pub(in crate::client) revision: Option<Revision>,
    /// The kind of the transport.
    pub(in crate::client) transport: TransportKind,
}

impl Cx {
    /// Returns a request that is sent.
    pub(in crate::client) fn sent(
        origin: CxOrigin,
        method: Cow<'static, str>,
        params: RawObject,
        perform: impl Perform,
    ) -> Self {
        let perform = Arc::new(perform);
        let (extensions, direction) = (Extensions::new(), Direction::Out);
        Self { method, params, direction, notification: false, origin, extensions, perform }
    }

    /// Returns a request that was received.
    pub(in crate::client) fn received(
        origin: CxOrigin,
        method: Cow<'static, str>,
        params: RawObject,
        perform: impl Perform,
    ) -> Self {
        Self { direction: Direction::In, ..Self::sent(origin, method, params, perform) }
    }

    /// Makes it a notification.
    pub(in crate::client) fn notification(self) -> Self {
        Self { notification: true, ..self }
    }

    /// Has the message take effect.
    pub(in crate::client) fn perform(self) -> MessageFuture {
        self.perform.clone().perform(self)
    }

    /// Inserts the values that the layers have left on the call that a request of the server belongs to.
    pub(in crate::client) fn with_extensions(self, extensions: Extensions) -> Self {
        Self { extensions, ..self }
    }

    pub(in crate::client) fn into_params(self) -> RawObject {
        self.params
    }

    /// Returns the method and the params.
    pub(in crate::client) fn into_parts(self) -> (Cow<'static, str>, RawObject) {
        (self.method, self.params)
    }

    pub(in crate::client) fn sent_method(&self) -> Cow<'static, str> {
        self.method.clone()
    }

    /// Returns whether the client sends the message (`Direction::Out`) or has received it (`Direction::In`).
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Returns whether this is a notification, which has no response.
    pub fn is_notification(&self) -> bool {
        self.notification
    }

    /// Returns the method of the message.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Returns the parameters of the message, not decoded. Members that the protocol adds to each request, such as the progress token
    /// and the revision in `_meta`, are not among them.
    pub fn params(&self) -> &RawObject {
        &self.params
    }

    /// Returns the `_meta` of the message, for example its trace context.
    pub fn meta(&self) -> Meta {
        self.params.decode_member("_meta").ok().flatten().unwrap_or_default()
    }

    /// Returns the entry that the message names, if it names exactly one: that of a call, a read or a completion. A subscription may
    /// name several; [`targets`](Self::targets) returns all.
    ///
    /// ```
    /// use pintle::{Error, Result, client::{Cx, Next, Target}, types::RawObject};
    ///
    /// async fn no_deletions(cx: Cx, next: Next) -> Result<RawObject> {
    ///     match cx.target() {
    ///         Some(Target::Tool(name)) if name.starts_with("delete_") => {
    ///             Err(Error::Refused("nothing is deleted today: ask tomorrow".into()))
    ///         }
    ///         _ => next.run(cx).await,
    ///     }
    /// }
    /// # let _ = pintle::client::around(no_deletions);
    /// ```
    pub fn target(&self) -> Option<Target<'_>> {
        let mut targets = self.targets();
        if targets.len() == 1 { targets.pop() } else { None }
    }

    /// Returns the entries that the message names: those of a call, a read, a completion or a subscription.
    pub fn targets(&self) -> Vec<Target<'_>> {
        targets(&self.method, &self.params)
    }

    /// Returns the name of the connection, if it was opened with [`Client::connect_as`](crate::Client::connect_as).
    pub fn connection(&self) -> Option<&str> {
        self.origin.connection.as_deref()
    }

    /// Returns the server's name and version, as reported by itself. `None` until the connection is open. Not a basis for trust.
    pub fn server(&self) -> Option<&Implementation> {
        self.origin.server.as_deref()
    }

    /// Returns the negotiated revision. `None` until the connection is open.
    pub fn revision(&self) -> Option<Revision> {
        self.origin.revision
    }

    /// Returns the kind of the transport of the connection.
    pub fn transport(&self) -> TransportKind {
        self.origin.transport
    }

    /// Returns the extensions that layers have inserted. An input request that came with the result of a call has those of the call.
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// Leaves a value for the layers further in, and for the handler of a received request, which finds it in
    /// [`Question::extensions`](super::super::Question::extensions).
    #[must_use]
    pub fn with<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.extensions.insert(value);
        self
    }

    /// Replaces the parameters of the message, for the layers further in and for its receiver.
    #[must_use]
    pub fn with_params(self, params: RawObject) -> Self {
        Self { params, ..self }
    }

    /// Merges metadata over that of the message.
    #[must_use]
    pub fn with_meta(self, meta: Meta) -> Self {
        // A `_meta` that is not an object is refused where it is used.
        let Ok(given) = self.params.decode_member::<JsonObject>("_meta") else { return self };
        let mut merged = given.unwrap_or_default();
        merged.extend(meta.into_object());
        match to_raw_value(&merged) {
            Ok(merged) => {
                let params = self.params.with("_meta", &merged);
                self.with_params(params)
            }
            Err(_) => self,
        }
    }
}

impl fmt::Debug for Cx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cx")
            .field("direction", &self.direction)
            .field("method", &self.method)
            .field("connection", &self.origin.connection)
            .finish_non_exhaustive()
    }
}
