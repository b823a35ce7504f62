use std::{
    any::Any,
    convert::Infallible,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, Version, header::ALLOW, request::Parts};
use pintle_proto::{
    Revision,
    http::{Accepts, Endpoint, Head, Opening, Refusal, check_session_version, open},
    server::{Engine, SessionRecord},
};
use pintle_types::RpcError;

use super::{
    Body, BodyLimits, PeerAddress, ReadBodyError, RequestBody,
    choice::{self, Choice},
    edge::{
        body::{Budget, read_content},
        content::Content,
        response::{bare, closed, overloaded, refused},
    },
    post,
    session::{
        self, Session,
        conversation::no_room,
        id::SessionId,
        record::ReadStart,
        registry::Refused,
        standing,
        store::{Sessions, StoredSession},
        two_endpoints::{self, Entered},
    },
    settings::Settings,
};

pub(super) use super::shared::Shared;
use crate::{
    Ended, Result,
    server::{Authenticated, HttpHead, Server, call::context::RequestContext, state::State},
};

/// A server over HTTP: one `tower` service for clients of every revision.
///
/// Cheap to clone: clones are the same service, as those of a [`Server`] are the same server. They share sessions, calls and
/// settings, and a setting that is changed on one applies to all, from the next request on. Set the event log and the
/// session store before the first request.
///
/// Mount it wherever a `tower` service can be mounted, and wrap it in layers: what they put into the extensions of a request
/// reaches the handlers.
///
/// ```
/// use http::Request;
/// use pintle::{Server, server::tool};
/// use tower_service::Service as _;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let mut http = Server::new("greeter", "1.0.0").tool(tool("greet", || async { "Hello!" })).http()?;
///
/// let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","_meta":{
///     "io.modelcontextprotocol/protocolVersion":"2026-07-28",
///     "io.modelcontextprotocol/clientCapabilities":{}}}}"#;
/// let request = Request::post("/mcp")
///     .header("host", "localhost")
///     .header("content-type", "application/json")
///     .header("accept", "application/json, text/event-stream")
///     .header("mcp-protocol-version", "2026-07-28")
///     .header("mcp-method", "tools/call")
///     .header("mcp-name", "greet")
///     .body(call.to_owned())
///     .expect("a request");
/// let response = http.call(request).await.expect("never fails");
/// assert_eq!(response.status(), 200);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Http(pub(super) Arc<Shared>);

impl Server {
    /// This server over HTTP, on one path for clients of every revision.
    ///
    /// # Errors
    ///
    /// What was registered is not as it should be: see [`check`](Self::check).
    pub fn http(&self) -> Result<Http> {
        self.check()?;
        Ok(Http(Arc::new(Shared::new(Settings::new(self)))))
    }
}

/// A request on its way in: who asks whom, and what came with it.
pub(super) struct Asked {
    pub(super) http: Http,
    pub(super) settings: Arc<Settings>,
    pub(super) server: Server,
    pub(super) state: Arc<State>,
    pub(super) principal: Option<Box<str>>,
    pub(super) context: Arc<RequestContext>,
    /// Whether HTTP wants it to have a `Host`.
    needs_host: bool,
}

impl Http {
    pub(super) fn set(self, change: impl FnOnce(&mut Settings)) -> Self {
        {
            let mut settings = self.0.settings.write().unwrap_or_else(PoisonError::into_inner);
            change(Arc::make_mut(&mut settings));
        }
        self
    }

    pub(super) fn seals_alone(&self) -> bool {
        self.settings().seals_alone
    }

    pub(super) fn settings(&self) -> Arc<Settings> {
        self.0.settings()
    }

    /// Closes all notification streams. Subscriptions receive their final result; GET streams are closed without one. Calls
    /// in flight continue. [`close`](Self::close) refuses new calls as well.
    pub fn close_streams(&self) {
        self.0.listening.close();
    }

    /// How many sessions there are.
    pub fn sessions(&self) -> usize {
        self.0.sessions.len()
    }

    /// Ends a session: its calls are cancelled, its streams end. `false` if there is none of that id.
    pub async fn end_session(&self, id: &str) -> bool {
        let session = SessionId::parse(id).and_then(|id| self.0.sessions.find(id));
        match session {
            Some(session) => {
                self.0.end(&session, Ended::Stopped).await;
                true
            }
            None => false,
        }
    }

    /// Answers a request whose body was read already: the whole of this service, for endpoints of your own.
    ///
    /// Read the body with [`read_body`](super::read_body), or bound it in another way. Dropping the future is what a
    /// closed connection is.
    pub async fn answer(&self, head: Parts, body: Bytes) -> Response<Body> {
        let asked = match self.asked(head, None) {
            Asking::Chosen(asked) => Ok(asked),
            Asking::Refused(refusal) => Err(refusal),
            Asking::Awaited(asking) => asking.await,
        };
        match asked {
            Ok(asked) => {
                let Ok(response) = asked.respond(Source::<Body>::Here(Content::Bytes(body))).await;
                response
            }
            Err(refusal) => refused(&refusal, None),
        }
    }

    /// Finds out who asks whom. The head goes where it stays: what is moved from here on is small.
    fn asked(&self, mut parts: Parts, mut address: Option<PeerAddress>) -> Asking {
        let settings = self.settings();
        // What the application has to decide by the head it decides by all of it.
        if settings.looks
            && let Some(address) = address.take()
        {
            parts.extensions.insert(address);
        }
        let server = match &settings.choice {
            Choice::One(server) => server.clone(),
            Choice::ByHead(choose) => {
                let server = choose(&parts);
                return match choice::check(&server.state()) {
                    Ok(()) => Asking::Chosen(self.chosen(settings, server, parts, address)),
                    Err(refusal) => Asking::Refused(refusal),
                };
            }
            Choice::Awaited(choose) => {
                let (choosing, http) = (choose(&parts), self.clone());
                return Asking::Awaited(Box::pin(async move {
                    let server = choosing.await?;
                    choice::check(&server.state())?;
                    Ok(http.chosen(settings, server, parts, address))
                }));
            }
        };
        Asking::Chosen(self.chosen(settings, server, parts, address))
    }

    fn chosen(
        &self,
        settings: Arc<Settings>,
        server: Server,
        parts: Parts,
        address: Option<PeerAddress>,
    ) -> Asked {
        let principal = match &settings.principal {
            Some(of) => of(&parts).map(Into::into),
            None => {
                parts.extensions.get::<Authenticated>().and_then(Authenticated::principal).map(Into::into)
            }
        };
        let state = server.state();
        let Parts { method, uri, headers, extensions, .. } = parts;
        let context = RequestContext::over_http(extensions, HttpHead::new(method, uri, headers), address);
        Asked {
            http: self.clone(),
            settings,
            state,
            server,
            principal,
            context: Arc::new(context),
            needs_host: false,
        }
    }
}

/// Who is to answer a request.
enum Asking {
    Chosen(Asked),
    Refused(Refusal),
    Awaited(Pin<Box<dyn Future<Output = Result<Asked, Refusal>> + Send>>),
}

/// A body, read or not.
enum Source<B> {
    Here(Content),
    Coming(B),
}

/// What is to be done about a request, as far as its head tells.
enum Door {
    /// Read its body, and answer that.
    Post(Accepts),
    /// Something else than most.
    Other,
}

/// Whose body is read.
enum To {
    Endpoint(Accepts),
    Session(Arc<Session>),
}

impl Asked {
    /// Looks at the head, reads the body if there is use for it, and answers.
    ///
    /// What is not the way of nearly all requests is boxed, here and further down: the future has room for the longest way
    /// that is not, and is copied as a whole when it is made. (Measured, with 4,200 bytes instead of 900: 2,900 of 48,400
    /// instructions of a small call.)
    async fn respond<B: http_body::Body>(self, body: Source<B>) -> Result<Response<Body>, Infallible> {
        let Some(head) = self.head() else { return Ok(bare(StatusCode::BAD_REQUEST)) };
        if self.needs_host && !head.has_host() {
            return Ok(refused(&Refusal::no_host(), None));
        }
        let door = match self.enter(&head) {
            Ok(door) => door,
            Err(refusal) => return Ok(turned_away(&refusal)),
        };
        let to = match door {
            Door::Post(accepts) => To::Endpoint(accepts),
            Door::Other => match Box::pin(self.other(&head)).await {
                Entered::Answered(response) => return Ok(response),
                Entered::Message(session) => To::Session(session),
            },
        };
        let content = match body {
            Source::Here(content) if content.bytes().len() > self.body_limit() => {
                return Ok(refused(&Refusal::too_large(self.body_limit()), None));
            }
            Source::Here(content) => content,
            Source::Coming(body) => match read_content(body, &self.body_limits(), self.budget()).await {
                Ok(content) => content,
                Err(unread) => return Ok(not_read(unread)),
            },
        };
        Ok(match to {
            To::Endpoint(accepts) => post::answer(&self, &head, content, accepts).await,
            To::Session(session) => Box::pin(two_endpoints::receive(&self, &session, content)).await,
        })
    }

    /// What the rules read of the head.
    fn head(&self) -> Option<Head<'_>> {
        self.context.head.as_ref().map(|head| Head::new(&head.method, &head.uri, &head.headers))
    }

    fn path(&self) -> &str {
        self.context.head.as_ref().map_or("", |head| head.uri.path())
    }

    fn enter(&self, head: &Head<'_>) -> Result<Door, Refusal> {
        let settings = &self.settings;
        if settings.two_endpoints.as_ref().is_some_and(|two| two.part(self.path()).is_some()) {
            return Ok(Door::Other);
        }
        if let Some(path) = settings.path.as_deref().filter(|path| *path != self.path()) {
            return Err(elsewhere(self.path(), path));
        }
        Ok(match open(head, &settings.guard, &self.endpoint())? {
            Opening::Post(accepts) => Door::Post(accepts),
            _ => Door::Other,
        })
    }

    /// Answers a request that is not a POST to the one endpoint.
    async fn other(&self, head: &Head<'_>) -> Entered {
        let settings = &self.settings;
        let extensions = self.context.extensions();
        let two = settings.two_endpoints.as_ref().and_then(|two| two.part(self.path()));
        let entered = match two {
            Some(part) => two_endpoints::open(self, head, extensions, part).await,
            None => match open(head, &settings.guard, &self.endpoint()) {
                Ok(opening) => self.go(head, opening).await.map(Entered::Answered),
                Err(refusal) => Err(refusal),
            },
        };
        entered.unwrap_or_else(|refusal| Entered::Answered(turned_away(&refusal)))
    }

    /// Answers a request without a body.
    async fn go(&self, head: &Head<'_>, opening: Opening<'_>) -> Result<Response<Body>, Refusal> {
        let (shared, extensions) = (&self.http.0, self.context.extensions());
        let find = async |id| {
            let id = SessionId::parse(id).ok_or_else(Refusal::unknown_session)?;
            self.session(head, id).await
        };
        Ok(match opening {
            Opening::Listen { .. } if shared.calls.is_closed() => return Err(closed()),
            Opening::Listen { session } => {
                let session = find(session).await?;
                // Its messages may go to other processes.
                session.set_initialized();
                standing::open(shared, &session, extensions.clone()).await
            }
            Opening::Resume { session, last_event_id } => {
                let session = find(session).await?;
                session.set_initialized();
                standing::resume(shared, &session, last_event_id, extensions.clone()).await?
            }
            Opening::End { session } => {
                let session = find(session).await?;
                shared.end(&session, Ended::ByPeer { known: None }).await;
                bare(StatusCode::NO_CONTENT)
            }
            Opening::Options { allow } => options(allow),
            _ => return Err(Refusal::unknown_session()),
        })
    }

    /// The session of that id, if it is this principal's and the request names a revision that sessions have.
    pub(super) async fn session(&self, head: &Head<'_>, id: SessionId) -> Result<Arc<Session>, Refusal> {
        let session = self.find(id).await?;
        if !session.is_open() {
            return Err(Refusal::unknown_session());
        }
        check_session_version(head, self.endpoint().session)?;
        Ok(session)
    }

    /// The session of that id: one of this process, or one that another has written down.
    pub(super) async fn find(&self, id: SessionId) -> Result<Arc<Session>, Refusal> {
        let shared = &self.http.0;
        let found = shared.sessions.find(id);
        let found = match &shared.settings().store {
            None => found,
            Some(store) => Box::pin(self.find_written(&**store, id, found)).await?,
        };
        // Who has only found the id somewhere learns nothing from the answer.
        found.filter(|session| session.principal == self.principal).ok_or_else(Refusal::unknown_session)
    }

    /// The session of that id as it is written down now.
    async fn find_written(
        &self,
        store: &dyn Sessions,
        id: SessionId,
        found: Option<Arc<Session>>,
    ) -> Result<Option<Arc<Session>>, Refusal> {
        let shared = &self.http.0;
        let found = found.map(|session| (session.start_read(), session));
        let stored = store.get(&id.to_string(), shared.settings().idle_session).await;
        match stored.map_err(|error| store_failed(&error))? {
            // It is not brought here for somebody else.
            Some(stored) if stored.principal.as_deref() != self.principal.as_deref() => Ok(None),
            Some(stored) => self.adopt(id, found, &stored).await,
            None => {
                // Only its own client finds out that it is over, and so ends it here.
                if let Some((_, session)) = found.filter(|(_, session)| session.principal == self.principal) {
                    shared.end(&session, Ended::Stopped).await;
                }
                Ok(None)
            }
        }
    }

    /// The session of that id, if it is one of this process: its stream is here, and so must be its messages.
    pub(super) fn find_here(&self, id: SessionId) -> Option<Arc<Session>> {
        self.http.0.sessions.find(id).filter(|session| session.principal == self.principal)
    }

    /// Goes on with a session that was written down.
    async fn adopt(
        &self,
        id: SessionId,
        found: Option<(ReadStart, Arc<Session>)>,
        stored: &StoredSession,
    ) -> Result<Option<Arc<Session>>, Refusal> {
        let shared = &self.http.0;
        if let Some((read, session)) = found {
            session.adopt(&stored.record, read);
            return Ok(Some(session));
        }
        if !self.state.service.has_room_for(&stored.record) {
            return Err(no_room(Refused::Full));
        }
        let restored = Engine::restore(&self.state.service, &stored.record, session::fresh_number());
        let Some(engine) = restored else { return Ok(None) };
        let principal = stored.principal.as_deref().map(Into::into);
        let session = Session::new(id, principal, self.server.clone(), engine).at(self.address());
        session.set_initialized();
        session.set_written();
        session.number_from(session::fresh_number().unsigned_abs());
        shared.listening.add(&session.inbox);
        shared.admit(Arc::new(session)).await.map(Some).map_err(no_room)
    }

    /// A session for one request only: its client keeps none.
    pub(super) fn alone(&self, revision: Revision) -> Option<Arc<Session>> {
        let engine = Engine::restore(&self.state.service, &SessionRecord::new(revision), 0)?;
        Some(Arc::new(Session::alone(self.principal.clone(), self.server.clone(), engine)))
    }

    /// What is served here.
    pub(super) fn endpoint(&self) -> Endpoint<'_> {
        let settings = &self.settings;
        let mut endpoint = self.state.served.endpoint();
        endpoint.sessions &= settings.sessions;
        endpoint.sessionless = settings.sessionless;
        endpoint.body_limit = self.body_limit();
        endpoint
    }

    /// How large a body may be: as the author said of all servers here, or of this one.
    fn body_limit(&self) -> usize {
        let settings = &self.settings;
        if settings.limited { settings.body_limits.limit } else { self.state.service.bounds().message_bytes }
    }

    fn body_limits(&self) -> BodyLimits {
        BodyLimits { limit: self.body_limit(), ..self.settings.body_limits }
    }

    fn budget(&self) -> Option<&Budget> {
        Some(&self.settings.bodies)
    }
}

/// No to a request by its head. Who runs the server has to know that somebody is turned away: it is what a first deployment
/// most often gets wrong.
fn turned_away(refusal: &Refusal) -> Response<Body> {
    let status = refusal.status.as_u16();
    if refusal.status == StatusCode::FORBIDDEN {
        tracing::warn!(status, reason = %refusal.error.message, "a request was refused");
    } else {
        tracing::debug!(status, reason = %refusal.error.message, "a request was refused");
    }
    refused(refusal, None)
}

fn not_read(unread: ReadBodyError) -> Response<Body> {
    match unread {
        ReadBodyError::Refused(refusal) => refused(&refusal, None),
        // Nobody reads this.
        ReadBodyError::Broken => bare(StatusCode::BAD_REQUEST),
    }
}

/// 503: where sessions are written down cannot be reached.
pub(super) fn store_failed(error: &std::io::Error) -> Refusal {
    tracing::error!(%error, "the session store failed");
    let said = "the session cannot be looked up at the moment: try again later";
    overloaded(StatusCode::SERVICE_UNAVAILABLE, said)
}

/// 404: clients that look for something else here, such as metadata, have to be able to tell.
fn elsewhere(asked: &str, served: &str) -> Refusal {
    let asked: String = asked.chars().take(128).collect();
    let said = format!("nothing is served at `{asked}`; send MCP requests to `{served}`");
    Refusal::new(StatusCode::NOT_FOUND, RpcError::invalid_request(said))
}

fn options(allow: &'static str) -> Response<Body> {
    let mut response = bare(StatusCode::NO_CONTENT);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    response
}

impl<B> tower_service::Service<Request<B>> for Http
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let taken: Option<&RequestBody> = (&body as &dyn Any).downcast_ref();
        let address = taken.and_then(RequestBody::lazy_peer_address);
        // What our own server took is as it was on the wire.
        let on_wire = taken.is_some() && parts.version == Version::HTTP_11;
        match self.asked(parts, address) {
            Asking::Chosen(mut asked) => {
                asked.needs_host = on_wire;
                Box::pin(asked.respond(Source::Coming(body)))
            }
            Asking::Refused(refusal) => Box::pin(std::future::ready(Ok(refused(&refusal, None)))),
            Asking::Awaited(asking) => Box::pin(async move {
                match asking.await {
                    Ok(mut asked) => {
                        asked.needs_host = on_wire;
                        asked.respond(Source::Coming(body)).await
                    }
                    Err(refusal) => Ok(refused(&refusal, None)),
                }
            }),
        }
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_future_of_a_request_is_small() {
        let http = Server::new("s", "0").http().unwrap();
        let (parts, ()) = Request::post("/mcp").body(()).unwrap().into_parts();
        let Asking::Chosen(asked) = http.asked(parts, None) else { panic!("there is one server") };
        let future = asked.respond(Source::Coming(Body::empty()));
        // What is larger than a kilobyte is not at hand for the allocator.
        assert!(size_of_val(&future) <= 1000, "{}", size_of_val(&future));
    }
}
