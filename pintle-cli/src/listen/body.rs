use std::{
    error::Error as StdError,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pintle::{client::http::ResponseStream, message_log::BodyLog};
use tokio::sync::mpsc;

/// The body of a response.
pub(crate) enum ServedBody {
    Full(Bytes),
    /// A body that is passed on and logged as it arrives.
    Passed(Box<(ResponseStream, BodyLog)>),
    /// A response of a server.
    Mcp(pintle::server::http::Body),
    /// Pieces of an event stream. It ends with its sender.
    Events(mpsc::Receiver<Bytes>),
}

impl ServedBody {
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        Self::Full(bytes.into())
    }
}

impl Body for ServedBody {
    type Data = Bytes;
    type Error = Box<dyn StdError + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match &mut *self {
            Self::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            Self::Passed(passed) => {
                let (body, log) = &mut **passed;
                let frame = ready!(Pin::new(body).poll_frame(cx));
                if let Some(data) = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()) {
                    log.data(data);
                }
                Poll::Ready(frame)
            }
            Self::Mcp(body) => match ready!(Pin::new(body).poll_frame(cx)) {
                Some(Ok(frame)) => Poll::Ready(Some(Ok(frame))),
                Some(Err(error)) => match error {},
                None => Poll::Ready(None),
            },
            Self::Events(pieces) => {
                pieces.poll_recv(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(bytes) => bytes.is_empty(),
            Self::Passed(passed) => passed.0.is_end_stream(),
            Self::Mcp(body) => body.is_end_stream(),
            Self::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Passed(passed) => passed.0.size_hint(),
            Self::Mcp(body) => body.size_hint(),
            Self::Events(_) => SizeHint::default(),
        }
    }
}
