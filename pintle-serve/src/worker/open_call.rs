use std::time::Duration;

use tokio::{sync::mpsc, time::Instant};

use super::{
    message::WorkerMessage,
    pool::{CallPlace, Order},
};

/// A message of a worker about a call, or why there is none.
pub(super) type RunEvent = Result<WorkerMessage, String>;

/// The events of a call that wait to be read.
pub(super) const EVENTS: usize = 64;
/// The most values of `once` in a run of a call.
const MAX_ONCE: usize = 32;
/// The room for values of `once` and the end of the call. Progress and logs are left out where only that is left.
const RESERVED: usize = MAX_ONCE + 1;
/// The longest time of a call, so that its end is a point in time.
const MAX_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);

/// A call that a process has not ended.
#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) timeout: Duration,
    pub(super) deadline: Instant,
    /// `None` if nobody waits for it any more.
    events: Option<mpsc::Sender<RunEvent>>,
    /// The number of values of `once`.
    values: usize,
    /// The first line that was about no open call, since this one began.
    noise: Option<String>,
    _place: CallPlace,
}

impl OpenCall {
    pub(super) fn new(order: Order, now: Instant) -> Self {
        let timeout = order.timeout.min(MAX_TIMEOUT);
        let (events, _place) = (Some(order.events), order.place);
        Self { timeout, deadline: now + timeout, events, values: 0, noise: None, _place }
    }

    /// Returns whether somebody waits for its end.
    pub(super) fn is_awaited(&self) -> bool {
        self.events.is_some()
    }

    /// Returns whether nobody waits for it since the last time that it was asked.
    pub(super) fn has_been_left(&mut self) -> bool {
        self.events.take_if(|events| events.is_closed()).is_some()
    }

    /// Passes a message on. An error says why the call fails.
    pub(super) fn pass(&mut self, message: WorkerMessage) -> Result<(), String> {
        let Some(events) = &self.events else { return Ok(()) };
        match &message {
            WorkerMessage::Once(_) if self.values == MAX_ONCE => {
                return Err(format!("more than {MAX_ONCE} values of `once`: write fewer"));
            }
            WorkerMessage::Once(_) => self.values += 1,
            WorkerMessage::Progress { .. } | WorkerMessage::Log { .. } if events.capacity() <= RESERVED => {
                return Ok(());
            }
            _ => {}
        }
        // There is room, or nobody reads it.
        let _ = events.try_send(Ok(message));
        Ok(())
    }

    /// Keeps a line that was about no open call, for an error.
    pub(super) fn note_noise(&mut self, line: &str) {
        self.noise.get_or_insert_with(|| line.to_owned());
    }

    /// Ends the call with an error, if somebody waits for it.
    pub(super) fn fail(&mut self, worker: &str, what: &str) {
        let Some(events) = self.events.take() else { return };
        let mut reason = format!("worker `{worker}` {what}");
        if let Some(line) = &self.noise {
            reason += &format!("; it wrote `{line}`, which is no line about an open call");
        }
        let _ = events.try_send(Err(reason));
    }
}
