use std::time::Duration;

use crate::{Timeouts, server::Server};

/// How long things may take, and how many of them at the same time.
impl Server {
    /// Ends calls that take longer. The time that clients take to answer questions does not count.
    #[must_use]
    pub fn call_timeout(self, after: Duration) -> Self {
        self.setting(|settings| settings.timeout = Some(after))
    }

    /// Asks a silent session at this interval whether it is still there, and ends it if nobody answers.
    #[must_use]
    pub fn keepalive(self, every: Duration) -> Self {
        self.setting(|settings| settings.keepalive = Some(every))
    }

    /// How long to wait for clients: the sign of life of a silent session, the end of calls that still run when a
    /// client has hung up, the answer to a question, the next request of a session over HTTP.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "settings are taken by value, as a client takes them")]
    pub fn timeouts(self, timeouts: Timeouts) -> Self {
        let Timeouts {
            keepalive,
            disconnect,
            question,
            detached_call,
            idle_session,
            uninitialized_session,
            ..
        } = timeouts;
        self.setting(|settings| {
            settings.keepalive = keepalive;
            settings.grace = disconnect;
            settings.question = question;
            settings.detached_call = detached_call;
            settings.idle_session = idle_session;
            settings.uninitialized_session = uninitialized_session;
        })
    }

    /// Runs at most this many calls of one connection at the same time; more wait. 1,024 if nothing is said. A call that
    /// waits for the client to answer a question is none of them; it takes its place again when the answer is there.
    #[must_use]
    pub fn concurrency(self, calls: usize) -> Self {
        self.setting(|settings| settings.running = calls.max(1))
    }
}
