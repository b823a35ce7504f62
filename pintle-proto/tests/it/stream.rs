//! The server's end of a byte stream: what a transport does, without the transport.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use pintle_proto::{
    Limits, Revision,
    inputs::{AskError, Kind},
    server::{Arrival, Change, Engine, Inbound, Listener, Outcome, Service, Ticket},
};
use pintle_types::{
    Frame, Message, RequestId, Response, RpcError,
    schema::{Implementation, ServerCapabilities},
};

use crate::{
    demo::{self, Cx, Turn},
    seal::Checksum,
};

pub(crate) struct Stream {
    service: Service,
    engine: Engine,
    pub(crate) now: u64,
    pub(crate) principal: Option<String>,
    running: HashMap<Ticket, Running>,
    questions: BTreeMap<RequestId, Asked>,
    listening: Vec<(Call, Listener)>,
    acts: u32,
    /// Whether each request comes by itself, as over HTTP: then there is no engine in between.
    pub(crate) apart: bool,
    /// What was written and nobody has read.
    pub(crate) written: Vec<Vec<u8>>,
}

type Call = pintle_proto::server::Call;

struct Running {
    call: Call,
    refused: BTreeMap<String, RpcError>,
    slow: bool,
}

struct Asked {
    ticket: Ticket,
    key: String,
    kind: Kind,
}

impl Stream {
    pub(crate) fn new(service: Service) -> Self {
        Self {
            service,
            engine: Engine::new(),
            now: 1_000_000,
            principal: None,
            running: HashMap::new(),
            questions: BTreeMap::new(),
            listening: Vec::new(),
            acts: 0,
            apart: false,
            written: Vec::new(),
        }
    }

    /// Takes one line.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        let limits = self.service.bounds();
        if bytes.len() > limits.message_bytes {
            let reply = Engine::oversized(limits.message_bytes, None);
            return self.reply(reply);
        }
        let mut arrival = Arrival::at(self.now);
        arrival.principal = self.principal.as_deref();
        let inbound = match Frame::parse(bytes, limits.batch) {
            Ok(Frame::One(Message::Request(request))) if self.apart => self
                .service
                .admit(request, &arrival)
                .unwrap_or_else(|(id, error)| Inbound::Reply(Response::new(Some(id), Err(error)))),
            Ok(frame) => self.engine.receive(&self.service, frame, &arrival),
            Err(malformed) => self.engine.malformed(&malformed),
        };
        self.act(inbound);
    }

    fn act(&mut self, inbound: Inbound) {
        match inbound {
            Inbound::Call(call) => self.run(Running { call, refused: BTreeMap::new(), slow: false }),
            Inbound::Listen(listen) => {
                self.written.push(listen.acknowledgement);
                self.listening.push((listen.call, listen.listener));
            }
            Inbound::Reply(response) => self.reply(response),
            Inbound::BatchReply(bytes) => self.written.push(bytes),
            Inbound::Answer(response) => self.answer(response),
            Inbound::Cancel(ticket) => self.cancel(ticket),
            Inbound::Notify(..) | Inbound::Ignore(_) => {}
            Inbound::Many(several) => several.into_iter().for_each(|one| self.act(one)),
        }
    }

    fn reply(&mut self, response: Response) {
        self.written.push(Message::Response(response).to_vec());
    }

    fn run(&mut self, running: Running) {
        let mut cx = Cx {
            service: &self.service,
            call: &running.call,
            refused: &running.refused,
            acts: &mut self.acts,
            notifications: Vec::new(),
            sent: Vec::new(),
        };
        let turn = demo::run(&mut cx);
        let (notifications, sent) = (cx.notifications, cx.sent);
        self.written.extend(notifications);
        let slow = match turn {
            Turn::Done(outcome) => return self.finish(&running.call, outcome),
            Turn::Slow => true,
            Turn::Waits => false,
        };
        let ticket = running.call.ticket().expect("a stream's calls have tickets");
        for (key, kind, request) in sent {
            if self.questions.values().any(|asked| asked.ticket == ticket && asked.key == key) {
                continue;
            }
            match self.engine.ask(&running.call, &request).expect("a session") {
                Ok((id, bytes)) => {
                    self.written.push(bytes);
                    self.questions.insert(id, Asked { ticket, key, kind });
                }
                Err(text) => {
                    let error = RpcError::from(AskError::Unsayable(text));
                    return self.finish(&running.call, Outcome::Failed(error));
                }
            }
        }
        self.running.insert(ticket, Running { slow, ..running });
    }

    fn finish(&mut self, call: &Call, outcome: Outcome) {
        let bytes = if self.apart {
            Some(call.finish(&self.service, outcome, self.now).bytes)
        } else {
            self.engine.finish(&self.service, call, outcome, self.now)
        };
        if let Some(ticket) = call.ticket() {
            self.abandon(ticket);
        }
        self.written.extend(bytes);
    }

    fn answer(&mut self, response: Response) {
        let Some(asked) = response.id.and_then(|id| self.questions.remove(&id)) else { return };
        let Some(mut running) = self.running.remove(&asked.ticket) else { return };
        match response.result {
            Ok(answer) => {
                if let Err(error) = running.call.settle(&asked.key, asked.kind, &answer) {
                    return self.finish(&running.call, Outcome::Failed(error.into()));
                }
            }
            Err(error) => drop(running.refused.insert(asked.key, error)),
        }
        self.run(running);
    }

    fn cancel(&mut self, ticket: Ticket) {
        self.listening.retain(|(call, _)| call.ticket() != Some(ticket));
        let Some(running) = self.running.remove(&ticket) else { return };
        let bytes = self.engine.cancelled(&running.call);
        self.abandon(ticket);
        self.written.extend(bytes);
    }

    fn abandon(&mut self, ticket: Ticket) {
        let open: Vec<_> = self
            .questions
            .iter()
            .filter(|(_, asked)| asked.ticket == ticket)
            .map(|(id, _)| id.clone())
            .collect();
        for id in open {
            self.questions.remove(&id);
            self.written.extend(self.engine.abandon(&id));
        }
    }

    /// Lets the slow call of this id go on.
    pub(crate) fn release(&mut self, id: &RequestId) {
        let slow = self.running.iter().find(|(_, running)| running.slow && running.call.id() == id);
        let ticket = *slow.expect("a slow call of that id").0;
        let call = self.running.remove(&ticket).unwrap().call;
        self.finish(&call, demo::released());
    }

    /// Something about the server has changed.
    pub(crate) fn change(&mut self, change: &Change) {
        let session = self.engine.listener();
        let listeners = session.into_iter().chain(self.listening.iter_mut().map(|(_, listener)| listener));
        for listener in listeners {
            listener.note(change);
            self.written.extend(std::iter::from_fn(|| listener.next_notice()));
        }
    }

    /// Ends the subscription of this id from the server's side.
    pub(crate) fn unlisten(&mut self, id: &RequestId) {
        let at =
            self.listening.iter().position(|(call, _)| call.id() == id).expect("a subscription of that id");
        let (call, _) = self.listening.remove(at);
        let last = self.engine.unlisten(&self.service, &call, self.now);
        self.written.extend(last);
    }

    /// Asks whether the client is there.
    pub(crate) fn ping(&mut self) {
        let (_, bytes) = self.engine.ping().expect("a session");
        self.written.push(bytes);
    }

    /// Tells the session something of the application's.
    pub(crate) fn tell(&mut self, method: &str, params: &str) {
        let bytes =
            self.engine.listener().expect("a session").notification(method, Some(&params.parse().unwrap()));
        self.written.push(bytes);
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.engine.in_flight()
    }
}

/// The demo service, with tweaks such as `no-prompts`, `rounds=2` or `only=2025-06-18,2024-11-05`.
pub(crate) fn service(tweaks: &str) -> Service {
    let mut can: ServerCapabilities = serde_json::from_value(serde_json::json!({
        "tools": { "listChanged": true },
        "prompts": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
        "logging": {},
        "completions": {}
    }))
    .unwrap();
    let mut limits = Limits::default();
    let (mut sealed, mut hidden, mut own) = (true, false, None);
    let mut revisions: Vec<Revision> = Vec::new();
    for tweak in tweaks.split_whitespace() {
        let (name, value) = tweak.split_once('=').unwrap_or((tweak, ""));
        let number = || value.parse().unwrap_or_else(|_| panic!("`{tweak}`: a number is missing"));
        match name {
            "no-tools" => can.tools = None,
            "no-prompts" => can.prompts = None,
            "no-resources" => can.resources = None,
            "no-subscribe" => can.resources.as_mut().unwrap().subscribe = None,
            "no-logging" => can.logging = None,
            "no-completions" => can.completions = None,
            "quiet" => {
                can.tools.as_mut().unwrap().list_changed = None;
                can.prompts.as_mut().unwrap().list_changed = None;
                can.resources.as_mut().unwrap().list_changed = None;
                can.resources.as_mut().unwrap().subscribe = None;
            }
            "only" => revisions = value.split(',').map(|name| name.parse().unwrap()).collect(),
            "sealless" => sealed = false,
            "untold" => hidden = true,
            "method" => own = Some(value),
            "batch" => limits.batch = number(),
            "in-flight" => limits.in_flight = number(),
            "message-bytes" => limits.message_bytes = number(),
            "questions" => limits.questions = number(),
            "rounds" => limits.rounds = number() as u32,
            "state-bytes" => limits.state_bytes = number(),
            "subscriptions" => limits.subscriptions = number(),
            "watched" => limits.watched = number(),
            "session-bytes" => limits.session_bytes = number(),
            _ => panic!("no such tweak: `{tweak}`"),
        }
    }
    let mut service =
        Service::new(Implementation::new("demo", "1"), can).limits(limits).speaks(revisions).methods(own);
    if sealed {
        service = service.seal(Arc::new(Checksum));
    }
    if hidden { service.hide_identity() } else { service.instructions("Try it.") }
}
