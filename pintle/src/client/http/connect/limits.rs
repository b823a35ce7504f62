use std::time::Duration;

use pintle_proto::sse;

/// Limits of requests and responses.
///
/// ```
/// use pintle::client::http::Limits;
///
/// let mut limits = Limits::default();
/// limits.answer = Some(1 << 20);
/// ```
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum size of a JSON response, and of one event of a stream. Default: `None`, which means
    /// [`Limits::message_bytes`](pintle_proto::Limits::message_bytes) of the client, or 16 MiB without a client.
    pub answer: Option<usize>,
    /// Maximum size of a response head. Default: 64 KiB.
    pub head: usize,
    /// Maximum number of redirects of a request. Default: 5.
    pub redirects: u32,
    /// Maximum number of answered challenges of a request. Default: 3.
    pub challenges: u32,
    /// Timeout of connecting. Default: 10 seconds.
    pub connect: Duration,
    /// Timeout of the response head of notifications, replies and GET streams. Calls have their own timeout. Default: 30 seconds.
    pub head_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            answer: None,
            head: 64 << 10,
            redirects: 5,
            challenges: 3,
            connect: Duration::from_secs(10),
            head_wait: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// Returns the effective limit of a response, given the client's message limit.
    pub(in crate::client::http) fn answer(&self, message_bytes: usize) -> AnswerLimit {
        match self.answer {
            Some(bytes) => AnswerLimit { bytes, name: "`answer` of the `Limits` of `client::http`" },
            None => AnswerLimit { bytes: message_bytes, name: "`message_bytes` of the client's `Limits`" },
        }
    }
}

/// The limit of a response in bytes, and the name of the setting that raises it.
#[derive(Clone, Copy, Debug)]
pub(in crate::client::http) struct AnswerLimit {
    pub(in crate::client::http) bytes: usize,
    pub(in crate::client::http) name: &'static str,
}

impl AnswerLimit {
    pub(in crate::client::http) fn sse(self) -> sse::DecoderLimits {
        // A line has the name of its field too.
        sse::DecoderLimits { line: self.bytes.saturating_add(64), event: self.bytes }
    }

    /// Whether an event stream is malformed because it exceeds the limit.
    pub(in crate::client::http) fn is_exceeded(self, fault: &sse::DecodeError) -> bool {
        matches!(fault, sse::DecodeError::LineTooLong { .. } | sse::DecodeError::EventTooLong { .. })
    }

    /// Describes a malformed event stream, and what to do.
    pub(in crate::client::http) fn explain(self, fault: &sse::DecodeError) -> String {
        match self.is_exceeded(fault) {
            true => format!("{fault}: ask for less, or raise {}", self.name),
            false => fault.to_string(),
        }
    }
}
