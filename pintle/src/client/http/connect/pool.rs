//! A pool of connections, each polled by the task that waits for its response.
//!
//! A pool with a task for each connection passes every response through two queues and wakes three tasks for it: see
//! `bench/LEDGER.md` and `docs/decisions.md`.

use std::{
    collections::VecDeque,
    fmt,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderValue, Request, Response,
    header::{HOST, PROXY_AUTHORIZATION},
};
use http_body::{Body as _, Frame};
use hyper::{
    body::Incoming,
    client::conn::{
        TrySendError,
        http1::{self, Connection, SendRequest},
    },
};
use hyper_util::rt::TokioIo;
use tokio::{
    task::{unconstrained, yield_now},
    time::Instant,
};
use tower_service::Service as _;

use super::{
    address::Address,
    body::{Body, BoxError, ResponseBody},
    connector::{HttpStream, PoolConnector},
    limits::Limits,
    relay_waker::RelayWaker,
};

/// Limit of idle connections. Concurrent calls have one each: with fewer, each wave of calls would open new ones.
const IDLE: usize = 256;
/// Idle connections are closed after once to twice this time.
const SWEEP: Duration = Duration::from_secs(60);
/// After this time, an idle connection is checked before use: the peer may have closed it. Calls in quick succession save the
/// check.
const MOMENT: Duration = Duration::from_millis(100);

/// A pool of HTTP/1.1 connections.
#[derive(Clone)]
pub(in crate::client::http) struct Pool {
    connector: PoolConnector,
    idle: Arc<IdleConnections>,
    /// Limit of a response head, in bytes.
    head: usize,
}

/// How long a response takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::client::http) enum ExchangeKind {
    Short,
    /// A stream that may be open for hours. It has a new connection: one that has read a long response before keeps a buffer as large as
    /// that.
    Stream,
}

/// The error of a failed connection attempt.
#[derive(Debug)]
pub(in crate::client::http) struct ConnectError(BoxError);

impl Pool {
    pub(in crate::client::http) fn new(limits: &Limits, connector: PoolConnector) -> Self {
        Self { connector, idle: Arc::default(), head: limits.head }
    }

    /// Sends a request, adding its address, and returns the response once its head is complete. `make` is called again if a pooled
    /// connection turns out to be closed.
    pub(in crate::client::http) async fn fetch(
        &self,
        to: &Address,
        kind: ExchangeKind,
        make: impl Fn() -> Request<Body>,
    ) -> Result<Response<ResponseBody>, BoxError> {
        let now = Instant::now();
        let mut noticed = false;
        loop {
            let mut kept = match kind {
                ExchangeKind::Short => self.idle.take(to),
                ExchangeKind::Stream => None,
            };
            if let Some(link) = &mut kept
                && now.saturating_duration_since(link.taken) > MOMENT
            {
                if !std::mem::replace(&mut noticed, true) {
                    // Nobody polls what is idle, and what has happened to it is known once the runtime has looked.
                    yield_now().await;
                }
                if !link.is_open().await {
                    continue;
                }
            }
            let reused = kept.is_some();
            let mut link = match kept {
                Some(link) => link,
                // Boxed, so that the future of every call is not larger for it.
                None => Box::pin(self.connect(to)).await?,
            };
            link.taken = now;
            match link.exchange(&make, to).await {
                Ok(answer) => {
                    let kept = ConnectionLease { link: Some(link), to: to.clone(), idle: self.idle.clone() };
                    return Ok(answer.map(|body| ResponseBody::Ours(body, kept)));
                }
                // Else it was closed before any of this was written.
                Err(error) if error.message().is_none() || !reused => return Err(error.into_error().into()),
                Err(_) => {}
            }
        }
    }

    async fn connect(&self, to: &Address) -> Result<Box<PooledConnection>, BoxError> {
        let mut connector = self.connector.clone();
        let connected = async {
            poll_fn(|cx| connector.poll_ready(cx)).await?;
            connector.call(to.uri.clone()).await
        };
        let socket = connected.await.map_err(ConnectError)?;
        let (proxied, authorization) = socket.inner().proxy();
        let mut builder = http1::Builder::new();
        // A smaller one would not hold a read.
        let (sender, connection) = builder.max_buf_size(self.head.max(8 << 10)).handshake(socket).await?;
        let (relay, taken) = (Arc::new(RelayWaker::new()), Instant::now());
        let (connection, waker) = (Some(connection), relay.clone().into());
        Ok(Box::new(PooledConnection { sender, connection, relay, waker, proxied, authorization, taken }))
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no connection could be made")
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}

/// A connection of the pool.
struct PooledConnection {
    sender: SendRequest<Body>,
    /// `None` when it has ended.
    connection: Option<Connection<TokioIo<HttpStream>, Body>>,
    /// Forwards wake-ups of the connection. `waker` is the same, as a `Waker`.
    relay: Arc<RelayWaker>,
    waker: Waker,
    /// Whether the other end is a proxy that reads the requests.
    proxied: bool,
    authorization: Option<HeaderValue>,
    /// When it was last taken from the pool: an upper bound of its idle time.
    taken: Instant,
}

impl PooledConnection {
    /// Sets the address and `Host` of a request.
    fn address(&self, request: &mut Request<Body>, to: &Address) {
        *request.uri_mut() = if self.proxied { to.uri.clone() } else { to.path.clone() };
        let headers = request.headers_mut();
        if !headers.contains_key(HOST) {
            headers.insert(HOST, to.host.clone());
        }
        if let Some(authorization) = &self.authorization {
            headers.insert(PROXY_AUTHORIZATION, authorization.clone());
        }
    }

    /// The request is not part of the future.
    fn exchange(
        &mut self,
        make: impl Fn() -> Request<Body>,
        to: &Address,
    ) -> impl Future<Output = Result<Response<Incoming>, TrySendError<Request<Body>>>> {
        let mut request = make();
        self.address(&mut request, to);
        let answered = self.relay.muted(|| self.sender.try_send_request(request));
        async move {
            // Else it could have to wait for its task's budget, and would have to be woken for that.
            let mut answered = pin!(unconstrained(answered));
            poll_fn(|cx| {
                self.poll_connection(cx);
                answered.as_mut().poll(&mut nobody())
            })
            .await
        }
    }

    /// Whether the peer has not closed it, as far as the runtime knows.
    async fn is_open(&mut self) -> bool {
        poll_fn(|cx| {
            self.poll_connection(cx);
            Poll::Ready(self.connection.is_some())
        })
        .await
    }

    /// Whether it can send another request.
    fn is_free(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.sender.is_ready() {
            self.poll_connection(cx);
        }
        self.sender.is_ready() && self.connection.is_some()
    }

    /// Drives reading and writing. Dropped when it ends.
    fn poll_connection(&mut self, cx: &mut Context<'_>) {
        self.relay.set_task(cx.waker());
        if let Some(running) = &mut self.connection
            && let Poll::Ready(ended) = Pin::new(running).poll(&mut Context::from_waker(&self.waker))
        {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended");
            }
            self.connection = None;
        }
    }
}

/// A waker that does nothing, for events that only happen while the connection is polled.
fn nobody() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// A connection that returns to the pool when the response is read to its end. Dropped earlier, it is closed, which cancels the
/// request.
pub(in crate::client::http) struct ConnectionLease {
    link: Option<Box<PooledConnection>>,
    to: Address,
    idle: Arc<IdleConnections>,
}

impl ConnectionLease {
    /// Returns the next chunk of the body.
    pub(in crate::client::http) fn poll_frame<B>(
        &mut self,
        body: &mut B,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
    {
        let mut next = || Pin::new(&mut *body).poll_frame(&mut nobody());
        let mut polled = match &self.link {
            // Asking for the next piece wakes the connection, which is polled below if it has to be.
            Some(link) => link.relay.muted(&mut next),
            None => next(),
        };
        if polled.is_pending()
            && let Some(link) = &mut self.link
        {
            link.poll_connection(cx);
            // Not muted: the connection is not polled again after this, so a wake-up by its socket must not be lost.
            polled = next();
        }
        let piece = ready!(polled);
        if (piece.is_none() || body.is_end_stream())
            && let Some(mut link) = self.link.take()
            && link.is_free(cx)
        {
            self.idle.put(&self.to, link);
        }
        Poll::Ready(piece)
    }
}

/// The idle connections.
#[derive(Default)]
struct IdleConnections(Mutex<IdleLinks>);

#[derive(Default)]
struct IdleLinks {
    /// The connections, the most recently used last.
    links: VecDeque<(Address, u64, Box<PooledConnection>)>,
    /// How often expired connections were searched.
    sweeps: u64,
    /// Whether the task that closes expired connections is running.
    swept: bool,
}

impl IdleConnections {
    fn take(&self, to: &Address) -> Option<Box<PooledConnection>> {
        let mut inside = self.lock();
        let place = inside.links.iter().rposition(|(place, ..)| place.is_with(to))?;
        inside.links.remove(place).map(|(_, _, link)| link)
    }

    fn put(self: &Arc<Self>, to: &Address, link: Box<PooledConnection>) {
        let mut inside = self.lock();
        let now = inside.sweeps;
        inside.links.push_back((to.clone(), now, link));
        if inside.links.len() > IDLE {
            inside.links.pop_front();
        }
        if !std::mem::replace(&mut inside.swept, true) {
            crate::runtime::spawn(sweep(Arc::downgrade(self)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, IdleLinks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes expired connections, as long as there are any.
async fn sweep(idle: Weak<IdleConnections>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(idle) = idle.upgrade() else { return };
        let mut inside = idle.lock();
        inside.sweeps += 1;
        let recent = inside.sweeps - 1;
        let old = inside.links.partition_point(|(_, used, _)| *used < recent);
        inside.links.drain(..old);
        if inside.links.is_empty() {
            inside.swept = false;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicBool, Ordering},
        task::Wake,
    };

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
        sync::mpsc,
        time::{advance, pause, resume},
    };

    use super::*;
    use crate::client::http::connect::{Proxy, connector};

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_task_that_polled_last_is_woken_unless_the_relay_is_muted() {
        let pollers: [Arc<Woken>; 2] = Default::default();
        let relay = Arc::new(RelayWaker::new());
        let waker = Waker::from(relay.clone());
        let woken = || pollers.each_ref().map(|poller| poller.0.swap(false, Ordering::Relaxed));
        waker.wake_by_ref();
        pollers.iter().for_each(|poller| relay.set_task(&poller.clone().into()));
        relay.muted(|| waker.wake_by_ref());
        assert_eq!(woken(), [false, false]);
        waker.wake_by_ref();
        assert_eq!(woken(), [false, true]);
    }

    /// A body without data, whose connection's socket becomes readable while it is polled for the second time.
    struct SecondPollWakes {
        polls: usize,
        connection: Waker,
    }

    impl http_body::Body for SecondPollWakes {
        type Data = Bytes;
        type Error = hyper::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
            self.polls += 1;
            if self.polls == 2 {
                self.connection.wake_by_ref();
            }
            Poll::Pending
        }
    }

    #[tokio::test]
    async fn a_socket_that_becomes_readable_while_its_body_is_polled_wakes_the_task() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = Address::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let served = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            assert!(socket.read(&mut [0; 1024]).await.unwrap() > 0);
            socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n").await.unwrap();
            socket
        });
        let pool = connector::pool(&Limits::default(), Arc::new(Proxy::none().matcher()), None, None);
        let answer = pool
            .fetch(&to, ExchangeKind::Short, || Request::post("/").body(Body::default()).unwrap())
            .await
            .unwrap();
        let _socket = served.await.unwrap();
        let ResponseBody::Ours(_body, mut lease) = answer.into_body() else { panic!("another client") };
        let connection = lease.link.as_ref().unwrap().waker.clone();
        let task = Arc::new(Woken::default());
        let mut scripted = SecondPollWakes { polls: 0, connection };
        let polled = lease.poll_frame(&mut scripted, &mut Context::from_waker(&task.clone().into()));
        assert!(polled.is_pending());
        assert!(task.0.load(Ordering::Relaxed), "else nobody reads what has come");
    }

    #[tokio::test]
    async fn a_connection_that_nobody_uses_is_closed_after_a_while() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = Address::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let served = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut buffer = [0; 1024];
            for _ in 0..2 {
                assert!(socket.read(&mut buffer).await.unwrap() > 0);
                socket.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            }
            socket.read(&mut buffer).await.unwrap()
        });
        let proxies = Arc::new(Proxy::none().matcher());
        let pool = connector::pool(&Limits::default(), proxies, None, None);
        for _ in 0..2 {
            let answer = pool
                .fetch(&to, ExchangeKind::Short, || Request::post("/").body(Body::default()).unwrap())
                .await
                .unwrap();
            assert!(pool.idle.lock().links.is_empty());
            assert!(answer.into_body().collect(0).await.is_ok());
            assert_eq!(pool.idle.lock().links.len(), 1);
        }
        // Time that passes while it waits for the network would be made up.
        pause();
        tokio::task::yield_now().await;
        advance(SWEEP).await;
        tokio::task::yield_now().await;
        assert_eq!(pool.idle.lock().links.len(), 1);
        advance(SWEEP).await;
        assert_eq!(served.await.unwrap(), 0, "the other end is told");
        assert!(pool.idle.lock().links.is_empty() && !pool.idle.lock().swept);
    }

    #[tokio::test]
    async fn a_connection_that_was_closed_while_idle_is_not_written_to() {
        const TIMES: usize = 20;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = Address::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let (close, mut closes) = mpsc::channel::<()>(1);
        let (closed, mut notified) = mpsc::channel(1);
        tokio::spawn(async move {
            for _ in 0..TIMES {
                let (mut socket, _) = listener.accept().await.unwrap();
                assert!(socket.read(&mut [0; 1024]).await.unwrap() > 0);
                socket.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
                closes.recv().await.unwrap();
                drop(socket);
                closed.send(()).await.unwrap();
            }
        });
        let proxies = Arc::new(Proxy::none().matcher());
        let pool = connector::pool(&Limits::default(), proxies, None, None);
        // The runtime looks at its sockets before it polls the test itself, but not between two tasks.
        let calls = tokio::spawn(async move {
            for _ in 0..TIMES {
                let request = Request::post("/").body(Body::default()).unwrap();
                let answer = pool.fetch(&to, ExchangeKind::Short, || request.clone()).await.unwrap();
                assert!(answer.into_body().collect(0).await.is_ok());
                assert_eq!(pool.idle.lock().links.len(), 1);
                pause();
                advance(MOMENT * 2).await;
                resume();
                close.try_send(()).unwrap();
                notified.recv().await.unwrap();
            }
        });
        calls.await.unwrap();
    }

    #[tokio::test]
    async fn a_stream_has_a_connection_that_has_read_nothing_before() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = Address::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let served = tokio::spawn(async move {
            let mut sockets = Vec::new();
            for _ in 0..2 {
                let (mut socket, _) = listener.accept().await.unwrap();
                assert!(socket.read(&mut [0; 1024]).await.unwrap() > 0);
                socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await.unwrap();
                sockets.push(socket);
            }
            sockets
        });
        let pool = connector::pool(&Limits::default(), Arc::new(Proxy::none().matcher()), None, None);
        for (kind, idle) in [(ExchangeKind::Short, 1), (ExchangeKind::Stream, 2)] {
            let answer = pool.fetch(&to, kind, || Request::get("/").body(Body::default()).unwrap()).await;
            assert!(answer.unwrap().into_body().collect(2).await.is_ok());
            assert_eq!(pool.idle.lock().links.len(), idle, "{kind:?}");
        }
        served.await.unwrap();
    }
}
