//! Asking the client something in the course of a call: one set of words for both eras.
//!
//! In a session the question is sent and its answer awaited. Without one the call ends with the question, and is made
//! again with the answer in it: then the answer is here at once.

mod error;
mod question;
mod seal;
mod state;

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use pintle_types::{RawObject, RawValue, RpcError, schema::InputRequest};

pub use error::AskError;
pub use question::{Answer, Kind, Question};
pub(crate) use seal::Binding;
pub use seal::{KeyId, Seal};
use state::{Answered, Mark, State};

use crate::{Limits, Peer, stamp::Plain};

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
}

impl Inputs {
    /// For a call on a session: questions are sent as they come up.
    pub(crate) fn live() -> Self {
        Self { live: true, over: AtomicBool::new(false), inner: Mutex::new(None) }
    }

    /// For a call that stands alone. `sealed` is what an earlier round remembered, opened; `offered` the answers that
    /// came with this one.
    pub(crate) fn replayed(sealed: Option<&[u8]>, offered: Option<RawObject>) -> Result<Self, RpcError> {
        let known = |inner: Option<Inner>| Self {
            live: false,
            over: AtomicBool::new(false),
            inner: Mutex::new(inner.map(Box::new)),
        };
        let Some(sealed) = sealed else {
            let offered = offered.map(|offered| Inner { offered: Some(offered), ..Inner::default() });
            return Ok(known(offered));
        };
        // It opened, so this server wrote it: what does not fit is of another version of it.
        let mut state: State = serde_json::from_slice(sealed).map_err(|_| {
            RpcError::invalid_params("`requestState` is of another version: make the call anew")
        })?;
        // Answers to what was asked are kept even if the handler does not come to ask again in this round.
        for (key, mark) in std::mem::take(&mut state.open) {
            let answer = offered.as_ref().and_then(|offered| offered.get(&key));
            match answer.and_then(|text| RawValue::from_string(text.to_owned()).ok()) {
                Some(value) => {
                    mark.kind.read(value.get()).map_err(|error| bad_answer(&key, &error))?;
                    state.answers.insert(key, Answered { kind: mark.kind, print: mark.print, value });
                }
                None => drop(state.open.insert(key, mark)),
            }
        }
        Ok(known(Some(Inner { state, offered, ..Inner::default() })))
    }

    pub(crate) fn ask(
        &self,
        key: &str,
        question: &Question,
        peer: &Peer,
        limits: &Limits,
    ) -> Result<Ask, AskError> {
        let request =
            question.request().map_err(|error| AskError::Unprintable { said: error.to_string() })?;
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
            let answer = mark.kind.read(text).map_err(|error| bad_answer(key, &error))?;
            if let Ok(value) = RawValue::from_string(text.to_owned()) {
                inner.state.answers.insert(key.to_owned(), mark.answered(value));
            }
            return Ok(Ask::Answered(answer));
        }
        let begins = inner.asked.is_empty();
        if begins && inner.state.round >= limits.rounds {
            return Err(AskError::TooMany { most: limits.rounds as usize });
        }
        if inner.asked.len() >= limits.questions && !inner.asked.contains_key(key) {
            return Err(AskError::TooMany { most: limits.questions });
        }
        // On a session no answer ends the round, so the first question counts it.
        inner.state.round += u32::from(self.live && begins);
        inner.asked.insert(key.to_owned(), (mark, request.clone()));
        Ok(if self.live { Ask::Send(request) } else { Ask::Park })
    }

    /// Takes the answer to a question that was sent.
    pub(crate) fn settle(&self, key: &str, kind: Kind, answer: &RawObject) -> Result<Answer, AskError> {
        let read = kind.read(answer.as_str()).map_err(|error| bad_answer(key, &error))?;
        let mut inner = self.lock();
        let inner = inner.get_or_insert_default();
        if let (Some((mark, _)), Ok(value)) =
            (inner.asked.remove(key), RawValue::from_string(answer.as_str().to_owned()))
        {
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

    /// The value of an act that an earlier round has done.
    pub(crate) fn done(&self, key: &str) -> Option<Box<RawValue>> {
        self.lock().as_ref()?.state.once.get(key).cloned()
    }

    /// Remembers that an act was done, and its value.
    pub(crate) fn remember(&self, key: &str, value: Box<RawValue>) {
        self.lock().get_or_insert_default().state.once.insert(key.to_owned(), value);
    }

    /// What the application asked to have back.
    pub(crate) fn note(&self) -> Option<String> {
        self.lock().as_ref()?.state.note.clone()
    }

    /// Has the application's own words travel to the next round.
    pub(crate) fn set_note(&self, note: Option<String>) {
        self.lock().get_or_insert_default().state.note = note;
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
        serde_json::to_vec(&inner.state).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<Inner>>> {
        // Nothing panics while it is held, and half a write would still be a state.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bad_answer(key: &str, error: &serde_json::Error) -> AskError {
    AskError::BadAnswer { key: key.to_owned(), said: Plain(error).to_string() }
}
