/// Limits on the resources that a peer can make this side hold.
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
    /// Maximum size of a message, in bytes. 16 MiB by default.
    pub message_bytes: usize,
    /// Maximum number of messages in a batch. 100 by default.
    pub batch: usize,
    /// Maximum number of unanswered requests of one connection. 16,384 by default.
    pub in_flight: usize,
    /// Maximum number of open subscriptions of one connection. 1,024 by default.
    pub subscriptions: usize,
    /// Maximum number of resources that one subscription, or one session, can watch. 1,024 by default.
    pub watched: usize,
    /// Maximum memory of one session or subscription, in bytes: the client's description of itself, and the URIs it
    /// watches. 256 KiB by default.
    pub session_bytes: usize,
    /// Maximum memory of all sessions and subscriptions together, in bytes, not counting the first 4 KiB of each. 64
    /// MiB by default. The [`ledger`](crate::ledger) says how much of it one client has.
    pub sessions_bytes: usize,
    /// Maximum of all bytes that peers make a server hold, not counting the first 4 KiB of each call, session and
    /// message. 512 MiB by default. The [`ledger`](crate::ledger) says how much of it one client has.
    pub held_bytes: usize,
    /// Maximum size of each queue of data from a server that was not consumed yet, in bytes: events, log messages, open
    /// questions, unread refusals. 16 MiB by default.
    pub queued_bytes: usize,
    /// Maximum size of a list that is fetched completely, over all its pages, in bytes. 64 MiB by default.
    pub list_bytes: usize,
    /// Maximum number of pages of a list. 10,000 by default.
    pub list_pages: usize,
    /// Maximum number of rounds of questions in one call. 16 by default.
    pub rounds: u32,
    /// Maximum number of questions in one round. 64 by default.
    pub questions: usize,
    /// Maximum size of a sealed state, in bytes. 256 KiB by default.
    pub state_bytes: usize,
    /// Lifetime of a sealed state, in milliseconds. One hour by default.
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
            held_bytes: 512 << 20,
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

/// The delay, in milliseconds, after which a peer that reached a limit is asked to retry.
pub const RETRY_AFTER_MS: u64 = 1000;
