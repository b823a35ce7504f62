use std::fmt;

use pintle_types::{RawObject, RawValue};
use serde::{Serialize, Serializer};

use super::reading::InputRequired;
use crate::Part;

/// The rounds of a call whose server asks questions before it returns a result.
///
/// Each round is a separate request with a new id. Its params are the original ones plus this round's answers and
/// state, without those of earlier rounds.
///
/// ```
/// use pintle_proto::{Limits, client::{Profile, Reading, RequestOutcome, Rounds}};
///
/// let profile = Profile::new(r#"{"name":"demo","version":"1"}"#.parse()?, r#"{"elicitation":{}}"#.parse()?);
/// let params = r#"{"name":"book","arguments":{"seat":"12A"}}"#.parse()?;
/// let mut rounds = Rounds::new(params, 8);
///
/// let result = r#"{"resultType":"input_required",
///     "inputRequests":{"meal":{"method":"elicitation/create","params":{"message":"Which meal?"}}},"requestState":"s1"}"#;
/// let reading = Reading::new(&profile, &Limits::default());
/// let RequestOutcome::InputRequired(asked) = reading.read("tools/call", result.parse()?) else { panic!() };
///
/// let round = rounds.next(&asked, [("meal", r#"{"action":"accept","content":{"meal":"soup"}}"#.parse()?)])?;
/// assert_eq!(round.wait_ms, 0);
/// assert_eq!(
///     round.params.as_str(),
///     r#"{"name":"book","arguments":{"seat":"12A"},"inputResponses":{"meal":{"action":"accept","content":{"meal":"soup"}}},"requestState":"s1"}"#
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rounds {
    original: RawObject,
    limit: u32,
    done: u32,
    /// The number of consecutive rounds without a question.
    idle: u32,
}

/// The next request of a call.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// The params, to be passed to [`Engine::request`](super::Engine::request).
    pub params: RawObject,
    /// The delay before sending them. It is zero unless the server repeatedly asked nothing.
    pub wait_ms: u64,
}

impl Rounds {
    /// Creates the rounds of a call from the params of its first request, as they were passed to
    /// [`Engine::request`](super::Engine::request). `limit` is the maximum number of rounds.
    pub fn new(params: RawObject, limit: u32) -> Self {
        Self { original: params, limit, done: 0, idle: 0 }
    }

    /// Returns the next request, from the questions and their answers.
    ///
    /// # Errors
    ///
    /// There were too many rounds, or the answers do not match the questions. The call has failed.
    pub fn next<K: AsRef<str>>(
        &mut self,
        asked: &InputRequired,
        answers: impl IntoIterator<Item = (K, RawObject)>,
    ) -> Result<Round, RetryError> {
        if self.done >= self.limit {
            return Err(RetryError::TooManyRounds { limit: self.limit });
        }
        let mut given: Vec<(K, RawObject)> = answers.into_iter().collect();
        given.sort_by(|(one, _), (other, _)| one.as_ref().cmp(other.as_ref()));
        let find = |key: &str| given.binary_search_by(|(other, _)| other.as_ref().cmp(key)).ok();
        let mut answered = Vec::with_capacity(asked.requests.len());
        for request in &asked.requests {
            let Some((key, answer)) = find(&request.key).and_then(|at| given.get(at)) else {
                return Err(RetryError::Unanswered { key: request.key.clone() });
            };
            let lowered = asked.revision.lowered(Part::Result(&request.method), answer.clone());
            let answer = lowered.map_err(|error| RetryError::Unsayable {
                key: request.key.clone(),
                reason: error.to_string().into(),
            })?;
            answered.push((key.as_ref(), answer));
        }
        if given.len() != answered.len() {
            let unasked =
                given.iter().find(|(key, _)| asked.requests.iter().all(|one| *one.key != *key.as_ref()));
            let key = unasked.or(given.first()).map(|(key, _)| key.as_ref().into()).unwrap_or_default();
            return Err(RetryError::Unasked { key });
        }
        let params = self.params(&answered, asked.state.as_deref()).map_err(|_| RetryError::Unprintable)?;
        self.idle = if answered.is_empty() { self.idle + 1 } else { 0 };
        self.done += 1;
        Ok(Round { params, wait_ms: back_off(self.idle) })
    }

    /// Returns whether the result may be cached: one that took more than one round may not.
    pub fn may_cache(&self) -> bool {
        self.done == 0
    }

    /// Returns the number of rounds so far.
    pub fn count(&self) -> u32 {
        self.done
    }

    fn params(
        &self,
        answers: &[(&str, RawObject)],
        state: Option<&RawValue>,
    ) -> Result<RawObject, serde_json::Error> {
        let mut params = self.original.without(&["inputResponses", "requestState"]);
        if !answers.is_empty() {
            let printed = serde_json::value::to_raw_value(&Answers(answers))?;
            params = params.with("inputResponses", &printed);
        }
        if let Some(state) = state {
            params = params.with("requestState", state);
        }
        Ok(params)
    }
}

/// Returns the delay before a round after `idle` rounds without a question. The first retry is immediate, as the
/// specification allows; a server that keeps shedding load is retried with exponential back-off.
fn back_off(idle: u32) -> u64 {
    const FIRST: u64 = 100;
    const MAX_MS: u64 = 5_000;
    match idle {
        0 | 1 => 0,
        more => FIRST.saturating_mul(1 << (more - 2).min(16)).min(MAX_MS),
    }
}

struct Answers<'a>(&'a [(&'a str, RawObject)]);

impl Serialize for Answers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, answer)| (key, answer)))
    }
}

/// The error for a round that cannot be sent.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RetryError {
    /// The server still asks questions after the maximum number of rounds.
    TooManyRounds {
        /// The maximum number of rounds.
        limit: u32,
    },
    /// A question has no answer: all must be answered before the request is sent again.
    Unanswered {
        /// The key of the question.
        key: Box<str>,
    },
    /// An answer has no question.
    Unasked {
        /// The key of the answer.
        key: Box<str>,
    },
    /// The server's revision cannot express an answer.
    Unsayable {
        /// The key of the answer.
        key: Box<str>,
        /// The reason.
        reason: Box<str>,
    },
    /// An answer cannot be serialized.
    Unprintable,
}

impl fmt::Display for RetryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyRounds { limit } => {
                write!(
                    f,
                    "the server still asks questions after {limit} rounds: raise the limit if it needs more"
                )
            }
            Self::Unanswered { key } => {
                write!(f, "the question `{key}` has no answer: answer all questions of the round")
            }
            Self::Unasked { key } => {
                write!(f, "the answer `{key}` has no question: answer each question once")
            }
            Self::Unsayable { key, reason } => write!(f, "the answer `{key}` cannot be sent: {reason}"),
            Self::Unprintable => f.write_str("an answer cannot be serialized as JSON"),
        }
    }
}

impl std::error::Error for RetryError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Limits,
        client::{Profile, Reading, RequestOutcome},
    };

    fn asked(text: &str) -> InputRequired {
        let profile = Profile::new(object("{}"), object(r#"{"elicitation":{},"roots":{},"sampling":{}}"#));
        match Reading::new(&profile, &Limits::default()).read("tools/call", object(text)) {
            RequestOutcome::InputRequired(asked) => asked,
            other => panic!("{other:?}"),
        }
    }

    fn object(text: &str) -> RawObject {
        text.parse().unwrap()
    }

    const ROOTS: &str = r#"{"resultType":"input_required","inputRequests":{"where":{"method":"roots/list"}}"#;

    #[test]
    fn each_round_sends_only_its_own_answers_and_state() {
        let mut rounds = Rounds::new(object(r#"{"name":"t","arguments":{"n":1e2}}"#), 8);
        assert!(rounds.may_cache());
        let first = asked(&format!(r#"{ROOTS},"requestState":"a\u002fb"}}"#));
        let round = rounds.next(&first, [("where", object(r#"{"roots":[]}"#))]).unwrap();
        assert_eq!(
            round.params.as_str(),
            r#"{"name":"t","arguments":{"n":1e2},"inputResponses":{"where":{"roots":[]}},"requestState":"a\u002fb"}"#
        );
        let second = asked(
            r#"{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"?"}}}}"#,
        );
        let round = rounds.next(&second, [("who", object(r#"{"action":"decline"}"#))]).unwrap();
        assert_eq!(
            round.params.as_str(),
            r#"{"name":"t","arguments":{"n":1e2},"inputResponses":{"who":{"action":"decline"}}}"#
        );
        assert!(!rounds.may_cache());
        assert_eq!(rounds.count(), 2);
    }

    #[test]
    fn a_server_that_only_gives_state_is_asked_ever_less_often() {
        let shed = asked(r#"{"resultType":"input_required","requestState":"later"}"#);
        let mut rounds = Rounds::new(object(r#"{"name":"t"}"#), 20);
        let none: [(&str, RawObject); 0] = [];
        let waits: Vec<u64> = (0..9).map(|_| rounds.next(&shed, none.clone()).unwrap().wait_ms).collect();
        assert_eq!(waits, [0, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(
            rounds.next(&shed, none).unwrap().params.as_str(),
            r#"{"name":"t","requestState":"later"}"#
        );
        // A round with a question starts the count anew.
        let question = asked(&format!("{ROOTS}}}"));
        assert_eq!(rounds.next(&question, [("where", object(r#"{"roots":[]}"#))]).unwrap().wait_ms, 0);
    }

    #[test]
    fn exactly_what_was_asked_is_answered() {
        let question = asked(&format!("{ROOTS}}}"));
        let mut rounds = Rounds::new(RawObject::empty(), 1);
        let none: [(&str, RawObject); 0] = [];
        let left = rounds.next(&question, none).unwrap_err();
        assert_eq!(left, RetryError::Unanswered { key: "where".into() });
        let answers = [("where", object("{}")), ("more", object("{}"))];
        assert_eq!(rounds.next(&question, answers).unwrap_err(), RetryError::Unasked { key: "more".into() });
        assert!(rounds.next(&question, [("where", object("{}"))]).is_ok());
        let error = rounds.next(&question, [("where", object("{}"))]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the server still asks questions after 1 rounds: raise the limit if it needs more"
        );
    }

    #[test]
    fn what_the_first_request_brought_along_is_not_sent_again() {
        let mut rounds =
            Rounds::new(object(r#"{"name":"t","requestState":"old","inputResponses":{"x":{}}}"#), 8);
        let question = asked(&format!("{ROOTS}}}"));
        let round = rounds.next(&question, [("where", object(r#"{"roots":[]}"#))]).unwrap();
        assert_eq!(round.params.as_str(), r#"{"name":"t","inputResponses":{"where":{"roots":[]}}}"#);
        let shed = asked(r#"{"resultType":"input_required","requestState":"new"}"#);
        let none: [(&str, RawObject); 0] = [];
        assert_eq!(rounds.next(&shed, none).unwrap().params.as_str(), r#"{"name":"t","requestState":"new"}"#);
    }

    #[test]
    fn keys_with_quotes_come_back_as_they_were() {
        let question =
            asked(r#"{"resultType":"input_required","inputRequests":{"a\"b\n":{"method":"roots/list"}}}"#);
        let mut rounds = Rounds::new(RawObject::empty(), 1);
        let round = rounds.next(&question, [("a\"b\n", object("{}"))]).unwrap();
        assert_eq!(round.params.as_str(), r#"{"inputResponses":{"a\"b\n":{}}}"#);
    }
}
