use std::{convert::Infallible, future::Future, pin::Pin, sync::Arc};

use http::{HeaderValue, Method, Response, StatusCode, header::ALLOW, request::Parts};
use pintle_proto::{
    http::{Accepts, Endpoint, EndpointRequest, Head, Refusal, open},
    ledger::{Account, Ceiling, Charge, Held, Owner},
};
use pintle_types::RpcError;

use super::{
    Body, BodyLimits, Http, ReadBodyError,
    choice::{self, Choice},
    edge::{
        body::{BodyPayer, read_content},
        content::Content,
        response::{bare, closed, refused, store_failed},
    },
    post,
    session::{
        Session, get_stream,
        id::SessionId,
        two_endpoints::{self, Part},
    },
    settings::HttpSettings,
};
use crate::{
    Ended, Result,
    server::{
        Authenticated, HttpHead, PeerAddress, Server,
        access::peer_address::AddressKey,
        core::{driver::context::RequestContext, snapshot::Snapshot},
    },
};

/// The context of one HTTP request: the service and the server that answer it, its principal, and its head.
pub(super) struct HttpRequestCx {
    pub(super) http: Http,
    pub(super) settings: Arc<HttpSettings>,
    pub(super) server: Server,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) principal: Option<Box<str>>,
    pub(super) context: Arc<RequestContext>,
    /// Whether a request without a `Host` is refused.
    pub(super) needs_host: bool,
}

/// The result of choosing the server for a request.
pub(super) enum Prepared {
    Ready(HttpRequestCx),
    Refused(Refusal),
    Pending(Pin<Box<dyn Future<Output = Result<HttpRequestCx, Refusal>> + Send>>),
}

/// The future of a response.
pub(super) type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

/// The body of a request.
pub(super) enum Source<B> {
    Read(Content),
    Unread(B),
}

/// The route of a request, chosen by its head.
enum HttpRoute<'a> {
    Body(BodyRoute),
    Bodyless(BodylessRoute<'a>),
}

/// The route of a request without a body.
enum BodylessRoute<'a> {
    /// A GET, DELETE or OPTIONS of the endpoint.
    Endpoint(EndpointRequest<'a>),
    /// A GET of the event stream of the oldest revision.
    EventStream,
}

/// The route of a request with a body.
enum BodyRoute {
    /// A POST of messages: its response has one of these types.
    Post(Accepts),
    /// A POST to the message endpoint of the oldest revision.
    Message(Arc<Session>),
}

impl Http {
    /// Chooses the server for a request and creates the request's context.
    pub(super) fn request_cx(&self, mut parts: Parts, mut address: Option<PeerAddress>) -> Prepared {
        let settings = self.settings();
        // A function of the application that reads the head sees the address too.
        if settings.looks
            && let Some(address) = address.take()
        {
            parts.extensions.insert(address);
        }
        let server = match &settings.choice {
            Choice::One(server) => server.clone(),
            Choice::ByHead(choose) => {
                let server = choose(&parts);
                return match choice::check(&server.snapshot()) {
                    Ok(()) => Prepared::Ready(HttpRequestCx::new(self, settings, server, parts, address)),
                    Err(refusal) => Prepared::Refused(refusal),
                };
            }
            Choice::Awaited(choose) => {
                let (choosing, http) = (choose(&parts), self.clone());
                return Prepared::Pending(Box::pin(async move {
                    let server = choosing.await?;
                    choice::check(&server.snapshot())?;
                    Ok(HttpRequestCx::new(&http, settings, server, parts, address))
                }));
            }
        };
        Prepared::Ready(HttpRequestCx::new(self, settings, server, parts, address))
    }
}

impl HttpRequestCx {
    fn new(
        http: &Http,
        settings: Arc<HttpSettings>,
        server: Server,
        parts: Parts,
        address: Option<PeerAddress>,
    ) -> Self {
        let principal = match &settings.principal {
            Some(of) => of(&parts).map(Into::into),
            None => {
                parts.extensions.get::<Authenticated>().and_then(Authenticated::principal).map(Into::into)
            }
        };
        let snapshot = server.snapshot();
        let Parts { method, uri, headers, extensions, .. } = parts;
        let mut context = RequestContext::over_http(extensions, HttpHead::new(method, uri, headers), address);
        if let Some(log) = &snapshot.settings.message_log {
            context.log_messages(log);
        }
        Self {
            http: http.clone(),
            settings,
            snapshot,
            server,
            principal,
            context: Arc::new(context),
            needs_host: false,
        }
    }

    /// Answers the request in a future, and logs its messages if the server has a message log.
    pub(super) fn start<B>(self, body: Source<B>) -> ResponseFuture
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
    {
        let Some(log) = self.context.log.clone() else { return Box::pin(self.respond(body)) };
        Box::pin(async move {
            let Ok(response) = self.respond(body).await;
            // The head alone, if the body was not read.
            log.request(b"");
            let log = log.response(response.status(), response.headers());
            Ok(response.map(|body| body.logged(log)))
        })
    }

    /// Logs the request with its body. Takes the body and returns it: a borrow would make the future of every request larger.
    fn logged(&self, content: Content) -> Content {
        self.log_request(content.bytes());
        content
    }

    fn log_request(&self, body: &[u8]) {
        if let Some(log) = &self.context.log {
            log.request(body);
        }
    }

    /// Routes the request by its head, reads the body if the route has one, and answers.
    ///
    /// All routes but that of a POST are boxed, here and further down: the future is as large as its largest route, and is
    /// copied as a whole when it is created (see `bench/LEDGER.md`).
    pub(super) async fn respond<B: http_body::Body>(
        self,
        body: Source<B>,
    ) -> Result<Response<Body>, Infallible> {
        let Some(head) = self.head() else { return Ok(bare(StatusCode::BAD_REQUEST)) };
        if self.needs_host && !head.has_host() {
            return Ok(refused(&Refusal::no_host(), None));
        }
        let route = match self.route(&head) {
            Ok(HttpRoute::Body(route)) => route,
            Ok(HttpRoute::Bodyless(route)) => {
                self.log_request(b"");
                return Ok(Box::pin(self.answer_bodyless(&head, route)).await);
            }
            Err(refusal) => return Ok(turned_away(&head, &refusal)),
        };
        let content = match body {
            Source::Read(content) if content.bytes().len() > self.body_limit() => {
                return Ok(refused(&Refusal::too_large(self.body_limit()), None));
            }
            Source::Read(content) => self.logged(content),
            Source::Unread(body) => match read_content(body, &self.body_limits(), Some(&self)).await {
                Ok(content) => self.logged(content),
                Err(error) => return Ok(not_read(error)),
            },
        };
        Ok(match route {
            BodyRoute::Post(accepts) => post::answer(&self, &head, content, accepts).await,
            BodyRoute::Message(session) => Box::pin(two_endpoints::receive(&self, &session, content)).await,
        })
    }

    /// Returns the part of the head that the rules of the protocol read.
    fn head(&self) -> Option<Head<'_>> {
        self.context.head.as_ref().map(|head| Head::new(&head.method, &head.uri, &head.headers))
    }

    fn path(&self) -> &str {
        self.context.head.as_ref().map_or("", |head| head.uri.path())
    }

    /// Chooses the route of the request, or refuses it, by its head alone.
    fn route<'a>(&self, head: &Head<'a>) -> Result<HttpRoute<'a>, Refusal> {
        let settings = &self.settings;
        if let Some(part) = settings.two_endpoints.as_ref().and_then(|two| two.part(self.path())) {
            settings.guard.check(head)?;
            return match part {
                Part::Stream => two_endpoints::check_stream(self, head)
                    .map(|()| HttpRoute::Bodyless(BodylessRoute::EventStream)),
                Part::Messages => {
                    let session = two_endpoints::find_session(self, head)?;
                    Ok(HttpRoute::Body(BodyRoute::Message(session)))
                }
            };
        }
        if let Some(path) = settings.path.as_deref().filter(|path| *path != self.path()) {
            return Err(unknown_path(self.path(), path));
        }
        Ok(match open(head, &settings.guard, &self.endpoint())? {
            EndpointRequest::Post(accepts) => HttpRoute::Body(BodyRoute::Post(accepts)),
            bodyless => HttpRoute::Bodyless(BodylessRoute::Endpoint(bodyless)),
        })
    }

    /// Answers a request without a body.
    async fn answer_bodyless(&self, head: &Head<'_>, route: BodylessRoute<'_>) -> Response<Body> {
        let answered = match route {
            BodylessRoute::Endpoint(request) => self.answer_endpoint(head, request).await,
            BodylessRoute::EventStream => two_endpoints::open_stream(self).await,
        };
        answered.unwrap_or_else(|refusal| turned_away(head, &refusal))
    }

    /// Answers a GET, DELETE or OPTIONS of the endpoint.
    async fn answer_endpoint(
        &self,
        head: &Head<'_>,
        request: EndpointRequest<'_>,
    ) -> Result<Response<Body>, Refusal> {
        let (shared, extensions) = (&self.http.0, self.context.extensions());
        let find = async |id| {
            let id = SessionId::parse(id).ok_or_else(Refusal::unknown_session)?;
            self.session(head, id).await
        };
        Ok(match request {
            EndpointRequest::Listen { .. } if shared.calls.is_closed() => return Err(closed()),
            EndpointRequest::Listen { session } => {
                let session = find(session).await?;
                // The POSTs of the session may go to other processes.
                session.set_initialized();
                get_stream::open(shared, &session, extensions.clone()).await
            }
            EndpointRequest::Resume { session, last_event_id } => {
                let session = find(session).await?;
                session.set_initialized();
                get_stream::resume(shared, &session, last_event_id, &self.context).await?
            }
            EndpointRequest::End { session } => {
                let session = find(session).await?;
                let ended = shared.end(&session, Ended::ByPeer { known: None }).await;
                ended.map_err(|error| store_failed(&error))?;
                bare(StatusCode::NO_CONTENT)
            }
            EndpointRequest::Options { allow } => options(allow),
            _ => return Err(Refusal::unknown_session()),
        })
    }

    /// Returns the endpoint that the rules of the protocol are applied to.
    pub(super) fn endpoint(&self) -> Endpoint<'_> {
        let settings = &self.settings;
        let mut endpoint = self.snapshot.served.endpoint();
        endpoint.sessions &= settings.sessions;
        endpoint.sessionless = settings.sessionless;
        endpoint.body_limit = self.body_limit();
        endpoint
    }

    /// Returns the size limit of a body: the one that was set for this service, or that of the server.
    fn body_limit(&self) -> usize {
        let settings = &self.settings;
        if settings.limited {
            settings.body_limits.limit
        } else {
            self.snapshot.service.bounds().message_bytes
        }
    }

    fn body_limits(&self) -> BodyLimits {
        BodyLimits { limit: self.body_limit(), ..self.settings.body_limits }
    }

    /// Returns the account of the client. It is looked up only for what is long, or stays.
    pub(super) fn account(&self) -> Account {
        let owner = match &self.principal {
            Some(name) => Owner::Principal(name.clone()),
            None => self.address().map_or(Owner::Unknown, AddressKey::owner),
        };
        self.snapshot.service.ledger().account(&owner)
    }
}

impl BodyPayer for HttpRequestCx {
    fn charge(&self) -> Charge {
        Charge::new(self.account(), Held::Body)
    }

    fn ceiling(&self) -> Ceiling {
        let ceiling = self.snapshot.service.bounds().ceiling(Held::Body);
        Ceiling { kind: self.settings.bodies.unwrap_or(ceiling.kind), ..ceiling }
    }
}

/// Refuses a request by its head, and logs why. A refused host or origin is logged as a warning, and so is a message to a wrong
/// path: they are the most frequent mistakes of a first deployment.
fn turned_away(head: &Head<'_>, refusal: &Refusal) -> Response<Body> {
    let status = refusal.status.as_u16();
    let is_lost = refusal.status == StatusCode::NOT_FOUND && head.method() == Method::POST;
    if refusal.status == StatusCode::FORBIDDEN || is_lost {
        tracing::warn!(status, reason = %refusal.error.message, "a request was refused");
    } else {
        tracing::debug!(status, reason = %refusal.error.message, "a request was refused");
    }
    refused(refusal, None)
}

fn not_read(error: ReadBodyError) -> Response<Body> {
    match error {
        ReadBodyError::Refused(refusal) => refused(&refusal, None),
        // The connection is gone, so nobody reads this.
        ReadBodyError::Broken => bare(StatusCode::BAD_REQUEST),
    }
}

/// 404 for another path. It has a body of its own, since clients look for metadata at paths of the same host.
fn unknown_path(path: &str, served: &str) -> Refusal {
    let path: String = path.chars().take(128).collect();
    let message = format!("nothing is served at `{path}`; send MCP requests to `{served}`");
    Refusal::new(StatusCode::NOT_FOUND, RpcError::invalid_request(message))
}

fn options(allow: &'static str) -> Response<Body> {
    let mut response = bare(StatusCode::NO_CONTENT);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    response
}
