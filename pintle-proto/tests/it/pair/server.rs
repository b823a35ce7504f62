use std::{
    cell::RefCell,
    collections::{HashMap, HashSet, VecDeque},
    future::{Future, pending, poll_fn},
    pin::Pin,
    rc::Rc,
    sync::Arc,
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Poll, Wake, Waker},
};

use pintle_proto::{
    Limits,
    inputs::{Answer, Ask, AskError, KeyId, Once, Question, Seal, SealError},
    server::{Arrival, Call, Change, Engine, Inbound, Listen, Outcome, Service},
};
use pintle_types::{
    Frame, Message, RawObject, RequestId, RpcError,
    schema::{Implementation, InputRequest, LoggingLevel},
};
use serde_json::Value;

use super::shop::{self, Shop};

/// Drives the server's engine, and polls the handlers by hand.
pub(crate) struct Server {
    pub(crate) engine: Engine,
    pub(crate) service: Service,
    pub(crate) shop: Rc<Shop>,
    pub(crate) out: VecDeque<Vec<u8>>,
    /// Lets cancelled handlers run on, as one that is just being polled does.
    pub(crate) stubborn: bool,
    /// What came in besides requests.
    pub(crate) received: Vec<String>,
    running: Vec<Running>,
    listening: Vec<Listen>,
    questions: HashMap<RequestId, Slot>,
    pings: HashSet<RequestId>,
    ids: HashSet<RequestId>,
    woken: Arc<Woken>,
}

/// Whether a handler wants to go on by itself.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Running {
    call: Call,
    desk: Rc<RefCell<Desk>>,
    handler: Pin<Box<dyn Future<Output = Result<Outcome, RpcError>>>>,
    asked: Vec<RequestId>,
}

/// What a handler has put down for the driver.
#[derive(Default)]
struct Desk {
    lines: Vec<Vec<u8>>,
    questions: Vec<(InputRequest, Slot)>,
    parked: bool,
}

type Slot = Rc<RefCell<Option<Result<RawObject, RpcError>>>>;

/// What a handler has to do with.
pub(crate) struct Cx {
    pub(crate) call: Call,
    pub(crate) shop: Rc<Shop>,
    service: Service,
    desk: Rc<RefCell<Desk>>,
}

const CAPABILITIES: &str = r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"completions":{},
    "resources":{"subscribe":true,"listChanged":true},"logging":{}}"#;

impl Server {
    pub(crate) fn new(revisions: &[&str]) -> Self {
        Self::bounded(revisions, Limits::default())
    }

    pub(crate) fn bounded(revisions: &[&str], limits: Limits) -> Self {
        let capabilities = serde_json::from_str(CAPABILITIES).unwrap();
        let service = Service::new(Implementation::new("shop", "1"), capabilities)
            .speaks(revisions.iter().map(|name| super::revision(name)))
            .limits(limits)
            .seal(Arc::new(Clear));
        Self {
            engine: Engine::new(),
            service,
            shop: Rc::default(),
            out: VecDeque::new(),
            stubborn: false,
            received: Vec::new(),
            running: Vec::new(),
            listening: Vec::new(),
            questions: HashMap::new(),
            pings: HashSet::new(),
            ids: HashSet::new(),
            woken: Arc::default(),
        }
    }

    /// A new process of the same program.
    pub(crate) fn restart(&mut self) {
        self.engine = Engine::new();
        self.running.clear();
        self.listening.clear();
        self.questions.clear();
        self.out.clear();
        self.ids.clear();
    }

    pub(crate) fn receive(&mut self, line: &[u8], now: u64, principal: Option<&'static str>) {
        let mut arrival = Arrival::at(now);
        arrival.principal = principal;
        let inbound = match Frame::parse(line, 100) {
            Ok(frame) => self.engine.receive(&self.service, frame, &arrival),
            Err(malformed) => self.engine.malformed(&malformed),
        };
        self.inbound(inbound);
    }

    fn inbound(&mut self, inbound: Inbound) {
        match inbound {
            Inbound::Call(call) => {
                let desk: Rc<RefCell<Desk>> = Rc::default();
                let cx = Cx {
                    call: call.clone(),
                    shop: self.shop.clone(),
                    service: self.service.clone(),
                    desk: desk.clone(),
                };
                let handler = Box::pin(async move { shop::serve(&cx).await });
                self.running.push(Running { call, desk, handler, asked: Vec::new() });
            }
            Inbound::Listen(listen) => {
                self.out.push_back(listen.acknowledgement.clone());
                self.listening.push(listen);
            }
            Inbound::Reply(response) => self.out.push_back(Message::Response(response).to_vec()),
            Inbound::BatchReply(array) => self.out.push_back(array),
            Inbound::Answer(response) => {
                let id = response.id.unwrap();
                if self.pings.remove(&id) {
                    assert_eq!(response.result.unwrap(), RawObject::empty());
                    self.received.push("pong".into());
                } else {
                    *self.questions.remove(&id).unwrap().borrow_mut() = Some(response.result);
                }
            }
            Inbound::Cancel(ticket) => {
                self.received.push("cancelled".into());
                self.listening.retain(|listen| listen.call.ticket() != Some(ticket));
                let at = self.running.iter().position(|running| running.call.ticket() == Some(ticket));
                if let Some(at) = at {
                    self.out.extend(self.engine.cancelled(&self.running[at].call));
                    let asked = std::mem::take(&mut self.running[at].asked);
                    self.take_back(&asked);
                    if !self.stubborn {
                        self.running.remove(at);
                    }
                }
            }
            Inbound::Notify(notification, _) => self.received.push(notification.method.into()),
            Inbound::Ignore(why) => self.received.push(why.into()),
            Inbound::Many(several) => several.into_iter().for_each(|one| self.inbound(one)),
        }
    }

    /// Lets every handler go on as far as it can. `true` if something came of it.
    pub(crate) fn poll(&mut self, now: u64) -> bool {
        let before = self.out.len();
        let mut at = 0;
        while at < self.running.len() {
            if self.poll_one(at, now) {
                self.running.remove(at);
            } else {
                at += 1;
            }
        }
        let standing = self.engine.listener();
        let listeners = standing.into_iter().chain(self.listening.iter_mut().map(|one| &mut one.listener));
        for listener in listeners {
            while let Some(notice) = listener.next_notice() {
                self.out.push_back(notice);
            }
        }
        self.woken.0.swap(false, Ordering::Relaxed) || self.out.len() > before
    }

    /// `true` if the call is over.
    fn poll_one(&mut self, at: usize, now: u64) -> bool {
        let Self { engine, service, out, running, questions, ids, woken, .. } = self;
        let running = &mut running[at];
        let waker = Waker::from(woken.clone());
        let polled = running.handler.as_mut().poll(&mut Context::from_waker(&waker));
        let desk = std::mem::take(&mut *running.desk.borrow_mut());
        out.extend(desk.lines);
        for (request, slot) in desk.questions {
            match engine.ask(&running.call, &request).expect("a session") {
                Ok((id, line)) => {
                    assert!(ids.insert(id.clone()), "an id is used twice: {id}");
                    running.asked.push(id.clone());
                    questions.insert(id, slot);
                    out.push_back(line);
                }
                Err(unsayable) => *slot.borrow_mut() = Some(Err(AskError::Unsayable(unsayable).into())),
            }
        }
        let outcome = match polled {
            Poll::Ready(Ok(outcome)) => outcome,
            Poll::Ready(Err(error)) => Outcome::Failed(error),
            Poll::Pending if desk.parked => Outcome::InputRequired,
            Poll::Pending => return false,
        };
        out.extend(engine.finish(service, &running.call, outcome, now));
        let asked = std::mem::take(&mut running.asked);
        self.take_back(&asked);
        true
    }

    fn take_back(&mut self, asked: &[RequestId]) {
        for id in asked {
            self.questions.remove(id);
            self.out.extend(self.engine.abandon(id));
        }
    }

    /// Tells whoever wants to know.
    pub(crate) fn changed(&mut self, change: &Change) {
        let standing = self.engine.listener();
        for listener in standing.into_iter().chain(self.listening.iter_mut().map(|one| &mut one.listener)) {
            listener.note(change);
        }
    }

    /// Ends the subscriptions. How many there were.
    pub(crate) fn unlisten(&mut self, now: u64) -> usize {
        let listening = std::mem::take(&mut self.listening);
        for listen in &listening {
            self.out.extend(self.engine.unlisten(&self.service, &listen.call, now));
        }
        listening.len()
    }

    /// Asks whether the client is there. `false` where that cannot be asked.
    pub(crate) fn ping(&mut self) -> bool {
        let Some((id, line)) = self.engine.ping() else { return false };
        assert!(self.ids.insert(id.clone()), "an id is used twice: {id}");
        self.pings.insert(id);
        self.out.push_back(line);
        true
    }

    pub(crate) fn received(&mut self) -> Vec<String> {
        std::mem::take(&mut self.received)
    }

    pub(crate) fn running(&self) -> usize {
        self.running.len()
    }
}

impl Cx {
    /// A straight line of code, in either era.
    pub(crate) async fn ask(&self, key: &str, question: Question) -> Result<Answer, RpcError> {
        match self.call.ask(&self.service, key, &question)? {
            Ask::Answered(answer) => Ok(answer),
            Ask::Park => {
                self.desk.borrow_mut().parked = true;
                pending().await
            }
            Ask::Send(request) => {
                let slot = Slot::default();
                self.desk.borrow_mut().questions.push((request, slot.clone()));
                let answer = poll_fn(|_| slot.borrow_mut().take().map_or(Poll::Pending, Poll::Ready)).await?;
                Ok(self.call.settle(key, question.kind(), &answer)?)
            }
        }
    }

    /// Acts once in all rounds of the call.
    pub(crate) fn once(&self, key: &str, act: impl FnOnce() -> Value) -> Value {
        if let Once::Done(value) = self.call.begin_once(key) {
            return serde_json::from_str(value.get()).unwrap();
        }
        let value = act();
        self.call.remember(key, serde_json::value::to_raw_value(&value).unwrap());
        value
    }

    pub(crate) fn progress(&self, progress: f64, message: &str) {
        self.desk.borrow_mut().lines.extend(self.call.progress(progress, None, Some(message)));
    }

    pub(crate) fn log(&self, level: LoggingLevel, data: &str) {
        self.desk.borrow_mut().lines.extend(self.call.log(level, None, &data));
    }
}

/// A cipher that hides nothing and detects every change.
#[derive(Debug)]
struct Clear;

fn sum(key: KeyId, bound: &[u8], plain: &[u8]) -> [u8; 16] {
    let mut sum = 0xcbf2_9ce4_8422_2325_u128;
    for byte in key.0.iter().chain(bound).chain(&[0]).chain(plain) {
        sum = (sum ^ u128::from(*byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
    }
    sum.to_be_bytes()
}

impl Seal for Clear {
    fn key(&self) -> KeyId {
        KeyId(*b"test key")
    }

    fn seal(&self, key: KeyId, bound: &[u8], plain: &[u8]) -> Result<Vec<u8>, SealError> {
        Ok([plain, &sum(key, bound, plain)].concat())
    }

    fn open(&self, key: KeyId, bound: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (plain, tag) = sealed.split_at_checked(sealed.len().checked_sub(16)?)?;
        (key == self.key() && tag == sum(key, bound, plain)).then(|| plain.to_vec())
    }
}
