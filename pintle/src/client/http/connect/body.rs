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

/// The body of a request of ours: all of it is there from the start, so that head and body leave in one write.
#[derive(Clone, Debug, Default)]
pub struct Body(Bytes);

impl Body {
    /// All of it.
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

/// The body of an answer, whoever's it is.
pub(in crate::client::http) enum ResponseBody {
    /// Over a connection of our own.
    Ours(Incoming, ConnectionLease),
    Theirs(Pin<Box<dyn http_body::Body<Data = Bytes, Error = BoxError> + Send>>),
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
        Self::Theirs(Box::pin(Plain(Box::pin(body))))
    }

    /// The next piece; `None` at the end.
    pub(in crate::client::http) async fn next(&mut self) -> Option<Result<Bytes, BoxError>> {
        loop {
            let frame = std::future::poll_fn(|cx| match self {
                Self::Ours(body, kept) => {
                    kept.poll_frame(body, cx).map(|piece| piece.map(|piece| piece.map_err(Into::into)))
                }
                Self::Theirs(body) => body.as_mut().poll_frame(cx),
            })
            .await?;
            match frame.map(Frame::into_data) {
                Ok(Ok(data)) if data.is_empty() => {}
                Ok(Ok(data)) => return Some(Ok(data)),
                // Trailers say nothing.
                Ok(Err(_)) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Whether it is known that nothing more will come.
    fn is_over(&self) -> bool {
        match self {
            Self::Ours(body, _) => body.is_end_stream(),
            Self::Theirs(body) => body.is_end_stream(),
        }
    }

    /// All of it, if that is not too much.
    pub(in crate::client::http) async fn collect(mut self, most: usize) -> Result<Bytes, CollectError> {
        // What is announced is not allocated: it need not come.
        let announced = match &self {
            Self::Ours(body, _) => body.size_hint(),
            Self::Theirs(body) => body.size_hint(),
        };
        if announced.lower() > most as u64 {
            return Err(CollectError::TooLong);
        }
        let mut all = BytesMut::new();
        let mut only = Bytes::new();
        while let Some(piece) = self.next().await {
            let piece = piece.map_err(CollectError::Broken)?;
            if all.len() + only.len() + piece.len() > most {
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
    /// What comes of it in that time, up to so much: also if there is more, or it breaks off.
    pub(in crate::client::http) async fn start(mut self, most: usize, wait: Duration) -> Bytes {
        let mut start = BytesMut::new();
        let reading = async {
            while start.len() < most
                && let Some(Ok(piece)) = self.next().await
            {
                let room = most - start.len();
                start.extend_from_slice(piece.get(..room).unwrap_or(&piece));
            }
        };
        // Whoever refuses and does not end has said enough.
        let _ = timeout(wait, reading).await;
        start.freeze()
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").finish_non_exhaustive()
    }
}

/// A body in the one type of data and error that is used here.
struct Plain<B>(Pin<Box<B>>);

impl<B> http_body::Body for Plain<B>
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
