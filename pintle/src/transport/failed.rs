use std::{borrow::Cow, fmt};

use pintle_proto::http::Probed;
use pintle_types::{RequestId, RpcError};

/// Why one request has no answer, while the connection goes on.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct Failed {
    /// The request. Only the transport and its driver need to know.
    pub request: Option<RequestId>,
    /// The HTTP status, if there was an answer with one.
    pub status: Option<u16>,
    /// What the server said of it: an error of the protocol.
    pub error: Option<RpcError>,
    /// Why the server refused it, in the server's own words: one line, cut, control characters escaped.
    pub reason: Option<Box<str>>,
    /// What it says about the server, while a connection is being opened.
    pub probed: Probed,
    /// Whether the server may have got the request.
    pub delivery: Delivery,
    /// What happened, and what to do.
    pub said: Cow<'static, str>,
}

/// Whether a request that failed may have been carried out.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Delivery {
    /// The server may have got it.
    Maybe,
    /// It did not get as far as that.
    Never,
    /// The server did not take it, because the session that it belongs to is gone.
    LostSession,
}

impl Failed {
    /// A request whose fate is unknown.
    pub fn new(said: impl Into<Cow<'static, str>>) -> Self {
        Self {
            request: None,
            status: None,
            error: None,
            reason: None,
            probed: Probed::Nothing,
            delivery: Delivery::Maybe,
            said: said.into(),
        }
    }

    /// It was this request.
    pub fn of(mut self, request: &RequestId) -> Self {
        self.request = Some(request.clone());
        self
    }

    /// The server did not get it.
    pub fn undelivered(mut self) -> Self {
        self.delivery = Delivery::Never;
        self
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said)
    }
}

impl std::error::Error for Failed {}
