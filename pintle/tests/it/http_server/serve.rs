//! An HTTP server on sockets: how many writes and connections calls take, how it ends, and what a service is told.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use pintle::server::{
    PeerAddress,
    http::{
        BodyLimits, HttpServer, HttpServing, ReadBodyError, RequestBody, Shutdown, ShutdownSignal, read_body,
    },
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::timeout,
};
use tower_service::Service;

/// A service of a function.
#[derive(Clone)]
struct Answers<F>(F);

impl<F, Fut, B> Service<Request<RequestBody>> for Answers<F>
where
    F: Fn(Request<RequestBody>) -> Fut,
    Fut: Future<Output = Response<B>> + Send + 'static,
{
    type Response = Response<B>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let answer = (self.0)(request);
        Box::pin(async move { Ok(answer.await) })
    }
}

/// Answers with what it is sent.
async fn echo(request: Request<RequestBody>) -> Response<String> {
    match read_body(request.into_body(), &BodyLimits::default()).await {
        Ok(body) => Response::new(String::from_utf8(body.into()).unwrap()),
        Err(ReadBodyError::Refused(refusal)) => Response::new(refusal.body(None)),
        Err(ReadBodyError::Broken) => Response::new("broken".into()),
    }
}

/// A body that others write.
struct Written(mpsc::Receiver<Bytes>);

impl Body for Written {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(ready!(self.0.poll_recv(cx)).map(|data| Ok(Frame::data(data))))
    }
}

/// A socket that counts how often it is written to.
pub(crate) struct Counted {
    pub(crate) socket: TcpStream,
    pub(crate) writes: Arc<AtomicUsize>,
    pub(crate) vectored: bool,
}

impl Counted {
    fn count(&self, wrote: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if wrote.is_ready() {
            self.writes.fetch_add(1, Ordering::SeqCst);
        }
        wrote
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buf)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.socket).poll_write(cx, buf);
        self.count(wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.socket).poll_write_vectored(cx, bufs);
        self.count(wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.vectored
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// A server of this function, on a port of its own.
pub(super) async fn serving<F, Fut, B>(answer: F, signal: &ShutdownSignal) -> HttpServing
where
    F: Fn(Request<RequestBody>) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    HttpServer::new(Answers(answer)).shutdown_signal(signal.clone()).serve(listener().await).unwrap()
}

/// Nothing here takes this long unless it hangs.
pub(super) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(20), future).await.expect("it hangs")
}

/// Sends a POST on a connection that is kept, and reads the answer to it.
async fn post(client: &mut TcpStream, body: &str) -> String {
    let length = body.len();
    let request = format!("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{body}");
    client.write_all(request.as_bytes()).await.unwrap();
    answer(client, body).await
}

/// Reads an answer that ends with this.
async fn answer(client: &mut TcpStream, end: &str) -> String {
    let mut text = Vec::new();
    soon(async {
        while !text.ends_with(end.as_bytes()) || !text.windows(4).any(|four| four == b"\r\n\r\n") {
            assert_ne!(client.read_buf(&mut text).await.unwrap(), 0, "{}", String::from_utf8_lossy(&text));
        }
    })
    .await;
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn head_and_body_leave_in_one_write_and_the_connection_is_kept() {
    for vectored in [true, false] {
        let (writes, connections) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let server = HttpServer::new(Answers(echo)).tls({
            let (writes, connections) = (writes.clone(), connections.clone());
            move |socket: TcpStream| {
                assert!(socket.nodelay().unwrap(), "nothing waits for more to send");
                connections.fetch_add(1, Ordering::SeqCst);
                let writes = writes.clone();
                async move { Ok(Counted { socket, writes, vectored }) }
            }
        });
        let serving = server.serve(listener().await).unwrap();
        let mut client = TcpStream::connect(serving.address()).await.unwrap();
        // A small answer, and one that does not fit the first buffer.
        let large = "7".repeat(9_000);
        for n in 0..10 {
            post(&mut client, if n == 5 { &large } else { "small" }).await;
        }
        assert_eq!(writes.load(Ordering::SeqCst), 10, "vectored: {vectored}");
        assert_eq!(connections.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn the_first_event_of_a_stream_leaves_with_its_head_and_later_ones_at_once() {
    let (events, receiver) = mpsc::channel(8);
    let receiver = Arc::new(std::sync::Mutex::new(Some(receiver)));
    let writes = Arc::new(AtomicUsize::new(0));
    let counted = writes.clone();
    let answer_with = move |_| {
        let body = Written(receiver.lock().unwrap().take().unwrap());
        async move { Response::new(body) }
    };
    let server = HttpServer::new(Answers(answer_with)).tls(move |socket| {
        let writes = counted.clone();
        async move { Ok(Counted { socket, writes, vectored: true }) }
    });
    let serving = server.serve(listener().await).unwrap();
    events.send("data: 1\n\n".into()).await.unwrap();
    let mut client = TcpStream::connect(serving.address()).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    answer(&mut client, "data: 1\n\n\r\n").await;
    assert_eq!(writes.load(Ordering::SeqCst), 1);
    let mut later = [0; 14];
    events.send("data: 2\n\n".into()).await.unwrap();
    soon(client.read_exact(&mut later)).await.unwrap();
    assert_eq!(&later, b"9\r\ndata: 2\n\n\r\n");
    assert_eq!(writes.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_service_reads_the_address_of_the_client() {
    let serving = serving(
        |request| async move {
            let PeerAddress(address) = request.extensions().get().unwrap();
            Response::new(address.to_string())
        },
        &ShutdownSignal::new(),
    )
    .await;
    let mut client = TcpStream::connect(serving.address()).await.unwrap();
    let own: SocketAddr = client.local_addr().unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    answer(&mut client, &own.to_string()).await;
}

#[tokio::test]
async fn shutdown_drains_ends_streams_with_a_result_and_refuses_the_rest() {
    let signal = ShutdownSignal::new();
    let (began, mut calls) = mpsc::channel(8);
    let watched = signal.clone();
    let serving = serving(
        move |request: Request<RequestBody>| {
            let (began, signal) = (began.clone(), watched.clone());
            async move {
                began.send(()).await.unwrap();
                let (events, body) = mpsc::channel(1);
                if request.uri().path() == "/listen" {
                    tokio::spawn(async move {
                        signal.wait().await;
                        events.send("the result".into()).await.unwrap();
                    });
                } else {
                    events.send("an answer".into()).await.unwrap();
                }
                Response::new(Written(body))
            }
        },
        &signal,
    )
    .await;
    let address = serving.address();
    let mut idle = TcpStream::connect(address).await.unwrap();
    idle.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    answer(&mut idle, "0\r\n\r\n").await;
    let mut listening = TcpStream::connect(address).await.unwrap();
    listening.write_all(b"GET /listen HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    calls.recv().await.unwrap();
    calls.recv().await.unwrap();

    let shutdown = soon(serving.shutdown(Duration::from_secs(60))).await;
    let mut expected = Shutdown::default();
    expected.drained = 2;
    assert_eq!(shutdown, expected);
    let mut text = String::new();
    soon(listening.read_to_string(&mut text)).await.unwrap();
    assert!(text.ends_with("\r\nthe result\r\n0\r\n\r\n"), "{text}");
    assert_eq!(soon(idle.read(&mut [0])).await.unwrap(), 0, "it was closed");
    let refused = TcpStream::connect(address).await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
}

/// A server whose calls never end, and a channel that closes when the last of them is dropped.
async fn endless() -> (HttpServing, mpsc::Receiver<()>) {
    let (began, calls) = mpsc::channel(8);
    let serving = serving(
        move |_| {
            let began = began.clone();
            async move {
                began.send(()).await.unwrap();
                poll_fn(|_| Poll::<()>::Pending).await;
                Response::new(String::new())
            }
        },
        &ShutdownSignal::new(),
    )
    .await;
    (serving, calls)
}

#[tokio::test]
async fn what_does_not_end_within_the_grace_is_cut_off_and_reported() {
    let (serving, mut calls) = endless().await;
    let mut client = TcpStream::connect(serving.address()).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    calls.recv().await.unwrap();
    let shutdown = soon(serving.shutdown(Duration::ZERO)).await;
    assert_eq!((shutdown.drained, shutdown.aborted), (0, 1));
    assert!(!matches!(soon(client.read(&mut [0])).await, Ok(1..)));
    assert_eq!(soon(calls.recv()).await, None, "the call was dropped");
}

#[tokio::test]
async fn a_dropped_handle_lets_the_server_go_on() {
    let (serving, mut calls) = endless().await;
    let (address, handle) = (serving.address(), serving.handle());
    drop(serving);
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    assert!(soon(calls.recv()).await.is_some(), "it is served");
    handle.close(Duration::ZERO);
    assert_eq!(soon(calls.recv()).await, None, "the call was dropped");
    assert!(!matches!(soon(client.read(&mut [0])).await, Ok(1..)));
}

#[tokio::test]
async fn what_is_waited_for_can_be_shut_down() {
    let (serving, mut calls) = endless().await;
    let mut client = TcpStream::connect(serving.address()).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    calls.recv().await.unwrap();
    // Whoever stops waiting has stopped nothing, and may wait again.
    tokio::select! {
        biased;
        _ = serving.wait() => panic!("nobody has asked for it"),
        () = std::future::ready(()) => {}
    }
    let handle = serving.handle();
    let (waited, again, ()) =
        soon(async { tokio::join!(serving.wait(), serving.wait(), async { handle.close(Duration::ZERO) }) })
            .await;
    assert_eq!((waited.aborted, again), (1, waited));
    assert_eq!(soon(serving.shutdown(Duration::from_secs(60))).await, waited, "it is over");
}

#[cfg(feature = "http2")]
mod http2 {
    use hyper::client::conn::http2;
    use hyper_util::rt::{TokioExecutor, TokioIo};

    use super::*;

    async fn connect(serving: &HttpServing) -> http2::SendRequest<String> {
        let io = TokioIo::new(TcpStream::connect(serving.address()).await.unwrap());
        let (client, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        client
    }

    fn request(body: &str) -> Request<String> {
        Request::post("http://localhost/").body(body.into()).unwrap()
    }

    #[tokio::test]
    async fn many_calls_on_one_connection() {
        let serving = serving(echo, &ShutdownSignal::new()).await;
        let mut client = connect(&serving).await;
        let answers: Vec<_> = (0..50).map(|n| client.send_request(request(&n.to_string()))).collect();
        for (n, answer) in answers.into_iter().enumerate() {
            let body = soon(answer).await.unwrap().into_body();
            assert_eq!(read_body(body, &BodyLimits::default()).await.unwrap(), n.to_string());
        }
        let shutdown = soon(serving.shutdown(Duration::from_secs(60))).await;
        assert_eq!((shutdown.drained, shutdown.aborted), (1, 0));
    }

    #[tokio::test]
    async fn calls_end_with_the_server() {
        let (serving, mut calls) = endless().await;
        let mut client = connect(&serving).await;
        let answer = client.send_request(request(""));
        calls.recv().await.unwrap();
        let shutdown = soon(serving.shutdown(Duration::ZERO)).await;
        assert_eq!((shutdown.drained, shutdown.aborted), (0, 1));
        assert!(soon(answer).await.is_err());
        assert_eq!(soon(calls.recv()).await, None, "the call was dropped");
    }
}
