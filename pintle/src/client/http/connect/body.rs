use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf, Bytes, BytesMut};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::timeout;

use super::pool::ConnectionLease;

pub(in crate::client::http) use crate::error::BoxError;
use crate::message_log::BodyLog;

/// The body of a request, completely in memory, so that head and body are sent in one write.
#[derive(Clone, Debug, Default)]
pub struct Body(Bytes);

impl Body {
    /// Returns the content.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = std::mem::take(&mut self.get_mut().0);
        Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}

/// The body of a response.
pub(in crate::client::http) enum ResponseBody {
    /// A body from the connection pool.
    Ours(Incoming, ConnectionLease),
    Theirs(Pin<Box<dyn http_body::Body<Data = Bytes, Error = BoxError> + Send>>),
    /// A body that is logged as it is read.
    Logged(Box<(Self, BodyLog)>),
}

/// Why a body could not be collected.
pub(in crate::client::http) enum CollectError {
    TooLong,
    Broken(BoxError),
}

impl ResponseBody {
    pub(in crate::client::http) fn new<B>(body: B) -> Self
    where
        B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        Self::Theirs(Box::pin(ErasedBody(Box::pin(body))))
    }

    /// Returns this body, logged as it is read.
    pub(in crate::client::http) fn logged(self, log: BodyLog) -> Self {
        Self::Logged(Box::new((self, log)))
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self {
            Self::Ours(body, kept) => {
                kept.poll_frame(body, cx).map(|piece| piece.map(|piece| piece.map_err(Into::into)))
            }
            Self::Theirs(body) => body.as_mut().poll_frame(cx),
            Self::Logged(logged) => {
                let (body, log) = &mut **logged;
                let frame = ready!(body.poll_frame(cx));
                if let Some(data) = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()) {
                    log.data(data);
                }
                Poll::Ready(frame)
            }
        }
    }

    /// Returns the next chunk; `None` at the end.
    pub(in crate::client::http) async fn next(&mut self) -> Option<Result<Bytes, BoxError>> {
        loop {
            let frame = std::future::poll_fn(|cx| self.poll_frame(cx)).await?;
            match frame.map(Frame::into_data) {
                Ok(Ok(data)) if data.is_empty() => {}
                Ok(Ok(data)) => return Some(Ok(data)),
                // Trailers say nothing.
                Ok(Err(_)) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Whether the body is known to be complete.
    fn is_over(&self) -> bool {
        match self {
            Self::Ours(body, _) => body.is_end_stream(),
            Self::Theirs(body) => body.is_end_stream(),
            Self::Logged(logged) => logged.0.is_over(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Ours(body, _) => body.size_hint(),
            Self::Theirs(body) => body.size_hint(),
            Self::Logged(logged) => logged.0.size_hint(),
        }
    }

    /// Reads the whole body, up to a limit.
    pub(in crate::client::http) async fn collect(mut self, limit: usize) -> Result<Bytes, CollectError> {
        // What is announced is not allocated: it need not come.
        if self.size_hint().lower() > limit as u64 {
            return Err(CollectError::TooLong);
        }
        let mut all = BytesMut::new();
        let mut only = Bytes::new();
        while let Some(piece) = self.next().await {
            let piece = piece.map_err(CollectError::Broken)?;
            if all.len() + only.len() + piece.len() > limit {
                return Err(CollectError::TooLong);
            }
            if all.is_empty() && only.is_empty() {
                only = piece;
            } else {
                if all.is_empty() {
                    all.extend_from_slice(&std::mem::take(&mut only));
                }
                all.extend_from_slice(&piece);
            }
            if self.is_over() {
                break;
            }
        }
        Ok(if all.is_empty() { only } else { all.freeze() })
    }
}

impl ResponseBody {
    /// Reads the beginning of the body, up to a size and a time. Errors end it early.
    pub(in crate::client::http) async fn start(mut self, limit: usize, wait: Duration) -> Bytes {
        let mut start = BytesMut::new();
        let reading = async {
            while start.len() < limit
                && let Some(Ok(piece)) = self.next().await
            {
                let room = limit - start.len();
                start.extend_from_slice(piece.get(..room).unwrap_or(&piece));
            }
        };
        // What has come by then is enough for an error message.
        let _ = timeout(wait, reading).await;
        start.freeze()
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").finish_non_exhaustive()
    }
}

/// The body of a response that is read as it arrives, from [`Requests::stream`](crate::client::http::Requests::stream).
#[derive(Debug)]
pub struct ResponseStream(ResponseBody);

impl ResponseStream {
    pub(in crate::client::http) fn new(body: ResponseBody) -> Self {
        Self(body)
    }
}

impl http_body::Body for ResponseStream {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.get_mut().0.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_over()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

/// A body with its data and error types erased.
struct ErasedBody<B>(Pin<Box<B>>);

impl<B> http_body::Body for ErasedBody<B>
where
    B: http_body::Body<Data: Send, Error: Into<BoxError>>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(self.get_mut().0.as_mut().poll_frame(cx));
        Poll::Ready(frame.map(|frame| {
            let frame = frame.map_err(Into::into)?;
            Ok(frame.map_data(|mut data| data.copy_to_bytes(data.remaining())))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
