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
use pintle_proto::http::{Endpoint, Head, Opening, Refusal, open};

use super::{
    Body, Patience, Unread,
    listen::Listens,
    post, read_body,
    response::{bare, refused},
    settings::Settings,
};
use crate::{
    Result,
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
}

impl Shared {
    fn new(settings: Settings) -> Self {
        Self { settings, listens: Listens::default(), listening: Ears::default() }
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
                Ok(Opening::Options { allow }) => Err(options(allow)),
                Ok(_) => Err(refused(&Refusal::unknown_session(), None)),
                Err(refusal) => Err(refused(&refusal, None)),
            }
        };
        let accepts = match opening {
            Ok(accepts) => accepts,
            Err(response) => return response,
        };
        match body(&settings.patience).await {
            Ok(bytes) => post::answer(self, parts, &bytes, accepts).await,
            Err(Unread::Refused(refusal)) => refused(&refusal, None),
            // Nobody reads this.
            Err(Unread::Broken) => bare(StatusCode::BAD_REQUEST),
        }
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
