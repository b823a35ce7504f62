//! Questions to the client during a call, for both eras.
//!
//! In a session the question is sent and its answer awaited. In the stateless era the call ends with the question, and
//! the client repeats it with the answer.
//!
//! `Inputs` hides the difference: for a key it returns an [`Ask`], which is the answer, a request to send, or the end of the round. In the
//! stateless era the handler runs again from its start and finds its earlier questions answered, so code before a question may run twice.
//!
//! Answers of earlier rounds come back in `requestState`, which the client carries. It is therefore sealed and bound to the method, the
//! parameters that matter, the principal, the service and an expiry. This crate holds the rules; the cipher is behind the [`Seal`] trait,
//! because it needs randomness. A state that cannot be opened is an error, never a silent new question. The record in a state has a format
//! number; unknown formats are refused.

mod call_record;
mod canonical;
mod error;
mod once;
mod question;
mod seal;
mod state;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use pintle_types::{RawObject, RawValue, RpcError, schema::InputRequest};

pub use call_record::{CallRecord, RecordedRights};
pub use error::AskError;
pub use once::{Once, StateUse};
pub use question::{Answer, Kind, Question};
#[cfg(test)]
pub(crate) use seal::tests;
pub(crate) use seal::{Binding, OpenedState};
pub use seal::{KeyId, Seal, SealError};
pub(crate) use state::RelayedState;
use state::{Answered, CallState, Mark};

use crate::{Limits, Part, Peer, Revision, stamp::Plain};

/// The way to obtain the answer to a question.
#[expect(clippy::exhaustive_enums, reason = "a driver must handle each")]
#[derive(Debug)]
pub enum Ask {
    /// The answer is available from an earlier round.
    Answered(Answer),
    /// Send this request, wait, and pass the response to `settle`.
    Send(InputRequest),
    /// Stop: the client will repeat the call with the answer.
    Park,
}

/// The questions and answers of one call.
#[derive(Debug)]
pub(crate) struct Inputs {
    /// Whether the call belongs to a session.
    live: bool,
    /// Whether the call goes on after its response, as a task does.
    detached: AtomicBool,
    /// Whether the request has a state of an earlier round.
    returned: bool,
    over: AtomicBool,
    /// `None` until something is asked or restored: most calls ask nothing.
    inner: Mutex<Option<Box<InputsInner>>>,
}

#[derive(Debug, Default)]
struct InputsInner {
    state: CallState,
    /// The `inputResponses` of the request: answers to questions of the last round, and possibly others.
    offered: Option<RawObject>,
    /// The questions of this round, by key.
    asked: BTreeMap<String, (Mark, InputRequest)>,
    /// The actions in progress.
    acting: BTreeSet<String>,
    /// The state that the request has.
    used: Option<Used>,
    /// The answer timeout of this round, in milliseconds, if it differs from the service's.
    answer_timeout_ms: Option<u64>,
}

/// A state from an earlier round, with what is needed to detect additions to it.
#[derive(Debug)]
struct Used {
    text: Box<str>,
    expires: u64,
    /// The number of actions in it.
    acts: usize,
    had_key: bool,
}

impl Inputs {
    /// Creates the inputs of a call in a session, whose questions are sent at once.
    pub(crate) fn live() -> Self {
        Self {
            live: true,
            detached: AtomicBool::new(false),
            returned: false,
            over: AtomicBool::new(false),
            inner: Mutex::new(None),
        }
    }

    /// Creates the inputs of a stateless call with these answers.
    pub(crate) fn alone(offered: Option<RawObject>) -> Self {
        let inner =
            offered.map(|offered| Box::new(InputsInner { offered: Some(offered), ..InputsInner::default() }));
        Self {
            live: false,
            detached: AtomicBool::new(false),
            returned: false,
            over: AtomicBool::new(false),
            inner: Mutex::new(inner),
        }
    }

    /// Creates the inputs of a stateless call with these answers and the state of an earlier round: `text` as received,
    /// and opened.
    pub(crate) fn replayed(
        text: String,
        opened: &OpenedState,
        offered: Option<RawObject>,
        revision: Revision,
    ) -> Result<Self, RpcError> {
        let mut state = CallState::read(&opened.plain)?;
        // Answers to open questions are kept even if the handler does not ask again in this round.
        for (key, mark) in std::mem::take(&mut state.open) {
            let answer = offered.as_ref().and_then(|offered| offered.get(&key));
            match answer {
                Some(text) => {
                    let (_, value) = read_answer(&key, mark.kind, revision, text)?;
                    state.answers.insert(key, Answered { kind: mark.kind, print: mark.print, value });
                }
                None => drop(state.open.insert(key, mark)),
            }
        }
        let used = Used {
            text: text.into(),
            expires: opened.expires,
            acts: state.once.len() + state.begun.len(),
            had_key: state.call_key.is_some(),
        };
        // A state that another server claims is not claimed here as well.
        let used = Some(used).filter(|_| state.relayed.as_ref().is_none_or(|relayed| relayed.claimed));
        let inner = InputsInner { state, offered, used, ..InputsInner::default() };
        Ok(Self {
            live: false,
            detached: AtomicBool::new(false),
            returned: true,
            over: AtomicBool::new(false),
            inner: Mutex::new(Some(Box::new(inner))),
        })
    }

    /// Creates the inputs of a call that is run again from its record.
    fn restored(live: bool, inner: InputsInner) -> Self {
        Self {
            live,
            detached: AtomicBool::new(false),
            returned: true,
            over: AtomicBool::new(false),
            inner: Mutex::new(Some(Box::new(inner))),
        }
    }

    pub(crate) fn ask(
        &self,
        key: &str,
        question: &Question,
        peer: &Peer,
        limits: &Limits,
    ) -> Result<Ask, AskError> {
        let request =
            question.request().map_err(|error| AskError::Unprintable { reason: error.to_string() })?;
        let mark = Mark::new(question.kind(), request.params.as_deref().map_or("", RawValue::get));
        let mut inner = self.lock();
        // Checked under the lock: code that closes the round and then locks sees every question.
        if self.is_over() {
            return Err(AskError::CallOver);
        }
        let inner = inner.get_or_insert_default();
        if !question.fits(peer) {
            return Err(AskError::CannotAnswer { required: Box::new(question.required()) });
        }
        let earlier = inner.asked.get(key).map(|(mark, _)| *mark);
        let answered = inner.state.answers.get(key);
        let earlier = earlier.or(answered.map(Answered::mark)).or(inner.state.open.get(key).copied());
        if earlier.is_some_and(|earlier| earlier != mark) {
            return Err(AskError::KeyReused { key: key.to_owned() });
        }
        if let Some(answered) = answered {
            let answer = mark.kind.read(answered.value.get()).map_err(|error| bad_answer(key, &error))?;
            return Ok(Ask::Answered(answer));
        }
        if let Some(text) = inner.offered.as_ref().and_then(|offered| offered.get(key)) {
            let (answer, value) = read_answer(key, mark.kind, peer.revision, text)?;
            inner.state.answers.insert(key.to_owned(), mark.answered(value));
            return Ok(Ask::Answered(answer));
        }
        let begins = inner.asked.is_empty();
        if begins && inner.state.round >= limits.rounds {
            return Err(AskError::TooMany { limit: limits.rounds as usize });
        }
        if inner.asked.len() >= limits.questions && !inner.asked.contains_key(key) {
            return Err(AskError::TooMany { limit: limits.questions });
        }
        // In a session rounds do not end with an answer, so the first question counts.
        let sends = self.live || self.is_detached();
        inner.state.round += u32::from(sends && begins);
        inner.asked.insert(key.to_owned(), (mark, request.clone()));
        Ok(if sends { Ask::Send(request) } else { Ask::Park })
    }

    /// Accepts the answer to a question that was sent, in the shapes of `revision`.
    pub(crate) fn settle(
        &self,
        key: &str,
        kind: Kind,
        revision: Revision,
        answer: &str,
    ) -> Result<Answer, AskError> {
        let (read, value) = read_answer(key, kind, revision, answer)?;
        let mut inner = self.lock();
        let inner = inner.get_or_insert_default();
        if let Some((mark, _)) = inner.asked.remove(key) {
            inner.state.answers.insert(key.to_owned(), mark.answered(value));
        }
        Ok(read)
    }

    /// Forgets an answer, so that the question is sent again. Without a session it stays: there it belongs to the call.
    pub(crate) fn forget_answer(&self, key: &str) {
        if (self.live || self.is_detached())
            && let Some(inner) = &mut *self.lock()
        {
            inner.state.answers.remove(key);
        }
    }

    /// Sets whether the call goes on after its response. Its questions are sent then, in either era, and its response does not
    /// close it.
    pub(crate) fn set_detached(&self, detached: bool) {
        self.detached.store(detached, Ordering::Release);
    }

    /// Returns whether the call goes on after its response.
    pub(crate) fn is_detached(&self) -> bool {
        self.detached.load(Ordering::Acquire)
    }

    /// Returns the questions of this round, by key.
    pub(crate) fn open(&self) -> BTreeMap<String, InputRequest> {
        let inner = self.lock();
        let asked = inner.iter().flat_map(|inner| &inner.asked);
        asked.map(|(key, (_, request))| (key.clone(), request.clone())).collect()
    }

    /// Returns the application's note from an earlier round.
    pub(crate) fn note(&self) -> Option<String> {
        self.lock().as_ref()?.state.note.clone()
    }

    /// Stores a note of the application for the next round.
    pub(crate) fn set_note(&self, note: Option<String>) {
        self.lock().get_or_insert_default().state.note = note;
    }

    /// Returns the answer timeout of this round, at most `limit`.
    pub(crate) fn answer_timeout_ms(&self, limit: u64) -> u64 {
        self.lock()
            .as_ref()
            .and_then(|inner| inner.answer_timeout_ms)
            .map_or(limit, |timeout| timeout.min(limit))
    }

    pub(crate) fn set_answer_timeout_ms(&self, timeout: u64) {
        self.lock().get_or_insert_default().answer_timeout_ms = Some(timeout);
    }

    /// Returns the state of the server that the call was relayed to.
    pub(crate) fn relayed(&self) -> Option<Box<RawValue>> {
        Some(self.lock().as_ref()?.state.relayed.as_ref()?.value.clone())
    }

    /// Sets the state of the server that the call was relayed to, for the next round.
    pub(crate) fn set_relayed(&self, state: RelayedState) {
        self.lock().get_or_insert_default().state.relayed = Some(state);
    }

    /// Ends the round: no more questions can be asked. A detached call goes on.
    pub(crate) fn close(&self) {
        if !self.is_detached() {
            self.end();
        }
    }

    /// Ends the call, detached or not.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Returns whether the round has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Serializes the state for the next round, to be sealed.
    pub(crate) fn remembered(&self) -> Vec<u8> {
        let mut inner = self.lock();
        let inner = inner.get_or_insert_default();
        inner.state.round += 1;
        let asked: Vec<_> = inner.asked.iter().map(|(key, (mark, _))| (key.clone(), *mark)).collect();
        inner.state.open.extend(asked);
        // An action may still be in progress in a task that the handler spawned: its result will not be recorded.
        inner.state.begun.extend(inner.acting.iter().cloned());
        serde_json::to_vec(&inner.state).expect("a state of texts, numbers and JSON serializes")
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<InputsInner>>> {
        // Nothing panics while it is held, and a partial write would still be a valid state.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads an answer in the shapes of `revision`. The returned text is canonical.
fn read_answer(
    key: &str,
    kind: Kind,
    revision: Revision,
    text: &str,
) -> Result<(Answer, Box<RawValue>), AskError> {
    let bad = |reason: String| AskError::BadAnswer { key: key.to_owned(), reason };
    let text =
        revision.raised_text(Part::Result(kind.method()), text).map_err(|error| bad(error.to_string()))?;
    let answer = kind.read(&text).map_err(|error| bad_answer(key, &error))?;
    let value = RawValue::from_string(text.into_owned()).map_err(|error| bad_answer(key, &error))?;
    Ok((answer, value))
}

fn bad_answer(key: &str, error: &serde_json::Error) -> AskError {
    AskError::BadAnswer { key: key.to_owned(), reason: Plain(error).to_string() }
}
