use std::{
    error::Error as StdError,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::idle::IdleClock;
use crate::server::access::peer_address::PeerAddress;

/// The body of a request received by an [`HttpServer`](crate::server::http::HttpServer).
#[derive(Debug)]
pub struct RequestBody {
    body: hyper::body::Incoming,
    /// Notified if the body is dropped before its end.
    clock: Arc<IdleClock>,
    unread: bool,
}

impl RequestBody {
    pub(in crate::server::http) fn new(body: hyper::body::Incoming, clock: Arc<IdleClock>) -> Self {
        let unread = !body.is_end_stream();
        Self { body, clock, unread }
    }

    /// Returns the client's address if it is not in the extensions of the request.
    pub(in crate::server::http) fn lazy_peer_address(&self) -> Option<PeerAddress> {
        self.clock.lazy_peer_address
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if self.unread && !self.body.is_end_stream() {
            self.clock.body_left_unread();
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_none() {
            self.unread = false;
        }
        Poll::Ready(frame.map(|frame| frame.map_err(|error| BodyError { error })))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An error that occurred while a body was received.
#[derive(Debug)]
pub struct BodyError {
    error: hyper::Error,
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed to receive the body: {}", self.error)
    }
}

impl StdError for BodyError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.error.source()
    }
}
