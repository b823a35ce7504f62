//! The session era: what one POST asked for, and its way to the client.

use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Response, StatusCode};
use pintle_proto::{
    http::{Accepts, Streams},
    inputs::AskError,
    server::{Call, Outcome},
};
use tokio::{task::JoinHandle, time::Instant};

use super::{
    Session,
    channel::{Channel, Speaker},
    detached::{self, CallGroup},
};
use crate::server::{
    call::{
        context::RequestContext,
        driver::{CallDriver, CallStep},
        own_sink::OwnSink,
        sink::{CallEvent, CallSink},
    },
    http::{
        Body,
        edge::{
            keep_alive::KeepAlive,
            response::{accepted, events, json, session_ended},
        },
        service::Shared,
    },
    state::State,
};

/// The calls of one POST, most often one.
pub(in crate::server::http) struct Exchange {
    pub(in crate::server::http) shared: Arc<Shared>,
    session: Arc<Session>,
    state: Arc<State>,
    calls: Vec<Turn>,
    lines: VecDeque<Word>,
    /// Notifications that came with them and are being handled: everything else waits for that.
    heard: Vec<JoinHandle<()>>,
    /// Whether what is said has a stream of its own to go to.
    streams: bool,
    /// Turns of calls that are over and whose answers have no place yet: whoever does not read runs no more calls.
    held: u32,
    /// Whether handlers run in tasks of their own: what drives this may have to wait for somebody who does not read.
    away: bool,
}

/// A call, and whether it may run: a session runs so many at the same time.
struct Turn {
    driver: CallDriver,
    granted: bool,
    /// Whether it has asked before.
    queued: bool,
    /// Whether it gave its turn away because the client has to answer something. It takes one again afterwards.
    asking: bool,
}

/// What comes of an exchange.
enum Word {
    /// Something on the way.
    Line(Bytes),
    /// The answer.
    Answer(Bytes),
    /// The client may go, and come back after so many milliseconds.
    HangUp(u64),
    /// Nothing more.
    Over,
}

impl Exchange {
    pub(in crate::server::http) fn new(
        shared: &Arc<Shared>,
        session: &Arc<Session>,
        state: &Arc<State>,
        streams: bool,
    ) -> Self {
        let (shared, session, state) = (shared.clone(), session.clone(), state.clone());
        let (calls, lines, heard) = (Vec::new(), VecDeque::new(), Vec::new());
        Self { shared, session, state, calls, lines, heard, streams, held: 0, away: false }
    }

    /// Begins a call.
    pub(in crate::server::http) fn add(&mut self, context: &Arc<RequestContext>, call: Call) {
        let driver = CallDriver::start(
            &self.session.server,
            &self.state,
            context,
            call,
            CallSink::Own(OwnSink::default()),
        );
        if self.session.begin(driver.call(), driver.cx()) {
            // One, and not the four that a vector begins with: they would be more than an allocator has at hand.
            self.calls.reserve_exact(1);
            self.calls.push(Turn { driver, granted: false, queued: false, asking: false });
        } else {
            let outcome = Outcome::Failed(session_ended());
            let (lines, answer) = self.session.finish(&self.state.service, driver.call(), outcome);
            let answer = self.send(lines, answer);
            self.lines.extend(answer);
        }
    }

    /// Ends a call before it has begun: the same batch cancels it.
    pub(in crate::server::http) fn skip(&mut self, call: &Call) {
        let (lines, answer) = self.session.cancelled(call);
        let answer = self.send(lines, answer);
        self.lines.extend(answer);
    }

    /// Waits for this before anything else.
    pub(in crate::server::http) fn hear(&mut self, handling: JoinHandle<()>) {
        self.heard.push(handling);
    }

    /// Answers with this.
    pub(in crate::server::http) fn reply(&mut self, bytes: Vec<u8>) {
        self.lines.push_back(Word::Answer(bytes.into()));
    }

    /// Runs the calls as far as they come without a word. What they then say, or a long silence, makes a stream of the
    /// answer; if the client goes before that, they go on by themselves.
    pub(in crate::server::http) fn run(
        self,
        shared: &Arc<Shared>,
        accepts: Accepts,
    ) -> impl Future<Output = Response<Body>> {
        // Made here and moved in once: what an `async fn` is given it holds twice.
        let mut inline = Inline(Some(self));
        let streams = inline.0.as_ref().is_some_and(|exchange| exchange.streams);
        let mut keep_alive = KeepAlive::new(shared.settings().keep_alive);
        async move {
            let first = poll_fn(|task| match inline.poll(task) {
                Poll::Ready(word) => Poll::Ready(Some(word)),
                // What asks for no answer has no stream either.
                Poll::Pending if streams && inline.has_calls() => keep_alive.poll(task).map(|()| None),
                Poll::Pending => Poll::Pending,
            });
            let first = match first.await {
                Some(Word::Over) => return accepted(),
                Some(Word::Answer(bytes)) if accepts.json || !streams => return json(StatusCode::OK, bytes),
                first => first,
            };
            Box::pin(inline.stream(shared, first)).await
        }
    }

    /// Says on a stream all there is to say.
    async fn speak(self, channel: Arc<Channel>) {
        // If this is dropped, nobody will say anything.
        let _over = OverAfter(channel.clone());
        self.speak_on(&channel, None).await;
        channel.end().await;
    }

    /// The same, on a stream that others speak on too. What waits for its place there counts as the speaker's.
    pub(super) async fn speak_on(mut self, channel: &Channel, speaker: Option<&Speaker>) {
        loop {
            match poll_fn(|task| self.poll(task)).await {
                Word::Line(line) | Word::Answer(line) => {
                    self.away = true;
                    let _waiting = speaker.map(|speaker| speaker.waits(line.len()));
                    channel.say(line).await;
                }
                Word::HangUp(milliseconds) => channel.hang_up(milliseconds),
                Word::Over => break,
            }
        }
    }

    /// Has handlers run in tasks of their own from here on.
    fn send_away(&mut self) {
        self.away = true;
        for Turn { driver, granted, .. } in &mut self.calls {
            driver.register(&self.shared.calls);
            if *granted {
                spawn(driver, &self.session);
            }
        }
    }

    /// Its calls, for whoever ends them from outside.
    fn group(&self) -> CallGroup {
        CallGroup::new(self.calls.iter().map(|turn| turn.driver.cx()))
    }

    /// Whether there is anything to do, or to say.
    pub(in crate::server::http) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.lines.is_empty()
    }

    fn poll(&mut self, task: &mut Context<'_>) -> Poll<Word> {
        while let Some(handling) = self.heard.last_mut()
            && !self.session.is_over()
        {
            // One that panics is told of by the runtime.
            let _ = ready!(Pin::new(handling).poll(task));
            self.heard.pop();
        }
        loop {
            if let Some(word) = self.lines.pop_front() {
                return Poll::Ready(word);
            }
            // Who asks for the next word has found a place for the last one.
            self.pass_turns();
            if self.calls.is_empty() {
                return Poll::Ready(Word::Over);
            }
            let mut idle = true;
            let mut at = 0;
            while let Some(Turn { driver, granted, queued, asking }) = self.calls.get_mut(at) {
                *asking = *asking && self.session.asks(driver.call());
                if !*granted && !*asking && !driver.is_ended() {
                    *granted = self.session.turn(driver.call(), self.state.settings.running, *queued, task);
                    *queued = !*granted;
                    if *granted {
                        driver.hold(false);
                    }
                }
                if *granted && self.away {
                    spawn(driver, &self.session);
                }
                let polled = if *granted || *asking {
                    driver.poll_registered(&self.shared.calls, task)
                } else {
                    driver.poll_waiting(&self.shared.calls, task)
                };
                match polled {
                    Poll::Pending => at += 1,
                    Poll::Ready(step) => {
                        if let Some(word) = self.step(at, step) {
                            return Poll::Ready(word);
                        }
                        idle = false;
                        break;
                    }
                }
            }
            if idle {
                return Poll::Pending;
            }
        }
    }

    /// What comes of it at once; the rest waits in `lines`.
    fn step(&mut self, at: usize, step: CallStep) -> Option<Word> {
        match step {
            CallStep::Event(CallEvent::Notification(line)) if self.streams => return Some(Word::Line(line)),
            CallStep::Event(CallEvent::HangUp(milliseconds)) if self.streams && self.is_polled() => {
                return Some(Word::HangUp(milliseconds));
            }
            CallStep::Event(CallEvent::Ask(request, reply)) => {
                let Turn { driver, granted, asking, .. } = self.calls.get_mut(at)?;
                if self.session.alone || (!self.streams && !self.session.has_standing()) {
                    // The one who asked may be gone.
                    let _ = reply.send(Err(AskError::Unreachable));
                } else if let Some(line) = self.session.ask(driver.call(), &request, reply) {
                    *asking = true;
                    if std::mem::take(granted) {
                        driver.hold(true);
                        self.session.pass_turn();
                    }
                    self.pass_on(line);
                }
            }
            CallStep::Event(CallEvent::AskAbandoned) => {
                for line in self.session.give_up() {
                    self.pass_on(line.into());
                }
            }
            CallStep::Event(_) => {}
            CallStep::Done(outcome) => {
                let driver = self.take(at);
                let (lines, answer) = self.session.finish(&self.state.service, driver.call(), outcome);
                return self.send(lines, answer);
            }
            CallStep::Cancelled => {
                let driver = self.take(at);
                let (mut lines, answer) = self.session.cancelled(driver.call());
                // Who gave a call up does not read its stream any more, but must hear that its questions are taken back.
                if self.session.has_standing() {
                    lines.drain(..).for_each(|line| self.session.say(line.into()));
                }
                return self.send(lines, answer);
            }
        }
        None
    }

    /// Whether the client can be sent away to come back.
    fn is_polled(&self) -> bool {
        !self.session.alone && self.session.peer().is_some_and(|peer| Streams::of(peer.revision).polled)
    }

    fn take(&mut self, at: usize) -> CallDriver {
        let Turn { driver, granted, queued, .. } = self.calls.swap_remove(at);
        if granted {
            self.held += 1;
        } else if queued {
            self.session.leave_queue(driver.call());
        }
        driver
    }

    fn pass_turns(&mut self) {
        for _ in 0..std::mem::take(&mut self.held) {
            self.session.pass_turn();
        }
    }

    /// The answer, if nothing comes before it: then there is no queue for it to wait in.
    fn send(&mut self, lines: Vec<Vec<u8>>, answer: Option<Vec<u8>>) -> Option<Word> {
        let answer = answer.map(|answer| Word::Answer(answer.into()));
        if lines.is_empty() {
            return answer;
        }
        lines.into_iter().for_each(|line| self.pass_on(line.into()));
        self.lines.extend(answer);
        None
    }

    /// What is neither progress nor an answer finds a stream, if need be another one.
    fn pass_on(&mut self, line: Bytes) {
        if self.streams {
            self.lines.push_back(Word::Line(line));
        } else {
            self.session.say(line);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        while !self.calls.is_empty() {
            let driver = self.take(0);
            self.session.forget(driver.call());
        }
        self.pass_turns();
    }
}

/// Moves the handler of a call to a task.
fn spawn(driver: &mut CallDriver, session: &Arc<Session>) {
    let session = session.clone();
    driver.spawn(move |call| session.asks(call));
}

/// Ends a stream when it is dropped.
struct OverAfter(Arc<Channel>);

impl Drop for OverAfter {
    fn drop(&mut self) {
        self.0.over();
    }
}

/// An exchange inside the future of its request. If that is dropped, the rest becomes a task: a closed connection
/// cancels nothing in a session.
pub(super) struct Inline(Option<Exchange>);

impl Inline {
    pub(super) fn new(exchange: Exchange) -> Self {
        Self(Some(exchange))
    }

    pub(super) fn into_exchange(mut self) -> Option<Exchange> {
        self.0.take()
    }

    fn poll(&mut self, task: &mut Context<'_>) -> Poll<Word> {
        self.0.as_mut().map_or(Poll::Ready(Word::Over), |exchange| exchange.poll(task))
    }

    fn has_calls(&self) -> bool {
        self.0.as_ref().is_some_and(|exchange| !exchange.calls.is_empty())
    }

    /// Goes on as a stream.
    async fn stream(mut self, shared: &Arc<Shared>, first: Option<Word>) -> Response<Body> {
        let Some(session) = self.0.as_ref().map(|exchange| exchange.session.clone()) else {
            return accepted();
        };
        let channel = Channel::new(shared, &session, session.stream_number(), true);
        let reader = channel.begin().await;
        session.keep(&channel);
        if let Some(mut exchange) = self.0.take() {
            first.into_iter().for_each(|word| exchange.lines.push_front(word));
            exchange.send_away();
            channel.set_calls(exchange.group());
            let work = exchange.speak(channel.clone());
            channel.set_work(Box::pin(work));
        }
        events(reader, shared.settings().keep_alive)
    }
}

impl Drop for Inline {
    fn drop(&mut self) {
        let Some(mut exchange) = self.0.take() else { return };
        if exchange.calls.is_empty() {
            return;
        }
        // There was no stream to come back to: what is said from here on is for nobody.
        exchange.streams = false;
        let (shared, session, group) = (exchange.shared.clone(), exchange.session.clone(), exchange.group());
        let work = async move { while !matches!(poll_fn(|task| exchange.poll(task)).await, Word::Over) {} };
        let left = Instant::now();
        detached::spawn(&shared, &session, group, work, move || Some(left.elapsed()));
    }
}
