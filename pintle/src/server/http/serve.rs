use std::{
    collections::HashMap,
    fmt,
    future::{Future, Ready, poll_fn},
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use http_body::Body;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::{self, JoinHandle, JoinSet},
    time::{Sleep, sleep},
};
use tower_service::Service;

use super::{
    Http, Stopping,
    connection::{self, Terms},
    incoming::RequestBody,
    quiet::Pauses,
    shutdown::{CENTURY, CUT, within},
};

/// An HTTP server around a service of any kind, such as ours.
///
/// It speaks HTTP/1.1 and, with the feature `http2`, HTTP/2 to clients that begin with it. Bodies of requests are not
/// its business: the service limits them.
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
pub struct HttpServer<S, A = Plain> {
    service: S,
    accept: A,
    connections: usize,
    pauses: Pauses,
    stopping: Stopping,
    tells: bool,
}

/// What becomes of a new connection by default: nothing, it is served as it is.
pub type Plain = fn(TcpStream) -> Ready<io::Result<TcpStream>>;

impl<S> HttpServer<S> {
    /// A server with this service.
    pub fn new(service: S) -> Self {
        Self {
            service,
            accept: |socket| std::future::ready(Ok(socket)),
            connections: 16_384,
            pauses: Pauses {
                head: Duration::from_secs(30),
                idle: Duration::from_secs(120),
                write: Duration::from_secs(60),
            },
            stopping: Stopping::new(),
            tells: false,
        }
    }
}

impl HttpServer<Http> {
    /// A server with ours alone: nobody else looks for the address of a request, and it tells who asks.
    pub(super) fn ours(http: Http) -> Self {
        Self { tells: true, ..Self::new(http) }
    }
}

impl<S, A> HttpServer<S, A> {
    /// Makes byte streams of new connections with this, such as the acceptor of a TLS library.
    ///
    /// It has as long as the head of a request to do so.
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
        let Self { service, connections, pauses, stopping, tells, .. } = self;
        HttpServer { service, accept, connections, pauses, stopping, tells }
    }

    /// How many connections are served at once; others wait to be accepted. 16,384.
    #[must_use]
    pub fn connections(mut self, most: usize) -> Self {
        self.connections = most.max(1);
        self
    }

    /// How long the head of a request may take to come. 30 seconds.
    #[must_use]
    pub fn head_timeout(mut self, timeout: Duration) -> Self {
        self.pauses.head = timeout.min(CENTURY);
        self
    }

    /// How long a connection may wait for its next request. 2 minutes: longer than the pools of most clients wait, so
    /// that it is not closed under a request.
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.pauses.idle = timeout.min(CENTURY);
        self
    }

    /// How long a client may take nothing of what is written to it before its connection is closed. 60 seconds.
    ///
    /// A slow reader has its time: whatever it takes counts. A call without a session ends with its connection.
    #[must_use]
    pub fn write_timeout(mut self, timeout: Duration) -> Self {
        self.pauses.write = timeout.min(CENTURY);
        self
    }

    /// Whom to ask when the server is shut down: those who hold answers open.
    #[must_use]
    pub fn stopping(mut self, stopping: Stopping) -> Self {
        self.stopping = stopping;
        self
    }

    /// Serves what comes in here, in the background.
    pub fn serve<Fut, IO, B>(self, listener: TcpListener) -> io::Result<HttpServing>
    where
        A: Fn(TcpStream) -> Fut + Send + 'static,
        Fut: Future<Output = io::Result<IO>> + Send + 'static,
        IO: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let address = listener.local_addr()?;
        let (ask, asked) = oneshot::channel();
        let Self { service, accept, connections, pauses, stopping, tells } = self;
        let start = move |socket: TcpStream, address, stop| {
            // Answers are written whole: there is nothing to wait for that would fill the packet.
            let _ = socket.set_nodelay(true);
            let terms = Terms { service: service.clone(), pauses, address, tells, stop };
            connection::serve(accept(socket), terms)
        };
        let hall = Hall { tasks: JoinSet::new(), stops: HashMap::new(), most: connections };
        let task = tokio::spawn(hall.run(listener, start, asked, stopping));
        Ok(HttpServing { address, ask: Some(ask), task })
    }
}

impl<S, A> fmt::Debug for HttpServer<S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer")
            .field("connections", &self.connections)
            .field("pauses", &self.pauses)
            .finish_non_exhaustive()
    }
}

/// An HTTP server that runs. Dropping it stops it, and everything that it serves.
pub struct HttpServing {
    address: SocketAddr,
    ask: Option<oneshot::Sender<Duration>>,
    task: JoinHandle<Shutdown>,
}

impl HttpServing {
    /// The address it listens on, with the port that was chosen for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves for as long as this is waited for.
    pub async fn wait(mut self) {
        // It ends by itself only with the runtime.
        let _ = (&mut self.task).await;
    }

    /// Takes no more connections and requests, lets what runs come to its end for as long as `grace`, ends what is left,
    /// and says what it did.
    ///
    /// Connections without a request are closed at once. Whoever watches its [`Stopping`] is asked to end by himself. Calls
    /// of sessions are ended too, also those whose client has hung up; who still waits is told why.
    pub async fn shutdown(mut self, grace: Duration) -> Shutdown {
        if let Some(ask) = self.ask.take() {
            // If nobody is there to be asked, then it has ended.
            let _ = ask.send(grace);
        }
        (&mut self.task).await.unwrap_or_default()
    }
}

impl Drop for HttpServing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for HttpServing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServing").field("address", &self.address).finish_non_exhaustive()
    }
}

/// How a server came to its end.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Shutdown {
    /// Connections that came to their end by themselves.
    pub drained: usize,
    /// Connections that were still at it after the grace, and were cut off.
    pub aborted: usize,
    /// Calls that were still at it after the grace, whether or not their clients were there, and were ended with an error.
    pub cut: usize,
}

/// How long nothing is accepted after it failed: with all files in use, trying again at once would fail at once.
const PAUSE: Duration = Duration::from_millis(200);

/// All connections of a server, and the door to it.
struct Hall {
    tasks: JoinSet<()>,
    stops: HashMap<task::Id, oneshot::Sender<()>>,
    most: usize,
}

/// Where connections come from.
trait Door: Send + 'static {
    type Socket;

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Self::Socket, SocketAddr)>>;
}

impl Door for TcpListener {
    type Socket = TcpStream;

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        Self::poll_accept(self, cx)
    }
}

impl Hall {
    async fn run<D: Door, Fut>(
        mut self,
        door: D,
        start: impl Fn(D::Socket, SocketAddr, oneshot::Receiver<()>) -> Fut,
        mut asked: oneshot::Receiver<Duration>,
        stopping: Stopping,
    ) -> Shutdown
    where
        Fut: Future<Output = ()> + Send + 'static,
    {
        let mut pause = None;
        let grace = loop {
            // An end makes room, so ends come first; a wish to stop comes before another connection.
            let next = poll_fn(|cx| {
                while let Poll::Ready(Some(ended)) = self.tasks.poll_join_next_with_id(cx) {
                    self.gone(ended.map(|(id, ())| id));
                }
                if let Poll::Ready(grace) = Pin::new(&mut asked).poll(cx) {
                    return Poll::Ready(Err(grace));
                }
                if self.most <= self.tasks.len() || paused(&mut pause, cx) {
                    return Poll::Pending;
                }
                door.poll_accept(cx).map(Ok)
            });
            match next.await {
                Ok(Ok((socket, address))) => {
                    let (stop, stopped) = oneshot::channel();
                    let task = self.tasks.spawn(start(socket, address, stopped));
                    self.stops.insert(task.id(), stop);
                }
                // It is about the one who is not there any more.
                Ok(Err(error)) if is_about_one(&error) => {}
                Ok(Err(error)) => {
                    tracing::warn!("no connection can be accepted for the moment: {error}");
                    pause = Some(Box::pin(sleep(PAUSE)));
                }
                Err(grace) => break grace.unwrap_or_default(),
            }
        };
        drop(door);
        stopping.ask();
        self.close(grace, &stopping.services()).await
    }

    async fn close(mut self, grace: Duration, services: &[Http]) -> Shutdown {
        let open = self.tasks.len();
        for (_, stop) in self.stops.drain() {
            // One that has just ended needs not be told.
            let _ = stop.send(());
        }
        let drained = within(grace, self.idle(services)).await;
        let aborted = self.tasks.len();
        let mut cut = 0;
        if !drained {
            cut = services.iter().map(|service| service.0.calls.cut()).sum();
            // Those who are told that their call was cut have to hear it.
            if cut > 0 {
                within(CUT, self.idle(services)).await;
            }
            self.tasks.abort_all();
            // Whether or not: it was said how many.
            within(CUT, self.idle(services)).await;
        }
        services.iter().for_each(Http::end_sessions);
        Shutdown { drained: open - aborted, aborted, cut }
    }

    /// Waits until there are no connections, and no calls of services whose client has left.
    async fn idle(&mut self, services: &[Http]) {
        while self.tasks.join_next().await.is_some() {}
        for service in services {
            service.0.calls.idle().await;
        }
    }

    fn gone(&mut self, ended: Result<task::Id, task::JoinError>) {
        let id = ended.unwrap_or_else(|error| {
            if error.is_panic() {
                tracing::error!("a connection was ended by a panic");
            }
            error.id()
        });
        self.stops.remove(&id);
    }
}

fn paused(pause: &mut Option<Pin<Box<Sleep>>>, cx: &mut Context<'_>) -> bool {
    let paused = pause.as_mut().is_some_and(|pause| pause.as_mut().poll(cx).is_pending());
    if !paused {
        *pause = None;
    }
    paused
}

fn is_about_one(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::{
        sync::mpsc,
        time::{Instant, timeout},
    };

    use super::*;

    /// Lets in what a test sends, and fails when it says so.
    struct Script(Mutex<mpsc::UnboundedReceiver<io::Result<Socket>>>);

    /// Open until the test drops the other end.
    type Socket = oneshot::Receiver<()>;

    impl Door for Script {
        type Socket = Socket;

        fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Socket, SocketAddr)>> {
            let address = SocketAddr::from(([127, 0, 0, 1], 1));
            match self.0.lock().unwrap().poll_recv(cx) {
                Poll::Ready(Some(next)) => Poll::Ready(next.map(|socket| (socket, address))),
                _ => Poll::Pending,
            }
        }
    }

    struct Test {
        door: mpsc::UnboundedSender<io::Result<Socket>>,
        /// When each connection was accepted.
        accepted: mpsc::UnboundedReceiver<Duration>,
        ask: oneshot::Sender<Duration>,
        task: JoinHandle<Shutdown>,
        stopping: Stopping,
    }

    /// A hall of connections that ignore the wish to stop.
    fn hall(most: usize) -> Test {
        let (door, came) = mpsc::unbounded_channel();
        let (tell, accepted) = mpsc::unbounded_channel();
        let (ask, asked) = oneshot::channel();
        let (stopping, began) = (Stopping::new(), Instant::now());
        let start = move |socket: Socket, _, stop: oneshot::Receiver<()>| {
            tell.send(began.elapsed()).unwrap();
            async move {
                let _ = socket.await;
                drop(stop);
            }
        };
        let hall = Hall { tasks: JoinSet::new(), stops: HashMap::new(), most };
        let run = hall.run(Script(Mutex::new(came)), start, asked, stopping.clone());
        Test { door, accepted, ask, task: tokio::spawn(run), stopping }
    }

    impl Test {
        fn connect(&self) -> oneshot::Sender<()> {
            let (ours, theirs) = oneshot::channel();
            self.door.send(Ok(theirs)).unwrap();
            ours
        }

        fn fail(&self, kind: io::ErrorKind) {
            self.door.send(Err(kind.into())).unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_to_accept_is_survived_with_a_pause() {
        let mut hall = hall(10);
        hall.fail(io::ErrorKind::ConnectionAborted);
        hall.fail(io::ErrorKind::ConnectionReset);
        let _first = hall.connect();
        assert_eq!(hall.accepted.recv().await.unwrap(), Duration::ZERO, "that was about the others");

        // As with too many open files.
        hall.fail(io::ErrorKind::Other);
        hall.fail(io::ErrorKind::Other);
        let _second = hall.connect();
        let after = hall.accepted.recv().await.unwrap();
        assert!(after >= 2 * PAUSE && after < 3 * PAUSE, "{after:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_connections_than_there_is_room_for() {
        let mut hall = hall(2);
        let [first, second, _third] = [(); 3].map(|()| hall.connect());
        hall.accepted.recv().await.unwrap();
        hall.accepted.recv().await.unwrap();
        assert!(timeout(Duration::from_secs(60), hall.accepted.recv()).await.is_err(), "there is no room");
        drop(first);
        hall.accepted.recv().await.unwrap();
        drop(second);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_left_after_the_grace_is_cut_off_and_counted() {
        let mut hall = hall(10);
        let [first, second, third] = [(); 3].map(|()| hall.connect());
        for _ in 0..3 {
            hall.accepted.recv().await.unwrap();
        }
        let began = Instant::now();
        hall.ask.send(Duration::from_secs(5)).unwrap();
        hall.stopping.wait().await;
        drop(second);
        assert_eq!(hall.task.await.unwrap(), Shutdown { drained: 1, aborted: 2, cut: 0 });
        assert_eq!(began.elapsed(), Duration::from_secs(5));
        assert!(first.is_closed() && third.is_closed(), "they are gone");
        assert!(hall.door.is_closed(), "and so is the door");
    }

    #[tokio::test]
    async fn a_connection_that_panics_takes_only_its_own_place() {
        let (door, came) = mpsc::unbounded_channel();
        let (_ask, asked) = oneshot::channel();
        let started = Arc::new(tokio::sync::Notify::new());
        let starting = started.clone();
        let start = move |_: Socket, _, _| {
            starting.notify_one();
            async { panic!("this is part of the test") }
        };
        let hall = Hall { tasks: JoinSet::new(), stops: HashMap::new(), most: 1 };
        let task = tokio::spawn(hall.run(Script(Mutex::new(came)), start, asked, Stopping::new()));
        for _ in 0..3 {
            door.send(Ok(oneshot::channel().1)).unwrap();
            started.notified().await;
        }
        task.abort();
    }
}
