//! One connection of an HTTP server, from its first byte to its last.

use std::{
    error::Error as StdError,
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

use super::{
    incoming::{PeerAddress, RequestBody},
    quiet::{Answer, Pauses, Quiet, Watched},
};

pub(super) type BoxError = Box<dyn StdError + Send + Sync>;

/// What a connection is served with.
pub(in crate::server::http) struct Terms<S> {
    pub(in crate::server::http) service: S,
    pub(super) pauses: Pauses,
    pub(in crate::server::http) address: SocketAddr,
    /// Whether the service is ours, and tells those who ask where a request came from.
    pub(in crate::server::http) tells: bool,
    /// Told when the server comes to its end.
    pub(in crate::server::http) stop: oneshot::Receiver<()>,
}

/// The largest head of a request.
const HEAD_BYTES: u32 = 64 << 10;

/// Serves one connection until either side is done with it.
///
/// `opening` brings the byte stream, which may take a handshake.
pub(in crate::server::http) async fn serve<IO, S, B>(
    opening: impl Future<Output = io::Result<IO>>,
    terms: Terms<S>,
) where
    IO: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let Terms { service, pauses, address, tells, stop } = terms;
    let untold = Some(PeerAddress(address)).filter(|_| tells);
    let quiet = Quiet::new(pauses, untold);
    let timer = Box::pin(sleep_until(quiet.look_again()));
    let mut watch = Watch { stop: Some(stop), timer, quiet, told: None };
    let opened = watch.over(
        async {
            let mut io = opening.await?;
            let sniffed = sniff(&mut io).await?;
            io::Result::Ok((io, sniffed))
        },
        |_| Asked::GiveUp,
    );
    let (io, Sniffed { before, http2 }) = match opened.await {
        Some(Ok(opened)) => opened,
        Some(Err(error)) => return tracing::debug!(%address, "a connection did not open: {error}"),
        None => return,
    };
    if http2 {
        // Frames between requests, such as pings, are no beginning of a head.
        watch.quiet = Quiet::new(Pauses { head: pauses.idle, ..pauses }, untold);
    }
    let io = TokioIo::new(Watched::new(io, before, watch.quiet.clone()));
    let requests = watch.quiet.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let busy = requests.begin();
        let mut service = service.clone();
        let mut request = request.map(|body| RequestBody::new(body, requests.clone()));
        if !tells {
            request.extensions_mut().insert(PeerAddress(address));
        }
        async move {
            poll_fn(|cx| service.poll_ready(cx)).await?;
            let response = service.call(request).await?;
            Ok::<_, S::Error>(response.map(|body| Answer::new(body, busy)))
        }
    });
    #[cfg(feature = "http2")]
    if http2 {
        let tasks = super::tasks::Tasks::default();
        let mut builder = hyper::server::conn::http2::Builder::new(tasks.spawner());
        builder.max_header_list_size(HEAD_BYTES);
        let connection = builder.serve_connection(io, service);
        return ended(
            address,
            watch
                .over(connection, |connection| {
                    connection.graceful_shutdown();
                    Asked::GoOn
                })
                .await,
        );
    }
    let mut builder = http1::Builder::new();
    builder.max_header_size(HEAD_BYTES as usize);
    let connection = builder.serve_connection(io, service);
    ended(
        address,
        watch
            .over(connection, |connection| {
                connection.graceful_shutdown();
                Asked::GoOn
            })
            .await,
    );
}

fn ended(address: SocketAddr, how: Option<hyper::Result<()>>) {
    match how {
        Some(Ok(())) => {}
        // Clients come and go as they like.
        Some(Err(error)) => tracing::debug!(%address, "a connection broke: {error}"),
        None => tracing::trace!(%address, "a connection was quiet, or took nothing, for too long"),
    }
}

/// Looks after what runs on a connection.
struct Watch {
    /// `None` when it has been told.
    stop: Option<oneshot::Receiver<()>>,
    timer: Pin<Box<Sleep>>,
    quiet: Arc<Quiet>,
    /// Whom these two wake.
    told: Option<Waker>,
}

/// What becomes of something that is asked to stop.
enum Asked {
    GiveUp,
    GoOn,
}

impl Watch {
    /// Runs this until it ends, or is quiet for too long. If the server stops meanwhile, `on_stop` says how it goes on.
    async fn over<F: Future>(&mut self, run: F, on_stop: impl Fn(Pin<&mut F>) -> Asked) -> Option<F::Output> {
        let mut run = pin!(run);
        poll_fn(|cx| {
            if let Poll::Ready(output) = run.as_mut().poll(cx) {
                return Poll::Ready(Some(output));
            }
            if self.stops(cx) {
                if let Asked::GiveUp = on_stop(run.as_mut()) {
                    return Poll::Ready(None);
                }
                if let Poll::Ready(output) = run.as_mut().poll(cx) {
                    return Poll::Ready(Some(output));
                }
            }
            // Only the beginning of a head brings the end nearer; whole requests leave the timer alone.
            let nearer = self.quiet.until().filter(|until| *until < self.timer.deadline());
            if let Some(until) = nearer {
                self.timer.as_mut().reset(until);
            }
            let told = self.told.as_ref().is_some_and(|told| told.will_wake(cx.waker()));
            if told && nearer.is_none() && !self.timer.is_elapsed() {
                return Poll::Pending;
            }
            self.told = Some(cx.waker().clone());
            while self.timer.as_mut().poll(cx).is_ready() {
                if self.quiet.until().is_some_and(|until| until <= Instant::now()) {
                    return Poll::Ready(None);
                }
                self.timer.as_mut().reset(self.quiet.look_again());
            }
            Poll::Pending
        })
        .await
    }

    /// Whether the server stops; true once.
    fn stops(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(stop) = &mut self.stop else { return false };
        // Who has said whom to wake only has to look. (Measured, with the timer: 140 instructions each time.)
        let stops = match &self.told {
            Some(told) if told.will_wake(cx.waker()) => stop.try_recv() != Err(TryRecvError::Empty),
            _ => Pin::new(stop).poll(cx).is_ready(),
        };
        if stops {
            self.stop = None;
        }
        stops
    }
}

/// What the first bytes say.
struct Sniffed {
    before: Bytes,
    http2: bool,
}

/// What a client says first that knows without asking that HTTP/2 is spoken here (RFC 9113, section 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Reads until it is clear whether this is HTTP/2. For nearly everything else that is one read.
async fn sniff(io: &mut (impl AsyncRead + Unpin)) -> io::Result<Sniffed> {
    let mut first = [0; PREFACE.len()];
    let mut came = 0;
    while cfg!(feature = "http2") && came < first.len() && PREFACE.starts_with(&first[..came]) {
        match io.read(&mut first[came..]).await? {
            0 => break,
            more => came += more,
        }
    }
    Ok(Sniffed { before: Bytes::copy_from_slice(&first[..came]), http2: first == *PREFACE })
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::Mutex, time::Duration};

    use tokio::{
        io::{AsyncWriteExt, DuplexStream, duplex},
        task::JoinHandle,
    };

    use super::*;

    /// Answers `done` after as many seconds as the path says.
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
            self.0.lock().unwrap().push(path);
            Box::pin(async move {
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
        let terms = Terms {
            service: service.clone(),
            pauses: Pauses {
                head: Duration::from_secs(30),
                idle: Duration::from_secs(120),
                write: Duration::from_secs(60),
            },
            address: ([127, 0, 0, 1], 1).into(),
            tells: false,
            stop: stopped,
        };
        let task = tokio::spawn(serve(async { Ok(server) }, terms));
        Test { client, stop: Some(stop), service, task, began: Instant::now() }
    }

    impl Test {
        async fn send(&mut self, text: &str) {
            self.client.write_all(text.as_bytes()).await.unwrap();
        }

        async fn get(&mut self, path: &str) {
            self.send(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")).await;
        }

        /// Reads one answer; says whether more may follow.
        async fn answer(&mut self) -> bool {
            let mut text = Vec::new();
            while !text.ends_with(b"\r\n\r\ndone") {
                assert_ne!(self.client.read_buf(&mut text).await.unwrap(), 0, "it ends within an answer");
            }
            !String::from_utf8(text).unwrap().contains("\r\nconnection: close\r\n")
        }

        /// Waits until the server closes; says what else it had to say, and how many seconds have passed.
        async fn closed(mut self) -> (String, u64) {
            let mut rest = String::new();
            self.client.read_to_string(&mut rest).await.unwrap();
            self.task.await.unwrap();
            (rest, self.began.elapsed().as_secs())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_on_which_nothing_comes_is_closed() {
        assert_eq!(connect().closed().await, (String::new(), 30));
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_drips_is_not_waited_for() {
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
    async fn an_idle_connection_is_kept_for_a_while() {
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

    /// Answers with more than a client has room for.
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
    async fn who_takes_nothing_is_not_waited_for() {
        let (mut client, server) = duplex(4096);
        let pauses = Pauses {
            head: Duration::from_secs(30),
            idle: Duration::from_secs(120),
            write: Duration::from_secs(60),
        };
        let (_stop, stop) = oneshot::channel();
        let terms = Terms { service: Large, pauses, address: ([127, 0, 0, 1], 1).into(), tells: false, stop };
        let (task, began) = (tokio::spawn(serve(std::future::ready(Ok(server)), terms)), Instant::now());
        client.write_all(b"GET /0 HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        // Who is slow has its time.
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_secs(50)).await;
            client.read_exact(&mut [0; 4096]).await.unwrap();
        }
        assert!(!task.is_finished());
        task.await.unwrap();
        assert_eq!(began.elapsed().as_secs(), 5 * 50 + 60);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_idle_when_the_server_stops_is_closed_at_once() {
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
    async fn a_call_comes_to_its_end_when_the_server_stops_and_no_other_is_taken() {
        let mut test = connect();
        test.get("/5").await;
        while test.service.0.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        test.stop.take();
        test.get("/6").await;
        assert!(!test.answer().await, "it says that it closes");
        let calls = test.service.0.clone();
        assert_eq!(test.closed().await, (String::new(), 5));
        assert_eq!(*calls.lock().unwrap(), ["/5"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_hangs_up_cancels_its_call() {
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
    async fn who_still_sends_what_nobody_reads_gets_the_answer_too() {
        let head = "POST /0 HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n";
        let mut test = connect();
        test.send(head).await;
        test.send(&"7".repeat(100_000)).await;
        test.answer().await;
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_lingers_for_long() {
        let mut test = connect();
        test.send("POST /0 HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n").await;
        test.answer().await;
        assert_eq!(test.client.read(&mut [0]).await.unwrap(), 0);
        assert_eq!(test.began.elapsed().as_secs(), 0, "our side is closed at once");
        test.task.await.unwrap();
        assert_eq!(test.began.elapsed().as_secs(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_beyond_all_measure_is_refused() {
        let mut test = connect();
        let line =
            format!("GET /0 HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n", "7".repeat(HEAD_BYTES as usize));
        // It may hang up while the rest is still on its way.
        let _ = test.client.write_all(line.as_bytes()).await;
        let (said, after) = test.closed().await;
        assert!(said.starts_with("HTTP/1.1 431 "), "{said}");
        assert_eq!(after, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_handshake_has_as_long_as_a_head() {
        let began = Instant::now();
        let pauses = Pauses {
            head: Duration::from_secs(30),
            idle: Duration::from_secs(120),
            write: Duration::from_secs(60),
        };
        let (_stop, stop) = oneshot::channel();
        let address = ([127, 0, 0, 1], 1).into();
        let opening = std::future::pending::<io::Result<DuplexStream>>();
        serve(opening, Terms { service: Sleepy::default(), pauses, address, tells: false, stop }).await;
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
                let sniffing = tokio::spawn(async move {
                    let sniffed = sniff(&mut server).await.unwrap();
                    let mut rest = Vec::new();
                    server.read_to_end(&mut rest).await.unwrap();
                    (sniffed.http2, [&sniffed.before[..], &rest].concat())
                });
                client.write_all(sent).await.unwrap();
                drop(client);
                assert_eq!(sniffing.await.unwrap(), (http2, sent.to_vec()), "nothing is lost");
            }
        }
    }
}
