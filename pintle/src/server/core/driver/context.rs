use std::fmt;
#[cfg(feature = "http-server")]
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use http::{Extensions, HeaderMap, Method, Uri};

#[cfg(feature = "http-server")]
use pintle_proto::http::{MCP_PROTOCOL_VERSION, MCP_SESSION_ID};
#[cfg(feature = "http-server")]
use pintle_types::Frame;

use crate::{message_log::Redactor, server::access::peer_address::PeerAddress, transport::TransportKind};
#[cfg(feature = "http-server")]
use crate::{
    message_log::{ConnectionLog, Direction, HttpExchangeLog, MessageLog},
    telemetry::{ConnectionFacts, ReceivedRequests},
};

/// The context of a request: its extensions, and its head if it came over HTTP.
#[derive(Debug, Default)]
pub(crate) struct RequestContext {
    /// The extensions without the peer address.
    left: Extensions,
    /// The head of the HTTP request.
    pub(crate) head: Option<HttpHead>,
    #[cfg(feature = "http-server")]
    address: Option<PeerAddress>,
    /// The extensions with the peer address, once they were asked for.
    #[cfg(feature = "http-server")]
    with_address: OnceLock<Extensions>,
    /// The message log of the HTTP request.
    #[cfg(feature = "http-server")]
    pub(crate) log: Option<Arc<HttpExchangeLog>>,
    /// The requests of the HTTP request until they are calls, if a subscriber wants spans.
    #[cfg(feature = "http-server")]
    received: Mutex<ReceivedRequests>,
}

impl RequestContext {
    pub(crate) fn new(left: Extensions) -> Self {
        Self { left, ..Self::default() }
    }

    /// Creates the context of a request over HTTP. The address is added to the extensions when they are first asked for.
    #[cfg(feature = "http-server")]
    pub(crate) fn over_http(left: Extensions, head: HttpHead, address: Option<PeerAddress>) -> Self {
        Self { left, head: Some(head), address, ..Self::default() }
    }

    /// Notes the requests of an HTTP request, for the spans of those that are refused.
    #[cfg(feature = "http-server")]
    pub(crate) fn note_received(&self, frame: &Frame) {
        let received = ReceivedRequests::of(frame);
        if !received.is_empty() {
            *self.received.lock().unwrap_or_else(PoisonError::into_inner) = received;
        }
    }

    /// Takes the requests that are no calls yet.
    #[cfg(feature = "http-server")]
    pub(crate) fn take_received(&self) -> ReceivedRequests {
        std::mem::take(&mut self.received.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Logs the HTTP request and its response.
    #[cfg(feature = "http-server")]
    pub(crate) fn log_messages(&mut self, log: &MessageLog) {
        let Some(head) = &self.head else { return };
        let connection = ConnectionLog::of_http_server(log, self.address().map(|peer| peer.0));
        let (method, uri) = (head.method.clone(), head.uri.to_string());
        let exchange = HttpExchangeLog::new(connection, Direction::In, method, &uri, &head.headers);
        self.log = Some(Arc::new(exchange));
    }

    /// Returns the extensions that layers have inserted, and the peer address.
    pub(crate) fn extensions(&self) -> &Extensions {
        #[cfg(feature = "http-server")]
        if let Some(address) = self.address {
            return self.with_address.get_or_init(|| {
                let mut all = self.left.clone();
                all.insert(address);
                all
            });
        }
        &self.left
    }

    /// Returns the peer address, if it is known.
    pub(crate) fn address(&self) -> Option<PeerAddress> {
        #[cfg(feature = "http-server")]
        if self.address.is_some() {
            return self.address;
        }
        self.left.get::<PeerAddress>().copied()
    }

    /// Returns the kind of the transport.
    pub(crate) fn transport(&self) -> TransportKind {
        match &self.head {
            Some(_) => TransportKind::Http,
            None => self.left.get().copied().unwrap_or(TransportKind::Other),
        }
    }

    /// Returns the facts of an HTTP request for the spans of its messages.
    #[cfg(feature = "http-server")]
    pub(crate) fn connection_facts(&self) -> ConnectionFacts<'_> {
        let header = |name| self.head.as_ref().and_then(|head| head.headers.get(name));
        let revision = header(&MCP_PROTOCOL_VERSION).and_then(|version| version.to_str().ok()?.parse().ok());
        ConnectionFacts {
            revision,
            session: header(&MCP_SESSION_ID).map(|id| id.as_bytes()),
            transport: self.transport(),
        }
    }

    /// Returns the extensions without the peer address.
    pub(crate) fn left(&self) -> &Extensions {
        &self.left
    }
}

/// The head of the HTTP request of a call, for handlers that read a header.
///
/// A handler takes it as an argument, or calls [`Cx::http`](crate::server::Cx::http), which copies nothing.
///
/// ```
/// use pintle::server::{HttpHead, tool};
///
/// let agent = tool("agent", |head: HttpHead| async move {
///     let agent = head.headers.get("user-agent").and_then(|value| value.to_str().ok());
///     format!("You use {}.", agent.unwrap_or("something"))
/// });
/// ```
///
/// `Debug` prints it [redacted](crate::message_log::Redactor).
#[non_exhaustive]
#[derive(Clone)]
pub struct HttpHead {
    /// The method.
    pub method: Method,
    /// The target, as the client wrote it.
    pub uri: Uri,
    /// The headers.
    pub headers: HeaderMap,
}

impl HttpHead {
    /// Creates a head, for tests of handlers that read one.
    pub fn new(method: Method, uri: Uri, headers: HeaderMap) -> Self {
        Self { method, uri, headers }
    }
}

impl fmt::Debug for HttpHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (redactor, uri) = (Redactor::new(), self.uri.to_string());
        f.debug_struct("HttpHead")
            .field("method", &self.method)
            .field("uri", &redactor.url(&uri))
            .field("headers", &redactor.headers(&self.headers))
            .finish()
    }
}
