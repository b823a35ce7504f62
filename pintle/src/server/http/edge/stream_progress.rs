//! The progress of a response over HTTP/2: its stream is reset if the client grants it no window.

use std::{
    future::Future,
    mem,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};

use super::time::MAX_DURATION;

/// The number of times that the body of a response was polled, doubled, plus one if the last poll returned data.
///
/// hyper polls a body again only when the stream has window for more data, so data that was returned by the last poll waits for
/// the client.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamProgress(Arc<AtomicU64>);

impl StreamProgress {
    /// Records a poll of the body.
    fn polled(&self, has_data: bool) {
        let polls = (self.0.load(Ordering::Relaxed) >> 1) + 1;
        self.0.store(polls << 1 | u64::from(has_data), Ordering::Relaxed);
    }

    /// Returns a number for the data that waits for the client, if any does.
    fn waiting(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|state| state & 1 == 1)
    }
}

/// The progress of the response whose task is spawned next: hyper calls the service and spawns what it returns, one request after
/// the other.
#[derive(Clone, Debug, Default)]
pub(super) struct NextStream(Arc<Mutex<StreamProgress>>);

impl NextStream {
    /// Returns the progress of a new request.
    pub(super) fn begin(&self) -> StreamProgress {
        let progress = StreamProgress::default();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&progress);
        progress
    }

    /// Returns the progress of the request that was begun last; one without data for any other task.
    pub(super) fn take(&self) -> StreamProgress {
        mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

pin_project! {
    /// The task of one request over HTTP/2, which ends if the client takes no piece of the response within the limit. hyper
    /// resets the stream then.
    pub(super) struct StreamTask<F> {
        #[pin]
        request: F,
        progress: StreamProgress,
        limit: Duration,
        timer: Option<(u64, Pin<Box<Sleep>>)>,
    }
}

impl<F> StreamTask<F> {
    pub(super) fn new(request: F, progress: StreamProgress, limit: Duration) -> Self {
        Self { request, progress, limit: limit.min(MAX_DURATION), timer: None }
    }
}

impl<F: Future> Future for StreamTask<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        if this.request.poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let Some(waiting) = this.progress.waiting() else {
            *this.timer = None;
            return Poll::Pending;
        };
        if this.timer.as_ref().is_none_or(|(since, _)| *since != waiting) {
            *this.timer = Some((waiting, Box::pin(sleep(*this.limit))));
        }
        if let Some((_, timer)) = this.timer {
            ready!(timer.as_mut().poll(cx));
            tracing::debug!("reset a stream whose client did not read for too long");
        }
        Poll::Ready(())
    }
}

/// The limit of the data that a body returns at once: the usual limit of a frame of HTTP/2.
const PIECE: usize = 16 << 10;

pin_project! {
    /// A response body in pieces, which records its progress for its [`StreamTask`].
    pub(super) struct PiecewiseBody<B: Body> {
        #[pin]
        body: B,
        rest: Option<B::Data>,
        progress: StreamProgress,
    }
}

impl<B: Body> PiecewiseBody<B> {
    pub(super) fn new(body: B, progress: StreamProgress) -> Self {
        // Without any window, hyper does not poll the body at all.
        progress.polled(true);
        Self { body, rest: None, progress }
    }
}

impl<B: Body> Body for PiecewiseBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let mut this = self.project();
        let frame = loop {
            if let Some(mut rest) = this.rest.take_if(|rest| rest.has_remaining()) {
                let piece = rest.copy_to_bytes(rest.remaining().min(PIECE));
                *this.rest = Some(rest);
                break Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            *this.rest = None;
            match this.body.as_mut().poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) if data.has_remaining() => *this.rest = Some(data),
                    Ok(_) => {}
                    Err(trailers) => break Poll::Ready(Some(Ok(trailers.map_data(|_| Bytes::new())))),
                },
                Poll::Ready(Some(Err(error))) => break Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => break Poll::Ready(None),
                Poll::Pending => break Poll::Pending,
            }
        };
        this.progress.polled(matches!(frame, Poll::Ready(Some(Ok(_)))));
        frame
    }

    fn is_end_stream(&self) -> bool {
        !self.rest.as_ref().is_some_and(Buf::has_remaining) && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.as_ref().map_or(0, Buf::remaining) as u64;
        let mut hint = self.body.size_hint();
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(hint.lower().saturating_add(rest));
        hint
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future::poll_fn};

    use http::{Request, Response};
    use hyper::{body::Incoming, client::conn::http2};
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use tokio::{io::duplex, sync::oneshot, time::Instant};
    use tower_service::Service;

    use super::*;
    use crate::server::http::{
        RequestBody,
        edge::{
            connection::{ConnectionConfig, serve},
            idle::IdleLimits,
        },
    };

    const SECOND: Duration = Duration::from_secs(1);

    /// A body that returns this many bytes at once, this often, and then no more. It holds a value until it is dropped.
    struct Repeated {
        size: usize,
        left: usize,
        endless: bool,
        _alive: Arc<()>,
    }

    impl Body for Repeated {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if self.left == 0 {
                return if self.endless { Poll::Pending } else { Poll::Ready(None) };
            }
            self.left -= 1;
            Poll::Ready(Some(Ok(Frame::data(vec![b'x'; self.size].into()))))
        }
    }

    #[derive(Clone)]
    struct Repeating(Arc<()>);

    impl Service<Request<RequestBody>> for Repeating {
        type Response = Response<Repeated>;
        type Error = Infallible;
        type Future = std::future::Ready<Result<Response<Repeated>, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
            let (size, left, endless) = match request.uri().path() {
                "/silent" => (1, 1, true),
                "/large" => (1 << 20, 1, false),
                _ => (PIECE, usize::MAX, true),
            };
            let body = Repeated { size, left, endless, _alive: self.0.clone() };
            std::future::ready(Ok(Response::new(body)))
        }
    }

    /// A client that grants a stream a window of this size until it reads.
    async fn connect(window: u32) -> (http2::SendRequest<String>, Arc<()>, oneshot::Sender<()>) {
        let (client, server) = duplex(1 << 16);
        let (stop, stopped) = oneshot::channel();
        let alive = Arc::new(());
        let limits = IdleLimits { head: 30 * SECOND, idle: 120 * SECOND, write: 60 * SECOND };
        let config = ConnectionConfig {
            service: Repeating(alive.clone()),
            limits,
            address: ([127, 0, 0, 1], 1).into(),
            owns_service: false,
            stop: stopped,
        };
        tokio::spawn(serve(async { Ok(server) }, config));
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(window).initial_connection_window_size(1 << 24);
        let (client, connection) = builder.handshake(TokioIo::new(client)).await.unwrap();
        tokio::spawn(connection);
        (client, alive, stop)
    }

    async fn get(client: &mut http2::SendRequest<String>, path: &str) -> Incoming {
        let request = Request::get(format!("http://localhost{path}")).body(String::new()).unwrap();
        client.send_request(request).await.unwrap().into_body()
    }

    async fn next(body: &mut Incoming) -> Option<Result<usize, hyper::Error>> {
        let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
        Some(frame.map(|frame| frame.into_data().unwrap().len()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_without_window_is_reset_and_the_others_go_on() {
        for window in [0, 100, 100_000] {
            let (mut client, alive, _stop) = connect(window).await;
            let before = Arc::strong_count(&alive);
            let unread = get(&mut client, "/endless").await;
            let mut silent = get(&mut client, "/silent").await;
            if window > 0 {
                assert_eq!(next(&mut silent).await.unwrap().unwrap(), 1);
            }
            tokio::time::sleep(59 * SECOND).await;
            assert_eq!(Arc::strong_count(&alive), before + 2, "{window}");
            tokio::time::sleep(2 * SECOND).await;
            // A stream on which nothing waits is open for as long as the client likes.
            assert_eq!(Arc::strong_count(&alive), before + usize::from(window > 0), "{window}");
            let mut unread = unread;
            let mut read = 0;
            let error = loop {
                match next(&mut unread).await.unwrap() {
                    Ok(more) => read += more,
                    Err(error) => break error,
                }
            };
            assert!(read <= window as usize, "{error}");
            tokio::time::sleep(600 * SECOND).await;
            // Without another stream, the connection was idle meanwhile, and was closed with its service.
            assert_eq!(Arc::strong_count(&alive), if window > 0 { before + 1 } else { 1 }, "{window}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_gets_all() {
        let (mut client, alive, _stop) = connect(1 << 14).await;
        let before = Arc::strong_count(&alive);
        let start = Instant::now();
        let mut body = get(&mut client, "/large").await;
        let mut read = 0;
        while let Some(more) = next(&mut body).await {
            read += more.unwrap();
            tokio::time::sleep(40 * SECOND).await;
        }
        assert_eq!(read, 1 << 20);
        assert!(start.elapsed() > 600 * SECOND);
        assert_eq!(Arc::strong_count(&alive), before);
    }
}
