use std::time::Duration;

use crate::{Timeouts, message_log::MessageLog, server::Server};

/// How long things may take, and how many of them at the same time.
impl Server {
    /// Sets the time limit of a call. The time that clients take to answer questions does not count. None by default.
    #[must_use]
    pub fn call_timeout(self, after: Duration) -> Self {
        self.setting(|settings| settings.timeout = Some(after))
    }

    /// Sets the timeouts for clients: the keep-alive of a silent session, the end of running calls of a client that has
    /// disconnected, the answer to a question, the next request of a session over HTTP.
    ///
    /// ```
    /// use std::time::Duration;
    /// use pintle::{Server, Timeouts};
    ///
    /// let mut timeouts = Timeouts::default();
    /// timeouts.keepalive = Some(Duration::from_secs(30));
    /// let server = Server::new("notes", "1.0.0").timeouts(timeouts);
    /// ```
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "as for a client")]
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

    /// Logs every message on every transport, over HTTP with headers. Applies to connections that are opened, and to HTTP requests
    /// that arrive, from now on. What layers in front of the HTTP service answer themselves is not logged.
    ///
    /// ```
    /// use pintle::{Server, message_log::MessageLog};
    ///
    /// let server = Server::new("notes", "1.0.0").message_log(MessageLog::to_writer(std::io::stderr()));
    /// ```
    #[must_use]
    pub fn message_log(self, log: MessageLog) -> Self {
        self.setting(|settings| settings.message_log = Some(log))
    }

    /// Sets how many calls of one connection or session run at the same time. Default: 1,024; more are queued. A call that
    /// waits for the client to answer a question does not count.
    #[must_use]
    pub fn concurrency(self, calls: usize) -> Self {
        self.setting(|settings| settings.running = calls.max(1))
    }
}
