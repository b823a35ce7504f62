use std::time::Duration;

#[cfg(feature = "client")]
use tokio::time::Instant;

/// Timeouts of clients and servers.
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
    /// Timeout for the response to one request. Default: 30 seconds.
    ///
    /// It applies to each round of a call with input requests; the time to answer them does not count.
    pub call: Duration,
    /// Total timeout for a request that progress extends. Default: 10 minutes.
    pub call_max: Duration,
    /// Whether progress restarts the timeout of a call. Default: no; each call can enable it.
    pub progress_extends: bool,
    /// Timeout for the response to the probe that opens a connection, which old servers may ignore. Default: 3 seconds. If no
    /// other attempt could follow, `initialize` applies.
    pub probe: Duration,
    /// Timeout for the response to a handshake, which includes the server's startup. Default: 15 seconds.
    pub initialize: Duration,
    /// Timeout for flushing, and for the peer to disconnect, when a connection is closed. Default: 5 seconds.
    pub shutdown: Duration,
    /// Timeout for calls that are running when the client disconnects, on any transport except HTTP. Default: 1 second, because
    /// hosts kill a process that does not exit soon after its standard input was closed.
    pub disconnect: Duration,
    /// Silence after which the peer is pinged. Off by default. After three intervals without an answer, the connection is
    /// closed. A session over HTTP is pinged while its client has an open GET stream, and ends.
    pub keepalive: Option<Duration>,
    /// Timeout for the answer to an input request of a server. Default: 1 hour, as for a call that is repeated with the answer
    /// ([`Limits::state_ttl_ms`](crate::proto::Limits::state_ttl_ms)). A call can override it for its own requests.
    pub question: Duration,
    /// Timeout for a call of a session over HTTP whose client has disconnected and not come back. Default: 10 minutes; then the
    /// call ends with an error. Without a session, a call ends when its client disconnects.
    pub detached_call: Duration,
    /// Lifetime of an idle session over HTTP. Default: 30 minutes.
    pub idle_session: Duration,
    /// Lifetime of a session whose client has sent nothing since its handshake, not even `notifications/initialized`.
    /// Default: 60 seconds.
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

/// Returns `moment + duration`. Very large durations mean "never" and are limited to a century.
#[cfg(feature = "client")]
pub(crate) fn after(moment: Instant, duration: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    moment + duration.min(CENTURY)
}

/// Rounds a duration to about three digits, for messages.
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
