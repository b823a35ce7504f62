//! The session era: the calls of one POST, and their responses.

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
    http::{Accepts, Refusal, Streams, session_status},
    inputs::AskError,
    server::{Call, Outcome},
};
use pintle_types::{ErrorCode, RawObject, RpcError, method};
use tokio::{sync::oneshot, task::JoinHandle, time::Instant};

use super::{
    Session,
    channel::{Channel, Producer},
    conversation::spawn_notification,
    detached::{self, CallGroup},
    log::EventId,
    nodes::message::{StreamOpening, encode},
    record::CallEffect,
    recording::opening_of,
};
use crate::server::{
    core::{
        driver::{
            call_driver::{CallDriver, CallStep},
            context::RequestContext,
            sink::{CallEvent, CallSink},
        },
        snapshot::Snapshot,
    },
    http::{
        Body,
        edge::{
            keep_alive::KeepAlive,
            response::{accepted, events, json, session_ended},
        },
        shared::HttpShared,
    },
};

/// The calls of one POST, usually one.
pub(in crate::server::http) struct Exchange {
    pub(in crate::server::http) shared: Arc<HttpShared>,
    session: Arc<Session>,
    pub(super) snapshot: Arc<Snapshot>,
    calls: Vec<ExchangeCall>,
    outputs: VecDeque<Output>,
    /// The handlers of notifications of the same POST. Calls start when they have completed.
    notification_tasks: Vec<JoinHandle<()>>,
    /// Whether the response may be an event stream.
    streams: bool,
    /// Slots of completed calls whose responses are not sent yet, so that a client that does not read starts no more calls.
    unreleased_slots: u32,
    /// Whether handlers run in tasks, because polling this may have to wait for a slow reader.
    spawned: bool,
    /// The status of a response that is JSON. That of a batch is 200 unless what it has changed could not be stored.
    status: StatusCode,
}

/// A call, and its state in the concurrency limit of the session.
struct ExchangeCall {
    driver: CallDriver,
    granted: bool,
    /// Whether it waits in the queue of the session.
    queued: bool,
    /// Whether it has released its slot while it waits for an answer of the client.
    asking: bool,
    /// The outcome of a call that is over, once what it has changed is stored.
    storing: Option<oneshot::Receiver<Result<Outcome, Refusal>>>,
}

/// An output of an exchange.
enum Output {
    /// A notification, or a request to the client.
    Message(Bytes),
    /// The response.
    Response(Bytes),
    /// The client should disconnect, and resume after this many milliseconds.
    HangUp(u64),
    /// There are no more outputs.
    End,
}

impl Exchange {
    pub(super) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    pub(in crate::server::http) fn new(
        shared: &Arc<HttpShared>,
        session: &Arc<Session>,
        snapshot: &Arc<Snapshot>,
        streams: bool,
    ) -> Self {
        let (shared, session, snapshot) = (shared.clone(), session.clone(), snapshot.clone());
        let (calls, outputs, notification_tasks) = (Vec::new(), VecDeque::new(), Vec::new());
        Self {
            shared,
            session,
            snapshot,
            calls,
            outputs,
            notification_tasks,
            streams,
            unreleased_slots: 0,
            spawned: false,
            status: StatusCode::OK,
        }
    }

    /// Starts a call.
    pub(in crate::server::http) fn add(&mut self, context: &Arc<RequestContext>, call: Call) {
        let driver = CallDriver::start(
            &self.session.server,
            &self.snapshot,
            context,
            call,
            CallSink::Own(self.session.sink()),
        );
        if self.session.begin(driver.call(), driver.cx()) {
            // A vector would allocate space for four, which is beyond the thread cache of the usual allocators.
            self.calls.reserve_exact(1);
            // What the engine does itself takes no slot.
            let granted = driver.call().is_own();
            self.calls.push(ExchangeCall { driver, granted, queued: false, asking: false, storing: None });
        } else {
            let outcome = Outcome::Failed(session_ended());
            let (outputs, answer) = self.session.finish(&self.snapshot.service, driver.call(), outcome);
            let answer = self.send(outputs, answer);
            self.outputs.extend(answer);
        }
    }

    /// Ends a call that the same batch cancels before it starts.
    pub(in crate::server::http) fn skip(&mut self, call: &Call) {
        let (outputs, answer) = self.session.cancelled(call);
        let answer = self.send(outputs, answer);
        self.outputs.extend(answer);
    }

    /// Adds a notification handler that calls wait for.
    pub(in crate::server::http) fn wait_for(&mut self, handling: JoinHandle<()>) {
        self.notification_tasks.push(handling);
    }

    /// Adds a response.
    pub(in crate::server::http) fn reply(&mut self, bytes: Vec<u8>) {
        self.outputs.push_back(Output::Response(bytes.into()));
    }

    /// Runs the calls. The response is JSON if the first output is a response; another output, or a long silence, makes it an
    /// event stream. If the client disconnects before that, the calls continue in a task.
    pub(in crate::server::http) fn run(
        self,
        shared: &Arc<HttpShared>,
        accepts: Accepts,
    ) -> impl Future<Output = Response<Body>> {
        // Not an `async fn`, which would hold its arguments twice.
        let mut inline = Inline(Some(self));
        let streams = inline.0.as_ref().is_some_and(|exchange| exchange.streams);
        let mut keep_alive = KeepAlive::new(shared.settings().keep_alive);
        async move {
            let first = poll_fn(|task| match inline.poll(task) {
                Poll::Ready(output) => Poll::Ready(Some(output)),
                // Without a call there is no response to stream.
                Poll::Pending if streams && inline.has_calls() => keep_alive.poll(task).map(|()| None),
                Poll::Pending => Poll::Pending,
            });
            let first = match first.await {
                Some(Output::End) => return accepted(),
                Some(Output::Response(bytes)) if accepts.json || !streams => {
                    return json(inline.status(), bytes);
                }
                first => first,
            };
            Box::pin(inline.stream(shared, first)).await
        }
    }

    /// Sends all outputs on a stream of this exchange.
    async fn run_on(self, channel: Arc<Channel>) {
        // If this is dropped, there will be no more outputs.
        let _over = EndOnDrop(channel.clone());
        self.forward_all(&channel, None, true).await;
        channel.end().await;
    }

    /// Sends all outputs on a stream. Outputs that wait for the reader are added to the backlog of the producer.
    pub(super) async fn forward_to(self, channel: &Channel, producer: Option<&Producer>) {
        self.forward_all(channel, producer, false).await;
    }

    /// Sends all outputs on a stream. `is_own` is whether the stream ends with them.
    async fn forward_all(mut self, channel: &Channel, producer: Option<&Producer>, is_own: bool) {
        loop {
            match poll_fn(|task| self.poll(task)).await {
                Output::Response(line) if is_own && self.calls.is_empty() && self.outputs.is_empty() => {
                    channel.send_last(line).await;
                }
                Output::Message(line) | Output::Response(line) => {
                    self.spawned = true;
                    let _backlog = producer.map(|producer| producer.add_backlog(line.len()));
                    channel.send(line).await;
                }
                Output::HangUp(milliseconds) => channel.hang_up(milliseconds),
                Output::End => break,
            }
        }
    }

    /// Moves the handlers to tasks.
    fn spawn_handlers(&mut self) {
        self.spawned = true;
        for ExchangeCall { driver, granted, .. } in &mut self.calls {
            driver.register(&self.shared.calls);
            if *granted {
                spawn(driver, &self.session);
            }
        }
    }

    /// Returns the description of the stream for other processes, if there are some.
    fn opening(&self, recorded: Option<&Call>) -> Bytes {
        let Some(nodes) = &self.shared.settings().nodes else { return Bytes::new() };
        if let Some(call) = recorded {
            return opening_of(nodes.id(), call);
        }
        let requests = self.calls.iter().map(|call| call.driver.call().id().clone()).collect();
        encode(&StreamOpening { node: nodes.id().to_string(), requests, call: None })
    }

    /// Returns the call, if it is the only one and another process can go on with it.
    fn recorded(&self) -> Option<&Call> {
        self.shared.settings().nodes.as_ref()?;
        let [ExchangeCall { driver, .. }] = &*self.calls else { return None };
        let is_recorded =
            driver.cx().is_resumable() && !driver.cx().is_detached() && !driver.call().is_batched();
        is_recorded.then(|| driver.call())
    }

    /// Sends all outputs on a stream that another process has written, after this event.
    pub(in crate::server::http) async fn go_on(mut self, channel: Arc<Channel>, newest: EventId) {
        channel.take_over(newest);
        self.session.keep(&channel);
        if let [ExchangeCall { driver, .. }] = &*self.calls {
            self.session.record(driver.call(), &channel);
        }
        self.spawn_handlers();
        channel.set_calls(self.group());
        self.run_on(channel).await;
    }

    /// Returns the calls, to end them from outside.
    fn group(&self) -> CallGroup {
        CallGroup::new(self.calls.iter().map(|turn| turn.driver.cx()))
    }

    /// Returns whether there are neither calls nor outputs.
    pub(in crate::server::http) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.outputs.is_empty()
    }

    fn poll(&mut self, task: &mut Context<'_>) -> Poll<Output> {
        while let Some(handling) = self.notification_tasks.last_mut()
            && !self.session.is_over()
        {
            // The runtime reports a panic.
            let _ = ready!(Pin::new(handling).poll(task));
            self.notification_tasks.pop();
        }
        loop {
            if let Some(output) = self.outputs.pop_front() {
                return Poll::Ready(output);
            }
            // The previous output has been sent.
            self.release_slots();
            if self.calls.is_empty() {
                return Poll::Ready(Output::End);
            }
            let mut idle = true;
            let mut at = 0;
            while let Some(ExchangeCall { driver, granted, queued, asking, storing }) = self.calls.get_mut(at)
            {
                if let Some(storing) = storing {
                    let Poll::Ready(stored) = Pin::new(storing).poll(task) else {
                        at += 1;
                        continue;
                    };
                    let stored = stored.unwrap_or_else(|_| Err(store_panicked()));
                    let outcome = stored.unwrap_or_else(|refusal| {
                        self.status = refusal.status;
                        Outcome::Failed(refusal.error)
                    });
                    if let Some(output) = self.finish(at, outcome) {
                        return Poll::Ready(output);
                    }
                    idle = false;
                    break;
                }
                *asking = *asking && self.session.asks(driver.call());
                if !*granted && !*asking && !driver.is_ended() {
                    *granted = self.session.acquire_slot(
                        driver.call(),
                        self.snapshot.settings.calls.running,
                        *queued,
                        task,
                    );
                    *queued = !*granted;
                    if *granted {
                        driver.hold(false);
                    }
                }
                if *granted && self.spawned {
                    spawn(driver, &self.session);
                }
                let polled = if *granted || *asking {
                    driver.poll_registered(&self.shared.calls, task)
                } else {
                    driver.poll_waiting(&self.shared.calls, task)
                };
                match polled {
                    Poll::Pending if driver.is_ping() => {
                        if let Some(output) = self.answer_ping(at) {
                            return Poll::Ready(output);
                        }
                        idle = false;
                        break;
                    }
                    Poll::Pending => at += 1,
                    Poll::Ready(step) => {
                        if let Some(output) = self.step(at, step) {
                            return Poll::Ready(output);
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

    /// Handles a step of a call. Returns its output, or queues several in `outputs`.
    fn step(&mut self, at: usize, step: CallStep) -> Option<Output> {
        match step {
            CallStep::Event(CallEvent::Notification(line)) if self.streams => {
                return Some(Output::Message(line));
            }
            CallStep::Event(CallEvent::HangUp(milliseconds)) if self.streams && self.is_polled() => {
                return Some(Output::HangUp(milliseconds));
            }
            CallStep::Event(CallEvent::Ask(request, reply)) => {
                let ExchangeCall { driver, granted, asking, .. } = self.calls.get_mut(at)?;
                if self.session.transient || (!self.streams && !self.session.has_get_stream()) {
                    // The handler may no longer wait.
                    let _ = reply.send(Err(AskError::Unreachable));
                } else if let Some(line) = self.session.ask(driver.call(), &request, reply) {
                    *asking = true;
                    if std::mem::take(granted) {
                        driver.hold(true);
                        self.session.release_slot();
                    }
                    self.forward(line);
                }
            }
            CallStep::Event(CallEvent::AskAbandoned) => {
                for line in self.session.give_up() {
                    self.forward(line.into());
                }
            }
            CallStep::Event(_) => {}
            CallStep::Done(outcome) => {
                let outcome = self.carry_out(at, outcome)?;
                return self.finish(at, outcome);
            }
            CallStep::Cancelled => {
                let driver = self.take(at);
                let (mut outputs, answer) = self.session.cancelled(driver.call());
                // The client no longer reads the stream of a cancelled call, so its questions are cancelled on the GET stream.
                if self.session.has_get_stream() {
                    outputs.drain(..).for_each(|line| self.session.push(line.into()));
                }
                return self.send(outputs, answer);
            }
        }
        None
    }

    /// Carries out what a call that is over has prepared. `None` if it ends once that is stored.
    fn carry_out(&mut self, at: usize, outcome: Outcome) -> Option<Outcome> {
        let ExchangeCall { driver, storing, .. } = self.calls.get_mut(at)?;
        if !driver.call().is_own() {
            return Some(outcome);
        }
        let settings = self.shared.settings();
        match self.session.carry_out(&settings, &self.snapshot, driver.cx(), outcome) {
            CallEffect::Done(outcome) => Some(outcome),
            CallEffect::Stored(written) => {
                *storing = Some(written);
                None
            }
        }
    }

    /// Ends a call with its response.
    fn finish(&mut self, at: usize, outcome: Outcome) -> Option<Output> {
        let driver = self.take(at);
        if let Outcome::Failed(error) = &outcome
            && error.code == ErrorCode::OVERLOADED
            && !driver.call().is_batched()
        {
            self.status = session_status(error.code);
        }
        let (outputs, answer) = self.session.finish(&self.snapshot.service, driver.call(), outcome);
        self.send(outputs, answer)
    }

    /// Answers a `ping` whose layers have to wait, as on a byte stream. They go on as those of a notification do.
    fn answer_ping(&mut self, at: usize) -> Option<Output> {
        let driver = self.take(at);
        let outcome = Outcome::Complete(RawObject::empty().into());
        let (outputs, answer) = self.session.finish(&self.snapshot.service, driver.call(), outcome);
        // Nothing of the same POST waits for them.
        drop(spawn_notification(self, method::PING, 0, driver.run_answered()));
        self.send(outputs, answer)
    }

    /// Polls the calls once, so that what the engine does itself is done when the POST is answered.
    pub(super) async fn begin(&mut self) {
        if self.calls.iter().any(|call| call.driver.call().is_own())
            && let Poll::Ready(output) = poll_fn(|task| Poll::Ready(self.poll(task))).await
        {
            self.outputs.push_front(output);
        }
    }

    /// Returns whether the client can be asked to disconnect and resume.
    fn is_polled(&self) -> bool {
        !self.session.transient && self.session.peer().is_some_and(|peer| Streams::of(peer.revision).polled)
    }

    fn take(&mut self, at: usize) -> CallDriver {
        let ExchangeCall { driver, granted, queued, .. } = self.calls.swap_remove(at);
        if granted && !driver.call().is_own() {
            self.unreleased_slots += 1;
        } else if queued {
            self.session.leave_queue(driver.call());
        }
        driver
    }

    fn release_slots(&mut self) {
        for _ in 0..std::mem::take(&mut self.unreleased_slots) {
            self.session.release_slot();
        }
    }

    /// Returns the response if no message precedes it; otherwise queues all.
    fn send(&mut self, outputs: Vec<Vec<u8>>, answer: Option<Vec<u8>>) -> Option<Output> {
        let answer = answer.map(|answer| Output::Response(answer.into()));
        if outputs.is_empty() {
            return answer;
        }
        outputs.into_iter().for_each(|line| self.forward(line.into()));
        self.outputs.extend(answer);
        None
    }

    /// Sends a message on the stream of this exchange or, if there is none, on the GET stream.
    fn forward(&mut self, line: Bytes) {
        if self.streams {
            self.outputs.push_back(Output::Message(line));
        } else {
            self.session.push(line);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        while !self.calls.is_empty() {
            let driver = self.take(0);
            self.session.forget(driver.call());
        }
        self.release_slots();
    }
}

/// Moves the handler of a call to a task.
fn spawn(driver: &mut CallDriver, session: &Arc<Session>) {
    let session = session.clone();
    driver.spawn(move |call| session.asks(call));
}

fn store_panicked() -> Refusal {
    let error = RpcError::internal("the session could not be stored: see the server's log");
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error)
}

/// Ends a stream on drop.
struct EndOnDrop(Arc<Channel>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.over();
    }
}

/// An exchange inside the future of its request. If that is dropped, the exchange continues in a task: a closed connection
/// cancels nothing in a session.
struct Inline(Option<Exchange>);

impl Inline {
    fn poll(&mut self, task: &mut Context<'_>) -> Poll<Output> {
        self.0.as_mut().map_or(Poll::Ready(Output::End), |exchange| exchange.poll(task))
    }

    fn has_calls(&self) -> bool {
        self.0.as_ref().is_some_and(|exchange| !exchange.calls.is_empty())
    }

    fn status(&self) -> StatusCode {
        self.0.as_ref().map_or(StatusCode::OK, |exchange| exchange.status)
    }

    /// Continues as an event stream.
    async fn stream(mut self, shared: &Arc<HttpShared>, first: Option<Output>) -> Response<Body> {
        let Some(session) = self.0.as_ref().map(|exchange| exchange.session.clone()) else {
            return accepted();
        };
        let channel = Channel::new(shared, &session, session.stream_number(), true);
        let recorded =
            self.0.as_ref().and_then(Exchange::recorded).filter(|_| channel.is_resumable()).cloned();
        // What the call does meanwhile is recorded once the stream is there.
        let writes = channel.writes.lock().await;
        if let Some(call) = &recorded {
            session.record(call, &channel);
        }
        let opening = self.0.as_ref().map(|exchange| exchange.opening(recorded.as_ref())).unwrap_or_default();
        let reader = channel.begin(opening).await;
        drop(writes);
        session.keep(&channel);
        if let Some(mut exchange) = self.0.take() {
            first.into_iter().for_each(|output| exchange.outputs.push_front(output));
            exchange.spawn_handlers();
            channel.set_calls(exchange.group());
            let work = exchange.run_on(channel.clone());
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
        // There is no stream to resume, so notifications are dropped.
        exchange.streams = false;
        let (shared, session, group) = (exchange.shared.clone(), exchange.session.clone(), exchange.group());
        let work = async move { while !matches!(poll_fn(|task| exchange.poll(task)).await, Output::End) {} };
        let left = Instant::now();
        detached::spawn(&shared, &session, group, work, move || Some(left.elapsed()));
    }
}
