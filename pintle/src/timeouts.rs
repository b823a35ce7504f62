use std::time::Duration;

#[cfg(feature = "client")]
use tokio::time::Instant;

/// How long to wait for anything.
///
/// ```
/// use std::time::Duration;
/// use pintle::Timeouts;
///
/// let mut timeouts = Timeouts::default();
/// timeouts.call = Duration::from_secs(120);
/// ```
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Timeouts {
    /// For the answer to one request of ours. 30 seconds.
    ///
    /// Each round of a call that the server interrupts with questions has this long; the time that it takes to answer
    /// them does not count.
    pub call: Duration,
    /// For a request whose time progress extends, all in all. 10 minutes.
    pub call_max: Duration,
    /// Whether progress starts a call's time anew. No: a call may ask for it.
    pub progress_extends: bool,
    /// For the answer to the first question of an opening, which old servers may ignore. 3 seconds. Where no other
    /// question could follow it has as long as a handshake.
    pub probe: Duration,
    /// For the answer to a handshake: starting may take a while. 15 seconds.
    pub initialize: Duration,
    /// For writing what is left, and for the other side to go, when a connection is closed. 5 seconds.
    pub shutdown: Duration,
    /// For calls that a server still runs when its client has hung up, on any transport but HTTP. 1 second: hosts end a
    /// process that does not go soon after its standard input was closed.
    pub disconnect: Duration,
    /// After how long without any message the other side is asked for a sign of life; not at all by default. After
    /// three such times without an answer the connection is closed.
    pub keepalive: Option<Duration>,
    /// For the answer to a question that a server's call asks. 1 hour, as for a call that is made again with the answer
    /// ([`Limits::state_ttl_ms`](crate::proto::Limits::state_ttl_ms)). A call may say otherwise of its own questions.
    pub question: Duration,
    /// For how long a call of a session over HTTP goes on whose client has hung up and did not come back. 10 minutes; then
    /// it is ended with an error. Without a session a call ends with its client.
    pub detached_call: Duration,
    /// For how long a session over HTTP may be idle before it is forgotten. 30 minutes.
    pub idle_session: Duration,
    /// The same for a session whose client has sent nothing since its handshake, not even `notifications/initialized`.
    /// 60 seconds.
    pub uninitialized_session: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            call: Duration::from_secs(30),
            call_max: Duration::from_secs(600),
            progress_extends: false,
            probe: Duration::from_secs(3),
            initialize: Duration::from_secs(15),
            shutdown: Duration::from_secs(5),
            disconnect: Duration::from_secs(1),
            keepalive: None,
            question: Duration::from_secs(3600),
            detached_call: Duration::from_secs(600),
            idle_session: Duration::from_secs(1800),
            uninitialized_session: Duration::from_secs(60),
        }
    }
}

/// So long after a moment; the largest durations mean "never" and are cut to a century.
#[cfg(feature = "client")]
pub(crate) fn after(moment: Instant, duration: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    moment + duration.min(CENTURY)
}

/// A time that passed, as people want to read it: three digits or so.
pub(crate) fn rounded(duration: Duration) -> Duration {
    let step = match duration.as_millis() {
        0 => return duration,
        1..1_000 => 1,
        1_000..10_000 => 10,
        _ => 100,
    };
    let step = Duration::from_millis(step).as_nanos();
    let nanos = (duration.as_nanos() + step / 2) / step * step;
    u64::try_from(nanos).map_or(duration, Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_few_digits() {
        for (nanos, read) in [
            (0, "0ns"),
            (1_500, "1.5µs"),
            (250_000_000, "250ms"),
            (999_600_000, "1s"),
            (1_234_567_890, "1.23s"),
            (29_999_874_000, "30s"),
            (30_049_000_000, "30s"),
            (600_123_456_789, "600.1s"),
            (u64::MAX, "18446744073.7s"),
        ] {
            assert_eq!(format!("{:?}", rounded(Duration::from_nanos(nanos))), read);
        }
    }
}
