use std::{
    any::Any,
    fmt,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use pintle_proto::{Peer, inputs::AskError, server::Change};
use pintle_types::{
    Message, Notification, RawObject, method, plain_error,
    schema::{InputRequest, ListRootsResult, Root},
};
use ring::{
    digest::{SHA256, digest},
    rand::{SecureRandom as _, SystemRandom},
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::oneshot;
use tracing::{Instrument as _, Span};

use super::{
    LiveSession, ReplySender, SessionRequest,
    values::{MAX_VALUES, NotStored},
};
use crate::telemetry::{self, RequestFacts, SpanKind};
use crate::transport::{PushDemand, TransportKind};

/// A handle to a live session: a client of an older revision that has made a handshake, on any transport.
///
/// Cheap to clone. It does not keep the session alive: once the session has ended, its methods return an error or `None`. In the
/// stateless era there are no sessions.
///
/// Values are stored by type and dropped when the session ends. They are kept in this process only, and a session store does not
/// store them: another process that continues the session starts without values.
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
/// use pintle::server::{Cx, ToolError, tool};
///
/// #[derive(Default)]
/// struct Calls(AtomicU32);
///
/// async fn count(cx: Cx) -> Result<u32, ToolError> {
///     let Some(session) = cx.session() else { return Ok(1) };
///     let calls: Arc<Calls> = session.get_or_insert_with(Calls::default)?;
///     Ok(calls.0.fetch_add(1, Ordering::Relaxed) + 1)
/// }
/// # let _ = tool("count", count);
/// ```
#[derive(Clone)]
pub struct SessionHandle(Weak<dyn LiveSession>);

impl SessionHandle {
    pub(crate) fn new(session: Weak<dyn LiveSession>) -> Self {
        Self(session)
    }

    /// Returns a number that no other session of this process has; `None` if the session has ended. It is not the session id of
    /// HTTP, which is a credential.
    pub fn id(&self) -> Option<u64> {
        Some(self.live().ok()?.facts().number)
    }

    /// Returns a name that no other session has, in any process: for what is stored for longer than a process lives. It does not reveal
    /// the session id of HTTP. `None` if the session has ended, or the system's random number generator failed.
    pub fn unique_name(&self) -> Option<String> {
        static PROCESS: OnceLock<Option<String>> = OnceLock::new();
        let live = self.live().ok()?;
        if let Some(id) = live.shared_id() {
            return Some(URL_SAFE_NO_PAD.encode(digest(&SHA256, id.as_bytes())));
        }
        // Another process has a session of the same number.
        let process = PROCESS.get_or_init(|| {
            let mut bytes = [0; 16];
            SystemRandom::new().fill(&mut bytes).ok()?;
            Some(URL_SAFE_NO_PAD.encode(bytes))
        });
        Some(format!("{}.{}", process.as_deref()?, live.facts().number))
    }

    /// Returns the client; `None` if the session has ended.
    pub fn peer(&self) -> Option<Arc<Peer>> {
        self.live().ok()?.peer()
    }

    /// Returns the authenticated principal of the session, if there is one.
    pub fn principal(&self) -> Option<String> {
        self.live().ok()?.principal().map(str::to_owned)
    }

    /// Returns how long ago the session was opened in this process; `None` if it has ended.
    pub fn age(&self) -> Option<Duration> {
        Some(self.live().ok()?.facts().opened?.elapsed())
    }

    /// Returns whether the session has ended.
    pub fn is_closed(&self) -> bool {
        self.live().is_err()
    }

    /// Sends a `ping`, and returns when the client has answered it.
    ///
    /// It waits as long as the session lives: limit it with `tokio::time::timeout`. Dropping the future withdraws the ping.
    ///
    /// # Errors
    ///
    /// The session has ended, too many messages wait, or, over HTTP, the client has no open stream for messages that belong to
    /// no call.
    ///
    /// ```
    /// use std::time::Duration;
    /// use pintle::Server;
    ///
    /// # async fn check(server: &Server) {
    /// for session in server.sessions() {
    ///     let answered = tokio::time::timeout(Duration::from_secs(5), session.ping()).await;
    ///     tracing::info!(id = session.id(), alive = matches!(answered, Ok(Ok(()))));
    /// }
    /// # }
    /// ```
    pub async fn ping(&self) -> Result<(), SessionError> {
        let (sender, answer) = oneshot::channel();
        let span = self.send(SessionRequest::Ping, sender)?;
        // An error response is an answer too.
        answer.instrument(span).await.map(drop).map_err(|_| SessionError::Ended)
    }

    /// Requests the root directories of the client, outside of any call: for example when they have changed, see
    /// [`Server::on_roots_changed`](crate::Server::on_roots_changed).
    ///
    /// It waits as long as a question of a call ([`Timeouts::question`](crate::Timeouts::question)). Dropping the future withdraws
    /// the request.
    ///
    /// # Errors
    ///
    /// The client does not support roots, refuses, or does not answer; also as [`ping`](Self::ping).
    pub async fn roots(&self) -> Result<Vec<Root>, SessionError> {
        if self.live()?.peer().is_none_or(|peer| peer.capabilities.roots.is_none()) {
            return Err(SessionError::Unsupported { capability: "roots" });
        }
        let result: ListRootsResult = self.answer(SessionRequest::Roots).await?;
        Ok(result.roots)
    }

    /// Sends a request of a method that the protocol does not define, outside of any call. A client answers it with
    /// `Client::method`; any other refuses it. Within a call, use [`Cx::request`](crate::server::Cx::request), which also works over
    /// HTTP without an open stream of the session.
    ///
    /// It waits as long as a question of a call ([`Timeouts::question`](crate::Timeouts::question)). Dropping the future withdraws
    /// the request.
    ///
    /// ```
    /// use pintle::server::{SessionError, SessionHandle};
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize)]
    /// struct Window { title: String }
    ///
    /// async fn title(session: &SessionHandle) -> Result<String, SessionError> {
    ///     let window: Window = session.request("example.com/window", serde_json::json!({})).await?;
    ///     Ok(window.title)
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// The method is one of the protocol, the params are not an object, or the client refuses, does not answer, or returns something
    /// else; also as [`ping`](Self::ping).
    pub async fn request<P: Serialize, R: DeserializeOwned>(
        &self,
        method: impl Into<String>,
        params: P,
    ) -> Result<R, SessionError> {
        let request = custom_request(method.into(), &params)
            .map_err(|reason| SessionError::InvalidParams { reason })?;
        self.answer(SessionRequest::Custom(request)).await
    }

    /// Sends a request that is in the shapes of the client, outside of any call, and returns its answer. An error of the client is
    /// that of the answer.
    ///
    /// # Errors
    ///
    /// The client refused it, or the session has ended.
    pub async fn forward_request(&self, request: InputRequest) -> Result<RawObject, pintle_types::RpcError> {
        let failed = |error: &dyn fmt::Display| pintle_types::RpcError::internal(error.to_string());
        match self.answered(SessionRequest::Custom(request)).await.map_err(|error| failed(&error))? {
            Ok(answer) => Ok(answer),
            Err(AskError::Refused(error)) => Err(error),
            Err(error) => Err(failed(&error)),
        }
    }

    /// Sends a request, and waits for its answer as this type.
    async fn answer<R: DeserializeOwned>(&self, request: SessionRequest) -> Result<R, SessionError> {
        let failed = |reason: String| SessionError::Failed { reason };
        let result = self.answered(request).await?.map_err(|error| failed(error.to_string()))?;
        result.decode().map_err(|error| failed(plain_error(&error)))
    }

    /// Sends a request, and waits for its answer.
    async fn answered(&self, request: SessionRequest) -> Result<Result<RawObject, AskError>, SessionError> {
        let (sender, answer) = oneshot::channel();
        let limit = self.live()?.server().snapshot().settings.timeouts.question;
        let span = self.send(request, sender)?;
        let answered = tokio::time::timeout(limit, answer.instrument(span.clone())).await;
        let answered = answered.map_err(|_| {
            telemetry::fault(&span, "timeout");
            SessionError::Failed { reason: format!("no answer within {limit:?}") }
        })?;
        let result = answered.map_err(|_| SessionError::Ended)?;
        if let Err(AskError::Refused(error)) = &result {
            telemetry::failed(&span, error);
        }
        Ok(result)
    }

    /// Sends a request. Returns its span.
    fn send(&self, request: SessionRequest, reply: ReplySender) -> Result<Span, SessionError> {
        let live = self.live()?;
        let span = telemetry::span(SpanKind::Client, || RequestFacts {
            method: request.method(),
            params: None,
            id: None,
            revision: live.peer().map(|peer| peer.revision.as_str()),
            session: None,
            transport: live.transport(),
        });
        live.request(request, reply)?;
        Ok(span)
    }

    /// Sends a notification to this client only. Params that are not an object are an error.
    ///
    /// It is sent as it is, whatever the client supports. For extensions, a [`Notice`](crate::server::Notice) respects what each
    /// client declared.
    ///
    /// Over HTTP, a few short messages are kept for a client that has no open stream for messages that belong to no call.
    ///
    /// # Errors
    ///
    /// The session has ended, too many messages wait, the client has no stream for more of them, or the params are not an object.
    pub fn notify(&self, method: &str, params: &impl Serialize) -> Result<(), SessionError> {
        let params = RawObject::from_serialize(params).map_err(|error| SessionError::InvalidParams {
            reason: format!("the params are not an object: {error}; send an object"),
        })?;
        let notification = Notification::new(method.to_owned(), Some(params));
        self.live()?.send(Message::Notification(notification).to_vec().into())
    }

    /// Ends the session. Over HTTP its calls are ended with an error, its streams end, and its id is unknown from then on; it is
    /// removed from the [session store](crate::server::http::Http::session_store) too. On a byte stream the connection is
    /// closed: running calls have the time of [`Timeouts::disconnect`](crate::Timeouts::disconnect) to complete.
    ///
    /// # Errors
    ///
    /// The session has ended already, or the session store fails: then it has ended here, but other processes may still find it
    /// in the store.
    ///
    /// ```
    /// use pintle::Server;
    ///
    /// # async fn log_out(server: &Server) {
    /// for session in server.sessions() {
    ///     if session.principal().as_deref() == Some("ann") {
    ///         let _ = session.close().await;
    ///     }
    /// }
    /// # }
    /// ```
    pub async fn close(&self) -> Result<(), SessionError> {
        self.live()?.close().await
    }

    /// Returns the value of this type, if one was stored.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.live().ok()?.facts().values.get()
    }

    /// Stores a value, and returns the one of its type that it replaces.
    ///
    /// # Errors
    ///
    /// The session has ended, or it has 64 values of other types.
    pub fn insert<T: Any + Send + Sync>(&self, value: T) -> Result<Option<Arc<T>>, SessionError> {
        self.live()?.facts().values.insert(Arc::new(value)).map_err(Into::into)
    }

    /// Returns the value of this type, and stores one if there is none. Concurrent calls return the same value; `make` may run
    /// in each of them.
    ///
    /// # Errors
    ///
    /// The session has ended, or it has 64 values of other types.
    pub fn get_or_insert_with<T: Any + Send + Sync>(
        &self,
        make: impl FnOnce() -> T,
    ) -> Result<Arc<T>, SessionError> {
        let live = self.live()?;
        let values = &live.facts().values;
        match values.get() {
            Some(value) => Ok(value),
            None => values.get_or_insert(Arc::new(make())).map_err(Into::into),
        }
    }

    /// Removes the value of this type, and returns it.
    pub fn remove<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.live().ok()?.facts().values.remove()
    }

    /// Returns whether the client wants messages that belong to no call: over HTTP, from when it opens a stream for them.
    pub fn push_demand(&self) -> PushDemand {
        let Ok(live) = self.live() else { return PushDemand::always() };
        if live.transport() != TransportKind::Http {
            return PushDemand::always();
        }
        let demand = live.facts().push_demand.get_or_init(PushDemand::later).clone();
        // A stream that is opened after this finds the demand.
        if live.has_push_stream() {
            demand.want();
        }
        demand
    }

    /// Notifies the client of a change.
    pub fn publish(&self, change: &Change) {
        if let Ok(live) = self.live() {
            live.inbox().add(change);
        }
    }

    pub(super) fn live(&self) -> Result<Arc<dyn LiveSession>, SessionError> {
        self.0.upgrade().filter(|session| !session.is_over()).ok_or(SessionError::Ended)
    }
}

impl fmt::Debug for SessionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionHandle").field("id", &self.id()).finish_non_exhaustive()
    }
}

/// Creates a request of a method that the protocol does not define.
pub(crate) fn custom_request(method: String, params: &impl Serialize) -> Result<InputRequest, String> {
    if method::find(&method).is_some() {
        return Err(format!("`{method}` is a method of the protocol: use the function that sends it"));
    }
    let params = RawObject::from_serialize(params)
        .map_err(|error| format!("the params of `{method}` are not an object: {error}; send an object"))?;
    InputRequest::new(method, &params).map_err(|error| error.to_string())
}

/// The reason why a [`SessionHandle`] could not do something.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SessionError {
    /// The session has ended.
    Ended,
    /// The client has no open stream for messages that belong to no call.
    NoStream,
    /// Too many messages wait for the client.
    Full,
    /// The session has values of too many types.
    TooManyValues,
    /// A tool cannot be added.
    InvalidTool {
        /// The reason.
        reason: String,
    },
    /// The session store failed.
    Store {
        /// The error of the store.
        reason: String,
    },
    /// The client does not support the request.
    Unsupported {
        /// The capability that it did not declare.
        capability: &'static str,
    },
    /// The client refused a request, or did not answer it.
    Failed {
        /// The reason.
        reason: String,
    },
    /// The method or the params of a message cannot be sent.
    InvalidParams {
        /// The reason.
        reason: String,
    },
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("the session has ended: get the live ones with `Server::sessions`"),
            Self::NoStream => f.write_str("the client has no open stream: try again when it has opened one"),
            Self::Full => f.write_str("too many messages wait for the client: send fewer"),
            Self::TooManyValues => {
                write!(f, "the session has {MAX_VALUES} values: store several in one type")
            }
            Self::Unsupported { capability } => {
                write!(f, "the client does not support `{capability}`: look at `peer().capabilities` first")
            }
            Self::Failed { reason } => write!(f, "the client did not return a result: {reason}"),
            Self::InvalidTool { reason } => f.write_str(reason),
            Self::Store { reason } => {
                write!(
                    f,
                    "the session has ended here, but the session store failed: {reason}; remove it there"
                )
            }
            Self::InvalidParams { reason } => f.write_str(reason),
        }
    }
}

impl std::error::Error for SessionError {}

impl From<NotStored> for SessionError {
    fn from(reason: NotStored) -> Self {
        match reason {
            NotStored::Full => Self::TooManyValues,
            NotStored::Closed => Self::Ended,
        }
    }
}
