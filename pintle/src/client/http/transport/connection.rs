use std::{
    collections::{BTreeMap, VecDeque},
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use pintle_types::{Message, RequestId, method};
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc},
    task::JoinSet,
    time::{Sleep, sleep, timeout},
};

use super::{
    exchange::{self, ExchangeResult, Ids, OutgoingPost, Purpose, Received},
    future_set::{FutureSet, Ticket},
    http_sse,
    session::{HttpSession, TransportEvent},
    session_stream,
};
use crate::{
    client::http::fetch::{HttpClient, drain},
    transport::{Delivery, Failed, Incoming, MessageContext, StreamPause},
};

/// Limit of concurrent POSTs of notifications and replies.
const TELLING: usize = 256;
/// How long a lost session waits for the refusals of its other requests.
const LAST_REFUSALS: Duration = Duration::from_secs(1);
/// How long requests wait until the GET stream of their session is open.
const SESSION_STREAM_TIMEOUT: Duration = Duration::from_millis(500);
/// An [`Http`] that is in use.
#[derive(Debug)]
pub(in crate::client::http) struct HttpConnection {
    wire: Arc<HttpClient>,
    line: Arc<HttpSession>,
    events: mpsc::Receiver<Box<TransportEvent>>,
    /// Received messages and failures that were not delivered yet.
    inbox: VecDeque<InboxItem>,
    /// The request on whose stream the last delivered message came.
    stream_of: Option<RequestId>,
    /// The pauses before the last delivered message, until the driver takes them.
    pauses: VecDeque<StreamPause>,
    /// The request whose stream ended with the last message, until it is known whether that was the answer.
    doubtful: Option<RequestId>,
    /// Running POSTs of requests.
    asking: FutureSet<(Arc<HttpSession>, OutgoingPost), ExchangeResult>,
    /// Open GET streams.
    listening: JoinSet<()>,
    /// Running POSTs of notifications and replies.
    telling: JoinSet<()>,
    open: BTreeMap<RequestId, OpenRequest>,
    gate: SendGate,
    /// Whether the gate was opened just now, so that the requests started by it were not polled yet.
    opened: bool,
    /// Whether the inbox was full.
    crowded: bool,
    /// Whether the inbox has new items.
    unseen: bool,
    /// Whether the GET stream is opened when it is wanted.
    is_deferred: bool,
    /// Messages that wait for the gate.
    queue: VecDeque<OutgoingPost>,
    /// Set when the session is lost: how long refusals of its other requests are awaited.
    lost: Option<Pin<Box<Sleep>>>,
    /// The result of looking for the endpoints of HTTP+SSE, once it is known.
    endpoint: Option<Result<(), Box<Failed>>>,
    looking: bool,
    ended: Option<String>,
}

/// The ordered start of a session. Without it, requests on other connections could overtake.
#[derive(Debug)]
enum SendGate {
    /// `notifications/initialized` was sent and not accepted yet.
    Initialized,
    /// The GET stream was requested and is not open yet: messages that belong to no request could be lost. Some servers
    /// respond only with the first event, so this is limited in time.
    SessionStream(Pin<Box<Sleep>>),
    Open,
}

#[derive(Debug)]
enum InboxItem {
    Incoming {
        incoming: Incoming,
        /// The request whose stream ends with it.
        last_for: Option<RequestId>,
        /// The request on whose stream it came.
        stream_of: Option<RequestId>,
        /// The share of the stream buffer that it holds.
        _room: Option<OwnedSemaphorePermit>,
    },
    Paused(StreamPause),
}

/// A request without an answer so far.
#[derive(Debug)]
struct OpenRequest {
    exchange: Ticket,
    /// Whether it was sent in a batch.
    has_company: bool,
    hanging_up_cancels: bool,
}

impl HttpConnection {
    pub(in crate::client::http) fn new(wire: Arc<HttpClient>) -> Self {
        Self::after(wire, None)
    }

    fn after(wire: Arc<HttpClient>, before: Option<&HttpSession>) -> Self {
        let (line, events) = HttpSession::new(wire.clone(), before);
        Self {
            wire,
            line,
            events,
            inbox: VecDeque::new(),
            stream_of: None,
            pauses: VecDeque::new(),
            doubtful: None,
            asking: asking(),
            listening: JoinSet::new(),
            telling: JoinSet::new(),
            open: BTreeMap::new(),
            gate: SendGate::Open,
            opened: false,
            crowded: false,
            unseen: false,
            is_deferred: false,
            queue: VecDeque::new(),
            lost: None,
            endpoint: None,
            looking: false,
            ended: None,
        }
    }

    pub(in crate::client::http) fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<Incoming>> {
        if let Some(id) = self.doubtful.take() {
            let failed = exchange::unanswered().of(&id);
            return Poll::Ready(Some(Incoming::Failed(Box::new(failed))));
        }
        loop {
            if self.inbox.is_empty() {
                if self.crowded {
                    self.asking.aside().wake();
                }
                self.look(cx, false);
                self.unseen = false;
            }
            match self.inbox.pop_front() {
                Some(InboxItem::Incoming { incoming, last_for, stream_of, _room }) => {
                    (self.doubtful, self.stream_of) = (last_for, stream_of);
                    return Poll::Ready(Some(incoming));
                }
                Some(InboxItem::Paused(pause)) => self.pauses.push_back(pause),
                None => break,
            }
        }
        if self.ended.is_some() {
            return Poll::Ready(None);
        }
        if let Some(refusals) = &mut self.lost
            && (!self.line.has_headless() || refusals.as_mut().poll(cx).is_ready())
        {
            return Poll::Ready(None);
        }
        Poll::Pending
    }

    pub(in crate::client::http) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.look(cx, true);
        if std::mem::take(&mut self.unseen) {
            cx.waker().wake_by_ref();
        }
        match self.queue.is_empty() && self.telling.len() < TELLING {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// The reason why the connection ended, without the server's address.
    pub(in crate::client::http) fn close_reason(&self) -> Option<&str> {
        match &self.lost {
            Some(_) => Some("the server has forgotten the session"),
            None => self.ended.as_deref(),
        }
    }

    /// Returns whether the server notices that the request is abandoned.
    pub(in crate::client::http) fn abandon(&mut self, request: &RequestId) -> bool {
        let Some(open) = self.open.remove(request) else { return self.line.hanging_up_cancels() };
        let awaited = |other: &OpenRequest| other.exchange == open.exchange;
        if !open.has_company || !self.open.values().any(awaited) {
            self.asking.stop(open.exchange);
        }
        open.hanging_up_cancels
    }

    pub(in crate::client::http) fn answered(&mut self, request: &RequestId) {
        if self.doubtful.as_ref() == Some(request) {
            self.doubtful = None;
        }
    }

    /// The request on whose stream the last message arrived.
    pub(in crate::client::http) fn stream_request(&self) -> Option<&RequestId> {
        self.stream_of.as_ref()
    }

    /// A stream that the server ended before the last delivered message.
    pub(in crate::client::http) fn take_stream_pause(&mut self) -> Option<StreamPause> {
        self.pauses.pop_front()
    }

    pub(in crate::client::http) fn poll_sse_endpoints(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Box<Failed>>> {
        if !std::mem::replace(&mut self.looking, true) {
            self.listen(http_sse::run(self.line.clone()));
        }
        self.look(cx, true);
        match self.endpoint.take() {
            Some(found) => Poll::Ready(found),
            None => Poll::Pending,
        }
    }

    /// The number of requests that were not answered yet.
    #[cfg(test)]
    pub(in crate::client::http) fn open_requests(&self) -> usize {
        self.open.len()
    }

    /// Looks at what has happened: at all of it, or until there is something in the inbox.
    fn look(&mut self, cx: &mut Context<'_>, all: bool) {
        if !self.opened && self.asking.is_idle(cx) {
            return;
        }
        // What ends may open the gate for more.
        for _ in 0..2 {
            if self.asking.take_aside() {
                self.look_aside();
            }
            while let Some(asked) = self.asking.poll_next(cx) {
                self.end(asked);
                if !all && !self.inbox.is_empty() {
                    return;
                }
            }
            if !std::mem::take(&mut self.opened) && !self.asking.aside_woken() {
                return;
            }
        }
        cx.waker().wake_by_ref();
    }

    /// Polls everything but requests. Kept apart because most calls do not need it.
    fn look_aside(&mut self) {
        let aside = self.asking.aside();
        let cx = &mut Context::from_waker(&aside);
        // A driver that does not take what is there makes the streams wait.
        loop {
            self.crowded = self.inbox.len() >= super::session::EVENTS;
            if self.crowded {
                break;
            }
            let Poll::Ready(Some(event)) = self.events.poll_recv(cx) else { break };
            self.happened(*event);
        }
        if let SendGate::SessionStream(timeout) = &mut self.gate
            && timeout.as_mut().poll(cx).is_ready()
        {
            self.open_gate();
        }
        while let Poll::Ready(Some(_)) = self.listening.poll_join_next(cx) {}
        while let Poll::Ready(Some(_)) = self.telling.poll_join_next(cx) {}
    }

    /// Opens the GET stream of the session, if it is not open and wanted. Returns whether it does. Later messages wait for it.
    fn open_session_stream(&mut self) -> bool {
        let opens = self.is_deferred && self.wire.push_demand.is_wanted() && self.lost.is_none();
        if opens {
            self.is_deferred = false;
            self.listen(session_stream::run(self.line.clone()));
            self.gate = SendGate::SessionStream(Box::pin(sleep(SESSION_STREAM_TIMEOUT)));
        }
        opens
    }

    fn listen(&mut self, listening: impl Future<Output = ()> + Send + 'static) {
        self.listening.spawn(listening);
        self.asking.aside().wake();
    }

    fn tell(&mut self, telling: impl Future<Output = ()> + Send + 'static) {
        self.telling.spawn(telling);
        self.asking.aside().wake();
    }

    fn push(&mut self, incoming: Incoming, last_for: Option<RequestId>) {
        self.inbox.push_back(InboxItem::Incoming { incoming, last_for, stream_of: None, _room: None });
        self.unseen = true;
    }

    /// Nothing more will come for these where they were sent to.
    fn end(&mut self, asked: ExchangeResult) {
        let ExchangeResult { requests, came } = asked;
        if !matches!(came, Ok(Received::Message(_))) {
            // What came on their stream came before its end.
            while let Ok(event) = self.events.try_recv() {
                self.happened(*event);
            }
        }
        for id in &*requests {
            self.open.remove(id);
        }
        let failed = match came {
            Ok(Received::Elsewhere) => return,
            Ok(Received::Message(bytes)) => {
                if let [id] = &*requests {
                    return self.push(Incoming::Message(bytes), Some(id.clone()));
                }
                self.push(Incoming::Message(bytes), None);
                exchange::unanswered()
            }
            Ok(Received::All) => exchange::unanswered(),
            Err(failed) => failed,
        };
        requests.iter().for_each(|id| self.fail(id, &failed));
    }

    fn happened(&mut self, event: TransportEvent) {
        match event {
            TransportEvent::Message { bytes, stream_of, room } => {
                self.inbox.push_back(InboxItem::Incoming {
                    incoming: Incoming::Message(bytes),
                    last_for: None,
                    stream_of,
                    _room: Some(room),
                });
                self.unseen = true;
            }
            TransportEvent::Paused(pause) => {
                self.inbox.push_back(InboxItem::Paused(pause));
                self.unseen = true;
            }
            TransportEvent::Initialized { taken } if taken && !self.line.has_two_endpoints() => {
                self.is_deferred = true;
                if !self.open_session_stream() {
                    self.listen(session_stream::wait(self.line.clone()));
                    self.open_gate();
                }
            }
            TransportEvent::SessionStreamWanted => {
                self.open_session_stream();
            }
            TransportEvent::Initialized { .. } | TransportEvent::SessionStreamReady => self.open_gate(),
            TransportEvent::Lost => {
                self.lost.get_or_insert_with(|| Box::pin(sleep(LAST_REFUSALS)));
            }
            TransportEvent::Endpoint(found) => self.endpoint = Some(found),
            TransportEvent::Ended(why) => self.ended = Some(why),
        }
    }

    fn open_gate(&mut self) {
        self.gate = SendGate::Open;
        self.opened = true;
        for post in std::mem::take(&mut self.queue) {
            self.start(post);
        }
    }

    fn fail(&mut self, id: &RequestId, failed: &Failed) {
        self.push(Incoming::Failed(Box::new(failed.clone().of(id))), None);
    }

    pub(in crate::client::http) fn send(&mut self, message: Bytes, context: MessageContext<'_>) {
        let requests = Ids::of(context.messages);
        let purpose = match context.messages {
            [Message::Request(request)] if request.method == method::INITIALIZE => Purpose::Initialize,
            [Message::Notification(notification)]
                if notification.method == method::NOTIFICATIONS_INITIALIZED =>
            {
                Purpose::Initialized
            }
            _ if requests.is_empty() => Purpose::Tell,
            _ => Purpose::Request,
        };
        match (purpose, context.revision) {
            (Purpose::Initialize, _) => self.line.begin(),
            (_, Some(revision)) => self.line.agree(revision),
            (_, None) => {}
        }
        // What it causes may arrive there.
        self.open_session_stream();
        match self.line.post(context.messages, message) {
            Ok(mut ask) => {
                ask.mirrored = Some(context.headers).filter(|headers| !headers.is_empty()).map(Box::new);
                let post = OutgoingPost { ask, purpose, requests };
                match self.gate {
                    SendGate::Open => self.start(post),
                    SendGate::Initialized | SendGate::SessionStream(_) => self.queue.push_back(post),
                }
            }
            Err(bad) => {
                let failed = Failed::new(bad.to_string()).undelivered();
                requests.iter().for_each(|id| self.fail(id, &failed));
            }
        }
    }

    fn start(&mut self, post: OutgoingPost) {
        if self.lost.is_some() {
            let mut failed = Failed::new("the session is lost");
            failed.delivery = Delivery::LostSession;
            return post.requests.iter().for_each(|id| self.fail(id, &failed));
        }
        let line = self.line.clone();
        if post.requests.is_empty() {
            if post.purpose == Purpose::Initialized {
                self.gate = SendGate::Initialized;
            }
            return self.tell(exchange::tell(line, post));
        }
        let hanging_up_cancels = line.hanging_up_cancels();
        // A list of none needs no memory.
        let first = post.requests.first().cloned();
        let others = post.requests.get(1..).unwrap_or_default().to_vec();
        let has_company = !others.is_empty();
        let exchange = self.asking.start((line, post));
        for id in first.into_iter().chain(others) {
            self.open.insert(id, OpenRequest { exchange, has_company, hanging_up_cancels });
        }
    }

    /// Nothing of before is left; what was sent has no answer.
    pub(in crate::client::http) fn restart(&mut self) {
        *self = Self::after(self.wire.clone(), Some(&self.line));
        // What listened before may have said so until it was dropped.
        self.wire.push_state.close();
    }

    /// Ready when everything is sent, and the session deleted.
    pub(in crate::client::http) fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.asking = asking();
        self.listening.abort_all();
        loop {
            self.inbox.clear();
            self.look(cx, true);
            while ready!(self.telling.poll_join_next(cx)).is_some() {}
            if !self.say_goodbye() {
                return Poll::Ready(());
            }
        }
    }

    /// Ends the session on the server's side, if there is one.
    fn say_goodbye(&mut self) -> bool {
        if self.lost.is_some() {
            return false;
        }
        let Some(ask) = self.line.leave() else { return false };
        let wire = self.wire.clone();
        self.tell(async move {
            let goodbye = async {
                match wire.fetch(&ask).await {
                    // 405 is fine: it is the server that decides when a session ends.
                    Ok(answer) => drain(answer.into_body()).await,
                    Err(failed) => tracing::debug!(%failed, "the session was not ended"),
                }
            };
            // In the background nobody else would give up.
            let _ = timeout(wire.limits.head_wait, goodbye).await;
        });
        true
    }
}

fn asking() -> FutureSet<(Arc<HttpSession>, OutgoingPost), ExchangeResult> {
    FutureSet::new(|(line, post)| exchange::ask(line, post))
}

impl Drop for HttpConnection {
    fn drop(&mut self) {
        if tokio::runtime::Handle::try_current().is_ok() && self.say_goodbye() {
            // It goes in the background.
            self.telling.detach_all();
        }
    }
}
