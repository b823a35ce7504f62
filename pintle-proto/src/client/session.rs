//! The client's side of the session era: `initialize` first, then the server may send questions at any time.

use std::collections::HashMap;

use pintle_types::{ErrorCode, Notification, RawObject, RequestId, Response, RpcError, method};
use serde::Deserialize;

use super::{
    capabilities::{Cannot, Capabilities},
    extras::{Extras, push},
    inbound::{Ignored, Inbound, ServerQuestion},
    profile::Profile,
    reading::RequestOutcome,
    send_error::SendError,
    shapes,
};
use crate::{Change, Limits, Part, RETRY_AFTER_MS, Revision, Violation, shown::shown};

/// The client's state of a session.
#[derive(Debug)]
pub(super) struct ClientSession {
    pub(super) revision: Revision,
    can: Capabilities,
    /// The open questions of the server.
    questions: HashMap<RequestId, OpenQuestion>,
    max_questions: usize,
    /// The size of the open questions, in bytes.
    question_bytes: usize,
    max_bytes: usize,
    /// Methods that the protocol does not define and that the application answers.
    methods: Vec<Box<str>>,
    /// Whether it answers all of them.
    any_method: bool,
    /// The methods of the tasks that the client runs.
    tasks: Vec<&'static str>,
}

/// The server's description from a handshake.
#[derive(Debug)]
pub(super) struct Handshake {
    pub(super) info: Option<RawObject>,
    pub(super) capabilities: RawObject,
    pub(super) instructions: Option<Box<str>>,
}

/// Returns the params of `initialize`.
pub(super) fn initialize(profile: &Profile, offer: Revision) -> RawObject {
    let text = format!(
        r#"{{"protocolVersion":"{offer}","capabilities":{},"clientInfo":{}}}"#,
        profile.capabilities.as_str(),
        profile.info.as_str()
    );
    let part = Part::Params(method::INITIALIZE);
    let params: RawObject = text.parse().expect("objects between braces are an object");
    // Lowering capabilities never fails; params that are nested too deep to be lowered are sent as they are.
    shapes::lower(offer, part, params.clone()).unwrap_or(params)
}

/// Returns the name of the revision in the result of `initialize`.
pub(super) fn agreed(result: &RawObject) -> Result<Box<str>, Violation> {
    match result.decode_member::<Box<str>>("protocolVersion") {
        Ok(Some(name)) => Ok(name),
        _ => Err(Violation::MalformedResult {
            method: method::INITIALIZE.into(),
            reason: "`protocolVersion` is missing, or not a string".into(),
        }),
    }
}

/// Reads the rest of the result, once its revision is known to be allowed.
pub(super) fn handshake(revision: Revision, result: &RawObject) -> Result<Handshake, Violation> {
    let result = shapes::raise(revision, Part::Result(method::INITIALIZE), result.clone())
        .map_err(|reason| Violation::MalformedResult { method: method::INITIALIZE.into(), reason })?;
    let object = |name| result.decode_member::<RawObject>(name).ok().flatten();
    Ok(Handshake {
        info: object("serverInfo"),
        capabilities: object("capabilities").unwrap_or_default(),
        instructions: result.decode_member("instructions").ok().flatten(),
    })
}

/// Returns the notification that follows the handshake.
pub(super) fn initialized() -> Notification {
    Notification::new(method::NOTIFICATIONS_INITIALIZED, None)
}

/// A question that was not answered yet.
#[derive(Debug)]
struct OpenQuestion {
    method: Box<str>,
    bytes: usize,
}

fn size(id: &RequestId, params: &RawObject) -> usize {
    let id = match id {
        RequestId::String(id) => id.len(),
        RequestId::Number(_) => 0,
    };
    id + params.as_str().len()
}

impl ClientSession {
    pub(super) fn new(profile: &Profile, revision: Revision, limits: &Limits) -> Self {
        // Capabilities that the revision lacks were not declared to this server, whatever the profile has.
        let declared = initialize(profile, revision).decode_member("capabilities").ok().flatten();
        let tasks = declared.as_ref().map(Capabilities::task_methods).unwrap_or_default();
        let can = declared.map(|declared| Capabilities::of(&declared)).unwrap_or_default();
        Self {
            revision,
            can,
            questions: HashMap::new(),
            max_questions: limits.questions,
            question_bytes: 0,
            max_bytes: limits.queued_bytes,
            methods: profile.methods.clone(),
            tasks,
            any_method: profile.any_method,
        }
    }

    /// Returns the params in the shapes of the revision, with `_meta`.
    pub(super) fn prepare(
        &self,
        id: i64,
        method: &str,
        params: &RawObject,
        own: Option<&RawObject>,
        extras: &Extras<'_>,
    ) -> Result<Option<RawObject>, SendError> {
        let params = shapes::lower(self.revision, Part::Params(method), params.clone())?;
        let mut meta = String::new();
        extras.write(id, own, &mut meta);
        if meta.is_empty() {
            return Ok(Some(params).filter(|params| !params.is_empty()));
        }
        // The caller's `_meta` after lowering.
        let own: RawObject = params.decode_member("_meta").ok().flatten().unwrap_or_default();
        for (name, value) in own.iter().filter(|(name, _)| !extras.replaces(name)) {
            push(&mut meta, name, value);
        }
        Ok(Some(match serde_json::from_str(&format!("{{{meta}}}")) {
            Ok(meta) => params.with("_meta", meta),
            Err(_) => params,
        }))
    }

    /// Reads the response to a request. The result is in canonical shapes.
    pub(super) fn read(&self, method: &str, result: Result<RawObject, RpcError>) -> RequestOutcome {
        match result {
            Ok(result) => RequestOutcome::Complete(result),
            Err(mut error) => {
                if let Some(urls) = self.urls(&error) {
                    return RequestOutcome::UrlRequired { urls, error };
                }
                self.revision.raise_error(method, &mut error);
                RequestOutcome::Error(error)
            }
        }
    }

    /// Returns the URLs that the user must open first, if the error lists them and this client supports URL
    /// elicitation.
    fn urls(&self, error: &RpcError) -> Option<Vec<RawObject>> {
        #[derive(Deserialize)]
        struct RequiredUrls {
            elicitations: Vec<RawObject>,
        }

        if error.code != ErrorCode::URL_ELICITATION_REQUIRED || !self.can.elicitation_url {
            return None;
        }
        let part = Part::Params(method::ELICITATION_CREATE);
        let urls = error.data_as::<RequiredUrls>()?.elicitations.into_iter();
        let urls: Option<Vec<_>> =
            urls.map(|params| shapes::raise(self.revision, part, params).ok()).collect();
        urls.filter(|urls| !urls.is_empty())
    }

    /// Handles a request from the server.
    pub(super) fn receive_request(
        &mut self,
        id: RequestId,
        method: &str,
        params: Option<RawObject>,
    ) -> Inbound {
        match self.admit(&id, method, params.unwrap_or_default()) {
            Ok(params) => {
                let bytes = size(&id, &params);
                self.question_bytes += bytes;
                self.questions.insert(id.clone(), OpenQuestion { method: method.into(), bytes });
                Inbound::Question(ServerQuestion { id, method: method.into(), params })
            }
            Err(error) => Inbound::Reply(Response::new(Some(id), Err(error))),
        }
    }

    fn admit(&self, id: &RequestId, method: &str, params: RawObject) -> Result<RawObject, RpcError> {
        if self.questions.contains_key(id) {
            return Err(RpcError::invalid_request("the id is in use by an open request: use each id once"));
        }
        let params = shapes::raise(self.revision, Part::Params(method), params)
            .map_err(|reason| RpcError::invalid_params(String::from(reason)))?;
        match self.can.answers(method, &params) {
            Ok(()) => {}
            Err(_) if method == method::PING => {}
            Err(Cannot::Unknown) if self.methods.iter().any(|known| **known == *method) => {}
            Err(Cannot::Unknown) if self.tasks.contains(&method) => {}
            Err(Cannot::Unknown) if self.any_method && method::find(method).is_none() => {}
            Err(Cannot::Unknown | Cannot::Undeclared(_)) => {
                return Err(RpcError::method_not_found(&shown(method)));
            }
            Err(Cannot::Partly(capability)) => {
                return Err(RpcError::invalid_params(format!("the client did not declare `{capability}`")));
            }
        }
        if self.questions.len() >= self.max_questions {
            let reason = format!("{} questions are already open: wait for their answers", self.max_questions);
            return Err(RpcError::overloaded(reason, RETRY_AFTER_MS));
        }
        // A single question may be as large as a message.
        if !self.questions.is_empty() && self.question_bytes + size(id, &params) > self.max_bytes {
            let reason = format!(
                "{} bytes of questions are already open: wait for their answers",
                self.question_bytes
            );
            return Err(RpcError::overloaded(reason, RETRY_AFTER_MS));
        }
        Ok(params)
    }

    /// Removes a question, and returns its method.
    fn close(&mut self, id: &RequestId) -> Option<Box<str>> {
        let OpenQuestion { method, bytes } = self.questions.remove(id)?;
        self.question_bytes -= bytes;
        Some(method)
    }

    /// Returns the response to a question, or `None` if it is not open.
    pub(super) fn reply(&mut self, id: &RequestId, answer: Result<RawObject, RpcError>) -> Option<Response> {
        let method = self.close(id)?;
        let answer = match answer {
            Ok(result) => shapes::lower(self.revision, Part::Result(&method), result)
                .map_err(|error| RpcError::internal(error.to_string())),
            Err(mut error) => {
                self.revision.lower_error(&method, &mut error);
                Err(error)
            }
        };
        Some(Response::new(Some(id.clone()), answer))
    }

    /// Handles a notification that is not progress.
    pub(super) fn receive_notification(&mut self, notification: Notification) -> Inbound {
        let malformed = |method: &str| Inbound::Ignored(Ignored::Malformed(shown(method)));
        match &*notification.method {
            method::NOTIFICATIONS_MESSAGE => match notification.params {
                Some(params) => Inbound::Log(params),
                None => malformed(method::NOTIFICATIONS_MESSAGE),
            },
            method::NOTIFICATIONS_CANCELLED => {
                let params = notification.params.unwrap_or_default();
                match params.decode_member::<RequestId>("requestId") {
                    Ok(Some(id)) if self.close(&id).is_some() => Inbound::Withdrawn { id },
                    _ => Inbound::Ignored(Ignored::StrayCancel),
                }
            }
            method => {
                if let Some(change) = Change::of(&notification) {
                    return Inbound::Change { change, subscription: None };
                }
                if method == method::NOTIFICATIONS_RESOURCES_UPDATED {
                    return malformed(method);
                }
                Inbound::Notification { notification, subscription: None }
            }
        }
    }

    /// Returns whether the revision has batches.
    pub(super) fn takes_batches(&self) -> bool {
        self.revision.dialect().batches
    }
}

#[cfg(test)]
mod tests {
    use crate::client::{
        Change, Extras, Ignored, Inbound, RequestOutcome, SendError,
        testing::{engine, object, printed, receive},
    };

    const R1: &str = "2024-11-05";
    const R2: &str = "2025-03-26";
    const R3: &str = "2025-06-18";
    const R4: &str = "2025-11-25";

    const ALL: &str =
        r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{"listChanged":true}}"#;

    #[test]
    fn requests_are_plain_and_numbered() {
        let mut client = engine(R4, "{}");
        let request = client.request("ping", &object("{}"), &Extras::default()).unwrap();
        assert_eq!(printed(request), r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        let request = client.request("tools/call", &object(r#"{"name":"t"}"#), &Extras::default()).unwrap();
        assert_eq!(
            printed(request),
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}"#
        );
    }

    #[test]
    fn the_token_of_progress_is_ours() {
        let mut client = engine(R4, "{}");
        let extras = Extras {
            progress: true,
            traceparent: Some("00-a-b-01"),
            log_level: Some("info"),
            ..Extras::default()
        };
        let params = object(r#"{"name":"t","_meta":{"acme/x":1,"progressToken":"mine"}}"#);
        let request = client.request("tools/call", &params, &extras).unwrap();
        assert_eq!(
            request.params.unwrap().get("_meta"),
            Some(r#"{"progressToken":1,"traceparent":"00-a-b-01","acme/x":1}"#)
        );
    }

    #[test]
    fn words_of_the_other_era_are_taken_out() {
        let mut client = engine(R4, "{}");
        let own = r#"{"_meta":{"io.modelcontextprotocol/logLevel":"info","io.modelcontextprotocol/protocolVersion":"x","a":1}}"#;
        for (progress, meta) in [(false, r#"{"a":1}"#), (true, r#"{"progressToken":2,"a":1}"#)] {
            let extras = Extras { progress, ..Extras::default() };
            let request = client.request("tools/list", &object(own), &extras).unwrap();
            assert_eq!(request.params.unwrap().get("_meta"), Some(meta));
        }
    }

    #[test]
    fn an_answer_is_in_the_words_of_the_revision() {
        let mut client = engine(R3, ALL);
        let ask = |id: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"sampling/createMessage","params":{{"messages":[],"maxTokens":1}}}}"#
            )
        };
        for id in ["1", "2", "3"] {
            assert!(matches!(receive(&mut client, &ask(id)), Inbound::Question(_)));
        }
        let blocks = object(r#"{"role":"assistant","model":"m","content":[{"type":"text","text":"a"}]}"#);
        let reply = client.reply(&1.into(), Ok(blocks)).unwrap().result.unwrap();
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(reply.get("content").unwrap()).unwrap(),
            serde_json::json!({"type": "text", "text": "a"})
        );
        // An answer that cannot be expressed is an error of ours, not silence.
        let tool = object(
            r#"{"role":"assistant","model":"m","content":{"type":"tool_use","id":"1","name":"t","input":{}}}"#,
        );
        assert_eq!(client.reply(&2.into(), Ok(tool)).unwrap().result.unwrap_err().code.0, -32603);
        let error = pintle_types::RpcError::new(pintle_types::ErrorCode::MISSING_CLIENT_CAPABILITY, "no");
        assert_eq!(client.reply(&3.into(), Err(error)).unwrap().result.unwrap_err().code.0, -32600);
    }

    #[test]
    fn what_the_revision_lacks_is_not_sent() {
        let mut client = engine(R3, "{}");
        let error = client.request("subscriptions/listen", &object("{}"), &Extras::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the server speaks revision `2025-06-18`, which has no `subscriptions/listen`"
        );
        assert!(matches!(
            client.request("tasks/get", &object("{}"), &Extras::default()),
            Err(SendError::Unavailable { .. })
        ));
        assert!(client.request("acme/custom", &object("{}"), &Extras::default()).is_ok());
        assert!(client.notify("notifications/roots/list_changed", None).is_ok());
    }

    #[test]
    fn params_and_results_are_in_the_words_of_the_revision() {
        let mut client = engine(R2, "{}");
        let params = object(
            r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""},"context":{"arguments":{}}}"#,
        );
        let request = client.request("completion/complete", &params, &Extras::default()).unwrap();
        assert_eq!(request.params.unwrap().get("context"), None);
    }

    #[test]
    fn a_ping_is_left_to_the_application() {
        let mut client = engine(R1, "{}");
        let inbound = receive(&mut client, r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
        let Inbound::Question(question) = inbound else { panic!("{inbound:?}") };
        assert_eq!((&*question.method, question.params.as_str()), ("ping", "{}"));
        let reply = client.reply(&question.id, Ok(object("{}"))).unwrap();
        assert_eq!(printed(reply), r#"{"jsonrpc":"2.0","id":"p","result":{}}"#);
    }

    #[test]
    fn questions_are_answered_once() {
        let mut client = engine(R4, ALL);
        let line = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}"#;
        let Inbound::Question(question) = receive(&mut client, line) else { panic!("a question") };
        assert_eq!(
            (&*question.method, question.params.get("message")),
            ("elicitation/create", Some("\"m\""))
        );

        // The same id again, while it is open.
        let Inbound::Reply(reply) = receive(&mut client, line) else { panic!("a refusal") };
        assert_eq!(reply.result.unwrap_err().code.0, -32600);

        let answer = client.reply(&question.id, Ok(object(r#"{"action":"decline"}"#))).unwrap();
        assert_eq!(printed(answer), r#"{"jsonrpc":"2.0","id":"q","result":{"action":"decline"}}"#);
        assert!(client.reply(&question.id, Ok(object("{}"))).is_none());
    }

    #[test]
    fn a_question_that_is_withdrawn_gets_no_answer() {
        let mut client = engine(R4, ALL);
        assert!(matches!(
            receive(&mut client, r#"{"jsonrpc":"2.0","id":5,"method":"roots/list"}"#),
            Inbound::Question(_)
        ));
        let cancel =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5,"reason":"x"}}"#;
        assert!(matches!(receive(&mut client, cancel), Inbound::Withdrawn { id } if id == 5.into()));
        assert!(client.reply(&5.into(), Ok(object("{}"))).is_none());
        assert!(matches!(receive(&mut client, cancel), Inbound::Ignored(Ignored::StrayCancel)));
    }

    #[test]
    fn who_declares_tasks_is_asked_about_them() {
        let mut client = engine(R4, r#"{"tasks":{"list":{},"cancel":{}}}"#);
        for (id, method) in ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel"].iter().enumerate() {
            let line =
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"taskId":"1"}}}}"#);
            assert!(matches!(receive(&mut client, &line), Inbound::Question(_)), "{method}");
        }
    }

    #[test]
    fn what_was_not_declared_is_refused() {
        let url = r#"{"mode":"url","message":"m","url":"https://a","elicitationId":"1"}"#;
        let tools = r#"{"messages":[],"maxTokens":1,"tools":[]}"#;
        for (revision, capabilities, method, params, code) in [
            (R4, "{}", "roots/list", "{}", -32601),
            (R4, "{}", "sampling/createMessage", "{}", -32601),
            (R4, "{}", "elicitation/create", "{}", -32601),
            (R4, r#"{"elicitation":{}}"#, "elicitation/create", url, -32602),
            (R4, r#"{"elicitation":{"url":{}}}"#, "elicitation/create", r#"{"message":"m"}"#, -32602),
            (R4, r#"{"sampling":{}}"#, "sampling/createMessage", tools, -32602),
            // The handshake could not declare URLs to this one.
            (R3, ALL, "elicitation/create", url, -32602),
            // It has no such request.
            (R2, ALL, "elicitation/create", "{}", -32601),
            (R4, ALL, "tasks/list", "{}", -32601),
            (R4, r#"{"tasks":{}}"#, "tasks/list", "{}", -32601),
            (R4, r#"{"tasks":{"list":{}}}"#, "tasks/cancel", r#"{"taskId":"1"}"#, -32601),
            // The handshake could not declare tasks to this one.
            (R3, r#"{"tasks":{"list":{}}}"#, "tasks/list", "{}", -32601),
            (R4, ALL, "acme/ask", "{}", -32601),
        ] {
            let mut client = engine(revision, capabilities);
            let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            match receive(&mut client, &line) {
                Inbound::Reply(reply) => {
                    assert_eq!(reply.result.unwrap_err().code.0, code, "{revision} {line}")
                }
                other => panic!("{revision} {line}: {other:?}"),
            }
        }
    }

    #[test]
    fn questions_are_bounded_in_bytes() {
        let mut client = engine(R4, ALL);
        let large = "x".repeat(10 << 20);
        let ask = |id: i64| {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"roots/list","params":{{"x":"{large}"}}}}"#)
        };
        assert!(matches!(receive(&mut client, &ask(1)), Inbound::Question(_)));
        let Inbound::Reply(reply) = receive(&mut client, &ask(2)) else { panic!("a refusal") };
        assert!(reply.result.unwrap_err().message.contains("bytes of questions are already open"));
        // There is room again when it is answered, or withdrawn.
        assert!(client.reply(&1.into(), Ok(object("{}"))).is_some());
        assert!(matches!(receive(&mut client, &ask(3)), Inbound::Question(_)));
        let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#;
        assert!(matches!(receive(&mut client, cancel), Inbound::Withdrawn { .. }));
        assert!(matches!(receive(&mut client, &ask(4)), Inbound::Question(_)));
    }

    #[test]
    fn questions_are_bounded() {
        let mut client = engine(R4, ALL);
        for id in 0..64 {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"roots/list"}}"#);
            assert!(matches!(receive(&mut client, &line), Inbound::Question(_)));
        }
        let Inbound::Reply(reply) =
            receive(&mut client, r#"{"jsonrpc":"2.0","id":100,"method":"roots/list"}"#)
        else {
            panic!("a refusal")
        };
        assert_eq!(reply.result.unwrap_err().code, pintle_types::ErrorCode::OVERLOADED);
    }

    #[test]
    fn changes_need_no_subscription() {
        let mut client = engine(R4, "{}");
        let inbound =
            receive(&mut client, r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
        assert!(matches!(inbound, Inbound::Change { change: Change::Tools, subscription: None }));
        let line = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b"}}"#;
        assert!(matches!(
            receive(&mut client, line),
            Inbound::Change { change: Change::Resource(uri), .. } if &*uri == "a:b"
        ));
        let line = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated"}"#;
        assert!(matches!(receive(&mut client, line), Inbound::Ignored(Ignored::Malformed(_))));
        let line = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#;
        assert!(matches!(receive(&mut client, line), Inbound::Log(_)));
        let line = r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"1"}}"#;
        assert!(matches!(receive(&mut client, line), Inbound::Notification { .. }));
    }

    #[test]
    fn arrays_are_for_the_one_revision_that_has_them() {
        let batch = || {
            [r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "5"]
                .map(|text| pintle_types::Message::parse(text.as_bytes()))
                .into()
        };
        let mut client = engine(R2, "{}");
        client.request("ping", &object("{}"), &Extras::default()).unwrap();
        let received = client.receive_batch(batch());
        assert!(
            matches!(
                &received[..],
                [Inbound::Question(_), Inbound::Answer { .. }, Inbound::Ignored(Ignored::Noise(_))]
            ),
            "{received:?}"
        );
        for revision in [R1, R3, R4] {
            let received = engine(revision, "{}").receive_batch(batch());
            assert!(matches!(&received[..], [Inbound::Violation(crate::Violation::Batch)]), "{revision}");
        }
    }

    #[test]
    fn old_codes_and_urls_are_understood() {
        let mut client = engine(R4, ALL);
        client.request("resources/read", &object(r#"{"uri":"a:b"}"#), &Extras::default()).unwrap();
        let line = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"no","data":{"uri":"a:b"}}}"#;
        let Inbound::Answer { outcome: RequestOutcome::Error(error), .. } = receive(&mut client, line) else {
            panic!()
        };
        assert_eq!(error.code.0, -32602);

        client.request("tools/call", &object(r#"{"name":"t"}"#), &Extras::default()).unwrap();
        let line = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32042,"message":"first","data":{"elicitations":[{"mode":"url","elicitationId":"1","url":"https://a","message":"m"}]}}}"#;
        let Inbound::Answer { outcome: RequestOutcome::UrlRequired { urls, .. }, .. } =
            receive(&mut client, line)
        else {
            panic!()
        };
        assert_eq!(urls[0].get("url"), Some("\"https://a\""));
    }

    #[test]
    fn a_result_type_means_nothing_here() {
        let mut client = engine(R4, "{}");
        client.request("tools/list", &object("{}"), &Extras::default()).unwrap();
        let line = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"later","tools":[]}}"#;
        assert!(matches!(
            receive(&mut client, line),
            Inbound::Answer { outcome: RequestOutcome::Complete(_), .. }
        ));
    }
}
