use std::{borrow::Cow, fmt};

use pintle_proto::http::Probed;
use pintle_types::{RequestId, RpcError};

/// The failure of a single request, while the connection stays open.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct Failed {
    pub(crate) request: Option<RequestId>,
    /// The HTTP status of the response, if there was one.
    pub status: Option<u16>,
    /// The JSON-RPC error in the response, if there was one.
    pub error: Option<RpcError>,
    /// The text of the server's response: one line, shortened, control characters escaped.
    pub reason: Option<Box<str>>,
    /// The evidence about the server's era, while a connection is being opened.
    pub(crate) probed: Probed,
    /// Whether the server may have received the request.
    pub delivery: Delivery,
    /// Whether the cause is in this process, and the server may well be running.
    pub is_local: bool,
    /// Whether the answer exceeds a limit of this process: it would be the same again.
    pub is_too_long: bool,
    /// The error message, with what to do.
    pub message: Cow<'static, str>,
}

/// Whether a failed request may have been executed.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Delivery {
    /// The server may have received it.
    Maybe,
    /// The server did not receive it.
    Never,
    /// The server rejected it, because its session no longer exists.
    LostSession,
}

impl Failed {
    /// Creates the failure of a request that may have been delivered.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            request: None,
            status: None,
            error: None,
            reason: None,
            probed: Probed::Nothing,
            delivery: Delivery::Maybe,
            is_local: false,
            is_too_long: false,
            message: message.into(),
        }
    }

    /// Sets the request that failed.
    pub fn of(mut self, request: &RequestId) -> Self {
        self.request = Some(request.clone());
        self
    }

    /// States that the server did not receive the request.
    pub fn undelivered(mut self) -> Self {
        self.delivery = Delivery::Never;
        self
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failed {}
