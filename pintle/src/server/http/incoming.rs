use std::{
    error::Error as StdError,
    fmt,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// The body of a request that an [`HttpServer`](super::HttpServer) took.
#[derive(Debug)]
pub struct RequestBody {
    body: hyper::body::Incoming,
}

impl RequestBody {
    pub(super) fn new(body: hyper::body::Incoming) -> Self {
        Self { body }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Pin::new(&mut self.body).poll_frame(cx).map_err(|error| BodyError { error })
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

/// Where a request came from: an extension of every request that an [`HttpServer`](super::HttpServer) took.
///
/// Behind a proxy it is the proxy's.
#[expect(clippy::exhaustive_structs, reason = "a name for an address")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PeerAddress(pub SocketAddr);
