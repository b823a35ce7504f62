use std::{
    fmt,
    future::{Future, Ready},
    io,
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use http::{Request, Response};
use http_body::Body;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tower_service::Service;

use super::{
    acceptor::{AcceptErrorHook, Acceptor, Shutdown},
    connection::{self, ConnectionConfig},
    idle::IdleLimits,
    incoming::RequestBody,
    shutdown_signal::ShutdownSignal,
    time::MAX_DURATION,
};
use crate::{
    error::BoxError,
    server::{ServingHandle, serving::Stop},
};

/// An HTTP server for any `tower` service, such as [`Http`](crate::server::http::Http).
///
/// The server supports HTTP/1.1 and, with the feature `http2`, HTTP/2 with prior knowledge. It does not limit the bodies of
/// requests; the service does.
///
/// ```
/// use std::{convert::Infallible, time::Duration};
/// use http::{Request, Response};
/// use pintle::server::http::{HttpServer, RequestBody};
/// # use tokio::{io::{AsyncReadExt, AsyncWriteExt}, net::{TcpListener, TcpStream}};
/// # #[derive(Clone)] struct Hello;
/// # impl tower_service::Service<Request<RequestBody>> for Hello {
/// #     type Response = Response<String>;
/// #     type Error = Infallible;
/// #     type Future = std::future::Ready<Result<Response<String>, Infallible>>;
/// #     fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
/// #         std::task::Poll::Ready(Ok(()))
/// #     }
/// #     fn call(&mut self, _: Request<RequestBody>) -> Self::Future {
/// #         std::future::ready(Ok(Response::new("hello".into())))
/// #     }
/// # }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// let serving = HttpServer::new(Hello).serve(TcpListener::bind("127.0.0.1:0").await?)?;
///
/// let mut client = TcpStream::connect(serving.address()).await?;
/// client.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await?;
/// let mut answer = String::new();
/// client.read_to_string(&mut answer).await?;
/// assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nhello"));
///
/// let shutdown = serving.shutdown(Duration::from_secs(5)).await;
/// assert_eq!(shutdown.aborted, 0);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct HttpServer<S, A = PlainTcp> {
    service: S,
    accept: A,
    max_connections: usize,
    limits: IdleLimits,
    signal: ShutdownSignal,
    owns_service: bool,
    on_accept_error: Option<AcceptErrorHook>,
}

/// The default acceptor, which serves the socket without TLS.
pub type PlainTcp = fn(TcpStream) -> Ready<io::Result<TcpStream>>;

impl<S> HttpServer<S> {
    /// Creates a server for this service.
    pub fn new(service: S) -> Self {
        Self {
            service,
            accept: |socket| std::future::ready(Ok(socket)),
            max_connections: 16_384,
            limits: IdleLimits {
                head: Duration::from_secs(30),
                idle: Duration::from_secs(120),
                write: Duration::from_secs(60),
            },
            signal: ShutdownSignal::new(),
            owns_service: false,
            on_accept_error: None,
        }
    }

    /// Creates a server for a service that looks up the client's address itself, without a layer around it: the address
    /// is then not put into the extensions of each request.
    pub(in crate::server::http) fn with_own_service(service: S) -> Self {
        Self { owns_service: true, ..Self::new(service) }
    }
}

impl<S, A> HttpServer<S, A> {
    /// Sets the function that turns each accepted socket into a byte stream, such as the acceptor of a TLS library.
    ///
    /// It has to complete within the [head timeout](Self::head_timeout).
    ///
    /// ```no_run
    /// # use pintle::server::http::HttpServer;
    /// # use tokio::{io::DuplexStream, net::TcpStream};
    /// # #[derive(Clone)] struct TlsAcceptor;
    /// # impl TlsAcceptor {
    /// #     async fn accept(&self, _: TcpStream) -> std::io::Result<DuplexStream> {
    /// #         Err(std::io::ErrorKind::Unsupported.into())
    /// #     }
    /// # }
    /// # fn on(service: (), acceptor: TlsAcceptor) {
    /// let server = HttpServer::new(service).tls(move |socket| {
    ///     let acceptor = acceptor.clone();
    ///     async move { acceptor.accept(socket).await }
    /// });
    /// # }
    /// ```
    pub fn tls<F, Fut, IO>(self, accept: F) -> HttpServer<S, F>
    where
        F: Fn(TcpStream) -> Fut,
        Fut: Future<Output = io::Result<IO>>,
    {
        let Self { service, max_connections, limits, signal, owns_service, on_accept_error, .. } = self;
        HttpServer { service, accept, max_connections, limits, signal, owns_service, on_accept_error }
    }

    /// Sets a callback for when connections cannot be accepted: the most likely error is that of too many open files.
    /// It is called at most once a minute, and accepting is tried again all the time. The error is logged as well.
    ///
    /// ```
    /// use pintle::{Server, server::{http::HttpServer, tool}};
    /// use tokio::net::TcpListener;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::new("greeter", "1.0.0").tool(tool("greet", || async { "Hello!" }));
    /// let http = HttpServer::new(server.http()?).on_accept_error(|error| eprintln!("nobody can connect: {error}"));
    /// let serving = http.serve(TcpListener::bind("127.0.0.1:0").await?)?;
    /// # drop(serving); Ok(()) }
    /// ```
    #[must_use]
    pub fn on_accept_error(mut self, callback: impl Fn(&io::Error) + Send + Sync + 'static) -> Self {
        self.on_accept_error = Some(Arc::new(callback));
        self
    }

    /// Sets the limit on concurrent connections. Further ones wait to be accepted. Default: 16,384.
    #[must_use]
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections.max(1);
        self
    }

    /// Sets the time limit on receiving the head of a request. Default: 30 seconds.
    #[must_use]
    pub fn head_timeout(mut self, timeout: Duration) -> Self {
        self.limits.head = timeout.min(MAX_DURATION);
        self
    }

    /// Sets how long a connection may wait for its next request. Default: 2 minutes, which is longer than the pools of most
    /// clients keep an idle connection, so that it is not closed just as a request is sent.
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.limits.idle = timeout.min(MAX_DURATION);
        self
    }

    /// Sets how long a client may read none of its pending output before its connection is closed. Default: 60 seconds.
    ///
    /// Any progress restarts this time, so a slow reader is not disconnected. A call without a session is cancelled with
    /// its connection. Over HTTP/2, a stream is reset if its client grants it no window for the next 16 KiB of its response in
    /// that time; the other streams of the connection go on.
    #[must_use]
    pub fn write_timeout(mut self, timeout: Duration) -> Self {
        self.limits.write = timeout.min(MAX_DURATION);
        self
    }

    /// Sets the signal to trigger when the server is shut down, for code that holds responses open.
    #[must_use]
    pub fn shutdown_signal(mut self, signal: ShutdownSignal) -> Self {
        self.signal = signal;
        self
    }

    /// Serves the connections of a listener in a background task.
    ///
    /// # Errors
    ///
    /// Returns an error if the listener has no local address.
    pub fn serve<Fut, IO, B>(self, listener: TcpListener) -> io::Result<HttpServing>
    where
        A: Fn(TcpStream) -> Fut + Send + 'static,
        Fut: Future<Output = io::Result<IO>> + Send + 'static,
        IO: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        let address = listener.local_addr()?;
        let stop = Arc::new(Stop::default());
        let Self { service, accept, max_connections, limits, signal, owns_service, on_accept_error } = self;
        let start = move |socket: TcpStream, address, stop| {
            // Responses are written in one piece: delaying them would not fill packets better.
            let _ = socket.set_nodelay(true);
            let service = service.clone();
            let config = ConnectionConfig { service, limits, address, owns_service, stop };
            connection::serve(accept(socket), config)
        };
        let (ended, end) = watch::channel(None);
        let run = Acceptor::new(max_connections, on_accept_error).run(listener, start, stop.clone(), signal);
        crate::runtime::spawn(async move {
            ended.send_replace(Some(run.await));
        });
        Ok(HttpServing { address, end, handle: ServingHandle::new(stop) })
    }
}

impl<S, A> fmt::Debug for HttpServer<S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer")
            .field("max_connections", &self.max_connections)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// A running HTTP server.
///
/// Dropping it detaches the server, as with a `tokio` task; [`shutdown`](Self::shutdown) ends it.
///
/// ```
/// use std::time::Duration;
/// use pintle::{Server, server::tool};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let server = Server::new("greeter", "1.0.0").tool(tool("greet", || async { "Hello!" }));
/// let serving = server.serve_http("127.0.0.1:0").await?;
/// let handle = serving.handle();
/// # async fn signal() {}
/// tokio::spawn(async move {
///     signal().await;
///     handle.close(Duration::from_secs(10));
/// });
/// assert_eq!(serving.wait().await.cut, 0);
/// # Ok(()) }
/// ```
#[must_use = "dropping it does not stop the server: wait for its end, shut it down, or drop it explicitly"]
pub struct HttpServing {
    address: SocketAddr,
    end: watch::Receiver<Option<Shutdown>>,
    handle: ServingHandle,
}

impl HttpServing {
    /// Returns the address that the server listens on, with the actual port if port 0 was requested.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the server has shut down, and returns what the shutdown did. Several tasks may wait at the same time.
    ///
    /// The server ends only by [`shutdown`](Self::shutdown) or its [handle](Self::handle).
    pub async fn wait(&self) -> Shutdown {
        let mut end = self.end.clone();
        // A server that ended with its runtime has shut down nothing.
        end.wait_for(Option::is_some).await.ok().and_then(|end| *end).unwrap_or_default()
    }

    /// Returns a handle that shuts the server down from another task.
    pub fn handle(&self) -> ServingHandle {
        self.handle.clone()
    }

    /// Stops accepting connections and requests, waits up to `grace` for running calls to complete, aborts the rest, and
    /// returns what it did.
    ///
    /// Connections without a request are closed at once. The server's [`ShutdownSignal`] is triggered. Calls of sessions are
    /// ended too, including those whose client has disconnected; a client that still waits receives an error with the
    /// reason.
    pub async fn shutdown(self, grace: Duration) -> Shutdown {
        self.handle.close(grace);
        self.wait().await
    }
}

impl fmt::Debug for HttpServing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServing").field("address", &self.address).finish_non_exhaustive()
    }
}
