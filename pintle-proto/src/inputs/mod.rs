//! Asking the client something in the course of a call: one set of words for both eras.
//!
//! In a session the question is sent and its answer awaited. Without one the call ends with the question, and is made
//! again with the answer in it: then the answer is here at once.

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

pub use error::AskError;
pub use once::{Once, StateUse};
pub use question::{Answer, Kind, Question};
#[cfg(test)]
pub(crate) use seal::tests;
pub(crate) use seal::{Binding, Opened};
pub use seal::{KeyId, Seal, SealError};
use state::{Answered, Mark, State};

use crate::{Limits, Part, Peer, Revision, stamp::Plain};

/// Where the answer to a question is.
#[expect(clippy::exhaustive_enums, reason = "a driver must handle each")]
#[derive(Debug)]
pub enum Ask {
    /// Here: an earlier round brought it.
    Answered(Answer),
    /// On the other side of a request: send it, wait, and give the answer to `settle`.
    Send(InputRequest),
    /// In the next round: stop, the call will be made again with the answer in it.
    Park,
}

/// What the client has been, and is still to be, asked in the course of one call.
#[derive(Debug)]
pub(crate) struct Inputs {
    /// Whether a question can be sent while the call runs.
    live: bool,
    /// Whether it came with a state of an earlier round.
    returned: bool,
    over: AtomicBool,
    /// `None` as long as nothing was asked and nothing is known: most calls ask nothing. (Measured: 400 of 40,000
    /// instructions of a small call over HTTP.)
    inner: Mutex<Option<Box<Inner>>>,
}

#[derive(Debug, Default)]
struct Inner {
    state: State,
    /// `inputResponses` as they came: answers to questions of the last round, and whatever else the client thought of.
    offered: Option<RawObject>,
    /// The questions of this round.
    asked: BTreeMap<String, (Mark, InputRequest)>,
    /// Acts that are being done.
    acting: BTreeSet<String>,
    /// The state that the round came with.
    used: Option<Used>,
    /// How long the questions of this round may wait for an answer, in milliseconds, if that is not the service's to say.
    answer_timeout_ms: Option<u64>,
}

/// A state, and what of it this round may have added to.
#[derive(Debug)]
struct Used {
    text: Box<str>,
    expires: u64,
    /// How many acts it knew of.
    acts: usize,
    had_key: bool,
}

impl Inputs {
    /// For a call on a session: questions are sent as they come up.
    pub(crate) fn live() -> Self {
        Self { live: true, returned: false, over: AtomicBool::new(false), inner: Mutex::new(None) }
    }

    /// For a call that stands alone, and brings these answers.
    pub(crate) fn alone(offered: Option<RawObject>) -> Self {
        let inner = offered.map(|offered| Box::new(Inner { offered: Some(offered), ..Inner::default() }));
        Self { live: false, returned: false, over: AtomicBool::new(false), inner: Mutex::new(inner) }
    }

    /// The same, for one that also brings what an earlier round remembered: `text` as it came, and opened.
    pub(crate) fn replayed(
        text: String,
        opened: &Opened,
        offered: Option<RawObject>,
        revision: Revision,
    ) -> Result<Self, RpcError> {
        let mut state = State::read(&opened.plain)?;
        // Answers to what was asked are kept even if the handler does not come to ask again in this round.
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
        let inner = Inner { state, offered, used: Some(used), ..Inner::default() };
        Ok(Self {
            live: false,
            returned: true,
            over: AtomicBool::new(false),
            inner: Mutex::new(Some(Box::new(inner))),
        })
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
        // Looked at under the lock: whoever ends the round and then takes it sees all that was asked.
        if self.is_over() {
            return Err(AskError::CallOver);
        }
        let inner = inner.get_or_insert_default();
        if !question.fits(&peer.capabilities) {
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
        // On a session no answer ends the round, so the first question counts it.
        inner.state.round += u32::from(self.live && begins);
        inner.asked.insert(key.to_owned(), (mark, request.clone()));
        Ok(if self.live { Ask::Send(request) } else { Ask::Park })
    }

    /// Takes the answer to a question that was sent, in the shapes of `revision`.
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

    /// The questions of this round, by key.
    pub(crate) fn open(&self) -> BTreeMap<String, InputRequest> {
        let inner = self.lock();
        let asked = inner.iter().flat_map(|inner| &inner.asked);
        asked.map(|(key, (_, request))| (key.clone(), request.clone())).collect()
    }

    /// What the application asked to have back.
    pub(crate) fn note(&self) -> Option<String> {
        self.lock().as_ref()?.state.note.clone()
    }

    /// Has the application's own words travel to the next round.
    pub(crate) fn set_note(&self, note: Option<String>) {
        self.lock().get_or_insert_default().state.note = note;
    }

    /// How long the questions of this round may wait for an answer, at most as long as `most`.
    pub(crate) fn answer_timeout_ms(&self, limit: u64) -> u64 {
        self.lock()
            .as_ref()
            .and_then(|inner| inner.answer_timeout_ms)
            .map_or(limit, |timeout| timeout.min(limit))
    }

    pub(crate) fn set_answer_timeout_ms(&self, timeout: u64) {
        self.lock().get_or_insert_default().answer_timeout_ms = Some(timeout);
    }

    /// Ends the round: from here on nobody is asked.
    pub(crate) fn close(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Whether the round has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// What the next round must know, for sealing.
    pub(crate) fn remembered(&self) -> Vec<u8> {
        let mut inner = self.lock();
        let inner = inner.get_or_insert_default();
        inner.state.round += 1;
        let asked: Vec<_> = inner.asked.iter().map(|(key, (mark, _))| (key.clone(), *mark)).collect();
        inner.state.open.extend(asked);
        // A task that the handler left behind may act at this moment: nobody will hear how that ends.
        inner.state.begun.extend(inner.acting.iter().cloned());
        serde_json::to_vec(&inner.state).expect("a state holds texts, numbers and JSON, and prints")
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<Inner>>> {
        // Nothing panics while it is held, and half a write would still be a state.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads an answer in the shapes of `revision`. The text that is kept is canonical.
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
