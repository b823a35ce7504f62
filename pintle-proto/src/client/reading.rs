use std::fmt;

use pintle_types::{RawObject, RawValue, RpcError, method};
use serde::Deserialize;

use super::{
    capabilities::{Cannot, Capabilities},
    profile::Profile,
    shapes,
};
use crate::{Limits, Part, Revision, Violation, shown::shown};

/// The outcome of a client's request.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum RequestOutcome {
    /// The result.
    Complete(RawObject),
    /// The server has questions first: answer them, then send the request again (see [`Rounds`](super::Rounds)).
    InputRequired(InputRequired),
    /// A result type of an extension that this client declared.
    Extension {
        /// The `resultType`.
        result_type: Box<str>,
        /// The complete result.
        result: RawObject,
    },
    /// The user must open these URLs before the same request is sent again. One session-era revision only.
    UrlRequired {
        /// The params of `elicitation/create` in URL mode, in canonical form.
        urls: Vec<RawObject>,
        /// The error.
        error: RpcError,
    },
    /// The server responded with an error.
    Error(RpcError),
    /// The response violates the protocol.
    Violation(Violation),
}

/// The questions that a server asks before it returns a result.
#[non_exhaustive]
#[derive(Clone)]
pub struct InputRequired {
    /// The questions, in the server's order. Their keys are unique.
    pub requests: Vec<InputRequest>,
    /// The state to return with the answers, unchanged. It is opaque to the client.
    pub state: Option<Box<RawValue>>,
    /// The whole result, in canonical shapes.
    pub result: RawObject,
    /// The revision to write the answers in.
    pub(super) revision: Revision,
}

/// The state is not printed.
impl fmt::Debug for InputRequired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InputRequired")
            .field("requests", &self.requests)
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}

impl InputRequired {
    /// Creates the questions of a call that goes on later, from what was stored of it.
    pub fn new(requests: Vec<InputRequest>, state: Option<Box<RawValue>>, revision: Revision) -> Self {
        Self { requests, state, result: RawObject::empty(), revision }
    }
}

/// A question in an `input_required` result.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct InputRequest {
    /// The key of the question, and of its answer.
    pub key: Box<str>,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: Box<str>,
    /// The params of the question.
    pub params: RawObject,
}

impl InputRequest {
    /// Creates a question.
    pub fn new(key: impl Into<Box<str>>, method: impl Into<Box<str>>, params: RawObject) -> Self {
        Self { key: key.into(), method: method.into(), params }
    }
}

/// Reads results of the stateless era by their `resultType`.
///
/// ```
/// use pintle_proto::{Limits, client::{Profile, Reading, RequestOutcome}};
///
/// let profile = Profile::new(r#"{"name":"demo","version":"1"}"#.parse()?, "{}".parse()?);
/// let reading = Reading::new(&profile, &Limits::default());
/// // A result without a `resultType` is complete.
/// assert!(matches!(reading.read("tools/list", r#"{"tools":[]}"#.parse()?), RequestOutcome::Complete(_)));
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
    /// Creates a reader for a client with this profile.
    pub fn new(profile: &Profile, limits: &Limits) -> Self {
        Self {
            revision: Revision::LATEST,
            can: Capabilities::of(&profile.capabilities),
            extension_types: profile.result_types.clone(),
            max_questions: limits.questions,
        }
    }

    /// Sets the revision whose shapes the questions have. The default is the newest.
    pub(super) fn of(self, revision: Revision) -> Self {
        Self { revision, ..self }
    }

    /// Reads the result of a request, which is in canonical shapes. Only the members that the protocol defines for
    /// every result are decoded.
    pub fn read(&self, method: &str, result: RawObject) -> RequestOutcome {
        self.read_with(method, result, self.can)
    }

    /// Reads the result of a request that declared these capabilities.
    pub(super) fn read_with(&self, method: &str, result: RawObject, can: Capabilities) -> RequestOutcome {
        match result.get("resultType") {
            None | Some("\"complete\"") => return RequestOutcome::Complete(result),
            Some(_) => {}
        }
        let result_type: Box<str> = match result.decode_member("resultType") {
            Ok(Some(result_type)) => result_type,
            _ => {
                let reason = "`resultType` is not a string".into();
                return RequestOutcome::Violation(Violation::MalformedResult {
                    method: method.into(),
                    reason,
                });
            }
        };
        match &*result_type {
            "complete" => RequestOutcome::Complete(result),
            "input_required" => match self.input_required(method, &result, can) {
                Ok(asked) => RequestOutcome::InputRequired(asked),
                Err(violation) => RequestOutcome::Violation(violation),
            },
            other if can.any_result_type || self.extension_types.iter().any(|owned| **owned == *other) => {
                RequestOutcome::Extension { result_type, result }
            }
            _ => RequestOutcome::Violation(Violation::UnknownResultType {
                method: method.into(),
                result_type: shown(&result_type),
            }),
        }
    }

    fn input_required(
        &self,
        method: &str,
        result: &RawObject,
        can: Capabilities,
    ) -> Result<InputRequired, Violation> {
        if !method::find(method).is_some_and(|row| row.may_ask) {
            return Err(Violation::InputNotAllowed { method: method.into() });
        }
        let malformed =
            |reason: &str| Violation::MalformedResult { method: method.into(), reason: reason.into() };
        let state = match result.get("requestState") {
            None => None,
            Some(text) if text.starts_with('"') => Some(
                RawValue::from_string(text.to_owned())
                    .map_err(|_| malformed("`requestState` is not valid JSON"))?,
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
                .map_err(|_| malformed("a key is not a valid string"))?;
            requests.push(question(key, request, can, self.revision).map_err(|fault| match fault {
                QuestionError::Malformed(reason) => malformed(reason),
                QuestionError::Violation(violation) => violation,
            })?);
        }
        if requests.is_empty() && state.is_none() {
            return Err(Violation::NothingAsked { method: method.into() });
        }
        Ok(InputRequired { requests, state, result: result.clone(), revision: self.revision })
    }
}

enum QuestionError {
    Malformed(&'static str),
    Violation(Violation),
}

fn question(
    key: Box<str>,
    request: &str,
    can: Capabilities,
    revision: Revision,
) -> Result<InputRequest, QuestionError> {
    #[derive(Deserialize)]
    struct Asked {
        method: Box<str>,
        params: Option<RawObject>,
    }

    let Ok(Asked { method, params }) = serde_json::from_str(request) else {
        return Err(QuestionError::Malformed(
            "an input request has no `method`, or its `params` are not an object",
        ));
    };
    let Ok(params) = shapes::raise(revision, Part::Params(&method), params.unwrap_or_default()) else {
        return Err(QuestionError::Malformed("the `params` of an input request cannot be read"));
    };
    match can.answers(&method, &params) {
        Ok(()) => Ok(InputRequest { key, method, params }),
        Err(Cannot::Unknown) => Err(QuestionError::Violation(Violation::UnknownQuestion {
            key: shown(&key),
            method: shown(&method),
        })),
        Err(Cannot::Undeclared(capability) | Cannot::Partly(capability)) => {
            Err(QuestionError::Violation(Violation::UndeclaredQuestion { key: shown(&key), capability }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &str, result: &str) -> RequestOutcome {
        let mut profile =
            Profile::new(RawObject::empty(), r#"{"elicitation":{},"sampling":{}}"#.parse().unwrap());
        profile.result_types.push("task".into());
        Reading::new(&profile, &Limits::default()).read(method, result.parse().unwrap())
    }

    fn violation(method: &str, result: &str) -> String {
        match read(method, result) {
            RequestOutcome::Violation(violation) => violation.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_result_type_decides() {
        let outcome = |text| read("tools/call", text);
        assert!(matches!(outcome(r#"{"content":[]}"#), RequestOutcome::Complete(_)));
        assert!(matches!(outcome(r#"{"resultType":"complete"}"#), RequestOutcome::Complete(_)));
        assert!(matches!(outcome(r#"{"resultType":"c\u006fmplete"}"#), RequestOutcome::Complete(_)));
        assert!(matches!(outcome(r#"{"resultType":"task","taskId":"1"}"#), RequestOutcome::Extension { .. }));
        assert!(matches!(
            outcome(r#"{"resultType":"input_required","requestState":"s"}"#),
            RequestOutcome::InputRequired(_)
        ));
    }

    #[test]
    fn questions_are_read_with_their_keys() {
        let text = r#"{"resultType":"input_required","inputRequests":{
            "b":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{}}},
            "a":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}}}"#;
        let RequestOutcome::InputRequired(asked) = read("prompts/get", text) else { panic!("asks") };
        let keys: Vec<_> = asked.requests.iter().map(|one| (&*one.key, &*one.method)).collect();
        assert_eq!(keys, [("b", "elicitation/create"), ("a", "sampling/createMessage")]);
        assert!(asked.state.is_none());
    }

    #[test]
    fn what_a_server_may_not_answer() {
        for (method, result, expected) in [
            ("tools/list", r#"{"resultType":"later"}"#, "the unknown result type `later`"),
            ("tools/list", r#"{"resultType":7}"#, "`resultType` is not a string"),
            ("tools/list", r#"{"resultType":null}"#, "`resultType` is not a string"),
            ("tools/list", r#"{"resultType":"input_required","requestState":"s"}"#, "`tools/list` returned"),
            ("tools/call", r#"{"resultType":"input_required"}"#, "with neither `inputRequests`"),
            (
                "tools/call",
                r#"{"resultType":"input_required","inputRequests":{}}"#,
                "with neither `inputRequests`",
            ),
            ("tools/call", r#"{"resultType":"input_required","inputRequests":[]}"#, "is not an object"),
            ("tools/call", r#"{"resultType":"input_required","requestState":{}}"#, "is not a string"),
            (
                "tools/call",
                r#"{"resultType":"input_required","inputRequests":{"k":{"method":"tools/call"}}}"#,
                "the question `k` has the method `tools/call`",
            ),
            (
                "tools/call",
                r#"{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}}}"#,
                "requires the capability `roots`",
            ),
            (
                "tools/call",
                r#"{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"url"}}}}"#,
                "requires the capability `elicitation.url`",
            ),
            (
                "tools/call",
                r#"{"resultType":"input_required","inputRequests":{"k":{"method":"sampling/createMessage","params":{"tools":[]}}}}"#,
                "requires the capability `sampling.tools`",
            ),
            ("tools/call", r#"{"resultType":"input_required","inputRequests":{"k":5}}"#, "has no `method`"),
        ] {
            let found = violation(method, result);
            assert!(found.contains(expected), "{result}: {found}");
        }
    }

    #[test]
    fn questions_are_bounded() {
        let many: Vec<_> = (0..200).map(|n| format!(r#""k{n}":{{"method":"elicitation/create"}}"#)).collect();
        let text = format!(r#"{{"resultType":"input_required","inputRequests":{{{}}}}}"#, many.join(","));
        assert_eq!(violation("tools/call", &text), "more than 64 questions in one round");
    }
}
