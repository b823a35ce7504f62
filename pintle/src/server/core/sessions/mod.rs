//! The live sessions of a server: what their handles reach.

pub(crate) mod connection;
pub(crate) mod handle;
pub(crate) mod registry;
pub(crate) mod values;

use std::{
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use pintle_proto::{
    Peer,
    inputs::AskError,
    server::{Call, Engine},
};
use pintle_types::{RawObject, RequestId, method, schema::InputRequest};
use tokio::{sync::oneshot, time::Instant};

use self::{
    handle::{SessionError, SessionHandle},
    values::SessionValues,
};
use crate::{
    server::{Server, changes::ChangeInbox},
    transport::{PushDemand, TransportKind},
};

/// A session on any transport, as handles see it.
pub(crate) trait LiveSession: Send + Sync {
    fn facts(&self) -> &SessionFacts;

    /// Returns the client. `None` before the handshake.
    fn peer(&self) -> Option<Arc<Peer>>;

    fn principal(&self) -> Option<&str>;

    /// Returns the secret id that the session has in every process, if it has one.
    fn shared_id(&self) -> Option<String> {
        None
    }

    fn is_over(&self) -> bool;

    /// Records the answers and actions of a call, if another process can go on with it. `None` if nobody can.
    fn save_call<'a>(&'a self, _: &'a Call) -> Option<SavingCall<'a>> {
        None
    }

    /// Returns whether the client receives messages that belong to no call.
    fn has_push_stream(&self) -> bool {
        true
    }

    /// Sends a request that belongs to no call. The answer is sent to `reply`, which is dropped if the session ends.
    fn request(&self, request: SessionRequest, reply: ReplySender) -> Result<(), SessionError>;

    fn inbox(&self) -> &ChangeInbox;

    /// Returns the kind of the transport.
    fn transport(&self) -> TransportKind;

    fn server(&self) -> &Server;

    /// Sends a message that belongs to no call.
    fn send(&self, line: Bytes) -> Result<(), SessionError>;

    /// Ends the session.
    fn close(self: Arc<Self>) -> SessionEnding;
}

/// The recording of a call.
pub(crate) type SavingCall<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// The end of a session. It begins when it is polled.
pub(crate) type SessionEnding = Pin<Box<dyn Future<Output = Result<(), SessionError>> + Send>>;

/// A request to the client of a session that belongs to no call.
#[derive(Clone, Debug)]
pub(crate) enum SessionRequest {
    Ping,
    Roots,
    /// A method that the protocol does not define.
    Custom(InputRequest),
}

impl SessionRequest {
    /// Returns the method.
    pub(crate) fn method(&self) -> &str {
        match self {
            Self::Ping => method::PING,
            Self::Roots => method::ROOTS_LIST,
            Self::Custom(request) => &request.method,
        }
    }

    /// Returns the bytes of the params.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Ping | Self::Roots => 0,
            Self::Custom(request) => request.params.as_deref().map_or(0, |params| params.get().len()),
        }
    }

    /// Creates the request. `None` if there is no session.
    pub(crate) fn create(&self, engine: &mut Engine) -> Option<(RequestId, Vec<u8>)> {
        match self {
            Self::Ping => engine.ping(),
            Self::Roots => engine.list_roots(),
            // Only the protocol's methods have shapes that a revision lacks.
            Self::Custom(request) => engine.custom_request(request)?.ok(),
        }
    }
}

/// The sender of the answer to a request that belongs to no call.
pub(crate) type ReplySender = oneshot::Sender<Result<RawObject, AskError>>;

/// The facts of a session that do not depend on its transport.
#[derive(Debug)]
pub(crate) struct SessionFacts {
    /// A number that no other session of this process has.
    pub(crate) number: u64,
    /// `None` if it exists for one request only.
    pub(crate) opened: Option<Instant>,
    pub(crate) values: SessionValues,
    /// Whether the client wants messages that belong to no call, once somebody has asked for it.
    #[cfg_attr(
        not(any(feature = "client", feature = "http-server")),
        allow(dead_code, reason = "relays use it")
    )]
    pub(crate) push_demand: OnceLock<PushDemand>,
}

impl SessionFacts {
    pub(crate) fn new() -> Self {
        Self {
            number: next_number(),
            opened: Some(Instant::now()),
            values: SessionValues::default(),
            push_demand: OnceLock::new(),
        }
    }
}

/// Returns a number that no other connection or session of this process has.
pub(crate) fn next_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// The facts of all sessions that exist for one request only. No handle reaches them.
#[cfg(feature = "http-server")]
pub(crate) static TRANSIENT: SessionFacts =
    SessionFacts { number: 0, opened: None, values: SessionValues::new(), push_demand: OnceLock::new() };

impl Server {
    /// Returns the live sessions of this server on all its transports, in the order in which they were opened. Clients of the
    /// stateless era have none.
    ///
    /// ```
    /// use pintle::Server;
    ///
    /// # fn tell(server: &Server) {
    /// for session in server.sessions() {
    ///     if session.principal().as_deref() == Some("ann") {
    ///         let _ = session.notify("notifications/acme/lunch", &serde_json::json!({"at": "noon"}));
    ///     }
    /// }
    /// # }
    /// ```
    pub fn sessions(&self) -> Vec<SessionHandle> {
        self.session_registry().live().into_iter().map(SessionHandle::new).collect()
    }
}

impl SessionHandle {
    /// Returns the server of the session; `None` if it has ended.
    pub fn server(&self) -> Option<Server> {
        Some(self.live().ok()?.server().clone())
    }
}
