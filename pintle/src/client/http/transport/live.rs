use std::{
    collections::{HashMap, VecDeque},
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use pintle_proto::client::OwnIds;
use pintle_types::{Frame, Message, RequestId, method};
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc},
    task::JoinSet,
    time::{Sleep, sleep, timeout},
};

use super::{
    exchange::{self, Asked, Came, Ids, Post, Purpose},
    line::{Event, Line},
    oldest,
    running::{Running, Ticket},
    standing,
};
use crate::{
    client::http::{
        Http,
        fetch::{Wire, drain},
    },
    transport::{About, Delivery, Failed, Holdups, Incoming, Listening, Transport},
};

/// How many messages that are no requests may be on their way before more of them have to wait.
const TELLING: usize = 256;
/// How long a lost session waits for the requests that the server has not answered yet: it will not take them either.
const LAST_REFUSALS: Duration = Duration::from_secs(1);
/// How long requests wait for the stream of their session.
const STANDING: Duration = Duration::from_millis(500);
/// An [`Http`] that is in use.
#[derive(Debug)]
pub(in crate::client::http) struct Live {
    wire: Arc<Wire>,
    line: Arc<Line>,
    events: mpsc::Receiver<Event>,
    /// What has happened and was not taken yet.
    inbox: VecDeque<Happened>,
    /// The request on whose stream that came which was taken last.
    stream_of: Option<RequestId>,
    /// The request for which nothing comes any more, while it is not known whether what came last was the answer.
    doubtful: Option<RequestId>,
    /// Requests.
    asking: Running<(Arc<Line>, Post), Asked>,
    /// Streams that belong to none.
    listening: JoinSet<()>,
    /// Messages that want no answer.
    telling: JoinSet<()>,
    open: HashMap<RequestId, Open, OwnIds>,
    gate: Gate,
    /// It was opened just now: what is started then is not polled yet.
    opened: bool,
    /// There was no room for all that has happened.
    crowded: bool,
    /// There is something in the inbox since it was looked into last.
    unseen: bool,
    /// What waits for that.
    queue: VecDeque<Post>,
    /// The session is gone; until then its other requests may be refused.
    lost: Option<Pin<Box<Sleep>>>,
    /// Whether there are two endpoints, once that is known.
    endpoint: Option<Result<(), Box<Failed>>>,
    looking: bool,
    ended: Option<String>,
}

/// What a session begins with, in order. Requests would be served out of turn on connections of their own.
#[derive(Debug)]
enum Gate {
    /// `notifications/initialized` is on its way: nothing may overtake it.
    Initialized,
    /// So is the stream of the session: what belongs to no request would be lost, or come on the wrong stream. Not
    /// every server answers before it has something to say there, so this does not last long.
    Standing(Pin<Box<Sleep>>),
    Open,
}

#[derive(Debug)]
struct Happened {
    incoming: Incoming,
    /// The request for which nothing comes after it.
    last_for: Option<RequestId>,
    /// The request on whose stream it came.
    stream_of: Option<RequestId>,
    /// What it takes up of the room for messages of streams.
    _room: Option<OwnedSemaphorePermit>,
}

/// A request that has no answer yet.
#[derive(Debug)]
struct Open {
    exchange: Ticket,
    /// Others were sent in the same message.
    has_company: bool,
    hanging_up_cancels: bool,
}

impl Live {
    fn new(wire: Arc<Wire>) -> Self {
        let (line, events) = Line::new(wire.clone());
        Self {
            wire,
            line,
            events,
            inbox: VecDeque::new(),
            stream_of: None,
            doubtful: None,
            asking: asking(),
            listening: JoinSet::new(),
            telling: JoinSet::new(),
            open: HashMap::default(),
            gate: Gate::Open,
            opened: false,
            crowded: false,
            unseen: false,
            queue: VecDeque::new(),
            lost: None,
            endpoint: None,
            looking: false,
            ended: None,
        }
    }

    /// Looks at what has happened: at all of it, or until there is something in the inbox.
    fn look(&mut self, cx: &mut Context<'_>, all: bool) {
        if !self.opened && self.asking.rests(cx) {
            return;
        }
        // What ends may open the gate for more.
        for _ in 0..2 {
            if self.asking.heard_aside() {
                self.look_aside();
            }
            while let Some(asked) = self.asking.poll_next(cx) {
                self.end(asked);
                if !all && !self.inbox.is_empty() {
                    return;
                }
            }
            if !std::mem::take(&mut self.opened) && !self.asking.hears_aside() {
                return;
            }
        }
        cx.waker().wake_by_ref();
    }

    /// Looks at all that is no request. Few calls make any of this happen, and each looks several times.
    fn look_aside(&mut self) {
        let aside = self.asking.aside();
        let cx = &mut Context::from_waker(&aside);
        // A driver that does not take what is there makes the streams wait.
        loop {
            self.crowded = self.inbox.len() >= super::line::EVENTS;
            if self.crowded {
                break;
            }
            let Poll::Ready(Some(event)) = self.events.poll_recv(cx) else { break };
            self.happened(event);
        }
        if let Gate::Standing(patience) = &mut self.gate
            && patience.as_mut().poll(cx).is_ready()
        {
            self.open_gate();
        }
        while let Poll::Ready(Some(_)) = self.listening.poll_join_next(cx) {}
        while let Poll::Ready(Some(_)) = self.telling.poll_join_next(cx) {}
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
        self.inbox.push_back(Happened { incoming, last_for, stream_of: None, _room: None });
        self.unseen = true;
    }

    /// Nothing more will come for these where they were sent to.
    fn end(&mut self, asked: Asked) {
        let Asked { requests, came } = asked;
        if !matches!(came, Ok(Came::Message(_))) {
            // What came on their stream came before its end.
            while let Ok(event) = self.events.try_recv() {
                self.happened(event);
            }
        }
        for id in &*requests {
            self.open.remove(id);
        }
        let failed = match came {
            Ok(Came::Elsewhere) => return,
            Ok(Came::Message(bytes)) => {
                if let [id] = &*requests {
                    return self.push(Incoming::Message(bytes), Some(id.clone()));
                }
                self.push(Incoming::Message(bytes), None);
                exchange::unanswered()
            }
            Ok(Came::All) => exchange::unanswered(),
            Err(failed) => failed,
        };
        requests.iter().for_each(|id| self.fail(id, &failed));
    }

    fn happened(&mut self, event: Event) {
        match event {
            Event::Message { bytes, stream_of, room } => {
                self.inbox.push_back(Happened {
                    incoming: Incoming::Message(bytes),
                    last_for: None,
                    stream_of,
                    _room: Some(room),
                });
                self.unseen = true;
            }
            Event::Initialized { taken } if taken && !self.line.has_two_endpoints() => {
                self.listen(standing::run(self.line.clone()));
                self.gate = Gate::Standing(Box::pin(sleep(STANDING)));
            }
            Event::Initialized { .. } | Event::Standing => self.open_gate(),
            Event::Lost => {
                self.lost.get_or_insert_with(|| Box::pin(sleep(LAST_REFUSALS)));
            }
            Event::Endpoint(found) => self.endpoint = Some(found),
            Event::Ended(why) => self.ended = Some(why),
        }
    }

    fn open_gate(&mut self) {
        self.gate = Gate::Open;
        self.opened = true;
        for post in std::mem::take(&mut self.queue) {
            self.start(post);
        }
    }

    fn fail(&mut self, id: &RequestId, failed: &Failed) {
        self.push(Incoming::Failed(Box::new(failed.clone().of(id))), None);
    }

    fn send(&mut self, message: Bytes, about: About<'_>) {
        let requests = Ids::of(about.messages);
        let purpose = match about.messages {
            [Message::Request(request)] if request.method == method::INITIALIZE => Purpose::Initialize,
            [Message::Notification(notification)]
                if notification.method == method::NOTIFICATIONS_INITIALIZED =>
            {
                Purpose::Initialized
            }
            _ if requests.is_empty() => Purpose::Tell,
            _ => Purpose::Ask,
        };
        match (purpose, about.revision) {
            (Purpose::Initialize, _) => self.line.begin(),
            (_, Some(revision)) => self.line.agree(revision),
            (_, None) => {}
        }
        match self.line.post(about.messages, message) {
            Ok(mut ask) => {
                ask.mirrored = Some(about.headers).filter(|headers| !headers.is_empty()).map(Box::new);
                let post = Post { ask, purpose, requests };
                match self.gate {
                    Gate::Open => self.start(post),
                    Gate::Initialized | Gate::Standing(_) => self.queue.push_back(post),
                }
            }
            Err(bad) => {
                let failed = Failed::new(bad.to_string()).undelivered();
                requests.iter().for_each(|id| self.fail(id, &failed));
            }
        }
    }

    fn start(&mut self, post: Post) {
        if self.lost.is_some() {
            let mut failed = Failed::new("the session is lost");
            failed.delivery = Delivery::LostSession;
            return post.requests.iter().for_each(|id| self.fail(id, &failed));
        }
        let line = self.line.clone();
        if post.requests.is_empty() {
            if post.purpose == Purpose::Initialized {
                self.gate = Gate::Initialized;
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
            self.open.insert(id, Open { exchange, has_company, hanging_up_cancels });
        }
    }

    /// Nothing of before is left; what was sent has no answer.
    fn restart(&mut self) {
        *self = Self::new(self.wire.clone());
        // What listened before may have said so until it was dropped.
        self.wire.listening.close();
    }

    /// Ready when what was to be said is said, and the session ended.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<()> {
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

fn asking() -> Running<(Arc<Line>, Post), Asked> {
    Running::new(|(line, post)| exchange::ask(line, post))
}

impl Drop for Live {
    fn drop(&mut self) {
        if tokio::runtime::Handle::try_current().is_ok() && self.say_goodbye() {
            // It goes in the background.
            self.telling.detach_all();
        }
    }
}

impl Http {
    fn live(&mut self) -> &mut Live {
        if self.live.is_none() {
            let wire = Arc::new(self.wire());
            self.live = Some(Live::new(wire));
        }
        self.live.as_mut().expect("it was just made")
    }
}

impl Transport for Http {
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Incoming>>> {
        let live = self.live();
        if let Some(id) = live.doubtful.take() {
            let failed = exchange::unanswered().of(&id);
            return Poll::Ready(Ok(Some(Incoming::Failed(Box::new(failed)))));
        }
        if live.inbox.is_empty() {
            if live.crowded {
                live.asking.aside().wake();
            }
            live.look(cx, false);
            live.unseen = false;
        }
        if let Some(Happened { incoming, last_for, stream_of, _room }) = live.inbox.pop_front() {
            (live.doubtful, live.stream_of) = (last_for, stream_of);
            return Poll::Ready(Ok(Some(incoming)));
        }
        if live.ended.is_some() {
            return Poll::Ready(Ok(None));
        }
        if let Some(patience) = &mut live.lost
            && (!live.line.has_headless() || patience.as_mut().poll(cx).is_ready())
        {
            return Poll::Ready(Ok(None));
        }
        Poll::Pending
    }

    fn send(&mut self, message: Bytes) {
        let messages = match Frame::parse(&message, usize::MAX) {
            Ok(Frame::One(one)) => vec![one],
            Ok(Frame::Batch(several)) => several.into_iter().filter_map(Result::ok).collect(),
            Err(malformed) => return tracing::debug!(?malformed, "what is no message is not sent"),
        };
        self.live().send(message, About::new(&messages, None));
    }

    fn send_about(&mut self, message: Bytes, about: About<'_>) {
        self.live().send(message, about);
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(live) = &mut self.live else { return Poll::Ready(Ok(())) };
        live.look(cx, true);
        if std::mem::take(&mut live.unseen) {
            cx.waker().wake_by_ref();
        }
        match live.queue.is_empty() && live.telling.len() < TELLING {
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.live {
            Some(live) => live.poll_close(cx).map(Ok),
            None => Poll::Ready(Ok(())),
        }
    }

    fn why_ended(&self) -> Option<String> {
        let live = self.live.as_ref()?;
        match &live.lost {
            Some(_) => Some(format!("`{}` has forgotten the session", self.address)),
            None => live.ended.as_ref().map(|why| format!("`{}`: {why}", self.address)),
        }
    }

    fn restart(&mut self) -> io::Result<()> {
        self.live().restart();
        Ok(())
    }

    fn has_headers(&self) -> bool {
        true
    }

    fn abandon(&mut self, request: &RequestId) -> bool {
        let live = self.live();
        let Some(open) = live.open.remove(request) else {
            return live.line.hanging_up_cancels();
        };
        let awaited = |other: &Open| other.exchange == open.exchange;
        if !open.has_company || !live.open.values().any(awaited) {
            live.asking.stop(open.exchange);
        }
        open.hanging_up_cancels
    }

    fn answered(&mut self, request: &RequestId) {
        if let Some(live) = &mut self.live
            && live.doubtful.as_ref() == Some(request)
        {
            live.doubtful = None;
        }
    }

    fn stream_of(&self) -> Option<&RequestId> {
        self.live.as_ref()?.stream_of.as_ref()
    }

    fn poll_two_endpoints(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Box<Failed>>> {
        let live = self.live();
        if !std::mem::replace(&mut live.looking, true) {
            live.listen(oldest::run(live.line.clone()));
        }
        live.look(cx, true);
        match live.endpoint.take() {
            Some(found) => Poll::Ready(found),
            None => Poll::Pending,
        }
    }

    fn holdups(&self) -> Holdups {
        self.holdups.clone()
    }

    fn limit_messages(&mut self, bytes: usize) {
        self.message_bytes = bytes;
    }

    fn listening(&self) -> Listening {
        self.listening.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future::poll_fn};

    use http::{Request, Response};
    use http_body::Frame as Piece;

    use super::*;

    /// A server of the oldest revision that takes everything, and never answers.
    #[derive(Clone)]
    struct Silent;

    /// Names the endpoint, and stays open.
    struct Stream(Option<&'static str>);

    impl tower_service::Service<Request<crate::client::http::Body>> for Silent {
        type Response = Response<Stream>;
        type Error = Infallible;
        type Future = std::future::Ready<Result<Response<Stream>, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<crate::client::http::Body>) -> Self::Future {
            let answer = match request.method() {
                &http::Method::GET => Response::builder()
                    .header("content-type", "text/event-stream")
                    .body(Stream(Some("event: endpoint\ndata: /messages\n\n"))),
                _ => Response::builder().status(202).body(Stream(None)),
            };
            std::future::ready(Ok(answer.unwrap()))
        }
    }

    impl http_body::Body for Stream {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Piece<Bytes>, Infallible>>> {
            let said = self.0.as_mut().map(std::mem::take);
            match said {
                None => Poll::Ready(None),
                Some("") => Poll::Pending,
                Some(said) => Poll::Ready(Some(Ok(Piece::data(said.into())))),
            }
        }
    }

    #[tokio::test]
    async fn nothing_is_kept_of_a_request_whose_answer_comes_elsewhere() {
        let mut http = Http::new("http://server.test/sse").unwrap().client(Silent);
        poll_fn(|task| http.poll_two_endpoints(task)).await.unwrap();
        for id in 1..=10 {
            http.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).into());
        }
        assert_eq!(http.live().open.len(), 10);
        for _ in 0..100 {
            tokio::task::yield_now().await;
            poll_fn(|task| {
                assert!(http.poll_recv(task).is_pending(), "nothing has come");
                Poll::Ready(())
            })
            .await;
        }
        assert_eq!(http.live().open.len(), 0);
    }
}
