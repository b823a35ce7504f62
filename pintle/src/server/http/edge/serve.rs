use std::{
    collections::HashMap,
    fmt,
    future::{Future, Ready, poll_fn},
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use http_body::Body;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{oneshot, watch},
    task::{self, JoinSet},
    time::{Instant, Sleep, sleep},
};
use tower_service::Service;

use super::{
    connection::{self, Terms},
    incoming::RequestBody,
    quiet::Pauses,
    response::shutting_down,
};
use crate::server::{
    ServingHandle,
    http::{
        Http, Stopping,
        shutdown::{CENTURY, CUT, within},
    },
    serving::Stop,
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
    pub(in crate::server::http) fn ours(http: Http) -> Self {
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
        let stop = Arc::new(Stop::default());
        let Self { service, accept, connections, pauses, stopping, tells } = self;
        let start = move |socket: TcpStream, address, stop| {
            // Answers are written whole: there is nothing to wait for that would fill the packet.
            let _ = socket.set_nodelay(true);
            let terms = Terms { service: service.clone(), pauses, address, tells, stop };
            connection::serve(accept(socket), terms)
        };
        let hall = Hall { tasks: JoinSet::new(), stops: HashMap::new(), most: connections };
        let (tell, end) = watch::channel(None);
        let run = hall.run(listener, start, stop.clone(), stopping);
        tokio::spawn(async move { tell.send_replace(Some(run.await)) });
        Ok(HttpServing { address, end, handle: ServingHandle::new(stop) })
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

/// An HTTP server that runs.
///
/// Dropping it lets the server go on by itself, as with a `tokio` task; [`shutdown`](Self::shutdown) ends it.
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
    /// The address it listens on, with the port that was chosen for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the server has come to its end, and says what was done then. It may be waited for by several, and again.
    ///
    /// It ends when somebody shuts it down, here or by its [handle](Self::handle).
    pub async fn wait(&self) -> Shutdown {
        let mut end = self.end.clone();
        // One that ended with its runtime has done nothing.
        end.wait_for(Option::is_some).await.ok().and_then(|end| *end).unwrap_or_default()
    }

    /// A way to shut it down from elsewhere, while this is waited for.
    pub fn handle(&self) -> ServingHandle {
        self.handle.clone()
    }

    /// Takes no more connections and requests, lets what runs come to its end for as long as `grace`, ends what is left,
    /// and says what it did.
    ///
    /// Connections without a request are closed at once. Whoever watches its [`Stopping`] is asked to end by himself. Calls
    /// of sessions are ended too, also those whose client has hung up; who still waits is told why.
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
        asked: Arc<Stop>,
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
                if let Some(grace) = asked.asked(cx) {
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
                Err(grace) => break grace,
            }
        };
        drop(door);
        stopping.ask();
        self.close(grace, &asked, &stopping.services()).await
    }

    async fn close(mut self, grace: Duration, asked: &Stop, services: &[Http]) -> Shutdown {
        let open = self.tasks.len();
        for (_, stop) in self.stops.drain() {
            // One that has just ended needs not be told.
            let _ = stop.send(());
        }
        let drained = self.drained(grace, asked, services).await;
        let aborted = self.tasks.len();
        let mut cut = 0;
        if !drained {
            cut = services.iter().map(|service| service.0.calls.cut(&shutting_down())).sum();
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

    /// Whether all comes to its end within the grace. Whoever asks again may give less.
    async fn drained(&mut self, grace: Duration, asked: &Stop, services: &[Http]) -> bool {
        let mut late = pin!(sleep(grace.min(CENTURY)));
        let mut idle = pin!(self.idle(services));
        poll_fn(|cx| {
            if idle.as_mut().poll(cx).is_ready() {
                return Poll::Ready(true);
            }
            let sooner = asked.asked(cx).map(|grace| Instant::now() + grace.min(CENTURY));
            if let Some(sooner) = sooner.filter(|sooner| *sooner < late.deadline()) {
                late.as_mut().reset(sooner);
            }
            late.as_mut().poll(cx).map(|()| false)
        })
        .await
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
    use std::sync::Mutex;

    use tokio::{sync::mpsc, task::JoinHandle, time::timeout};

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
        ask: Arc<Stop>,
        task: JoinHandle<Shutdown>,
        stopping: Stopping,
    }

    /// A hall of connections that ignore the wish to stop.
    fn hall(most: usize) -> Test {
        let (door, came) = mpsc::unbounded_channel();
        let (tell, accepted) = mpsc::unbounded_channel();
        let ask = Arc::new(Stop::default());
        let (stopping, began) = (Stopping::new(), Instant::now());
        let start = move |socket: Socket, _, stop: oneshot::Receiver<()>| {
            tell.send(began.elapsed()).unwrap();
            async move {
                let _ = socket.await;
                drop(stop);
            }
        };
        let hall = Hall { tasks: JoinSet::new(), stops: HashMap::new(), most };
        let run = hall.run(Script(Mutex::new(came)), start, ask.clone(), stopping.clone());
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
        hall.ask.ask(Duration::from_secs(50));
        tokio::task::yield_now().await;
        // Whoever is less patient wins.
        hall.ask.ask(Duration::from_secs(5));
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
        let asked = Arc::new(Stop::default());
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
