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
use http::HeaderMap;
use pintle_proto::{
    Revision,
    http::{NameSource, dress, name_in, name_member},
};
use pintle_types::{Frame, Message, Request, RequestId};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
    time::{Sleep, sleep, timeout},
};

use super::{
    Http,
    exchange::{self, Post, Purpose},
    line::{Event, Line},
    oldest, standing,
    wire::{Wire, drain},
};
use crate::transport::{About, Delivery, Failed, Holdups, Incoming, Transport};

/// How many messages that are no requests may be on their way before more of them have to wait.
const TELLING: usize = 256;
/// How long a lost session waits for the requests that the server has not answered yet: it will not take them either.
const LAST_REFUSALS: Duration = Duration::from_secs(1);
/// How long requests wait for the stream of their session.
const STANDING: Duration = Duration::from_millis(500);
/// Methods of extensions that name something.
const NAMES: [NameSource<'static>; 3] = [
    NameSource::new("tasks/get", "taskId"),
    NameSource::new("tasks/update", "taskId"),
    NameSource::new("tasks/cancel", "taskId"),
];

/// An [`Http`] that is in use.
#[derive(Debug)]
pub(super) struct Live {
    wire: Arc<Wire>,
    line: Arc<Line>,
    events: mpsc::Receiver<Event>,
    /// What has happened and was not taken yet.
    inbox: VecDeque<Incoming>,
    /// Requests and streams.
    asking: JoinSet<()>,
    /// Messages that want no answer.
    telling: JoinSet<()>,
    open: HashMap<RequestId, Open>,
    gate: Gate,
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

/// A request that has no answer yet.
#[derive(Debug)]
struct Open {
    abort: AbortHandle,
    /// Shared by those that were sent as one message.
    sent: Arc<()>,
    stateless: bool,
}

impl Live {
    fn new(wire: Arc<Wire>) -> Self {
        let (line, events) = Line::new(wire.clone());
        Self {
            wire,
            line,
            events,
            inbox: VecDeque::new(),
            asking: JoinSet::new(),
            telling: JoinSet::new(),
            open: HashMap::new(),
            gate: Gate::Open,
            queue: VecDeque::new(),
            lost: None,
            endpoint: None,
            looking: false,
            ended: None,
        }
    }

    /// Looks at what has happened.
    fn look(&mut self, cx: &mut Context<'_>) {
        // A driver that does not take what is there makes the streams wait.
        while self.inbox.len() < super::line::EVENTS {
            let Poll::Ready(Some(event)) = self.events.poll_recv(cx) else { break };
            self.happened(event);
        }
        if let Gate::Standing(patience) = &mut self.gate
            && patience.as_mut().poll(cx).is_ready()
        {
            self.open_gate();
        }
        while let Poll::Ready(Some(_)) = self.asking.poll_join_next(cx) {}
        while let Poll::Ready(Some(_)) = self.telling.poll_join_next(cx) {}
    }

    fn happened(&mut self, event: Event) {
        match event {
            Event::Message(bytes) => self.inbox.push_back(Incoming::Message(bytes)),
            Event::Over(requests, failed) => {
                for id in requests {
                    self.open.remove(&id);
                    self.fail(&id, &failed);
                }
            }
            Event::Taken(requests) => {
                for id in requests {
                    self.open.remove(&id);
                }
            }
            Event::Initialized { taken } if taken && !self.line.has_two_endpoints() => {
                self.asking.spawn(standing::run(self.line.clone()));
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
        for post in std::mem::take(&mut self.queue) {
            self.start(post);
        }
    }

    fn fail(&mut self, id: &RequestId, failed: &Failed) {
        self.inbox.push_back(Incoming::Failed(Box::new(failed.clone().of(id))));
    }

    fn send(&mut self, message: Bytes, about: &About<'_>) {
        let requests: Vec<&Request> = about
            .messages
            .iter()
            .filter_map(|message| match message {
                Message::Request(request) => Some(request),
                _ => None,
            })
            .collect();
        let ids = || requests.iter().map(|request| request.id.clone()).collect::<Vec<_>>();
        let revision = about.revision.or(self.line.revision());
        let stateless = revision.is_some_and(Revision::is_stateless);
        let purpose = match about.messages {
            [Message::Request(request)] if request.method == "initialize" => Purpose::Initialize,
            [Message::Notification(notification)] if notification.method == "notifications/initialized" => {
                Purpose::Initialized
            }
            _ if requests.is_empty() => Purpose::Tell,
            _ if stateless => Purpose::Stateless,
            _ => Purpose::Session,
        };
        match purpose {
            Purpose::Initialize => self.line.agree(None),
            _ => self.line.agree(revision),
        }
        let what = method_of(about.messages);
        match self.headers(purpose, revision, about) {
            Ok(headers) => {
                let ask = self.line.post(headers, message, what);
                let post = Post { ask, purpose, requests: ids() };
                match self.gate {
                    Gate::Open => self.start(post),
                    Gate::Initialized | Gate::Standing(_) => self.queue.push_back(post),
                }
            }
            Err(bad) => {
                let failed = Failed::new(bad.to_string()).undelivered();
                ids().iter().for_each(|id| self.fail(id, &failed));
            }
        }
    }

    fn headers(
        &self,
        purpose: Purpose,
        revision: Option<Revision>,
        about: &About<'_>,
    ) -> Result<HeaderMap, dress::BadHeader> {
        let modern = revision.filter(|revision| revision.is_stateless());
        let mut headers = match (purpose, modern, about.messages) {
            (Purpose::Initialize, ..) => dress::initialize(),
            (_, Some(revision), [Message::Request(request)]) => {
                let member = name_member(&request.method, &NAMES);
                let params = request.params.as_ref();
                let name = member.and_then(|member| name_in(params?, member));
                dress::stateless_post(revision.as_str(), &request.method, name.as_deref())?
            }
            (_, Some(revision), messages) => {
                dress::stateless_post(revision.as_str(), method_of(messages), None)?
            }
            (_, None, _) => self.line.session_headers(revision)?,
        };
        for (name, value) in &about.headers {
            headers.insert(name, value.clone());
        }
        Ok(headers)
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
            self.telling.spawn(exchange::run(line, post));
            return;
        }
        let (requests, stateless) = (post.requests.clone(), post.purpose == Purpose::Stateless);
        let abort = self.asking.spawn(exchange::run(line, post));
        let sent = Arc::new(());
        for id in requests {
            self.open.insert(id, Open { abort: abort.clone(), sent: sent.clone(), stateless });
        }
    }

    /// Nothing of before is left; what was sent has no answer.
    fn restart(&mut self) {
        *self = Self::new(self.wire.clone());
    }

    /// Ready when what was to be said is said, and the session ended.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.asking.abort_all();
        loop {
            self.inbox.clear();
            self.look(cx);
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
        self.telling.spawn(async move {
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
        live.look(cx);
        if let Some(incoming) = live.inbox.pop_front() {
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
        self.live().send(message, &About::new(&messages, None));
    }

    fn send_about(&mut self, message: Bytes, about: About<'_>) {
        self.live().send(message, &about);
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(live) = &mut self.live else { return Poll::Ready(Ok(())) };
        live.look(cx);
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
            return live.line.revision().is_some_and(Revision::is_stateless);
        };
        if Arc::strong_count(&open.sent) == 1 {
            open.abort.abort();
        }
        open.stateless
    }

    fn poll_two_endpoints(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Box<Failed>>> {
        let live = self.live();
        if !std::mem::replace(&mut live.looking, true) {
            live.asking.spawn(oldest::run(live.line.clone()));
        }
        live.look(cx);
        match live.endpoint.take() {
            Some(found) => Poll::Ready(found),
            None => Poll::Pending,
        }
    }

    fn holdups(&self) -> Holdups {
        self.holdups.clone()
    }
}

/// What a message is, for errors.
fn method_of(messages: &[Message]) -> &str {
    match messages {
        [Message::Request(request)] => &request.method,
        [Message::Notification(notification)] => &notification.method,
        [Message::Response(_)] => "an answer",
        _ => "an array of messages",
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

    impl tower_service::Service<Request<super::super::Body>> for Silent {
        type Response = Response<Stream>;
        type Error = Infallible;
        type Future = std::future::Ready<Result<Response<Stream>, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<super::super::Body>) -> Self::Future {
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
