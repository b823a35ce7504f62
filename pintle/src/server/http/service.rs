use std::{
    convert::Infallible,
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header::ALLOW, request::Parts};
use pintle_proto::http::{Endpoint, Head, Opening, Refusal, check_session_version, open};

use super::{
    Body, Patience, Unread,
    listen::Listens,
    post, read_body,
    response::{bare, refused},
    session::{Session, SessionId},
    settings::Settings,
    standing,
    table::Table,
};
use crate::{
    Ended, Result,
    server::{Server, ears::Ears, state::State},
};

/// A server over HTTP: one `tower` service for clients of every revision.
///
/// Cheap to clone: clones share their sessions. Mount it wherever a `tower` service can be mounted, and put layers of
/// your own around it: what they leave in the extensions of the request reaches the handlers.
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

pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) listens: Listens,
    /// Whoever holds a stream open to hear of changes.
    pub(super) listening: Ears,
    pub(super) sessions: Table,
}

impl Shared {
    fn new(settings: Settings) -> Self {
        Self { settings, listens: Listens::default(), listening: Ears::default(), sessions: Table::new() }
    }

    /// Ends a session. Whoever names it from here on is told that there is none.
    async fn end(&self, session: &Session, why: Ended) {
        self.sessions.remove(session.id);
        session.end(why);
        let _ = self.settings.log.forget_session(&session.id.to_string()).await;
    }
}

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

/// A request on its way in: who asks whom.
pub(super) struct Asked {
    pub(super) http: Http,
    pub(super) server: Server,
    pub(super) state: Arc<State>,
    pub(super) principal: Option<Box<str>>,
}

impl Http {
    pub(super) fn set(self, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = self.0.settings.clone();
        change(&mut settings);
        Self(Arc::new(Shared::new(settings)))
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Ends all streams that only wait for changes: subscriptions with their result, the others without a word. Calls
    /// go on. For a server that is about to go.
    pub fn hush(&self) {
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
    /// Read the body with [`read_body`], or bound it in another way. Dropping the future is what a closed connection
    /// is.
    pub async fn answer(&self, head: Parts, body: Bytes) -> Response<Body> {
        self.respond(head, async |_: &Patience| Ok(body)).await
    }

    /// Looks at the head, reads the body if there is use for it, and answers.
    async fn respond(
        &self,
        parts: Parts,
        body: impl AsyncFnOnce(&Patience) -> Result<Bytes, Unread>,
    ) -> Response<Body> {
        let server = (self.settings().choose)(&parts);
        let principal = self.settings().principal.as_ref().and_then(|of| of(&parts)).map(Into::into);
        let asked = Asked { http: self.clone(), state: server.state(), server, principal };
        asked.respond(parts, body).await
    }
}

impl Asked {
    async fn respond(
        self,
        parts: Parts,
        body: impl AsyncFnOnce(&Patience) -> Result<Bytes, Unread>,
    ) -> Response<Body> {
        let settings = self.http.settings();
        let opening = {
            let head = Head::new(&parts.method, &parts.uri, &parts.headers);
            match open(&head, &settings.guard, &self.endpoint()) {
                Ok(Opening::Post(accepts)) => Ok(accepts),
                Ok(opening) => Err(self.open(&head, opening)),
                Err(refusal) => Err(Err(refusal)),
            }
        };
        let accepts = match opening {
            Ok(accepts) => accepts,
            Err(Ok(way)) => return self.go(way, parts).await,
            Err(Err(refusal)) => return refused(&refusal, None),
        };
        match body(&settings.patience).await {
            Ok(bytes) => post::answer(self, parts, &bytes, accepts).await,
            Err(Unread::Refused(refusal)) => refused(&refusal, None),
            // Nobody reads this.
            Err(Unread::Broken) => bare(StatusCode::BAD_REQUEST),
        }
    }

    /// What a request without a body wants, and nothing borrowed from its head.
    fn open(&self, head: &Head<'_>, opening: Opening<'_>) -> Result<Way, Refusal> {
        let find = |id| {
            let session = self.find(id)?;
            check_version(head, &session)?;
            Ok(session)
        };
        Ok(match opening {
            Opening::Listen { session } => Way::Listen(find(session)?),
            Opening::Resume { session, last_event_id } => {
                Way::Resume(find(session)?, last_event_id.to_owned())
            }
            Opening::End { session } => Way::End(find(session)?),
            Opening::Options { allow } => Way::Options(allow),
            _ => return Err(Refusal::unknown_session()),
        })
    }

    async fn go(self, way: Way, parts: Parts) -> Response<Body> {
        let shared = &self.http.0;
        match way {
            Way::Listen(session) => standing::open(shared, &session, parts.extensions).await,
            Way::Resume(session, last) => standing::resume(shared, &session, &last, parts.extensions)
                .await
                .unwrap_or_else(|refusal| refused(&refusal, None)),
            Way::End(session) => {
                shared.end(&session, Ended::ByPeer { known: None }).await;
                bare(StatusCode::NO_CONTENT)
            }
            Way::Options(allow) => options(allow),
        }
    }

    /// The session of that id, if it is this principal's.
    pub(super) fn find(&self, id: &str) -> Result<Arc<Session>, Refusal> {
        let session = SessionId::parse(id).and_then(|id| self.http.0.sessions.find(id));
        // Who has only found the id somewhere learns nothing from the answer.
        session.filter(|session| session.principal == self.principal).ok_or_else(Refusal::unknown_session)
    }

    /// What is served here.
    pub(super) fn endpoint(&self) -> Endpoint<'_> {
        let settings = self.http.settings();
        let mut endpoint = self.state.served.endpoint();
        endpoint.sessions &= settings.sessions;
        endpoint.sessionless = settings.sessionless;
        endpoint.body_limit = settings.patience.limit;
        endpoint
    }
}

enum Way {
    Listen(Arc<Session>),
    Resume(Arc<Session>, String),
    End(Arc<Session>),
    Options(&'static str),
}

/// 400 if a request names another revision than its session speaks.
pub(super) fn check_version(head: &Head<'_>, session: &Session) -> Result<(), Refusal> {
    let peer = session.peer().ok_or_else(Refusal::unknown_session)?;
    check_session_version(head, peer.revision.as_str())
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
        let http = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            Ok(http.respond(parts, async move |patience: &Patience| read_body(body, patience).await).await)
        })
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}
