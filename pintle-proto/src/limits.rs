use pintle_types::{RawObject, RpcError};

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
    /// Maximum length of the URI of a resource that is read, in bytes. 8 KiB by default.
    pub uri_bytes: usize,
    /// Maximum length of the URI of a resource that is watched, in bytes. 2 KiB by default.
    pub watched_uri_bytes: usize,
    /// Maximum number of segments of the URI of a resource that is watched. 64 by default.
    pub watched_uri_segments: usize,
    /// Maximum size of the filter of a subscription, as it was sent, in bytes. 1 MiB by default.
    pub filter_bytes: usize,
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
            uri_bytes: 8 << 10,
            watched_uri_bytes: 2 << 10,
            watched_uri_segments: 64,
            filter_bytes: 1 << 20,
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

impl Limits {
    /// Returns an error if the URI of a resource is too long to be watched.
    ///
    /// # Errors
    ///
    /// It has too many bytes or segments.
    pub fn check_watched(&self, uri: &str) -> Result<(), RpcError> {
        let (bytes, segments) = (self.watched_uri_bytes, self.watched_uri_segments);
        if uri.len() <= bytes && uri.bytes().filter(|byte| *byte == b'/').count() <= segments {
            return Ok(());
        }
        Err(RpcError::invalid_params(format!(
            "a URI that is watched has at most {bytes} bytes and {segments} segments: watch a shorter one"
        )))
    }

    /// Returns an error if the filter of a subscription, as it was sent, is too large to be read.
    ///
    /// # Errors
    ///
    /// It has too many bytes.
    pub fn check_filter(&self, params: &RawObject) -> Result<(), RpcError> {
        let bytes = self.filter_bytes;
        match params.get("notifications").is_some_and(|filter| filter.len() > bytes) {
            false => Ok(()),
            true => Err(RpcError::invalid_params(format!(
                "`notifications` has more than {bytes} bytes: open several subscriptions"
            ))),
        }
    }
}

/// The delay, in milliseconds, after which a peer that reached a limit is asked to retry.
pub const RETRY_AFTER_MS: u64 = 1000;
