//! Actions that a call performs at most once, and the identification of a state that was sent back.

use std::fmt;

use pintle_types::RawValue;

use super::{Inputs, canonical::canonical, state::CallState};

/// The state of an action that is to be performed at most once in a call.
#[expect(clippy::exhaustive_enums, reason = "a driver must handle each")]
#[derive(Debug)]
pub enum Once {
    /// The action is to be performed, then reported with [`remember`](crate::server::Call::remember) or
    /// [`lose`](crate::server::Call::lose).
    Act,
    /// The action was completed, with this value.
    Done(Box<RawValue>),
    /// The action is in progress: wait for it.
    Acting,
    /// The action was started before, and its result is unknown.
    Unknown,
    /// The call has ended, so the action could not be recorded.
    Over,
}

/// The use of a state that a client sent back, for checking that each state is used once.
#[non_exhaustive]
#[derive(Clone, Eq, PartialEq)]
pub struct StateUse {
    /// The `requestState`, as it was sent to the client. No other text opens as the same state.
    pub state: Box<str>,
    /// The `inputResponses` of the request, in canonical JSON.
    pub answers: String,
    /// The expiry of the state, in milliseconds of the Unix epoch.
    pub expires: u64,
}

/// The state and the answers are not printed.
impl fmt::Debug for StateUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateUse").field("expires", &self.expires).finish_non_exhaustive()
    }
}

impl Inputs {
    /// Returns whether the request has a state of an earlier round.
    pub(crate) fn returned(&self) -> bool {
        self.returned
    }

    /// Returns the state that the request has.
    pub(crate) fn state_use(&self) -> Option<StateUse> {
        let inner = self.lock();
        let inner = inner.as_ref()?;
        let used = inner.used.as_ref()?;
        let mut answers = String::new();
        // An absent member and an empty object are equivalent.
        canonical(inner.offered.as_ref().map_or("{}", |offered| offered.as_str()), &mut answers);
        Some(StateUse { state: used.text.clone(), answers, expires: used.expires })
    }

    /// Starts an action, unless it was started before.
    pub(crate) fn begin_once(&self, key: &str) -> Once {
        let mut inner = self.lock();
        let inner = inner.get_or_insert_default();
        if let Some(value) = inner.state.once.get(key) {
            return Once::Done(value.clone());
        }
        if inner.state.begun.contains(key) {
            return Once::Unknown;
        }
        if inner.acting.contains(key) {
            return Once::Acting;
        }
        // Checked under the lock: code that closes the round and then locks sees every action.
        if self.is_over() {
            return Once::Over;
        }
        inner.acting.insert(key.to_owned());
        Once::Act
    }

    /// Records that an action was completed, and its value.
    pub(crate) fn remember(&self, key: &str, value: Box<RawValue>) {
        let mut inner = self.lock();
        let inner = inner.get_or_insert_default();
        inner.acting.remove(key);
        inner.state.begun.remove(key);
        inner.state.once.insert(key.to_owned(), value);
    }

    /// Records that an action was started and that its result is unknown.
    pub(crate) fn lose(&self, key: &str) {
        let mut inner = self.lock();
        let inner = inner.get_or_insert_default();
        inner.acting.remove(key);
        inner.state.begun.insert(key.to_owned());
    }

    /// Forgets an action that was not begun after all.
    pub(crate) fn undo_once(&self, key: &str) {
        if let Some(inner) = &mut *self.lock() {
            inner.acting.remove(key);
        }
    }

    /// Returns whether an action is in progress.
    pub(crate) fn is_acting(&self) -> bool {
        self.lock().as_ref().is_some_and(|inner| !inner.acting.is_empty())
    }

    /// Returns the key that identifies the call to other systems; `make` creates it on first use.
    pub(crate) fn call_key(&self, make: impl FnOnce() -> String) -> String {
        let mut inner = self.lock();
        inner.get_or_insert_default().state.call_key.get_or_insert_with(make).clone()
    }

    /// Serializes the actions of this round that its state does not contain, for the next use of the same state. `None`
    /// if there are none.
    pub(crate) fn progress(&self) -> Option<Vec<u8>> {
        let inner = self.lock();
        let inner = inner.as_ref()?;
        let state = &inner.state;
        let acts = state.once.len() + state.begun.len() + inner.acting.len();
        let (known, had_key) = inner.used.as_ref().map_or((0, false), |used| (used.acts, used.had_key));
        if acts == known && (had_key || state.call_key.is_none()) {
            return None;
        }
        let progress = CallState {
            call_key: state.call_key.clone(),
            once: state.once.clone(),
            // The result of an action in progress will not be recorded.
            begun: state.begun.iter().chain(&inner.acting).cloned().collect(),
            ..CallState::default()
        };
        serde_json::to_vec(&progress).ok()
    }

    /// Restores the actions of an earlier use of the same state. Returns `false` if they cannot be read.
    pub(crate) fn resume(&self, progress: &[u8]) -> bool {
        let Ok(earlier) = CallState::read(progress) else { return false };
        let mut inner = self.lock();
        let state = &mut inner.get_or_insert_default().state;
        if earlier.call_key.is_some() {
            state.call_key = earlier.call_key;
        }
        state.once.extend(earlier.once);
        state.begun.extend(earlier.begun);
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::to_raw_value;

    use super::*;
    use crate::inputs::OpenedState;

    fn opened(plain: Vec<u8>) -> OpenedState {
        OpenedState { plain, expires: 9 }
    }

    fn returned(plain: &[u8], answers: &str) -> Inputs {
        let answers = (!answers.is_empty()).then(|| answers.parse().unwrap());
        Inputs::replayed("state".to_owned(), &opened(plain.to_vec()), answers, crate::Revision::LATEST)
            .unwrap()
    }

    #[test]
    fn a_use_is_the_same_however_its_answers_are_printed() {
        let sealed = Inputs::alone(None).remembered();
        let of = |answers: &str| returned(&sealed, answers).state_use().unwrap();
        assert_eq!(of(r#"{"a":{"x":1,"y":2},"b":{}}"#), of(r#"{ "b": {}, "a": {"y":2, "x":1}}"#));
        assert_eq!(of(""), of("{}"));
        assert_ne!(of(r#"{"a":{"x":1}}"#), of(r#"{"a":{"x":1.0}}"#));
        assert_eq!((&*of("").state, of("").expires), ("state", 9));
        assert!(returned(&sealed, "").returned() && !Inputs::alone(None).returned());
        assert_eq!(Inputs::alone(Some("{}".parse().unwrap())).state_use(), None);
    }

    #[test]
    fn what_a_lost_round_did_is_known_to_the_next() {
        let first = Inputs::alone(None);
        assert_eq!(first.call_key(|| "k".to_owned()), "k");
        first.begin_once("before");
        first.remember("before", to_raw_value(&1).unwrap());
        let sealed = first.remembered();

        let lost = returned(&sealed, "");
        assert_eq!(lost.progress(), None, "nothing beyond what the state says");
        assert!(matches!(lost.begin_once("done"), Once::Act));
        assert!(matches!(lost.begin_once("done"), Once::Acting));
        lost.remember("done", to_raw_value(&2).unwrap());
        assert!(matches!(lost.begin_once("cut"), Once::Act));
        assert!(lost.is_acting());
        let progress = lost.progress().unwrap();

        let next = returned(&sealed, "");
        assert!(next.resume(&progress) && !next.resume(b"{}"));
        assert_eq!(next.call_key(|| "other".to_owned()), "k");
        let value = |key| match next.begin_once(key) {
            Once::Done(value) => value.get().to_owned(),
            other => format!("{other:?}"),
        };
        assert_eq!(
            (value("before"), value("done"), value("cut")),
            ("1".into(), "2".into(), "Unknown".into())
        );
        assert!(next.progress().is_some(), "its state does not say that either");
        next.close();
        assert_eq!(value("new"), "Over");
    }

    #[test]
    fn an_act_that_is_under_way_when_its_round_ends_is_not_begun_again() {
        let first = Inputs::alone(None);
        assert!(matches!(first.begin_once("pay"), Once::Act));
        first.close();
        let next = returned(&first.remembered(), "");
        assert!(matches!(next.begin_once("pay"), Once::Unknown));
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Begin(u8),
        Remember,
        Lose,
        /// The client comes back with the state that it was given.
        Round,
        /// The connection is lost, and the client repeats its request.
        Lost,
    }

    proptest! {
        /// However the rounds of one call go, an act is begun once.
        #[test]
        fn no_act_is_begun_twice(steps in prop::collection::vec(
            prop_oneof![
                (0_u8..4).prop_map(Step::Begin), Just(Step::Remember), Just(Step::Lose), Just(Step::Round), Just(Step::Lost),
            ], 0..60)) {
            let mut inputs = Inputs::alone(None);
            let mut sealed = Vec::new();
            let mut begun = [0; 4];
            let mut acting = None;
            for step in steps {
                match step {
                    Step::Begin(act) => if acting.is_none() && matches!(inputs.begin_once(&act.to_string()), Once::Act) {
                        begun[usize::from(act)] += 1;
                        acting = Some(act);
                    },
                    Step::Remember => if let Some(act) = acting.take() {
                        inputs.remember(&act.to_string(), to_raw_value(&act).unwrap());
                    },
                    Step::Lose => if let Some(act) = acting.take() {
                        inputs.lose(&act.to_string());
                    },
                    // A round does not end while an action is in progress.
                    Step::Round => if acting.is_none() {
                        sealed = inputs.remembered();
                        inputs = returned(&sealed, "");
                    },
                    Step::Lost => if !sealed.is_empty() {
                        inputs.close();
                        let progress = inputs.progress();
                        inputs = returned(&sealed, "");
                        prop_assert!(progress.is_none_or(|progress| inputs.resume(&progress)));
                        acting = None;
                    },
                }
            }
            prop_assert!(begun.iter().all(|times| *times <= 1), "{begun:?}");
        }
    }
}
