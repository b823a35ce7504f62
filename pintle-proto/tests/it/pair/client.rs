use std::collections::{BTreeMap, HashSet, VecDeque};

use pintle_proto::{
    Limits, Revision,
    client::{
        Change, End, Engine, Extras, Ignored, Inbound, InputRequired, Mode, OpenError, Opened, Opening,
        OpeningEvent, OpeningStep, Profile, RequestOutcome, RetryError, Rounds, SendError,
    },
};
use pintle_types::{ErrorCode, Frame, Message, RawObject, RequestId, RpcError};
use serde_json::{Value, json};

/// Drives the client's engines, and answers for the user.
pub(crate) struct Client {
    profile: Profile,
    mode: Mode,
    pub(crate) engine: Engine,
    opening: Option<Opening>,
    /// The request of the opening that is in flight.
    awaited: Option<RequestId>,
    pub(crate) opened: Option<Result<Opened, OpenError>>,
    /// How long the user thinks before answering.
    pub(crate) thinks_ms: u64,
    /// The user wants none of it.
    pub(crate) refuses: bool,
    /// What the client does to the params of a retry, if it is no honest client.
    pub(crate) forges: Option<fn(&mut Value)>,
    /// What happened, in order.
    pub(crate) received: Vec<String>,
    pub(crate) out: VecDeque<Vec<u8>>,
    calls: Vec<Call>,
    in_flight: BTreeMap<RequestId, usize>,
    timers: Vec<(u64, Timer)>,
    ids: HashSet<RequestId>,
}

struct Call {
    method: &'static str,
    rounds: Rounds,
    id: RequestId,
    end: Option<Result<Value, Failure>>,
}

enum Timer {
    /// The opening gives up on this request.
    Silence(RequestId),
    Retry(usize, RawObject),
    Reply(RequestId, Result<RawObject, RpcError>),
}

/// Why there is no result.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    Unsent(SendError),
    Error(RpcError),
    Retry(RetryError),
}

impl Failure {
    pub(crate) fn code(&self) -> i32 {
        match self {
            Self::Error(error) => error.code.0,
            other => panic!("{other:?}"),
        }
    }
}

/// How long the opening waits for an answer.
pub(crate) const PATIENCE_MS: u64 = 5_000;

const CAPABILITIES: &str =
    r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{"listChanged":true}}"#;

impl Client {
    pub(crate) fn new(mode: Mode, revisions: &[&str]) -> Self {
        Self::able(CAPABILITIES, mode, revisions)
    }

    pub(crate) fn able(capabilities: &str, mode: Mode, revisions: &[&str]) -> Self {
        let info = r#"{"name":"t","version":"1"}"#.parse().unwrap();
        let mut profile = Profile::new(info, capabilities.parse().unwrap());
        profile.revisions = revisions.iter().map(|name| super::revision(name)).collect();
        Self {
            engine: Engine::new(profile.clone(), Limits::default()),
            profile,
            mode,
            opening: None,
            awaited: None,
            opened: None,
            thinks_ms: 0,
            refuses: false,
            forges: None,
            received: Vec::new(),
            out: VecDeque::new(),
            calls: Vec::new(),
            in_flight: BTreeMap::new(),
            timers: Vec::new(),
            ids: HashSet::new(),
        }
    }

    pub(crate) fn revision(&self) -> Revision {
        self.engine.revision().expect("it is open")
    }

    pub(crate) fn open(&mut self, now: u64) {
        let (opening, step) = Opening::new(self.profile.clone(), self.mode, None);
        self.opening = Some(opening);
        self.step(step, now);
    }

    fn step(&mut self, step: OpeningStep, now: u64) {
        match step {
            OpeningStep::Send { method, params, .. } => {
                let request = self.engine.opening_request(method, params);
                self.awaited = Some(request.id.clone());
                self.timers.push((now + PATIENCE_MS, Timer::Silence(request.id.clone())));
                self.send(Message::Request(request));
            }
            OpeningStep::Notify(notification) => {
                self.send(Message::Notification(notification));
                self.happened(OpeningEvent::Done, now);
            }
            OpeningStep::Reopen => {
                self.received.push("started again".into());
                self.happened(OpeningEvent::Done, now);
            }
            OpeningStep::Ready(opened) => {
                self.engine.settle(&opened);
                self.opened = Some(Ok(*opened));
            }
            OpeningStep::Failed(error) => self.opened = Some(Err(error)),
            other => panic!("{other:?}"),
        }
    }

    fn happened(&mut self, event: OpeningEvent<'_>, now: u64) {
        self.awaited = None;
        let step = self.opening.as_mut().unwrap().step(event);
        self.step(step, now);
    }

    /// The server went away.
    pub(crate) fn closed(&mut self, now: u64) {
        self.out.clear();
        self.engine.lose();
        self.happened(OpeningEvent::Closed, now);
    }

    /// Sends a request; its number, to ask for its end with.
    pub(crate) fn start(
        &mut self,
        method: &'static str,
        params: Value,
        extras: &Extras<'_>,
    ) -> Result<usize, SendError> {
        let params = object(&params);
        let request = self.engine.request(method, &params, extras)?;
        let number = self.calls.len();
        self.in_flight.insert(request.id.clone(), number);
        let rounds = Rounds::new(params, 8);
        self.calls.push(Call { method, rounds, id: request.id.clone(), end: None });
        self.send(Message::Request(request));
        Ok(number)
    }

    pub(crate) fn notify(&mut self, method: &'static str) -> Result<(), SendError> {
        let notification = self.engine.notify(method, None)?;
        self.send(Message::Notification(notification));
        Ok(())
    }

    /// Sends what was put out last as one array.
    pub(crate) fn bundle(&mut self) {
        let lines: Vec<_> = self.out.drain(..).collect();
        let mut array = vec![b'['];
        array.extend_from_slice(&lines.join(&b','));
        array.push(b']');
        self.out.push_back(array);
    }

    pub(crate) fn cancel(&mut self, call: usize) {
        let id = self.calls[call].id.clone();
        self.in_flight.remove(&id);
        let notification = self.engine.cancel(&id, Some("changed my mind")).expect("it is in flight");
        self.send(Message::Notification(notification));
    }

    /// No longer waits for what is in flight; how many that was.
    pub(crate) fn abandon_all(&mut self) -> usize {
        let ids: Vec<_> = std::mem::take(&mut self.in_flight).into_keys().collect();
        for id in &ids {
            self.engine.abandon(id);
        }
        ids.len()
    }

    pub(crate) fn ended(&mut self, call: usize) -> Option<Result<Value, Failure>> {
        self.calls[call].end.clone()
    }

    pub(crate) fn rounds(&self, call: usize) -> u32 {
        self.calls[call].rounds.count()
    }

    /// The number of the last request.
    pub(crate) fn last(&self) -> usize {
        self.calls.len() - 1
    }

    pub(crate) fn id(&self, call: usize) -> &RequestId {
        &self.calls[call].id
    }

    /// Takes what was heard since the last time.
    pub(crate) fn received(&mut self) -> Vec<String> {
        std::mem::take(&mut self.received)
    }

    pub(crate) fn next_timer(&self) -> Option<u64> {
        self.timers.iter().map(|(due, _)| *due).min()
    }

    pub(crate) fn fire(&mut self, now: u64) {
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.timers).into_iter().partition(|(due, _)| *due <= now);
        self.timers = later;
        for (_, timer) in due {
            self.act(timer, now);
        }
    }

    fn act(&mut self, timer: Timer, now: u64) {
        match timer {
            Timer::Silence(id) => {
                if self.awaited.as_ref() == Some(&id) {
                    self.engine.abandon(&id);
                    self.happened(OpeningEvent::Silence, now);
                }
            }
            Timer::Retry(call, params) => {
                let method = self.calls[call].method;
                let request = self.engine.request(method, &params, &Extras::default()).unwrap();
                self.calls[call].id = request.id.clone();
                self.in_flight.insert(request.id.clone(), call);
                self.send(Message::Request(request));
            }
            Timer::Reply(id, answer) => {
                if let Some(response) = self.engine.reply(&id, answer) {
                    self.send(Message::Response(response));
                }
            }
        }
    }

    /// Does it now, or when the user has thought.
    fn later(&mut self, wait: u64, timer: Timer, now: u64) {
        if wait == 0 {
            self.act(timer, now);
        } else {
            self.timers.push((now + wait, timer));
        }
    }

    fn send(&mut self, message: Message) {
        if let Message::Request(request) = &message {
            assert!(self.ids.insert(request.id.clone()), "an id is used twice: {}", request.id);
        }
        self.out.push_back(message.to_vec());
    }

    pub(crate) fn receive(&mut self, line: &[u8], now: u64) {
        match Frame::parse(line, 100) {
            Ok(Frame::One(message)) => {
                let inbound = self.engine.receive(Ok(message));
                self.inbound(inbound, now);
            }
            Ok(Frame::Batch(messages)) => {
                for inbound in self.engine.receive_batch(messages) {
                    self.inbound(inbound, now);
                }
            }
            Err(malformed) => {
                let inbound = self.engine.receive(Err(malformed));
                self.inbound(inbound, now);
            }
        }
    }

    fn inbound(&mut self, inbound: Inbound, now: u64) {
        match inbound {
            Inbound::Answer { id, outcome } if self.awaited.as_ref() == Some(&id) => {
                self.happened(OpeningEvent::from(&outcome), now);
            }
            Inbound::Answer { id, outcome } => {
                let call = self.in_flight.remove(&id).expect("an answer to nothing");
                self.answered(call, outcome, now);
            }
            Inbound::Question(question) => {
                let answer = self.ask(&question.method, &question.params).map(|answer| object(&answer));
                self.later(self.thinks_ms, Timer::Reply(question.id, answer), now);
            }
            Inbound::Withdrawn { .. } => self.received.push("withdrawn".into()),
            Inbound::Reply(response) => self.send(Message::Response(response)),
            Inbound::Progress { params, .. } => {
                let detail = params.get("message").unwrap_or("-");
                self.received.push(format!("progress {} {detail}", params.get("progress").unwrap()));
            }
            Inbound::Log(params) => self.received.push(format!("log {}", params.get("data").unwrap())),
            Inbound::Change { change, .. } => self.received.push(match change {
                Change::Resource(uri) => format!("updated {uri}"),
                other => format!("changed {other:?}"),
            }),
            Inbound::Acknowledged { granted, .. } => {
                self.received.push(format!("granted {}", granted.as_str()));
            }
            Inbound::Ended { subscription, end } => {
                self.in_flight.remove(&subscription).expect("the end of nothing");
                self.received.push(match end {
                    End::Graceful => "ended".into(),
                    other => format!("ended {other:?}"),
                });
            }
            Inbound::Ignored(Ignored::Noise(_)) => {}
            Inbound::Ignored(ignored) => self.received.push(format!("ignored {ignored}")),
            Inbound::Violation(violation) => self.received.push(format!("violation {violation}")),
            other => panic!("{other:?}"),
        }
    }

    fn answered(&mut self, call: usize, outcome: RequestOutcome, now: u64) {
        let end = match outcome {
            RequestOutcome::Complete(result) => Ok(result.decode().unwrap()),
            RequestOutcome::InputRequired(asked) => return self.next_round(call, &asked, now),
            RequestOutcome::Error(error) => Err(Failure::Error(error)),
            other => panic!("{other:?}"),
        };
        self.received.push("answer".into());
        assert!(self.calls[call].end.replace(end).is_none(), "it ended twice");
    }

    fn next_round(&mut self, call: usize, asked: &InputRequired, now: u64) {
        let mut answers = Vec::new();
        for request in &asked.requests {
            match self.ask(&request.method, &request.params) {
                Ok(answer) => answers.push((request.key.clone(), object(&answer))),
                // There are no words for it in that era: the call is given up.
                Err(error) => {
                    self.calls[call].end = Some(Err(Failure::Error(error)));
                    return;
                }
            }
        }
        match self.calls[call].rounds.next(asked, answers) {
            Ok(round) => {
                let mut params: Value = round.params.decode().unwrap();
                if let Some(forge) = self.forges {
                    forge(&mut params);
                }
                let wait = self.thinks_ms.max(round.wait_ms);
                self.later(wait, Timer::Retry(call, object(&params)), now);
            }
            Err(error) => self.calls[call].end = Some(Err(Failure::Retry(error))),
        }
    }

    /// What the user, the model and the file system say.
    fn ask(&mut self, method: &str, params: &RawObject) -> Result<Value, RpcError> {
        let params: Value = params.decode().unwrap();
        if self.refuses {
            return Err(RpcError::new(ErrorCode::USER_REJECTED, "the user said no"));
        }
        let answer = match method {
            "roots/list" => {
                self.received.push("asked for roots".into());
                return Ok(json!({"roots": [{"uri": "file:///home/ann", "name": "home"}]}));
            }
            "sampling/createMessage" => {
                let content = &params["messages"][0]["content"];
                let text = content["text"].as_str().or(content[0]["text"].as_str()).unwrap();
                self.received.push(format!("asked {text}"));
                let text = format!("{text}? Yes.");
                let content = json!({"type": "text", "text": text});
                return Ok(json!({"role": "assistant", "model": "m", "content": content}));
            }
            "ping" => return Ok(json!({})),
            "elicitation/create" => {
                self.received.push(format!("asked {}", params["message"].as_str().unwrap()));
                match (params["message"].as_str().unwrap(), params["mode"].as_str()) {
                    (_, Some("url")) => return Ok(json!({"action": "accept"})),
                    ("Which seat?", _) => "12A",
                    ("Which meal?", _) => "soup",
                    ("Your name?", _) => "Ann",
                    ("Your age?", _) => return Ok(json!({"action": "decline"})),
                    ("Your shoe size?", _) => return Ok(json!({"action": "cancel"})),
                    (other, _) => panic!("{other}"),
                }
            }
            other => panic!("{other}"),
        };
        Ok(json!({"action": "accept", "content": {"value": answer}}))
    }
}

pub(crate) fn object(value: &Value) -> RawObject {
    RawObject::from_serialize(value).unwrap()
}
