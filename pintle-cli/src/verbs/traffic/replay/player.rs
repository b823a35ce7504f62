//! A server that answers as a recording has it, without I/O.

use std::{collections::HashSet, sync::Arc};

use pintle::types::{
    ErrorCode, Message, Notification, RawObject, Request, RequestId, Response, RpcError, keys, method,
};
use serde_json::Value;

use super::{
    matching::matches,
    script::{Script, ScriptedRequest, ScriptedStep, StepKind, names_revision, split_meta},
};
use crate::output::counted;

/// The limit of requests that wait for their turn.
const MAX_RUNNING: usize = 1024;

/// One client, and where it is in the recording.
pub(super) struct Player {
    script: Arc<Script>,
    /// Whether a request that is repeated more often than recorded is an error.
    strict: bool,
    /// The recorded requests that were made.
    used: HashSet<usize>,
    /// The recorded requests that were made and answered.
    answered: HashSet<usize>,
    running: Vec<RunningRequest>,
    /// The messages that belong to no request and were sent.
    sent: HashSet<usize>,
    questions: i64,
}

struct RunningRequest {
    /// The caller's number for the request.
    tag: u64,
    at: usize,
    id: RequestId,
    progress_token: Option<Value>,
    next: usize,
    /// The question whose answer it waits for.
    question: Option<RequestId>,
}

/// A message to the client.
#[derive(Debug)]
pub(super) struct Delivery {
    /// The request that it belongs to; `None` for those of the connection.
    pub(super) tag: Option<u64>,
    pub(super) message: Vec<u8>,
    /// Whether it is the response.
    pub(super) is_last: bool,
    /// The status of the response over HTTP, if it was recorded there.
    pub(super) status: Option<u16>,
}

impl Player {
    pub(super) fn new(script: Arc<Script>, strict: bool) -> Self {
        Self {
            script,
            strict,
            used: HashSet::new(),
            answered: HashSet::new(),
            running: Vec::new(),
            sent: HashSet::new(),
            questions: 0,
        }
    }

    /// Receives a message of the client, and returns what the server sends then. `tag` is the caller's number for a request.
    pub(super) fn receive(&mut self, message: &str, tag: u64) -> Vec<Delivery> {
        let mut out = Vec::new();
        match Message::parse_str(message) {
            Ok(Message::Request(request)) => {
                if let Err(error) = self.begin(&request, tag) {
                    let refused = Message::Response(Response::new(Some(request.id), Err(error)));
                    out.push(delivery(Some(tag), &refused, true, None));
                }
            }
            Ok(Message::Notification(notification))
                if notification.method == method::NOTIFICATIONS_CANCELLED =>
            {
                let (params, _) = split_meta(notification.params.as_ref());
                let is_cancelled = |id: &RequestId| {
                    serde_json::to_value(id).is_ok_and(|id| Some(&id) == params.get("requestId"))
                };
                self.running.retain(|running| !is_cancelled(&running.id));
            }
            Ok(Message::Notification(_)) => {}
            Ok(Message::Response(response)) => {
                let answered = self.running.iter_mut().filter(|running| running.question == response.id);
                answered.for_each(|running| running.question = None);
            }
            Err(_) => {
                let error = RpcError::parse_error("not a message, or a batch, which cannot be replayed");
                let refused = Message::Response(Response::new(None, Err(error)));
                out.push(delivery(Some(tag), &refused, true, None));
            }
        }
        self.advance(&mut out);
        out
    }

    /// Ends a request whose client has disconnected.
    pub(super) fn abandon(&mut self, tag: u64) {
        self.running.retain(|running| running.tag != tag);
    }

    fn begin(&mut self, request: &Request, tag: u64) -> Result<(), RpcError> {
        let (params, meta) = split_meta(request.params.as_ref());
        if self.running.len() >= MAX_RUNNING {
            return Err(RpcError::internal(
                "too many requests wait for what the recording has after other requests",
            ));
        }
        let at = self.find(&request.method, &params, names_revision(&meta))?;
        self.used.insert(at);
        self.running.push(RunningRequest {
            tag,
            at,
            id: request.id.clone(),
            progress_token: meta.get(keys::PROGRESS_TOKEN).cloned(),
            next: 0,
            question: None,
        });
        Ok(())
    }

    /// Finds the recorded request: the first that matches and was not made yet, otherwise the last that matches.
    fn find(&self, name: &str, params: &Value, names_revision: bool) -> Result<usize, RpcError> {
        let of_method =
            || self.script.requests.iter().enumerate().filter(|(_, request)| request.method == name);
        let all = || of_method().filter(|(_, request)| request.names_revision == names_revision);
        // Every client introduces itself in its own way.
        let is_opening = matches!(name, method::INITIALIZE | method::SERVER_DISCOVER);
        let matching: Vec<usize> = all()
            .filter(|(_, request)| is_opening || matches(&request.params, params))
            .map(|(at, _)| at)
            .collect();
        let unused = matching.iter().find(|at| !self.used.contains(at)).copied();
        match (unused, matching.last()) {
            (Some(at), _) => Ok(at),
            (None, Some(last)) if !self.strict => Ok(*last),
            (None, Some(_)) => {
                let times = counted(matching.len(), "time", "times");
                Err(RpcError::invalid_params(format!(
                    "the recording has this `{name}` {times}, and not more often"
                )))
            }
            (None, None) if all().next().is_none() => {
                let era = match of_method().next() {
                    Some(_) if names_revision => " without a session",
                    Some(_) => " with a session",
                    None => "",
                };
                let message = format!(
                    "the recording has no `{name}`{era}: record it with `pintle trace` or `pintle tap`"
                );
                Err(RpcError::new(ErrorCode::METHOD_NOT_FOUND, message))
            }
            (None, None) => Err(RpcError::invalid_params(format!(
                "the recording has `{name}` with other params only: {}",
                shown(all().map(|(_, request)| request))
            ))),
        }
    }

    /// Sends what can be sent now.
    fn advance(&mut self, out: &mut Vec<Delivery>) {
        let script = self.script.clone();
        loop {
            let before = out.len();
            let mut running = std::mem::take(&mut self.running);
            running.retain_mut(|running| self.run(running, &script.requests[running.at], out));
            self.running = running;
            for (at, step) in script.standalone.iter().enumerate() {
                if self.is_due(step) && self.sent.insert(at) {
                    let message = self.message(&step.kind, None);
                    out.extend(message.map(|message| delivery(None, &message, false, None)));
                }
            }
            if out.len() == before {
                return;
            }
        }
    }

    fn is_due(&self, step: &ScriptedStep) -> bool {
        step.after.is_none_or(|at| self.answered.contains(&at))
    }

    /// Sends the next messages of a request. Returns whether it goes on.
    fn run(
        &mut self,
        running: &mut RunningRequest,
        recorded: &ScriptedRequest,
        out: &mut Vec<Delivery>,
    ) -> bool {
        let tag = Some(running.tag);
        while running.question.is_none() {
            let Some(step) = recorded.steps.get(running.next) else {
                if recorded.is_subscription() {
                    // It is open: that is the answer.
                    self.answered.insert(running.at);
                    return true;
                }
                let message = match recorded.status {
                    Some(status) => format!("the recording has status {status} in place of an answer"),
                    None => "the recording ends before the answer to this request".to_owned(),
                };
                let ended = Response::new(Some(running.id.clone()), Err(RpcError::internal(message)));
                out.push(delivery(tag, &Message::Response(ended), true, recorded.status));
                self.answered.insert(running.at);
                return false;
            };
            if !self.is_due(step) {
                return true;
            }
            running.next += 1;
            let Some(message) = self.message(&step.kind, Some(running)) else { continue };
            let is_last = matches!(message, Message::Response(_));
            out.push(delivery(tag, &message, is_last, recorded.status.filter(|_| is_last)));
            if is_last {
                self.answered.insert(running.at);
                return false;
            }
        }
        true
    }

    /// Returns the message of a step, with the ids of this client. `None` for progress that it did not ask for.
    fn message(&mut self, kind: &StepKind, running: Option<&mut RunningRequest>) -> Option<Message> {
        Some(match kind {
            StepKind::Response(result) => {
                Message::Response(Response::new(running.map(|running| running.id.clone()), result.clone()))
            }
            StepKind::Question { method, params } => {
                self.questions += 1;
                let id = RequestId::Number(self.questions);
                if let Some(running) = running {
                    running.question = Some(id.clone());
                }
                Message::Request(Request::new(id, method.clone(), params.clone()))
            }
            StepKind::Notification { method, params } => {
                let mut params = params.clone();
                if let (Some(running), Some(Value::Object(params))) = (running, &mut params) {
                    if let Some(token) = params.get_mut(keys::PROGRESS_TOKEN) {
                        *token = running.progress_token.clone()?;
                    }
                    let id = serde_json::to_value(&running.id).unwrap_or_default();
                    let of_subscription =
                        params.get_mut("_meta").and_then(|meta| meta.get_mut(keys::SUBSCRIPTION_ID));
                    of_subscription.into_iter().for_each(|own| *own = id.clone());
                }
                let params = params.and_then(|params| RawObject::from_serialize(&params).ok());
                Message::Notification(Notification::new(method.clone(), params))
            }
        })
    }
}

fn delivery(tag: Option<u64>, message: &Message, is_last: bool, status: Option<u16>) -> Delivery {
    let mut bytes = Vec::new();
    message.write(&mut bytes);
    Delivery { tag, message: bytes, is_last, status }
}

/// Shows the params of a few requests.
fn shown<'a>(requests: impl Iterator<Item = &'a ScriptedRequest>) -> String {
    let shown = requests.take(3).map(|request| {
        let params = request.params.to_string();
        match params.char_indices().nth(120) {
            Some((end, _)) => format!("`{}…`", &params[..end]),
            None => format!("`{params}`"),
        }
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A recording: lines that begin with `>` are the client's.
    fn player(lines: &str, strict: bool) -> Player {
        let records: Vec<_> = lines
            .lines()
            .map(|line| {
                let direction = if line.trim_start().starts_with('>') { "out" } else { "in" };
                let message = line.trim_start().split_at(1).1;
                let line = format!(r#"{{"direction":"{direction}","connection":1,"message":{message}}}"#);
                serde_json::from_str(&line).unwrap()
            })
            .collect();
        Player::new(Arc::new(Script::new(&records)), strict)
    }

    fn sent(player: &mut Player, message: &Value, tag: u64) -> Vec<(Option<u64>, Value, bool)> {
        let mut message = message.clone();
        message["jsonrpc"] = "2.0".into();
        let out = player.receive(&message.to_string(), tag);
        let value = |bytes: &[u8]| {
            let mut value: Value = serde_json::from_slice(bytes).unwrap();
            value.as_object_mut().unwrap().shift_remove("jsonrpc");
            value
        };
        out.iter().map(|delivery| (delivery.tag, value(&delivery.message), delivery.is_last)).collect()
    }

    #[test]
    fn repeated_requests_are_answered_in_order_with_the_ids_of_the_client() {
        let recording = r#">{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"_meta":{"x":1}}}
            <{"jsonrpc":"2.0","id":1,"result":{"n":1}}
            >{"jsonrpc":"2.0","id":2,"method":"m","params":{"a":1}}
            <{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no"}}"#;
        let request = json!({"id": "live", "method": "m", "params": {"_meta": {"y": 2}, "a": 1}});
        let first = (Some(7), json!({"id": "live", "result": {"n": 1}}), true);
        let second = (Some(7), json!({"id": "live", "error": {"code": -1, "message": "no"}}), true);
        for strict in [false, true] {
            let mut player = player(recording, strict);
            assert_eq!(sent(&mut player, &request, 7), std::slice::from_ref(&first));
            assert_eq!(sent(&mut player, &request, 7), std::slice::from_ref(&second));
            let third = sent(&mut player, &request, 7).remove(0);
            assert_eq!(third == second, !strict, "{third:?}");
        }
    }

    #[test]
    fn notifications_are_sent_where_they_were_recorded() {
        let recording = r#">{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}
            <{"jsonrpc":"2.0","method":"ack","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
            >{"jsonrpc":"2.0","id":2,"method":"m","params":{"_meta":{"progressToken":"old"}}}
            <{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"old","progress":1}}
            <{"jsonrpc":"2.0","id":2,"result":{}}
            <{"jsonrpc":"2.0","method":"changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
            <{"jsonrpc":"2.0","method":"alone"}"#;
        let mut player = player(recording, false);
        let of_subscription = |method: &str| json!({"method": method, "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": 10}}});
        let opened = sent(&mut player, &json!({"id": 10, "method": "subscriptions/listen"}), 1);
        assert_eq!(opened, [(Some(1), of_subscription("ack"), false)]);
        let request = json!({"id": 11, "method": "m", "params": {"_meta": {"progressToken": "new"}}});
        let progress =
            json!({"method": "notifications/progress", "params": {"progressToken": "new", "progress": 1}});
        let called = sent(&mut player, &request, 2);
        assert_eq!(called.len(), 4, "{called:?}");
        assert_eq!(called[0], (Some(2), progress, false));
        assert_eq!(called[1], (Some(2), json!({"id": 11, "result": {}}), true));
        assert!(called[2..].contains(&(Some(1), of_subscription("changed"), false)), "{called:?}");
        assert!(called[2..].contains(&(None, json!({"method": "alone"}), false)), "{called:?}");
        // Who asks for no progress gets none, and nothing is sent twice.
        let again = sent(&mut player, &json!({"id": 12, "method": "m"}), 3);
        assert_eq!(again, [(Some(3), json!({"id": 12, "result": {}}), true)]);
    }

    #[test]
    fn what_follows_a_question_waits_for_the_answer() {
        let recording = r#">{"jsonrpc":"2.0","id":1,"method":"m"}
            <{"jsonrpc":"2.0","id":"q","method":"ask","params":{"a":1}}
            >{"jsonrpc":"2.0","id":"q","result":{}}
            <{"jsonrpc":"2.0","id":1,"result":{"done":true}}
            >{"jsonrpc":"2.0","id":2,"method":"ends"}"#;
        let mut player = player(recording, false);
        let asked = sent(&mut player, &json!({"id": 5, "method": "m"}), 1);
        assert_eq!(asked, [(Some(1), json!({"id": 1, "method": "ask", "params": {"a": 1}}), false)]);
        assert_eq!(sent(&mut player, &json!({"method": "notifications/x"}), 2), []);
        let answered = sent(&mut player, &json!({"id": 1, "error": {"code": 1, "message": "declined"}}), 3);
        assert_eq!(answered, [(Some(1), json!({"id": 5, "result": {"done": true}}), true)]);

        sent(&mut player, &json!({"id": 6, "method": "m"}), 4);
        sent(&mut player, &json!({"method": "notifications/cancelled", "params": {"requestId": 6}}), 5);
        assert!(player.running.is_empty());
        sent(&mut player, &json!({"id": 7, "method": "m"}), 6);
        player.abandon(6);
        assert!(player.running.is_empty());

        let ended = sent(&mut player, &json!({"id": 8, "method": "ends"}), 7).remove(0);
        assert_eq!(ended.1["error"]["message"], "the recording ends before the answer to this request");
    }

    #[test]
    fn requests_that_are_not_recorded_are_named() {
        let mut player = player(r#">{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"a":1}}"#, false);
        let unknown = sent(&mut player, &json!({"id": 1, "method": "tools/list"}), 1).remove(0);
        assert_eq!((unknown.1["error"]["code"].clone(), unknown.2), (json!(-32601), true));
        let other_era = player.find("initialize", &json!({}), true).unwrap_err();
        assert!(other_era.to_string().contains("no `initialize` without a session"), "{other_era}");
        // Every client introduces itself in its own way.
        assert!(player.find("initialize", &json!({"b": 2}), false).is_ok());
        let broken = player.receive("[]", 1);
        assert_eq!(broken.len(), 1);
        for _ in 0..MAX_RUNNING + 10 {
            player.receive(r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#, 2);
        }
        assert!(player.running.len() <= MAX_RUNNING);
    }
}
