//! A client that says anything, a server that decides anything, and somebody who keeps the accounts.
//!
//! The course of a conversation is read from bytes, so that a fuzzer can steer it. The property tests and the fuzz
//! target share it.

mod client;
pub(crate) mod course;
mod server;

use std::{collections::HashMap, sync::Arc};

use pintle_proto::{
    Limits, Revision,
    inputs::{Ask, Kind, Question},
    server::{Arrival, Call, Change, Engine, Inbound, Listen, Outcome, Service},
};
use pintle_types::{
    Frame, Message, RawObject, RequestId, Response, RpcError,
    schema::{
        Implementation, LoggingLevel, PromptsCapability, ResourcesCapability, ServerCapabilities,
        ToolsCapability,
    },
};
use serde_json::value::RawValue;

use client::{KEYS, URIS};
use course::Course;
use server::{Clear, outcome, question};

/// Plays the conversation that these bytes describe.
pub(crate) fn play(course: &[u8]) {
    let mut course = Course(course);
    let mut stage = Stage::new(&mut course);
    if course.below(4) > 0 {
        // Otherwise most conversations would never come to have a session.
        let hello = client::initialize(&mut course);
        stage.receive(&hello, &mut course);
    }
    while !course.0.is_empty() {
        stage.step(&mut course);
        stage.within_bounds();
    }
    stage.close();
}

struct Stage {
    service: Service,
    engine: Engine,
    now: u64,
    /// Calls whose handlers run.
    running: Vec<Call>,
    /// Calls that are over, and whose handlers may not know it yet.
    over: Vec<Call>,
    subscriptions: Vec<Listen>,
    /// Questions on their way, and which call wants to know.
    asked: Vec<(RequestId, Option<Asker>)>,
    states: Vec<String>,
    accounts: Accounts,
}

struct Asker {
    call: Call,
    key: &'static str,
    kind: Kind,
}

/// How many answers are owed, by id. `None` is what could not be read.
#[derive(Debug, Default)]
struct Accounts(HashMap<Option<RequestId>, usize>);

impl Accounts {
    fn owe(&mut self, id: Option<RequestId>) {
        *self.0.entry(id).or_default() += 1;
    }

    fn settle(&mut self, id: &Option<RequestId>, why: &str) {
        let owed = self.0.get_mut(id).filter(|owed| **owed > 0);
        *owed.unwrap_or_else(|| panic!("{why} for {id:?}, which nobody waits for")) -= 1;
    }
}

impl Stage {
    fn new(course: &mut Course<'_>) -> Self {
        let mut can = ServerCapabilities::default();
        can.tools.get_or_insert_with(ToolsCapability::default).list_changed = Some(true);
        can.prompts = Some(PromptsCapability::default());
        let resources = can.resources.get_or_insert_with(ResourcesCapability::default);
        (resources.subscribe, resources.list_changed) = (Some(true), Some(true));
        (can.completions, can.logging) = (Some(Default::default()), Some(Default::default()));
        let mut limits = Limits::default();
        (limits.in_flight, limits.subscriptions, limits.watched, limits.batch) = (6, 2, 3, 4);
        (limits.rounds, limits.questions, limits.state_bytes) = (3, 2, 2048);
        let mut service = Service::new(Implementation::new("stage", "1"), can)
            .instructions("Say\nanything.")
            .seal(Arc::new(Clear))
            .limits(limits)
            .methods(["acme/own"]);
        match course.below(8) {
            0..4 => {}
            4 => service = service.speaks(Revision::all().filter(|revision| *revision != Revision::LATEST)),
            5 => service = service.speaks([Revision::LATEST]),
            6 => service = service.hide_identity(),
            _ => service = service.speaks(Revision::all().nth(course.below(5))),
        }
        Self {
            service,
            engine: Engine::new(),
            now: 0,
            running: Vec::new(),
            over: Vec::new(),
            subscriptions: Vec::new(),
            asked: Vec::new(),
            states: Vec::new(),
            accounts: Accounts::default(),
        }
    }

    fn step(&mut self, course: &mut Course<'_>) {
        match course.below(16) {
            0..6 => {
                let line = self.line(course);
                self.receive(&line, course);
            }
            6 => {
                let count = course.below(5);
                let lines: Vec<_> = (0..count).map(|_| self.line(course)).collect();
                let batch = format!("[{}]", lines.join(","));
                self.receive(&batch, course);
            }
            7 => {
                let length = course.below(64);
                let line = String::from_utf8_lossy(course.bytes(length)).into_owned();
                self.receive(&line, course);
            }
            8 | 9 => self.finish(course),
            10 => self.ask(course),
            11 => self.tell(course),
            12 => self.change(course),
            13 => self.end(course),
            14 => self.late(course),
            _ => self.now += course.of(&[0, 1, 1_000_000, 3_600_000]),
        }
    }

    fn line(&self, course: &mut Course<'_>) -> String {
        let asked: Vec<_> = self.asked.iter().map(|(id, _)| id.clone()).collect();
        client::line(&asked, &self.states, course)
    }

    /// Takes a line as a driver would.
    fn receive(&mut self, line: &str, course: &mut Course<'_>) {
        let arrival = Arrival::at(self.now);
        let arrival = if course.below(8) == 7 { arrival.by("ann") } else { arrival };
        let frame = match Frame::parse(line.as_bytes(), self.service.bounds().batch) {
            Ok(frame) => frame,
            Err(malformed) => {
                if let Some(reply) = malformed.reply() {
                    self.accounts.owe(reply.id);
                }
                let decision = self.engine.malformed(&malformed);
                return self.act(decision);
            }
        };
        let owed: Vec<Option<RequestId>> = match &frame {
            Frame::One(message) => owed(message).into_iter().collect(),
            Frame::Batch(items) => {
                let each = items.iter().filter_map(|item| match item {
                    Ok(message) => owed(message),
                    Err(malformed) => malformed.reply().map(|reply| reply.id),
                });
                each.collect()
            }
        };
        let whole = matches!(frame, Frame::Batch(_));
        if course.below(8) == 7
            && let Frame::One(Message::Request(request)) = &frame
        {
            self.alone(request.clone(), &arrival);
        }
        let decision = self.engine.receive(&self.service, frame, &arrival);
        if whole && matches!(&decision, Inbound::Reply(Response { id: None, .. })) {
            // Refused as one.
            self.accounts.owe(None);
        } else {
            owed.into_iter().for_each(|id| self.accounts.owe(id));
        }
        self.act(decision);
    }

    /// The same request as over HTTP, where no engine is.
    fn alone(&mut self, request: pintle_types::Request, arrival: &Arrival<'_>) {
        let id = request.id.clone();
        match self.service.admit(request, arrival) {
            Err((same, error)) => {
                assert_eq!(same, id);
                assert!(error.code.0 < 0);
            }
            Ok(Inbound::Call(call)) => {
                let finished =
                    call.finish(&self.service, Outcome::Complete(RawObject::empty().into()), self.now);
                assert_eq!(one_answer(&finished.bytes).id, Some(id));
            }
            Ok(Inbound::Listen(Listen { call, acknowledgement, .. })) => {
                assert!(matches!(Message::parse(&acknowledgement), Ok(Message::Notification(_))));
                assert_eq!(one_answer(&self.service.unlisten(&call, self.now)).id, Some(id));
            }
            Ok(Inbound::Reply(response)) => assert_eq!(response.id, Some(id)),
            Ok(other) => panic!("{other:?} for a request that stands alone"),
        }
    }

    fn act(&mut self, decision: Inbound) {
        match decision {
            Inbound::Call(call) => {
                assert!(call.ticket().is_some());
                self.running.push(call);
            }
            Inbound::Listen(listen) => {
                self.send(&listen.acknowledgement.clone());
                self.subscriptions.push(listen);
            }
            Inbound::Reply(response) => self.send(&Message::Response(response).to_vec()),
            Inbound::BatchReply(bytes) => self.send(&bytes),
            Inbound::Answer(response) => self.answered(response),
            Inbound::Cancel(ticket) => {
                let same = |call: &Call| call.ticket() == Some(ticket);
                let call = if let Some(at) = self.running.iter().position(same) {
                    self.running.swap_remove(at)
                } else if let Some(at) = self.subscriptions.iter().position(|listen| same(&listen.call)) {
                    self.subscriptions.swap_remove(at).call
                } else {
                    panic!("a cancellation of what does not run")
                };
                self.accounts.settle(&Some(call.id().clone()), "a cancellation");
                // Before or after the others of its batch: both may happen.
                if let Some(bytes) = self.engine.cancelled(&call) {
                    self.send(&bytes);
                }
                self.over.push(call);
            }
            Inbound::Notify(..) | Inbound::Ignore(_) => {}
            Inbound::Many(several) => several.into_iter().for_each(|decision| self.act(decision)),
        }
    }

    fn answered(&mut self, response: Response) {
        let at = self.asked.iter().position(|(id, _)| Some(id) == response.id.as_ref());
        let (_, asker) = self.asked.swap_remove(at.expect("an answer to something that was asked"));
        if let (Some(Asker { call, key, kind }), Ok(result)) = (asker, response.result) {
            // Whatever the client answered: no panic, and no question left open that has an answer.
            if call.settle(key, kind, &result).is_ok() {
                assert!(!call.open_questions().contains_key(key));
            }
        }
    }

    fn finish(&mut self, course: &mut Course<'_>) {
        if self.running.is_empty() {
            return;
        }
        let call = self.running.swap_remove(course.below(self.running.len()));
        let outcome = outcome(course);
        if let Some(bytes) = self.engine.finish(&self.service, &call, outcome, self.now) {
            self.send(&bytes);
        }
        self.over.push(call);
    }

    /// A handler asks.
    fn ask(&mut self, course: &mut Course<'_>) {
        if self.running.is_empty() {
            return;
        }
        let call = self.running[course.below(self.running.len())].clone();
        let (key, question) = (course.of(KEYS), question(course));
        match course.below(6) {
            0 => call.set_note(Some("n\n".to_owned())),
            1 => call.remember("once", RawValue::from_string("[1,\n2]".to_owned()).expect("JSON")),
            _ => {}
        }
        match call.ask(&self.service, key, &question) {
            Ok(Ask::Send(request)) => match self.engine.ask(&call, &request).expect("a session that asks") {
                Ok((id, bytes)) => {
                    let kind = question.kind();
                    self.asked.push((id.clone(), Some(Asker { call, key, kind })));
                    self.send(&bytes);
                    if course.below(2) == 0 {
                        let answer = client::answer(&id, course);
                        self.receive(&answer, course);
                    }
                }
                Err(unsayable) => assert!(!unsayable.to_string().is_empty()),
            },
            Ok(Ask::Park) => assert!(call.open_questions().contains_key(key)),
            Ok(Ask::Answered(_)) => {}
            Err(error) => assert!(RpcError::from(error).code.0 < 0),
        }
    }

    /// A handler tells how far it is.
    fn tell(&mut self, course: &mut Course<'_>) {
        let progress = f64::from(course.below(256) as u8) / 7.0;
        let detail = self.running.get(course.below(8)).cloned();
        let Some(call) = detail else { return };
        let lines = [
            call.progress(progress, course.of(&[None, Some(9.0), Some(f64::NAN)]), Some("a\nb")),
            call.log(course.of(&[LoggingLevel::Debug, LoggingLevel::Error]), None, &"a\nb"),
        ];
        if lines[0].is_some() {
            assert_eq!(call.progress(progress, None, None), None, "progress that is none");
        }
        lines.into_iter().flatten().for_each(|line| self.send(&line));
    }

    /// Something changes, and those who want to know are told.
    fn change(&mut self, course: &mut Course<'_>) {
        let change = match course.below(5) {
            0 => Change::Tools,
            1 => Change::Prompts,
            2 => Change::Resources,
            _ => Change::Resource(course.of(URIS).trim_matches('"').into()),
        };
        let listeners = self.subscriptions.iter_mut().map(|listen| &mut listen.listener);
        let mut lines = Vec::new();
        for listener in listeners.chain(self.engine.listener()) {
            listener.note(&change);
            lines.extend(listener.next_notice());
            assert_eq!(listener.next_notice(), None, "one change, one notice");
        }
        lines.iter().for_each(|line| self.send(line));
    }

    /// The server ends something on its own account.
    fn end(&mut self, course: &mut Course<'_>) {
        match course.below(4) {
            0 if !self.subscriptions.is_empty() => {
                let listen = self.subscriptions.swap_remove(course.below(self.subscriptions.len()));
                let lines = self.engine.unlisten(&self.service, &listen.call, self.now);
                assert_eq!(lines.len(), 2, "a notice and an answer");
                lines.iter().for_each(|line| self.send(line));
                self.over.push(listen.call);
            }
            1 if !self.asked.is_empty() => {
                let (id, _) = self.asked.swap_remove(course.below(self.asked.len()));
                let notice = self.engine.abandon(&id).expect("the question was open");
                self.send(&notice);
                assert_eq!(self.engine.abandon(&id), None);
            }
            2 => {
                if let Some((id, bytes)) = self.engine.ping() {
                    self.asked.push((id, None));
                    self.send(&bytes);
                }
            }
            _ => {}
        }
    }

    /// A handler that has not noticed that its call is over.
    fn late(&mut self, course: &mut Course<'_>) {
        if self.over.is_empty() {
            return;
        }
        let call = self.over[course.below(self.over.len())].clone();
        assert_eq!(call.progress(1e9, None, None), None);
        assert_eq!(call.log(LoggingLevel::Emergency, None, &1), None);
        assert!(call.ask(&self.service, "late", &Question::Roots).is_err());
        assert_eq!(
            self.engine.finish(&self.service, &call, outcome(course), self.now),
            None,
            "a second answer"
        );
    }

    /// Takes what goes to the client, which must be one frame on one line.
    fn send(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        assert!(!bytes.contains(&b'\n') && !bytes.contains(&b'\r'), "more than one line: {text}");
        let messages = match Frame::parse(bytes, usize::MAX) {
            Ok(Frame::One(message)) => vec![message],
            Ok(Frame::Batch(items)) => items.into_iter().map(|item| item.expect("a message")).collect(),
            Err(malformed) => panic!("we sent what is no frame: {malformed:?}\n{text}"),
        };
        for message in messages {
            match message {
                Message::Response(response) => {
                    self.accounts.settle(&response.id, "an answer");
                    let state =
                        response.result.ok().and_then(|result| result.decode_member("requestState").ok()?);
                    if let Some(state) = state {
                        let state: String = state;
                        assert!(state.len() <= self.service.bounds().state_bytes);
                        self.states.push(state);
                    }
                }
                Message::Request(request) => {
                    assert!(self.asked.iter().any(|(id, _)| *id == request.id), "a question nobody asked");
                }
                Message::Notification(_) => {}
            }
        }
    }

    fn within_bounds(&self) {
        let bounds = self.service.bounds();
        assert!(self.engine.in_flight() <= bounds.in_flight);
        assert_eq!(self.engine.in_flight(), self.running.len() + self.subscriptions.len());
        assert!(self.subscriptions.len() <= bounds.subscriptions);
        for call in &self.running {
            assert!(call.open_questions().len() <= bounds.questions);
        }
    }

    /// When every handler has come to its end, no answer is owed.
    fn close(mut self) {
        for call in std::mem::take(&mut self.running) {
            let failed = Outcome::Failed(RpcError::internal("closing"));
            if let Some(bytes) = self.engine.finish(&self.service, &call, failed, self.now) {
                self.send(&bytes);
            }
        }
        for listen in std::mem::take(&mut self.subscriptions) {
            let lines = self.engine.unlisten(&self.service, &listen.call, self.now);
            lines.iter().for_each(|line| self.send(line));
        }
        assert_eq!(self.engine.in_flight(), 0);
        let owed: Vec<_> = self.accounts.0.iter().filter(|(_, owed)| **owed > 0).collect();
        assert!(owed.is_empty(), "never answered: {owed:?}");
    }
}

/// The id under which a message wants an answer.
fn owed(message: &Message) -> Option<Option<RequestId>> {
    match message {
        Message::Request(request) => Some(Some(request.id.clone())),
        Message::Notification(_) | Message::Response(_) => None,
    }
}

fn one_answer(bytes: &[u8]) -> Response {
    match Message::parse(bytes) {
        Ok(Message::Response(response)) => response,
        other => panic!("{other:?} is no answer"),
    }
}
