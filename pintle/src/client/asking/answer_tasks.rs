use std::time::Duration;

use pintle_types::{
    JsonObject,
    schema::{
        ClientCapabilities, ClientTaskRequests, ClientTasksCapability, ElicitationTasks, SamplingTasks,
    },
};

/// The limits of answers that run as tasks: see [`Client::answer_tasks`](crate::Client::answer_tasks).
///
/// ```
/// use std::time::Duration;
/// use pintle::{Client, client::AnswerTasks};
///
/// let client = Client::new("demo", "0.1.0")
///     .answer_tasks(AnswerTasks::new().max_ttl(Duration::from_secs(3600)).max_tasks(8));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AnswerTasks {
    pub(super) ttl: Duration,
    pub(super) max_ttl: Duration,
    pub(super) max_tasks: usize,
    pub(super) poll: Duration,
}

impl AnswerTasks {
    /// Creates limits of 16 tasks for each connection, which are kept for ten minutes, and a day at most, if the server requests it.
    pub fn new() -> Self {
        Self {
            ttl: Duration::from_secs(600),
            max_ttl: Duration::from_secs(24 * 3600),
            max_tasks: 16,
            poll: Duration::from_millis(500),
        }
    }

    /// Sets how long a task is kept after its creation if the server requests no lifetime. One that runs longer is ended.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets the limit of the lifetime that a server may request.
    #[must_use]
    pub fn max_ttl(mut self, ttl: Duration) -> Self {
        self.max_ttl = ttl;
        self
    }

    /// Sets how many tasks of one connection there may be, with those that have ended and are kept.
    #[must_use]
    pub fn max_tasks(mut self, tasks: usize) -> Self {
        self.max_tasks = tasks;
        self
    }

    /// Sets the interval in which servers should poll.
    #[must_use]
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll = interval;
        self
    }

    /// Returns the capability of a client that can answer this; `None` if it answers nothing that may be a task.
    pub(in crate::client) fn capability(can: &ClientCapabilities) -> Option<ClientTasksCapability> {
        let mut requests = ClientTaskRequests::new();
        requests.sampling = can.sampling.as_ref().map(|_| {
            let mut sampling = SamplingTasks::new();
            sampling.create_message = Some(JsonObject::new());
            sampling
        });
        requests.elicitation = can.elicitation.as_ref().map(|_| {
            let mut elicitation = ElicitationTasks::new();
            elicitation.create = Some(JsonObject::new());
            elicitation
        });
        if requests.sampling.is_none() && requests.elicitation.is_none() {
            return None;
        }
        let mut tasks = ClientTasksCapability::new();
        tasks.list = Some(JsonObject::new());
        tasks.cancel = Some(JsonObject::new());
        tasks.requests = Some(requests);
        Some(tasks)
    }
}

impl Default for AnswerTasks {
    fn default() -> Self {
        Self::new()
    }
}
