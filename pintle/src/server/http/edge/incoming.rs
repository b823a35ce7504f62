use std::{
    error::Error as StdError,
    fmt,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::quiet::Quiet;

/// The body of a request that an [`HttpServer`](crate::server::http::HttpServer) took.
#[derive(Debug)]
pub struct RequestBody {
    body: hyper::body::Incoming,
    /// Who is to be told if it is not read to its end.
    quiet: Arc<Quiet>,
    unread: bool,
}

impl RequestBody {
    pub(in crate::server::http) fn new(body: hyper::body::Incoming, quiet: Arc<Quiet>) -> Self {
        let unread = !body.is_end_stream();
        Self { body, quiet, unread }
    }

    /// Where its request came from, if the extensions do not say so.
    pub(in crate::server::http) fn untold(&self) -> Option<PeerAddress> {
        self.quiet.untold
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if self.unread && !self.body.is_end_stream() {
            self.quiet.left_unread();
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

/// Why a body did not come to its end.
#[derive(Debug)]
pub struct BodyError {
    error: hyper::Error,
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the body broke off: {}", self.error)
    }
}

impl StdError for BodyError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.error.source()
    }
}

/// Where a request came from: an extension of every request that an [`HttpServer`](crate::server::http::HttpServer) took.
///
/// Behind a proxy it is the proxy's.
#[expect(clippy::exhaustive_structs, reason = "a name for an address")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PeerAddress(pub SocketAddr);
