/// How much of anything a peer may make this side hold.
///
/// ```
/// use pintle_proto::Limits;
///
/// let mut limits = Limits::default();
/// limits.rounds = 4;
/// ```
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of one message. 16 MiB.
    pub message_bytes: usize,
    /// Messages in one batch. 100.
    pub batch: usize,
    /// Requests of one connection that are not answered yet. 16,384.
    pub in_flight: usize,
    /// Subscriptions that one connection may hold open. 1,024.
    pub subscriptions: usize,
    /// Resources that one subscription, or one session, may watch. 1,024.
    pub watched: usize,
    /// Bytes that one session, or one subscription, makes this side keep: what a client says of itself, and what it watches.
    /// 256 KiB.
    pub session_bytes: usize,
    /// The same of all sessions and subscriptions together, beyond 4 KiB that each may keep in any case. 64 MiB.
    pub sessions_bytes: usize,
    /// Bytes of what a server says and nobody has looked at yet, in each place where that waits: events, log messages,
    /// questions that are open, refusals that were not read. 16 MiB.
    pub queued_bytes: usize,
    /// Bytes of a list that is asked for as a whole, over all its pages. 64 MiB.
    pub list_bytes: usize,
    /// Pages of a list. 10,000.
    pub list_pages: usize,
    /// Rounds of questions in one call. 16.
    pub rounds: u32,
    /// Questions in one round. 64.
    pub questions: usize,
    /// Bytes of a sealed state. 256 KiB.
    pub state_bytes: usize,
    /// How long a sealed state is good for, in milliseconds. One hour.
    pub state_ttl_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 16 << 20,
            batch: 100,
            in_flight: 16_384,
            subscriptions: 1024,
            watched: 1024,
            session_bytes: 256 << 10,
            sessions_bytes: 64 << 20,
            queued_bytes: 16 << 20,
            list_bytes: 64 << 20,
            list_pages: 10_000,
            rounds: 16,
            questions: 64,
            state_bytes: 256 << 10,
            state_ttl_ms: 3_600_000,
        }
    }
}

/// When a peer that wants more than it may have at a time is told to try again, in milliseconds.
pub const RETRY_AFTER_MS: u64 = 1000;
