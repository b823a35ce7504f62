use std::time::Duration;

use pintle_proto::sse;

/// How much of an answer is taken, and how far a request goes.
///
/// ```
/// use pintle::client::http::Limits;
///
/// let mut limits = Limits::default();
/// limits.answer = 1 << 20;
/// ```
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of an answer that is JSON, and of one event of a stream. 16 MiB.
    pub answer: usize,
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
            answer: 16 << 20,
            head: 64 << 10,
            redirects: 5,
            challenges: 3,
            connect: Duration::from_secs(10),
            head_wait: Duration::from_secs(30),
        }
    }
}

impl Limits {
    pub(super) fn sse(&self) -> sse::Limits {
        // A line has the name of its field too.
        sse::Limits { line: self.answer.saturating_add(64), event: self.answer }
    }
}
