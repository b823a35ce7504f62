//! The events of calls that go on after their response.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError, Weak},
    task::Waker,
};

use pintle_proto::{inputs::AskError, server::Outcome};
use pintle_types::{RawObject, schema::InputRequest};

use tokio::sync::oneshot;

use super::sink::AnswerSender;
use crate::server::core::sessions::LiveSession;

/// The limit of questions of one call that were not received yet.
const MAX_QUESTIONS: usize = 64;

/// The limit of checkpoints of one call that were not received yet.
const MAX_CHECKPOINTS: usize = 64;

/// An event of a [`DetachedCall`](crate::server::DetachedCall).
#[expect(clippy::exhaustive_enums, reason = "the driver of the call must handle each")]
#[derive(Debug)]
pub enum DetachedEvent {
    /// The handler asks the client a question, and waits for the answer.
    Question(DetachedQuestion),
    /// The handler no longer waits for the answer to one of its questions.
    QuestionAbandoned,
    /// The handler reports progress. Reports that come faster than they are received are merged.
    Progress {
        /// The progress so far.
        done: f64,
        /// The total, if it is known.
        total: Option<f64>,
        /// A text for the user.
        message: Option<String>,
    },
    /// The status of the call has changed, as another server that it was passed on to has it.
    Status {
        /// A text for the user.
        message: String,
    },
    /// The handler waits until its [record](crate::server::Cx::record) is stored: before and after an action that it does
    /// [once](crate::server::Cx::once).
    Checkpoint(Checkpoint),
    /// The handler has completed.
    Done(Outcome),
}

/// A question of a [`DetachedCall`](crate::server::DetachedCall). Dropping it ends the question with an error.
#[derive(Debug)]
pub struct DetachedQuestion {
    key: String,
    request: InputRequest,
    answer: AnswerSender,
}

impl DetachedQuestion {
    /// Returns the key that the handler gave the question.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the question, in canonical shapes.
    pub fn request(&self) -> &InputRequest {
        &self.request
    }

    /// Returns whether the handler no longer waits for the answer.
    pub fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }

    /// Answers the question with the client's result, as it was received.
    pub fn answer(self, answer: RawObject) {
        let _ = self.answer.send(Ok(answer));
    }

    /// Ends the question with an error.
    pub fn fail(self, error: AskError) {
        let _ = self.answer.send(Err(error));
    }
}

/// A point at which a [`DetachedCall`](crate::server::DetachedCall) waits until it is recorded. Dropping it lets the handler go on, for
/// calls that nobody records.
#[derive(Debug)]
pub struct Checkpoint(oneshot::Sender<Result<(), String>>);

impl Checkpoint {
    /// Lets the handler go on.
    pub fn stored(self) {
        let _ = self.0.send(Ok(()));
    }

    /// Refuses the action: the record could not be stored. `reason` is for people.
    pub fn refuse(self, reason: impl Into<String>) {
        let _ = self.0.send(Err(reason.into()));
    }
}

/// A bounded queue of the events of a detached call.
pub(crate) struct DetachedEvents {
    state: Mutex<EventState>,
    session: Option<Weak<dyn LiveSession>>,
}

#[derive(Default)]
struct EventState {
    questions: VecDeque<DetachedQuestion>,
    checkpoints: VecDeque<Checkpoint>,
    /// The newest report.
    progress: Option<DetachedEvent>,
    abandoned: bool,
    waker: Option<Waker>,
}

impl DetachedEvents {
    pub(crate) fn new(session: Option<Weak<dyn LiveSession>>) -> Self {
        Self { state: Mutex::default(), session }
    }

    pub(crate) fn ask(&self, key: &str, request: InputRequest, answer: AnswerSender) {
        let mut state = self.lock();
        if state.questions.len() < MAX_QUESTIONS {
            state.questions.push_back(DetachedQuestion { key: key.to_owned(), request, answer });
        }
        wake(state);
    }

    /// Waits until the call is recorded.
    ///
    /// # Errors
    ///
    /// The reason for which the record could not be stored.
    pub(crate) async fn checkpoint(&self) -> Result<(), String> {
        let (sender, stored) = oneshot::channel();
        {
            let mut state = self.lock();
            if state.checkpoints.len() >= MAX_CHECKPOINTS {
                return Err("too many actions at the same time".to_owned());
            }
            state.checkpoints.push_back(Checkpoint(sender));
            wake(state);
        }
        stored.await.unwrap_or(Ok(()))
    }

    /// Reports progress, in place of a report that was not received yet.
    pub(crate) fn report(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let mut state = self.lock();
        state.progress = Some(DetachedEvent::Progress { done, total, message: message.map(str::to_owned) });
        wake(state);
    }

    /// Sets the status, in place of a report that was not received yet.
    pub(crate) fn set_status(&self, message: String) {
        let mut state = self.lock();
        state.progress = Some(DetachedEvent::Status { message });
        wake(state);
    }

    pub(crate) fn abandon(&self) {
        let mut state = self.lock();
        state.abandoned = true;
        wake(state);
    }

    pub(crate) fn session(&self) -> Option<&Weak<dyn LiveSession>> {
        self.session.as_ref()
    }

    pub(crate) fn take(&self, waker: &Waker) -> Option<DetachedEvent> {
        let mut state = self.lock();
        state.waker = Some(waker.clone());
        if let Some(progress) = state.progress.take() {
            return Some(progress);
        }
        if let Some(question) = state.questions.pop_front() {
            return Some(DetachedEvent::Question(question));
        }
        if let Some(checkpoint) = state.checkpoints.pop_front() {
            return Some(DetachedEvent::Checkpoint(checkpoint));
        }
        std::mem::take(&mut state.abandoned).then_some(DetachedEvent::QuestionAbandoned)
    }

    fn lock(&self) -> MutexGuard<'_, EventState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(mut state: MutexGuard<'_, EventState>) {
    let waker = state.waker.take();
    drop(state);
    waker.into_iter().for_each(Waker::wake);
}

impl fmt::Debug for DetachedEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DetachedEvents")
    }
}
