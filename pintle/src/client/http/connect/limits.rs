use std::time::Duration;

use pintle_proto::sse;

/// How much of an answer is taken, and how far a request goes.
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
    /// Bytes of an answer that is JSON, and of one event of a stream. As many as
    /// [`Limits::message_bytes`](pintle_proto::Limits::message_bytes) of the client if `None`; 16 MiB where there is none.
    pub answer: Option<usize>,
    /// Bytes of an answer's head. 64 KiB.
    pub head: usize,
    /// Redirects that one request follows. 5.
    pub redirects: u32,
    /// How often one request is authorized anew. 3.
    pub challenges: u32,
    /// For a connection to be made. 10 seconds.
    pub connect: Duration,
    /// For the head of an answer to what is no call: a notification, an answer of ours, a stream that is opened.
    /// 30 seconds.
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
    /// Follows this limit of the client, where it has none of its own.
    pub(in crate::client::http) fn answer(&self, message_bytes: usize) -> AnswerLimit {
        match self.answer {
            Some(bytes) => AnswerLimit { bytes, name: "`answer` of the `Limits` of `client::http`" },
            None => AnswerLimit { bytes: message_bytes, name: "`message_bytes` of the client's `Limits`" },
        }
    }
}

/// How many bytes an answer may have, and what to raise if that is too little.
#[derive(Clone, Copy, Debug)]
pub(in crate::client::http) struct AnswerLimit {
    pub(in crate::client::http) bytes: usize,
    pub(in crate::client::http) name: &'static str,
}

impl AnswerLimit {
    pub(in crate::client::http) fn sse(self) -> sse::Limits {
        // A line has the name of its field too.
        sse::Limits { line: self.bytes.saturating_add(64), event: self.bytes }
    }

    /// What is wrong with a stream of events, and what to do.
    pub(in crate::client::http) fn explain(self, fault: &sse::Fault) -> String {
        match fault {
            sse::Fault::LineTooLong { .. } | sse::Fault::EventTooLong { .. } => {
                format!("{fault}: ask for less, or raise {}", self.name)
            }
            _ => fault.to_string(),
        }
    }
}
