//! One connection of an HTTP server, from its first byte to its last.

use std::{
    any::Any,
    future::{Future, poll_fn},
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite},
    sync::oneshot::{self, error::TryRecvError},
    time::{Instant, Sleep, sleep_until},
};
use tower_service::Service;

#[cfg(feature = "http2")]
use super::stream_progress::{NextStream, PiecewiseBody};
use super::{
    activity_io::ActivityIo,
    idle::{IdleClock, IdleLimits, TrackedBody},
    incoming::RequestBody,
    tls_socket::TlsSocket,
};
use crate::{error::BoxError, server::access::peer_address::PeerAddress};

/// The service, limits and stop signal of one connection.
pub(in crate::server::http) struct ConnectionConfig<S> {
    pub(in crate::server::http) service: S,
    pub(super) limits: IdleLimits,
    pub(in crate::server::http) address: SocketAddr,
    /// Whether the service is [`Http`](crate::server::http::Http) itself, which looks up the client's address only when it
    /// is asked for; for any other service the address is put into the extensions of each request.
    pub(in crate::server::http) owns_service: bool,
    /// Resolves when the server shuts down.
    pub(in crate::server::http) stop: oneshot::Receiver<()>,
}

/// The limit on the size of a request's head.
const HEAD_BYTES: u32 = 64 << 10;

/// Serves one connection until either side closes it.
///
/// `opening` resolves to the byte stream, possibly after a TLS handshake.
pub(in crate::server::http) async fn serve<IO, S, B>(
    opening: impl Future<Output = io::Result<IO>>,
    config: ConnectionConfig<S>,
) where
    IO: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let ConnectionConfig { service, limits, address, owns_service, stop } = config;
    let lazy_peer_address = owns_service.then_some(PeerAddress(address));
    let mut supervisor = Supervisor::new(IdleClock::new(limits, lazy_peer_address), stop);
    let (io, FirstBytes { prefix, http2 }) = match supervisor.open(opening).await {
        Some(Ok(opened)) => opened,
        Some(Err(error)) => return tracing::debug!(%address, "failed to open a connection: {error}"),
        None => return,
    };
    if http2 {
        // Frames between requests, such as pings, do not start a head.
        supervisor.clock = IdleClock::new(IdleLimits { head: limits.idle, ..limits }, lazy_peer_address);
    }
    let tls = (&io as &dyn Any).downcast_ref().map(TlsSocket::shared_facts);
    let io = ActivityIo::new(io, prefix, supervisor.clock.clone());
    let clock = supervisor.clock.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let active = clock.start_request();
        let mut service = service.clone();
        let mut request = request.map(|body| RequestBody::new(body, clock.clone()));
        if !owns_service {
            request.extensions_mut().insert(PeerAddress(address));
        }
        if let Some(tls) = &tls {
            request.extensions_mut().insert(tls.clone());
        }
        async move {
            poll_fn(|cx| service.poll_ready(cx)).await?;
            let response = service.call(request).await?;
            Ok::<_, S::Error>(response.map(|body| TrackedBody::new(body, active)))
        }
    });
    #[cfg(feature = "http2")]
    if http2 {
        let (tasks, next) = (super::tasks::Tasks::default(), NextStream::default());
        let spawner = tasks.spawner(next.clone(), limits.write);
        let mut builder = hyper::server::conn::http2::Builder::new(spawner);
        builder.max_header_list_size(HEAD_BYTES);
        let service = service_fn(move |request| {
            let progress = next.begin();
            let responding = hyper::service::Service::call(&service, request);
            async move { Ok::<_, S::Error>(responding.await?.map(|body| PiecewiseBody::new(body, progress))) }
        });
        let connection = builder.serve_connection(TokioIo::new(io), service);
        let end = supervisor.run(connection, |connection| {
            connection.graceful_shutdown();
            OnStop::Continue
        });
        return log_end(address, end.await);
    }
    let mut builder = http1::Builder::new();
    builder.max_header_size(HEAD_BYTES as usize).half_close(true);
    let connection = builder.serve_connection(TokioIo::new(io.watch_for_end()), service);
    let end = supervisor.run(connection, |connection| {
        connection.graceful_shutdown();
        OnStop::Continue
    });
    log_end(address, end.await);
}

fn log_end(address: SocketAddr, end: Option<hyper::Result<()>>) {
    match end {
        Some(Ok(())) => {}
        // Clients may disconnect at any time.
        Some(Err(error)) => tracing::debug!(%address, "a connection failed: {error}"),
        None => {
            tracing::trace!(%address, "closed a connection that was idle, or whose client did not read, for too long")
        }
    }
}

/// The idle timer and the stop signal of a connection, applied to each of its phases.
struct Supervisor {
    /// `None` once it has resolved.
    stop: Option<oneshot::Receiver<()>>,
    timer: Pin<Box<Sleep>>,
    clock: Arc<IdleClock>,
    /// The waker that the timer and the stop signal wake.
    registered: Option<Waker>,
}

/// The effect of a shutdown on a supervised phase.
enum OnStop {
    /// The phase is dropped.
    Abandon,
    /// The phase runs to its end.
    Continue,
}

impl Supervisor {
    fn new(clock: Arc<IdleClock>, stop: oneshot::Receiver<()>) -> Self {
        let timer = Box::pin(sleep_until(clock.next_check()));
        Self { stop: Some(stop), timer, clock, registered: None }
    }

    /// Waits for the byte stream and its first bytes. Returns `None` if that takes too long or the server shuts down.
    async fn open<IO: AsyncRead + Unpin>(
        &mut self,
        opening: impl Future<Output = io::Result<IO>>,
    ) -> Option<io::Result<(IO, FirstBytes)>> {
        let opened = async {
            let mut io = opening.await?;
            let first = read_first_bytes(&mut io).await?;
            Ok((io, first))
        };
        self.run(opened, |_| OnStop::Abandon).await
    }

    /// Runs a phase until it ends or the idle deadline passes. If the server shuts down meanwhile, `on_stop` decides
    /// whether the phase continues.
    async fn run<F: Future>(
        &mut self,
        phase: F,
        on_stop: impl Fn(Pin<&mut F>) -> OnStop,
    ) -> Option<F::Output> {
        let mut phase = pin!(phase);
        poll_fn(|cx| {
            if let Poll::Ready(output) = phase.as_mut().poll(cx) {
                return Poll::Ready(Some(output));
            }
            if self.poll_stop(cx) {
                if let OnStop::Abandon = on_stop(phase.as_mut()) {
                    return Poll::Ready(None);
                }
                if let Poll::Ready(output) = phase.as_mut().poll(cx) {
                    return Poll::Ready(Some(output));
                }
            }
            self.poll_timer(cx)
        })
        .await
    }

    /// Ready when the idle deadline has passed.
    fn poll_timer<T>(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        // Only the start of a head brings the deadline forward; whole requests leave the timer alone.
        if let Some(deadline) = self.clock.deadline()
            && deadline < self.timer.deadline()
        {
            self.timer.as_mut().reset(deadline);
            self.registered = None;
        }
        if self.is_registered(cx) && !self.timer.is_elapsed() {
            return Poll::Pending;
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            if self.clock.deadline().is_some_and(|deadline| deadline <= Instant::now()) {
                return Poll::Ready(None);
            }
            self.timer.as_mut().reset(self.clock.next_check());
        }
        self.registered = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Returns whether the timer and the stop signal wake this task. Then they need not be polled again, at each turn of the
    /// connection (see `bench/LEDGER.md`).
    fn is_registered(&self, cx: &Context<'_>) -> bool {
        self.registered.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()))
    }

    /// Returns true once, when the server shuts down.
    fn poll_stop(&mut self, cx: &mut Context<'_>) -> bool {
        let is_registered = self.is_registered(cx);
        let stopped = self.stop.as_mut().is_some_and(|stop| match is_registered {
            true => !matches!(stop.try_recv(), Err(TryRecvError::Empty)),
            false => Pin::new(stop).poll(cx).is_ready(),
        });
        if stopped {
            self.stop = None;
        }
        stopped
    }
}

/// The bytes that were read to find out which version of HTTP the client speaks.
struct FirstBytes {
    prefix: Bytes,
    http2: bool,
}

/// The connection preface of a client that speaks HTTP/2 with prior knowledge (RFC 9113, section 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Reads until it is certain whether the client speaks HTTP/2: one read for nearly all other clients.
async fn read_first_bytes(io: &mut (impl AsyncRead + Unpin)) -> io::Result<FirstBytes> {
    let mut first = [0; PREFACE.len()];
    let mut length = 0;
    while cfg!(feature = "http2") && length < first.len() && PREFACE.starts_with(&first[..length]) {
        match io.read(&mut first[length..]).await? {
            0 => break,
            more => length += more,
        }
    }
    Ok(FirstBytes { prefix: Bytes::copy_from_slice(&first[..length]), http2: first == *PREFACE })
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::Mutex, time::Duration};

    use tokio::{
        io::{AsyncWriteExt, DuplexStream, duplex},
        task::JoinHandle,
    };

    use super::*;

    /// A service that responds with `done` after as many seconds as the path gives. With `/00` it reads the body first, of 1000 bytes.
    #[derive(Clone, Default)]
    struct Sleepy(Arc<Mutex<Vec<String>>>);

    impl Service<Request<RequestBody>> for Sleepy {
        type Response = Response<String>;
        type Error = Infallible;
        type Future = Pin<Box<dyn Future<Output = Result<Response<String>, Infallible>> + Send>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
            let path = request.uri().path().to_owned();
            let seconds = path[1..].parse().unwrap();
            let body = path.starts_with("/00").then(|| request.into_body());
            self.0.lock().unwrap().push(path);
            Box::pin(async move {
                if let Some(mut body) = body {
                    let mut received = 0;
                    while let Some(part) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                        received += part.unwrap().data_ref().unwrap().len();
                    }
                    assert_eq!(received, 1000);
                }
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                Ok(Response::new("done".into()))
            })
        }
    }

    struct Test {
        client: DuplexStream,
        stop: Option<oneshot::Sender<()>>,
        service: Sleepy,
        task: JoinHandle<()>,
        began: Instant,
    }

    fn connect() -> Test {
        let (client, server) = duplex(4096);
        let (stop, stopped) = oneshot::channel();
        let service = Sleepy::default();
        let config = ConnectionConfig {
            service: service.clone(),
            limits: IdleLimits {
                head: Duration::from_secs(30),
                idle: Duration::from_secs(120),
                write: Duration::from_secs(60),
            },
            address: ([127, 0, 0, 1], 1).into(),
            owns_service: false,
            stop: stopped,
        };
        let task = tokio::spawn(serve(async { Ok(server) }, config));
        Test { client, stop: Some(stop), service, task, began: Instant::now() }
    }

    impl Test {
        async fn send(&mut self, text: &str) {
            self.client.write_all(text.as_bytes()).await.unwrap();
        }

        async fn get(&mut self, path: &str) {
            self.send(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")).await;
        }

        /// Reads one response. Returns whether more may follow.
        async fn answer(&mut self) -> bool {
            let mut text = Vec::new();
            while !text.ends_with(b"\r\n\r\ndone") {
                assert_ne!(self.client.read_buf(&mut text).await.unwrap(), 0, "it ends within an answer");
            }
            !String::from_utf8(text).unwrap().contains("\r\nconnection: close\r\n")
        }

        /// Waits until the server closes. Returns what else it sent, and how many seconds have passed.
        async fn closed(mut self) -> (String, u64) {
            let mut rest = String::new();
            self.client.read_to_string(&mut rest).await.unwrap();
            self.task.await.unwrap();
            (rest, self.began.elapsed().as_secs())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_request_is_closed() {
        assert_eq!(connect().closed().await, (String::new(), 30));
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_sent_byte_by_byte_does_not_extend_its_limit() {
        let mut test = connect();
        test.get("/0").await;
        assert!(test.answer().await);
        tokio::time::sleep(Duration::from_secs(10)).await;
        for byte in "GET /0 HTTP/1.1".chars() {
            test.send(&byte.to_string()).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(test.closed().await, (String::new(), 40));
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_is_kept_until_its_limit() {
        let mut test = connect();
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(29)).await;
            test.get("/0").await;
            assert!(test.answer().await);
        }
        let (rest, after) = test.closed().await;
        assert_eq!((rest.as_str(), after), ("", 3 * 29 + 120));
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_call_is_not_quiet() {
        let mut test = connect();
        test.get("/3600").await;
        assert!(test.answer().await);
        assert_eq!(test.closed().await.1, 3600 + 120);
    }

    /// A service that responds with more than a client has room for.
    #[derive(Clone)]
    struct Large;

    impl Service<Request<RequestBody>> for Large {
        type Response = Response<String>;
        type Error = Infallible;
        type Future = std::future::Ready<Result<Response<String>, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<RequestBody>) -> Self::Future {
            std::future::ready(Ok(Response::new("x".repeat(1 << 20))))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_disconnected() {
        let (mut client, server) = duplex(4096);
        let limits = IdleLimits {
            head: Duration::from_secs(30),
            idle: Duration::from_secs(120),
            write: Duration::from_secs(60),
        };
        let (_stop, stop) = oneshot::channel();
        let config = ConnectionConfig {
            service: Large,
            limits,
            address: ([127, 0, 0, 1], 1).into(),
            owns_service: false,
            stop,
        };
        let (task, began) = (tokio::spawn(serve(std::future::ready(Ok(server)), config)), Instant::now());
        client.write_all(b"GET /0 HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        // A slow reader is not cut off.
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_secs(50)).await;
            client.read_exact(&mut [0; 4096]).await.unwrap();
        }
        assert!(!task.is_finished());
        task.await.unwrap();
        assert_eq!(began.elapsed().as_secs(), 5 * 50 + 60);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connections_are_closed_at_once_when_the_server_stops() {
        let mut fresh = connect();
        fresh.stop.take();
        assert_eq!(fresh.closed().await, (String::new(), 0));

        let mut used = connect();
        used.get("/0").await;
        used.answer().await;
        used.stop.take();
        assert_eq!(used.closed().await, (String::new(), 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_running_call_ends_when_the_server_stops_and_no_other_is_accepted() {
        let mut test = connect();
        test.get("/5").await;
        while test.service.0.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        test.stop.take();
        test.get("/6").await;
        assert!(!test.answer().await, "the response announces the close");
        let calls = test.service.0.clone();
        assert_eq!(test.closed().await, (String::new(), 5));
        assert_eq!(*calls.lock().unwrap(), ["/5"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_disconnects_cancels_its_call() {
        let mut test = connect();
        test.get("/3600").await;
        while test.service.0.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        drop(test.client);
        test.task.await.unwrap();
        assert_eq!(test.began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_sent_early_follows() {
        let mut test = connect();
        let request = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", "h".repeat(200));
        test.send(&request("/5")).await;
        while test.service.0.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        test.send(&request("/6")).await;
        assert!(test.answer().await);
        assert!(test.answer().await);
        assert_eq!(test.began.elapsed().as_secs(), 11);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_is_whole_whenever_its_parts_arrive() {
        let mut test = connect();
        test.send("POST /001 HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n").await;
        for length in [1, 300, 64, 65, 570] {
            tokio::time::sleep(Duration::from_secs(1)).await;
            test.send(&"7".repeat(length)).await;
        }
        test.get("/1").await;
        assert!(test.answer().await);
        assert!(test.answer().await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_still_sends_its_body_gets_the_response() {
        let head = "POST /0 HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n";
        let mut test = connect();
        test.send(head).await;
        test.send(&"7".repeat(100_000)).await;
        test.answer().await;
    }

    #[tokio::test(start_paused = true)]
    async fn lingering_is_limited() {
        let mut test = connect();
        test.send("POST /0 HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n").await;
        test.answer().await;
        assert_eq!(test.client.read(&mut [0]).await.unwrap(), 0);
        assert_eq!(test.began.elapsed().as_secs(), 0, "our side is closed at once");
        test.task.await.unwrap();
        assert_eq!(test.began.elapsed().as_secs(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_is_too_large_is_refused() {
        let mut test = connect();
        let line =
            format!("GET /0 HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n", "7".repeat(HEAD_BYTES as usize));
        // The server may close while the rest is still being sent.
        let _ = test.client.write_all(line.as_bytes()).await;
        let (answer, after) = test.closed().await;
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
        assert_eq!(after, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_handshake_has_as_long_as_a_head() {
        let began = Instant::now();
        let limits = IdleLimits {
            head: Duration::from_secs(30),
            idle: Duration::from_secs(120),
            write: Duration::from_secs(60),
        };
        let (_stop, stop) = oneshot::channel();
        let address = ([127, 0, 0, 1], 1).into();
        let opening = std::future::pending::<io::Result<DuplexStream>>();
        serve(
            opening,
            ConnectionConfig { service: Sleepy::default(), limits, address, owns_service: false, stop },
        )
        .await;
        assert_eq!(began.elapsed().as_secs(), 30);
    }

    #[tokio::test]
    async fn only_the_whole_preface_is_http_2() {
        for (sent, http2) in [
            (&PREFACE[..], cfg!(feature = "http2")),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r", false),
            (b"PRI * HTTP/1.1\r\nhost: a\r\n\r\n", false),
            (b"POST /mcp HTTP/1.1\r\n", false),
            (b"", false),
        ] {
            for step in [1, 7, 64] {
                let (mut client, mut server) = duplex(step);
                let reading = tokio::spawn(async move {
                    let first = read_first_bytes(&mut server).await.unwrap();
                    let mut rest = Vec::new();
                    server.read_to_end(&mut rest).await.unwrap();
                    (first.http2, [&first.prefix[..], &rest].concat())
                });
                client.write_all(sent).await.unwrap();
                drop(client);
                assert_eq!(reading.await.unwrap(), (http2, sent.to_vec()), "nothing is lost");
            }
        }
    }
}
