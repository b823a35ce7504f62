//! A client engine, and a server that says anything. The property tests and the fuzz target share it.

use std::collections::BTreeSet;

use pintle_proto::{
    Limits, Revision,
    client::{
        Cache, Engine, Extras, Inbound, InputRequired, Mode, Opening, OpeningEvent, OpeningStep, Profile,
        RequestOutcome, Rounds,
    },
};
use pintle_types::{Frame, Message, RawObject, Request, RequestId, RpcError};

use crate::conversation::course::Course;

/// Plays what these bytes describe.
pub(crate) fn play(course: &[u8]) {
    let mut course = Course(course);
    let mut client = Client::new(&mut course);
    client.open(&mut course);
    while !course.0.is_empty() {
        client.step(&mut course);
        assert!(client.waiting.len() <= client.limits.in_flight);
        assert!(client.questions.len() <= client.limits.questions);
    }
    client.lose();
}

struct Client {
    profile: Profile,
    limits: Limits,
    engine: Engine,
    cache: Cache,
    /// Requests that are not answered.
    waiting: BTreeSet<RequestId>,
    /// Questions of the server's that are not answered.
    questions: BTreeSet<RequestId>,
    /// Rounds of calls, by the request that is out.
    rounds: Vec<(RequestId, Rounds)>,
    sent: i64,
}

impl Client {
    fn new(course: &mut Course<'_>) -> Self {
        let object = |text: &str| -> RawObject { text.parse().expect("an object") };
        let info = object(r#"{"name":"c","version":"1"}"#);
        let can = course.of(&[
            r#"{"roots":{},"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}}}"#,
            "{}",
            r#"{"elicitation":{}}"#,
        ]);
        let mut profile = Profile::new(info, object(can));
        if course.below(4) == 3 {
            profile.revisions = Revision::all().skip(course.below(6)).collect();
        }
        profile.result_types = vec!["task".into()];
        let mut limits = Limits::default();
        (limits.in_flight, limits.questions, limits.rounds, limits.watched) = (4, 2, 1, 3);
        let engine = Engine::new(profile.clone(), limits.clone());
        let cache = Cache::new(3, 2000);
        let (waiting, questions) = (BTreeSet::new(), BTreeSet::new());
        Self { profile, limits, engine, cache, waiting, questions, rounds: Vec::new(), sent: 0 }
    }

    /// Opens, whatever the server makes of it. There is an end to it, and a driver never hangs.
    fn open(&mut self, course: &mut Course<'_>) {
        let mode = course.of(&[Mode::Auto, Mode::Auto, Mode::Legacy, Mode::Modern]);
        let remembered = course.of(&["", "2026-07-28", "2025-06-18"]).parse().ok();
        let (mut opening, mut step) = Opening::new(self.profile.clone(), mode, remembered);
        for _ in 0..16 {
            step = match step {
                OpeningStep::Send { method, params, .. } => {
                    let request = self.engine.opening_request(method, params);
                    self.send(request);
                    self.opening_answer(method, &mut opening, course)
                }
                OpeningStep::Notify(notification) => {
                    printed(&Message::Notification(notification));
                    opening.step(OpeningEvent::Done)
                }
                OpeningStep::Reopen => {
                    self.lose();
                    opening.step(OpeningEvent::Done)
                }
                OpeningStep::TwoEndpoints => {
                    opening.step(course.of(&[OpeningEvent::Done, OpeningEvent::Closed]))
                }
                OpeningStep::Ready(opened) => {
                    assert!(self.profile.revisions.contains(&opened.revision));
                    return self.engine.settle(&opened);
                }
                OpeningStep::Failed(error) => return assert!(!error.to_string().is_empty()),
                other => panic!("a step that no driver knows: {other:?}"),
            };
        }
        panic!("the opening goes on for ever");
    }

    fn opening_answer(
        &mut self,
        method: &str,
        opening: &mut Opening,
        course: &mut Course<'_>,
    ) -> OpeningStep {
        let last = self.sent;
        let id = RequestId::from(last);
        match course.below(8) {
            0 => return opening.step(OpeningEvent::Silence),
            1 => return opening.step(OpeningEvent::Closed),
            2 => {
                let error = RpcError::invalid_request("no");
                let error = course.of(&[None, Some(&error)]);
                return opening.step(OpeningEvent::Status { status: 404, error });
            }
            _ => {}
        }
        // Mostly what fits, or there would be little to talk about later.
        let answer = match (course.below(3), method) {
            (0, _) => course.of(OPENING_ANSWERS),
            (_, "initialize") => course.of(&OPENING_ANSWERS[1..4]),
            _ => OPENING_ANSWERS[0],
        };
        let line = format!(r#"{{"jsonrpc":"2.0","id":{last},{answer}}}"#);
        let Inbound::Answer { id: answered, outcome } = self.engine.receive(Message::parse(line.as_bytes()))
        else {
            panic!("an answer to what was asked")
        };
        assert_eq!(answered, id);
        assert!(self.waiting.remove(&id));
        opening.step(OpeningEvent::from(&outcome))
    }

    fn step(&mut self, course: &mut Course<'_>) {
        match course.below(8) {
            0 | 1 => self.ask(course),
            2 => {
                let id = self.some_id(course);
                let notified = match course.below(2) {
                    0 => self.engine.cancel(&id, Some("late\n")).is_some(),
                    _ => self.engine.abandon(&id).is_some(),
                };
                let waited = self.waiting.remove(&id);
                assert!(waited || !notified, "what is over cannot be cancelled");
            }
            3 => self.answer(course),
            4 if course.below(4) == 0 => {
                self.lose();
                self.open(course);
            }
            5 => {
                let lines: Vec<_> = (0..course.below(4)).map(|_| self.line(course)).collect();
                let text = format!("[{}]", lines.join(","));
                if let Ok(Frame::Batch(messages)) = Frame::parse(text.as_bytes(), 9) {
                    let several = self.engine.receive_batch(messages);
                    several.into_iter().for_each(|inbound| self.act(inbound, course));
                }
            }
            _ => {
                let line = self.line(course);
                let inbound = self.engine.receive(Message::parse(line.as_bytes()));
                self.act(inbound, course);
            }
        }
    }

    /// A request, as an application would make it.
    fn ask(&mut self, course: &mut Course<'_>) {
        let method = course.of(METHODS);
        let params: RawObject = course.of(PARAMS).parse().expect("an object");
        let mut extras = Extras::default();
        (extras.progress, extras.log_level) = (course.below(2) == 0, course.of(&[None, Some("info")]));
        extras.traceparent = course.of(&[None, Some("00-\"")]);
        if self.cache.fresh(method, &params, "ann", 10).is_some() {
            self.cache.forget_all(method);
        }
        match self.engine.request(method, &params, &extras) {
            Ok(request) => {
                self.rounds.push((request.id.clone(), Rounds::new(params, self.limits.rounds)));
                self.send(request);
                self.answered_at_once(course);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }

    fn send(&mut self, request: Request) {
        self.sent += 1;
        assert_eq!(request.id, self.sent.into(), "ids count");
        assert!(self.waiting.insert(request.id.clone()), "an id of its own");
        printed(&Message::Request(request));
    }

    fn act(&mut self, inbound: Inbound, course: &mut Course<'_>) {
        match inbound {
            Inbound::Answer { id, outcome } => {
                assert!(self.waiting.remove(&id), "a second answer to {id}");
                let at = self.rounds.iter().position(|(out, _)| *out == id);
                let rounds = at.map(|at| self.rounds.swap_remove(at).1);
                match (outcome, rounds) {
                    (RequestOutcome::InputRequired(asked), Some(rounds)) => {
                        self.next_round(&asked, rounds, course)
                    }
                    (RequestOutcome::Complete(result), Some(rounds)) if rounds.may_cache() => {
                        let ticket = self.cache.ticket();
                        self.cache.store("tools/list", &RawObject::empty(), "ann", ticket, &result, 5);
                    }
                    _ => {}
                }
            }
            Inbound::Question(question) => {
                assert!(self.questions.insert(question.id), "the same question twice");
            }
            Inbound::Withdrawn { id } => {
                assert!(self.questions.remove(&id), "only what was asked can be withdrawn");
                assert!(self.engine.reply(&id, Ok(RawObject::empty())).is_none());
            }
            Inbound::Reply(response) => drop(printed(&Message::Response(response))),
            Inbound::Progress { id, .. } | Inbound::Acknowledged { subscription: id, .. } => {
                assert!(self.waiting.contains(&id), "{id} is over");
            }
            Inbound::Change { change, subscription } => {
                assert!(subscription.is_none_or(|id| self.waiting.contains(&id)));
                self.cache.forget(&change);
            }
            Inbound::Ended { subscription, .. } => {
                assert!(self.waiting.remove(&subscription), "a second end of {subscription}");
            }
            Inbound::Ignored(why) => assert!(!why.to_string().is_empty()),
            Inbound::Violation(why) => assert!(why.to_string().len() < 4096, "a peer's text is not repeated"),
            _ => {}
        }
    }

    fn next_round(&mut self, asked: &InputRequired, mut rounds: Rounds, course: &mut Course<'_>) {
        assert!(asked.requests.len() <= self.limits.questions);
        let answers = asked.requests.iter().map(|one| (one.key.clone(), RawObject::empty()));
        let Ok(round) = rounds.next(asked, answers) else {
            return assert_eq!(rounds.count(), self.limits.rounds);
        };
        assert!(rounds.count() <= self.limits.rounds);
        let given = round.params.decode_member::<RawObject>("inputResponses").expect("an object");
        assert_eq!(given.map_or(0, |given| given.iter().count()), asked.requests.len());
        let extras = Extras::default();
        if course.below(4) > 0
            && let Ok(request) = self.engine.request("tools/call", &round.params, &extras)
        {
            self.rounds.push((request.id.clone(), rounds));
            self.send(request);
            self.answered_at_once(course);
        }
    }

    /// Often the server answers the last request next. Otherwise few calls would come to have rounds.
    fn answered_at_once(&mut self, course: &mut Course<'_>) {
        if course.below(4) > 0 {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{}}}"#, self.sent, course.of(RESULTS));
            let inbound = self.engine.receive(Message::parse(line.as_bytes()));
            self.act(inbound, course);
        }
    }

    /// The application answers a question.
    fn answer(&mut self, course: &mut Course<'_>) {
        let Some(id) = self.questions.pop_first() else { return };
        let answer = match course.below(3) {
            0 => Err(RpcError::internal("no")),
            _ => Ok(course.of(RESULTS).parse().expect("an object")),
        };
        let response = self.engine.reply(&id, answer).expect("the server waits for it");
        assert_eq!(response.id.as_ref(), Some(&id));
        printed(&Message::Response(response));
        assert!(self.engine.reply(&id, Ok(RawObject::empty())).is_none(), "one answer is enough");
    }

    fn lose(&mut self) {
        let lost = self.engine.lose();
        let requests: BTreeSet<_> = lost.requests.into_iter().collect();
        assert_eq!(requests, std::mem::take(&mut self.waiting));
        assert!(lost.listen.len() <= requests.len());
        for id in std::mem::take(&mut self.questions) {
            assert!(self.engine.reply(&id, Ok(RawObject::empty())).is_none(), "nobody is left to be told");
        }
        self.rounds.clear();
    }

    fn some_id(&self, course: &mut Course<'_>) -> RequestId {
        let at = course.below(self.waiting.len() + 1);
        self.waiting.iter().nth(at).cloned().unwrap_or_else(|| course.of(&[0, 1, 2, 99]).into())
    }

    /// One line of the server's.
    fn line(&mut self, course: &mut Course<'_>) -> String {
        let id = self.some_id(course);
        let id = match course.below(12) {
            10 => format!("\"{}\"", self.sent),
            11 => course.of(&["null", "1.5", "\"x\"", "-1"]).to_owned(),
            _ => serde_json::to_string(&id).expect("ids print"),
        };
        let mut line = match course.below(5) {
            0 | 1 => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, course.of(RESULTS)),
            2 => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{}}}"#, course.of(ERRORS)),
            3 => {
                let params = course.of(NOTICE_PARAMS).replace("ID", &id);
                format!(r#"{{"jsonrpc":"2.0","method":"{}","params":{params}}}"#, course.of(NOTICES))
            }
            _ => format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"{}","params":{}}}"#,
                course.of(QUESTIONS),
                course.of(QUESTION_PARAMS)
            ),
        };
        if course.below(12) == 11 {
            let at = course.below(256) % line.len();
            if line.is_char_boundary(at) && line.is_char_boundary(at + 1) {
                line.replace_range(at..=at, course.of(&["", "\"", "{", "}", "\\", "0", " ", "\n", "é"]));
            }
        }
        line
    }
}

/// What goes to the server is one line that is read as the same message.
fn printed(message: &Message) -> Vec<u8> {
    let bytes = message.to_vec();
    assert!(!bytes.contains(&b'\n'), "more than one line: {message}");
    let read = Message::parse(&bytes).unwrap_or_else(|bad| panic!("{bad:?} in {message}"));
    assert_eq!(read.to_vec(), bytes);
    bytes
}

const OPENING_ANSWERS: &[&str] = &[
    r#""result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}"#,
    r#""result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#,
    r#""result":{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#,
    r#""result":{"protocolVersion":"2025-03-26","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#,
    r#""error":{"code":-32601,"message":"no"}"#,
    r#""error":{"code":-32022,"message":"no","data":{"supported":["2025-06-18"],"requested":"x"}}"#,
    r#""error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"],"requested":"x"}}"#,
    r#""error":{"code":-32021,"message":"no"}"#,
    r#""result":{}"#,
    r#""result":{"resultType":"input_required"}"#,
    r#""result":{"protocolVersion":"1999-01-01","capabilities":5}"#,
];
const METHODS: &[&str] = &[
    "tools/call",
    "tools/list",
    "subscriptions/listen",
    "resources/read",
    "resources/subscribe",
    "ping",
    "logging/setLevel",
    "acme/own",
];
const PARAMS: &[&str] = &[
    r#"{"name":"a","arguments":{"x":1}}"#,
    "{}",
    r#"{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["file:///a"]}}"#,
    "{\"uri\":\"file:///a\",\"_meta\":{\"progressToken\":\n7,\"a\\\"b\":[]}}",
    r#"{"_meta":5,"requestState":"old","inputResponses":{}}"#,
];
const RESULTS: &[&str] = &[
    r#"{"resultType":"complete","tools":[],"ttlMs":1000}"#,
    r#"{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}},"requestState":"s"}"#,
    r#"{"resultType":"input_required","requestState":"s\u0022"}"#,
    "{\"resultType\":\"input_required\",\"inputRequests\":{\"a\\\"\":{\"method\":\"roots/list\"}, \"b\":\n{\"method\":\"roots/list\"}}}",
    r#"{"resultType":"input_required","inputRequests":{"a":{"method":"x"}}}"#,
    r#"{"resultType":"input_required","inputRequests":5}"#,
    r#"{"resultType":"task","task":{}}"#,
    r#"{"resultType":7}"#,
    "{\"content\":[\n]}",
    r#"{"action":"accept","content":{"a":1}}"#,
    r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":3}}"#,
    r#"{"roots":[{"uri":"file:///r"}]}"#,
];
const ERRORS: &[&str] = &[
    r#"{"code":-32602,"message":"no"}"#,
    r#"{"code":-32042,"message":"go","data":{"elicitations":[{"mode":"url","message":"m","url":"https://a.example","elicitationId":"e"}]}}"#,
    r#"{"code":-32042,"message":"go","data":5}"#,
    "{\"code\":-32022,\"message\":\"\",\"data\":[\n]}",
];
const NOTICES: &[&str] = &[
    "notifications/progress",
    "notifications/subscriptions/acknowledged",
    "notifications/tools/list_changed",
    "notifications/resources/updated",
    "notifications/cancelled",
    "notifications/message",
    "notifications/elicitation/complete",
    "acme/own",
];
const NOTICE_PARAMS: &[&str] = &[
    r#"{"progressToken":ID,"progress":1}"#,
    r#"{"progressToken":ID,"progress":2e0,"total":null}"#,
    r#"{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["file:///a"]},"_meta":{"io.modelcontextprotocol/subscriptionId":ID}}"#,
    r#"{"uri":"file:///a/b","_meta":{"io.modelcontextprotocol/subscriptionId":ID}}"#,
    r#"{"requestId":ID}"#,
    r#"{"level":"info","data":1}"#,
    "{}",
    "null",
];
const QUESTIONS: &[&str] =
    &["elicitation/create", "roots/list", "sampling/createMessage", "ping", "acme/own"];
const QUESTION_PARAMS: &[&str] = &[
    r#"{"message":"?","requestedSchema":{"type":"object","properties":{}}}"#,
    r#"{"mode":"url","message":"?","url":"https://a.example","elicitationId":"e"}"#,
    r#"{"messages":[],"maxTokens":5,"tools":[]}"#,
    "{}",
    "5",
];
