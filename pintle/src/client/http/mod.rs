//! The HTTP transport of clients: every revision of Streamable HTTP, and HTTP+SSE.
//!
//! [`Http`] is the transport. The variant is detected when a connection is opened. Each call is a POST; a failed one does not
//! affect others.

mod connect;
mod fetch;
mod transport;

use std::{
    any::Any,
    fmt, io,
    net::IpAddr,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use pintle_types::{Frame, RequestId};
use tower_service::Service;

pub use connect::{Body, Limits, Proxy, ResponseStream};
pub use fetch::{Auth, Bearer, Challenge, Outgoing, OwnedChallenge, Requests, Retry};

use crate::{
    Result,
    message_log::ConnectionLog,
    transport::{
        DeadlinePauses, Driven, DrivenTransport, Failed, Incoming, MessageContext, PushDemand, PushState,
        StreamPause, Transport, TransportKind,
    },
};
use connect::{Address, AddressFilter, Erased, Fetch, HttpSender, Pool};
use fetch::{AnyAuth, HttpClient};
use transport::HttpConnection;

/// The HTTP transport to a server.
///
/// ```no_run
/// use pintle::{Client, client::http::Http};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let http = Http::new("https://example.com/mcp")?.bearer("s3cret")?;
/// let server = Client::new("demo", "0.1.0").connect(http).await?;
/// for tool in server.tools().await? {
///     println!("{}", tool.name);
/// }
/// server.close().await;
/// # Ok(()) }
/// ```
///
/// A clone is a connection of its own to the same server. It shares the pool of sockets, the certificates and the authorization:
///
/// ```no_run
/// use pintle::{Client, client::http::Http};
/// use pintle_relay::Relay;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let http = Http::new("https://example.com/mcp")?.bearer("s3cret")?;
/// let relay = Relay::connect(Client::new("front", "0.1.0"), move || std::future::ready(Ok(http.clone()))).await?;
/// # drop(relay); Ok(()) }
/// ```
#[must_use = "nothing is sent until a client connects with it"]
pub struct Http {
    address: Address,
    headers: HeaderMap,
    auth: Option<Arc<dyn AnyAuth>>,
    client: Option<Arc<dyn Fetch>>,
    limits: Limits,
    retry: Retry,
    proxy: Proxy,
    allowed: Option<AddressFilter>,
    /// The sockets, which clones with the same settings share. Created with the first request.
    pool: Arc<OnceLock<Pool>>,
    fault: Option<String>,
    deadline_pauses: DeadlinePauses,
    push_state: PushState,
    push_demand: PushDemand,
    /// The message limit of the client that uses this transport.
    message_bytes: usize,
    message_log: Option<ConnectionLog>,
    live: Option<HttpConnection>,
    /// A value that is kept as long as the connection.
    held: Option<Box<dyn Any + Send + Sync>>,
}

impl Http {
    /// Creates a transport to the server at this URL. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// The URL is invalid: it needs `http` or `https` and a host, and must not contain a password.
    pub fn new(url: impl AsRef<str>) -> Result<Self> {
        Ok(Self {
            address: Address::parse(url.as_ref())?,
            headers: HeaderMap::new(),
            auth: None,
            client: None,
            limits: Limits::default(),
            retry: Retry::default(),
            proxy: Proxy::system(),
            allowed: None,
            pool: Arc::default(),
            fault: None,
            deadline_pauses: DeadlinePauses::new(),
            push_state: PushState::closed(),
            push_demand: PushDemand::always(),
            message_bytes: pintle_proto::Limits::default().message_bytes,
            message_log: None,
            live: None,
            held: None,
        })
    }

    /// Adds a header to every request. Headers of the protocol cannot be overridden.
    ///
    /// An invalid header is an error of the first request.
    pub fn header(mut self, name: impl TryInto<HeaderName>, value: impl TryInto<HeaderValue>) -> Self {
        match (name.try_into(), value.try_into()) {
            (Ok(name), Ok(value)) => drop(self.headers.append(name, value)),
            (Ok(name), Err(_)) => {
                self.fault = Some(format!("the header `{name}` has a value that none can carry"))
            }
            (Err(_), _) => self.fault = Some("a header has a name that none can have".into()),
        }
        self
    }

    /// Adds headers to every request.
    pub fn headers(mut self, headers: impl IntoIterator<Item = (HeaderName, HeaderValue)>) -> Self {
        for (name, value) in headers {
            self.headers.append(name, value);
        }
        self
    }

    /// Sets the authorization of requests.
    pub fn auth(mut self, auth: impl Auth) -> Self {
        self.auth = Some(Arc::new(auth));
        self
    }

    /// Sends `Authorization: Bearer` with this token.
    ///
    /// # Errors
    ///
    /// The token is not a valid header value.
    pub fn bearer(self, token: impl AsRef<str>) -> Result<Self> {
        Ok(self.auth(Bearer::new(token)?))
    }

    /// Sends requests with another HTTP client, for example for custom certificates, HTTP/2 or a recording.
    ///
    /// It should pool connections, and not follow redirects. [`Limits::connect`], [`Limits::head`] and [`proxy`](Self::proxy) do not
    /// apply to it.
    ///
    /// ```
    /// use http::{Request, Response};
    /// use pintle::{Client, client::http::{Body, Http}};
    ///
    /// #[derive(Clone)]
    /// struct Canned;
    ///
    /// impl tower_service::Service<Request<Body>> for Canned {
    ///     type Response = Response<Body>;
    ///     type Error = std::convert::Infallible;
    ///     type Future = std::future::Ready<Result<Response<Body>, Self::Error>>;
    ///
    ///     fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
    ///         std::task::Poll::Ready(Ok(()))
    ///     }
    ///
    ///     fn call(&mut self, request: Request<Body>) -> Self::Future {
    ///         assert_eq!(request.headers()["mcp-method"], "server/discover");
    ///         let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],
    ///             "capabilities":{},"ttlMs":0,"cacheScope":"public"}}"#;
    ///         let answer = Response::builder().header("content-type", "application/json").body(Body::from(bytes::Bytes::from(answer)));
    ///         std::future::ready(Ok(answer.unwrap()))
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// let http = Http::new("http://example.com/mcp")?.client(Canned);
    /// let server = Client::new("demo", "0.1.0").connect(http).await?;
    /// assert_eq!(server.revision().to_string(), "2026-07-28");
    /// # Ok(()) }
    /// ```
    pub fn client<S, B>(mut self, client: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
        B: http_body::Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
            + Send
            + 'static,
    {
        self.client = Some(Arc::new(Erased::new(client)));
        self
    }

    /// Sets the limits of requests and responses.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self.pool = Arc::default();
        self
    }

    /// Sets the retry policy.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Sets the proxy. Default: [`Proxy::system`].
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.proxy = proxy;
        self.pool = Arc::default();
        self
    }

    /// Restricts the addresses that are connected to, also after resolving a host name. Does not apply to requests through a proxy,
    /// nor with another [client](Self::client).
    ///
    /// ```
    /// # fn main() -> pintle::Result<()> {
    /// let http = pintle::client::http::Http::new("https://example.com/mcp")?.only(|address| !address.is_loopback());
    /// # drop(http); Ok(()) }
    /// ```
    pub fn only(mut self, allowed: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        self.allowed = Some(Arc::new(allowed));
        self.pool = Arc::default();
        self
    }

    /// Keeps a value until the connection is gone, such as a permit of those who limit connections. A clone does not have it.
    pub fn holding(mut self, value: impl Any + Send + Sync) -> Self {
        self.held = Some(Box::new(value));
        self
    }

    fn live(&mut self) -> &mut HttpConnection {
        if self.live.is_none() {
            let wire = Arc::new(self.wire());
            self.live = Some(HttpConnection::new(wire));
        }
        self.live.as_mut().expect("it was just made")
    }

    fn wire(&mut self) -> HttpClient {
        let sender = match &self.client {
            Some(client) => HttpSender::Theirs(client.clone()),
            None => HttpSender::Ours(self.pool.get_or_init(|| self.new_pool()).clone()),
        };
        HttpClient {
            address: self.address.clone(),
            sender,
            headers: self.headers.clone(),
            auth: self.auth.clone(),
            limits: self.limits.clone(),
            answer: self.limits.answer(self.message_bytes),
            retry: self.retry.clone(),
            deadline_pauses: self.deadline_pauses.clone(),
            push_state: self.push_state.clone(),
            push_demand: self.push_demand.clone(),
            fault: self.fault.clone(),
            message_log: self.message_log.take(),
        }
    }

    fn new_pool(&self) -> Pool {
        let proxies = Arc::new(self.proxy.matcher());
        connect::pool(&self.limits, proxies, connect::encryption(), self.allowed.clone())
    }
}

impl Clone for Http {
    /// Returns a transport with the same settings, which is not connected.
    fn clone(&self) -> Self {
        Self {
            address: self.address.clone(),
            headers: self.headers.clone(),
            auth: self.auth.clone(),
            client: self.client.clone(),
            limits: self.limits.clone(),
            retry: self.retry.clone(),
            proxy: self.proxy.clone(),
            allowed: self.allowed.clone(),
            pool: self.pool.clone(),
            fault: self.fault.clone(),
            // What belongs to a connection is not shared.
            deadline_pauses: DeadlinePauses::new(),
            push_state: PushState::closed(),
            push_demand: PushDemand::always(),
            message_bytes: pintle_proto::Limits::default().message_bytes,
            message_log: None,
            live: None,
            held: None,
        }
    }
}

impl Transport for Http {
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Incoming>>> {
        self.live().poll_recv(cx).map(Ok)
    }

    fn send(&mut self, message: Bytes) {
        let messages = match Frame::parse(&message, usize::MAX) {
            Ok(Frame::One(one)) => vec![one],
            Ok(Frame::Batch(several)) => several.into_iter().filter_map(Result::ok).collect(),
            Err(malformed) => return tracing::debug!(?malformed, "a malformed message is not sent"),
        };
        self.live().send(message, MessageContext::new(&messages, None));
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.live {
            Some(live) => live.poll_flush(cx).map(Ok),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.live {
            Some(live) => live.poll_close(cx).map(Ok),
            None => Poll::Ready(Ok(())),
        }
    }

    fn close_reason(&self) -> Option<String> {
        Some(format!("`{}`: {}", self.address, self.live.as_ref()?.close_reason()?))
    }

    fn into_driven(self: Box<Self>) -> Driven {
        Driven(self)
    }
}

impl DrivenTransport for Http {
    fn kind(&self) -> TransportKind {
        TransportKind::Http
    }

    fn log_messages(&mut self, log: &ConnectionLog) -> bool {
        self.message_log = Some(log.clone());
        true
    }

    fn limit_messages(&mut self, bytes: usize) {
        self.message_bytes = bytes;
    }

    fn restart(&mut self) -> io::Result<()> {
        self.live().restart();
        Ok(())
    }

    fn send_with(&mut self, message: Bytes, context: MessageContext<'_>) {
        self.live().send(message, context);
    }

    fn has_headers(&self) -> bool {
        true
    }

    fn abandon(&mut self, request: &RequestId) -> bool {
        self.live().abandon(request)
    }

    fn answered(&mut self, request: &RequestId) {
        if let Some(live) = &mut self.live {
            live.answered(request);
        }
    }

    fn stream_request(&self) -> Option<&RequestId> {
        self.live.as_ref()?.stream_request()
    }

    fn take_stream_pause(&mut self) -> Option<StreamPause> {
        self.live.as_mut()?.take_stream_pause()
    }

    fn poll_sse_endpoints(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Box<Failed>>> {
        self.live().poll_sse_endpoints(cx)
    }

    fn deadline_pauses(&self) -> DeadlinePauses {
        self.deadline_pauses.clone()
    }

    fn defer_pushes(&mut self, demand: &PushDemand) {
        self.push_demand = demand.clone();
    }

    fn push_state(&self) -> PushState {
        self.push_state.clone()
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("address", &self.address).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future::poll_fn, pin::Pin};

    use http::{Request, Response};
    use http_body::Frame as Piece;

    use super::*;

    /// A server of the oldest revision that accepts everything, and never answers.
    #[derive(Clone)]
    struct Silent;

    /// Names the endpoint, and stays open.
    struct Stream(Option<&'static str>);

    impl tower_service::Service<Request<Body>> for Silent {
        type Response = Response<Stream>;
        type Error = Infallible;
        type Future = std::future::Ready<Result<Response<Stream>, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<Body>) -> Self::Future {
            let answer = match request.method() {
                &http::Method::GET => Response::builder()
                    .header("content-type", "text/event-stream")
                    .body(Stream(Some("event: endpoint\ndata: /messages\n\n"))),
                _ => Response::builder().status(202).body(Stream(None)),
            };
            std::future::ready(Ok(answer.unwrap()))
        }
    }

    impl http_body::Body for Stream {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Piece<Bytes>, Infallible>>> {
            let text = self.0.as_mut().map(std::mem::take);
            match text {
                None => Poll::Ready(None),
                Some("") => Poll::Pending,
                Some(text) => Poll::Ready(Some(Ok(Piece::data(text.into())))),
            }
        }
    }

    #[tokio::test]
    async fn nothing_is_kept_of_a_request_whose_answer_comes_elsewhere() {
        let mut http = Http::new("http://server.test/sse").unwrap().client(Silent);
        poll_fn(|task| http.poll_sse_endpoints(task)).await.unwrap();
        for id in 1..=10 {
            http.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).into());
        }
        assert_eq!(http.live().open_requests(), 10);
        for _ in 0..100 {
            tokio::task::yield_now().await;
            poll_fn(|task| {
                assert!(http.poll_recv(task).is_pending(), "nothing has come");
                Poll::Ready(())
            })
            .await;
        }
        assert_eq!(http.live().open_requests(), 0);
    }
}
