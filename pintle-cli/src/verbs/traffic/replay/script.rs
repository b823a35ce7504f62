//! The messages of a server in a recording, by the request that they were sent for.

use std::collections::HashMap;

use pintle::types::{Message, RawObject, RawValue, Request, RequestId, RpcError, keys, method};
use serde_json::Value;

use crate::recording::{RecordedHttp, RecordedLine};

/// A recording as a server plays it.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// The requests of clients, in their order.
    pub(super) requests: Vec<ScriptedRequest>,
    /// Messages that belong to no request.
    pub(super) standalone: Vec<ScriptedStep>,
}

/// A request, and what the server sent for it.
#[derive(Debug)]
pub(super) struct ScriptedRequest {
    pub(super) method: String,
    /// The params without `_meta`, which differs each time.
    pub(super) params: Value,
    /// Whether it names its revision, and so belongs to no session.
    pub(super) names_revision: bool,
    id: RequestId,
    pub(super) progress_token: Option<Value>,
    pub(super) steps: Vec<ScriptedStep>,
    /// The status of the response over HTTP.
    pub(super) status: Option<u16>,
    is_answered: bool,
}

/// A message of the server.
#[derive(Debug)]
pub(super) struct ScriptedStep {
    /// The request before it, which has to be answered first, if it belongs to none itself.
    pub(super) after: Option<usize>,
    pub(super) kind: StepKind,
}

#[derive(Debug)]
pub(super) enum StepKind {
    Notification {
        method: String,
        params: Option<Value>,
    },
    /// A request of the server. What follows waits for the answer.
    Question {
        method: String,
        params: Option<RawObject>,
    },
    Response(Result<RawObject, RpcError>),
}

impl ScriptedRequest {
    pub(super) fn new(request: &Request) -> Self {
        let (params, meta) = split_meta(request.params.as_ref());
        Self {
            method: request.method.clone().into_owned(),
            params,
            names_revision: names_revision(&meta),
            id: request.id.clone(),
            progress_token: meta.get(keys::PROGRESS_TOKEN).cloned(),
            steps: Vec::new(),
            status: None,
            is_answered: false,
        }
    }

    /// Returns whether it opens a stream that need not end.
    pub(super) fn is_subscription(&self) -> bool {
        self.method == method::SUBSCRIPTIONS_LISTEN
    }
}

/// Returns whether a request with this `_meta` names its revision, and so belongs to no session.
pub(super) fn names_revision(meta: &Value) -> bool {
    meta.get(keys::PROTOCOL_VERSION).is_some()
}

/// Separates `_meta` from the params of a request.
pub(super) fn split_meta(params: Option<&RawObject>) -> (Value, Value) {
    let mut params: Value = params
        .and_then(|params| serde_json::from_str(params.as_str()).ok())
        .unwrap_or_else(|| Value::Object(Default::default()));
    let meta = params.as_object_mut().and_then(|params| params.shift_remove("_meta")).unwrap_or_default();
    (params, meta)
}

impl Script {
    pub(super) fn new(lines: &[RecordedLine]) -> Self {
        let mut reading = ScriptReader::default();
        for line in lines {
            let Some(text) = line.message.as_deref().map(RawValue::get) else {
                reading.head(line);
                continue;
            };
            let batch: Vec<&RawValue> = match text.starts_with('[') {
                true => serde_json::from_str(text).unwrap_or_default(),
                false => vec![line.message.as_deref().unwrap_or(RawValue::NULL)],
            };
            for message in batch {
                // What is not a message cannot be replayed.
                let Ok(message) = Message::parse_str(message.get()) else { continue };
                match line.is_by_client() {
                    true => reading.by_client(line, &message),
                    false => reading.by_server(line, message),
                }
            }
        }
        reading.script
    }
}

/// A connection of a file.
type Scope = (usize, Option<u64>);

#[derive(Default)]
struct ScriptReader {
    script: Script,
    /// The newest request of each id.
    by_id: HashMap<(Scope, RequestId), usize>,
    /// The request of each HTTP exchange.
    by_exchange: HashMap<(usize, u64), usize>,
    /// The newest request, in each connection.
    newest: HashMap<Scope, usize>,
}

impl ScriptReader {
    fn by_client(&mut self, line: &RecordedLine, message: &Message) {
        let Message::Request(request) = message else { return };
        let scope = (line.part, line.connection);
        let at = self.script.requests.len();
        self.script.requests.push(ScriptedRequest::new(request));
        self.by_id.insert((scope, request.id.clone()), at);
        self.newest.insert(scope, at);
        if let Some(http) = &line.http {
            self.by_exchange.insert((line.part, http.exchange), at);
        }
    }

    /// The head of a response: its status is all that there is, if it has no message.
    fn head(&mut self, line: &RecordedLine) {
        if let Some(http) = line.http.as_ref().filter(|http| http.status.is_some())
            && let Some(at) = self.by_exchange.get(&(line.part, http.exchange))
        {
            self.script.requests[*at].status = http.status;
        }
    }

    fn by_server(&mut self, line: &RecordedLine, message: Message) {
        let scope = (line.part, line.connection);
        let exchange = line
            .http
            .as_ref()
            .and_then(|http: &RecordedHttp| self.by_exchange.get(&(line.part, http.exchange)).copied());
        let newest = self.newest.get(&scope).copied();
        match message {
            Message::Response(response) => {
                let by_id = response.id.and_then(|id| self.by_id.get(&(scope, id)).copied());
                // An error of HTTP may have no id.
                let Some(at) = exchange.filter(|at| by_id.is_none() || by_id == Some(*at)).or(by_id) else {
                    return;
                };
                let request = &mut self.script.requests[at];
                if request.is_answered {
                    return;
                }
                request.is_answered = true;
                request.status = line.http.as_ref().and_then(|http| http.status).or(request.status);
                request.steps.push(ScriptedStep { after: None, kind: StepKind::Response(response.result) });
            }
            Message::Notification(notification) => {
                let params: Option<Value> = notification
                    .params
                    .as_ref()
                    .and_then(|params| serde_json::from_str(params.as_str()).ok());
                let at = exchange.or_else(|| self.owner(scope, &notification.method, params.as_ref()));
                let method = notification.method.into_owned();
                self.push(at, newest, StepKind::Notification { method, params });
            }
            Message::Request(request) => {
                let at = exchange.or_else(|| self.open_request(scope));
                let kind = StepKind::Question { method: request.method.into_owned(), params: request.params };
                self.push(at, newest, kind);
            }
        }
    }

    fn push(&mut self, at: Option<usize>, newest: Option<usize>, kind: StepKind) {
        match at.map(|at| (at, &mut self.script.requests[at])) {
            // A stream of changes: what caused one comes first.
            Some((at, request)) if request.is_subscription() => {
                let after = newest.filter(|newest| *newest != at);
                request.steps.push(ScriptedStep { after, kind });
            }
            Some((_, request)) if !request.is_answered => {
                request.steps.push(ScriptedStep { after: None, kind })
            }
            _ => self.script.standalone.push(ScriptedStep { after: newest, kind }),
        }
    }

    /// Returns the request that a notification belongs to, where there is one stream for all.
    fn owner(&self, scope: Scope, name: &str, params: Option<&Value>) -> Option<usize> {
        let of_token = || {
            let token = params?.get(keys::PROGRESS_TOKEN)?;
            self.script.requests.iter().rposition(|request| request.progress_token.as_ref() == Some(token))
        };
        let of_subscription = || {
            let id = params?.get("_meta")?.get(keys::SUBSCRIPTION_ID)?;
            let has_id =
                |request: &ScriptedRequest| serde_json::to_value(&request.id).is_ok_and(|own| own == *id);
            self.script.requests.iter().rposition(|request| request.is_subscription() && has_id(request))
        };
        match name {
            method::NOTIFICATIONS_PROGRESS => of_token(),
            method::NOTIFICATIONS_MESSAGE => self.open_request(scope),
            _ => of_subscription(),
        }
    }

    /// Returns the newest request that is not answered yet.
    fn open_request(&self, scope: Scope) -> Option<usize> {
        let newest = self.by_id.iter().filter(|((of, _), _)| *of == scope).map(|(_, at)| *at);
        let is_open = |at: &usize| {
            let request = &self.script.requests[*at];
            !request.is_answered && !request.is_subscription()
        };
        newest.filter(is_open).max()
    }
}
