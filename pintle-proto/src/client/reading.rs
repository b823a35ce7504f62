use pintle_types::{RawObject, RawValue, RpcError, method};
use serde::Deserialize;

use super::{
    capabilities::{Cannot, Capabilities},
    profile::Profile,
    shapes,
};
use crate::{Limits, Part, Revision, Violation, shown::shown};

/// How a request of ours ended.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Here is what was asked for.
    Complete(RawObject),
    /// The server has questions first: answer them, then ask again (see [`Rounds`](super::Rounds)).
    InputRequired(InputRequired),
    /// A result that belongs to an extension which this client offered.
    Extension {
        /// Its `resultType`.
        result_type: Box<str>,
        /// The whole result.
        result: RawObject,
    },
    /// The user must open these URLs first; then the same request may be sent again. One session-era revision only.
    UrlRequired {
        /// The params of `elicitation/create` in URL mode, in canonical form.
        urls: Vec<RawObject>,
        /// What the server said.
        error: RpcError,
    },
    /// The server says no.
    Error(RpcError),
    /// The server said something that the protocol does not allow.
    Violation(Violation),
}

/// What a server wants to know before it answers.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct InputRequired {
    /// The questions. Their keys are unique; their order is the server's.
    pub requests: Vec<InputRequest>,
    /// What to send back with the answers, to the letter. Nobody but the server may look into it.
    pub state: Option<Box<RawValue>>,
    /// The revision that the answers are to be written in.
    pub(super) revision: Revision,
}

/// One question.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct InputRequest {
    /// The name that its answer must go by.
    pub key: Box<str>,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: Box<str>,
    /// What exactly is asked.
    pub params: RawObject,
}

/// How results of the stateless era are read: by their `resultType`.
///
/// ```
/// use pintle_proto::{Limits, client::{Outcome, Profile, Reading}};
///
/// let profile = Profile::new(r#"{"name":"demo","version":"1"}"#.parse()?, "{}".parse()?);
/// let reading = Reading::new(&profile, &Limits::default());
/// // A server that forgets to say so is taken to be done.
/// assert!(matches!(reading.read("tools/list", r#"{"tools":[]}"#.parse()?), Outcome::Complete(_)));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reading {
    revision: Revision,
    can: Capabilities,
    extension_types: Vec<Box<str>>,
    max_questions: usize,
}

impl Reading {
    /// For a client that can do what its profile says.
    pub fn new(profile: &Profile, limits: &Limits) -> Self {
        Self {
            revision: Revision::LATEST,
            can: Capabilities::of(&profile.capabilities),
            extension_types: profile.result_types.clone(),
            max_questions: limits.questions,
        }
    }

    /// Reads results, whose questions are in the shapes of this revision instead of the newest.
    pub(super) fn of(self, revision: Revision) -> Self {
        Self { revision, ..self }
    }

    /// Reads the result of a request, which is in canonical shapes. Nothing but the few members that are the protocol's own is decoded.
    pub fn read(&self, method: &str, result: RawObject) -> Outcome {
        match result.get("resultType") {
            None | Some("\"complete\"") => return Outcome::Complete(result),
            Some(_) => {}
        }
        let result_type: Box<str> = match result.decode_member("resultType") {
            Ok(Some(result_type)) => result_type,
            _ => {
                let reason = "`resultType` is not a string".into();
                return Outcome::Violation(Violation::MalformedResult { method: method.into(), reason });
            }
        };
        match &*result_type {
            "complete" => Outcome::Complete(result),
            "input_required" => match self.input_required(method, &result) {
                Ok(asked) => Outcome::InputRequired(asked),
                Err(violation) => Outcome::Violation(violation),
            },
            other if self.extension_types.iter().any(|owned| **owned == *other) => {
                Outcome::Extension { result_type, result }
            }
            _ => Outcome::Violation(Violation::UnknownResultType {
                method: method.into(),
                result_type: shown(&result_type),
            }),
        }
    }

    fn input_required(&self, method: &str, result: &RawObject) -> Result<InputRequired, Violation> {
        if !method::find(method).is_some_and(|row| row.may_ask) {
            return Err(Violation::InputNotAllowed { method: method.into() });
        }
        let malformed =
            |reason: &str| Violation::MalformedResult { method: method.into(), reason: reason.into() };
        let state = match result.get("requestState") {
            None => None,
            Some(text) if text.starts_with('"') => Some(
                RawValue::from_string(text.to_owned()).map_err(|_| malformed("`requestState` is no JSON"))?,
            ),
            Some(_) => return Err(malformed("`requestState` is not a string")),
        };
        let asked: Option<RawObject> = match result.get("inputRequests") {
            None => None,
            Some(text) => Some(text.parse().map_err(|_| malformed("`inputRequests` is not an object"))?),
        };
        let mut requests = Vec::new();
        for (printed, request) in asked.iter().flat_map(RawObject::iter) {
            if requests.len() == self.max_questions {
                return Err(Violation::TooManyQuestions { limit: self.max_questions });
            }
            let key: Box<str> = serde_json::from_str(&format!("\"{printed}\""))
                .map_err(|_| malformed("a key that is no string"))?;
            requests.push(question(key, request, self.can, self.revision).map_err(|fault| match fault {
                Fault::Malformed(reason) => malformed(reason),
                Fault::Violation(violation) => violation,
            })?);
        }
        if requests.is_empty() && state.is_none() {
            return Err(Violation::NothingAsked { method: method.into() });
        }
        Ok(InputRequired { requests, state, revision: self.revision })
    }
}

enum Fault {
    Malformed(&'static str),
    Violation(Violation),
}

fn question(
    key: Box<str>,
    request: &str,
    can: Capabilities,
    revision: Revision,
) -> Result<InputRequest, Fault> {
    #[derive(Deserialize)]
    struct Asked {
        method: Box<str>,
        params: Option<RawObject>,
    }

    let Ok(Asked { method, params }) = serde_json::from_str(request) else {
        return Err(Fault::Malformed(
            "an input request without a `method`, or with `params` that are no object",
        ));
    };
    let Ok(params) = shapes::raise(revision, Part::Params(&method), params.unwrap_or_default()) else {
        return Err(Fault::Malformed("an input request whose `params` cannot be read"));
    };
    match can.answers(&method, &params) {
        Ok(()) => Ok(InputRequest { key, method, params }),
        Err(Cannot::Unknown) => {
            Err(Fault::Violation(Violation::UnknownQuestion { key: shown(&key), method: shown(&method) }))
        }
        Err(Cannot::Undeclared(capability) | Cannot::Partly(capability)) => {
            Err(Fault::Violation(Violation::UndeclaredQuestion { key: shown(&key), capability }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &str, result: &str) -> Outcome {
        let mut profile =
            Profile::new(RawObject::empty(), r#"{"elicitation":{},"sampling":{}}"#.parse().unwrap());
        profile.result_types.push("task".into());
        Reading::new(&profile, &Limits::default()).read(method, result.parse().unwrap())
    }

    fn violation(method: &str, result: &str) -> String {
        match read(method, result) {
            Outcome::Violation(violation) => violation.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_result_type_decides() {
        let outcome = |text| read("tools/call", text);
        assert!(matches!(outcome(r#"{"content":[]}"#), Outcome::Complete(_)));
        assert!(matches!(outcome(r#"{"resultType":"complete"}"#), Outcome::Complete(_)));
        assert!(matches!(outcome(r#"{"resultType":"c\u006fmplete"}"#), Outcome::Complete(_)));
        assert!(matches!(outcome(r#"{"resultType":"task","taskId":"1"}"#), Outcome::Extension { .. }));
        assert!(matches!(
            outcome(r#"{"resultType":"input_required","requestState":"s"}"#),
            Outcome::InputRequired(_)
        ));
    }

    #[test]
    fn questions_are_read_with_their_keys() {
        let text = r#"{"resultType":"input_required","inputRequests":{
            "b":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{}}},
            "a":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}}}"#;
        let Outcome::InputRequired(asked) = read("prompts/get", text) else { panic!("asks") };
        let keys: Vec<_> = asked.requests.iter().map(|one| (&*one.key, &*one.method)).collect();
        assert_eq!(keys, [("b", "elicitation/create"), ("a", "sampling/createMessage")]);
        assert!(asked.state.is_none());
    }

    #[test]
    fn what_a_server_may_not_answer() {
        for (method, result, said) in [
            ("tools/list", r#"{"resultType":"later"}"#, "the unknown result type `later`"),
            ("tools/list", r#"{"resultType":7}"#, "`resultType` is not a string"),
            ("tools/list", r#"{"resultType":null}"#, "`resultType` is not a string"),
            (
                "tools/list",
                r#"{"resultType":"input_required","requestState":"s"}"#,
                "`tools/list` was answered with",
            ),
            ("tools/call", r#"{"resultType":"input_required"}"#, "has no `inputRequests`"),
            ("tools/call", r#"{"resultType":"input_required","inputRequests":{}}"#, "has no `inputRequests`"),
            ("tools/call", r#"{"resultType":"input_required","inputRequests":[]}"#, "is not an object"),
            ("tools/call", r#"{"resultType":"input_required","requestState":{}}"#, "is not a string"),
            (
                "tools/call",
                r#"{"resultType":"input_required","inputRequests":{"k":{"method":"tools/call"}}}"#,
                "the question `k` asks for `tools/call`",
            ),
            (
                "tools/call",
                r#"{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}}}"#,
                "needs the capability `roots`",
            ),
            (
                "tools/call",
                r#"{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"url"}}}}"#,
                "needs the capability `elicitation.url`",
            ),
            (
                "tools/call",
                r#"{"resultType":"input_required","inputRequests":{"k":{"method":"sampling/createMessage","params":{"tools":[]}}}}"#,
                "needs the capability `sampling.tools`",
            ),
            (
                "tools/call",
                r#"{"resultType":"input_required","inputRequests":{"k":5}}"#,
                "without a `method`",
            ),
        ] {
            let found = violation(method, result);
            assert!(found.contains(said), "{result}: {found}");
        }
    }

    #[test]
    fn questions_are_bounded() {
        let many: Vec<_> = (0..200).map(|n| format!(r#""k{n}":{{"method":"elicitation/create"}}"#)).collect();
        let text = format!(r#"{{"resultType":"input_required","inputRequests":{{{}}}}}"#, many.join(","));
        assert_eq!(violation("tools/call", &text), "more than 64 questions in one round");
    }
}
