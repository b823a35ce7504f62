use std::{
    fmt, io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use pintle::server::http::{Body, BodyLimits, HttpServer, HttpServing, read_body};
use serde_json::{Map, Value};
use tokio::net::TcpListener;
use tower_service::Service;

use super::{
    answer::Answer,
    asked::Asked,
    claims::{Claims, change},
    documents,
    endpoint::Endpoint,
    fault::Fault,
    granting,
    hold::Hold,
    login,
    received::Received,
    state::State,
};

/// An authorization server in the process of a test: discovery, registration, logins, tokens, keys and introspection.
///
/// Users log in without interaction. Codes can be used once, and PKCE is checked; refresh tokens are rotated, and one that
/// is used twice revokes its successors. Access tokens are signed with ES256 (RFC 9068), or [`opaque`](Self::opaque). All
/// settings can be changed while it is in use. Clones share their state.
///
/// It is a `tower` service: add it to [`Hosts`](super::Hosts), or [`listen`](Self::listen) on a real socket.
///
/// ```
/// use pintle_oauth::testing::{AuthorizationServer, Fault};
///
/// let login = AuthorizationServer::new("https://login.test");
/// login.fault(Fault::redirect("iss", "https://evil.test"));
/// // A client that logs in now has to detect it.
/// login.clear_faults();
/// ```
#[derive(Clone)]
pub struct AuthorizationServer {
    shared: Arc<Shared>,
    /// The listener, which is shut down with the last clone.
    serving: Option<Arc<ShutdownOnDrop>>,
}

struct Shared {
    issuer: String,
    /// The path of the issuer, without a trailing `/`.
    path: String,
    state: Mutex<State>,
}

/// Shuts a server down when it is dropped.
#[derive(Debug)]
struct ShutdownOnDrop(HttpServing);

impl Drop for ShutdownOnDrop {
    fn drop(&mut self) {
        self.0.handle().close(Duration::ZERO);
    }
}

impl AuthorizationServer {
    /// Creates an authorization server with this issuer, in memory.
    ///
    /// # Panics
    ///
    /// Panics if the issuer is not an address.
    pub fn new(issuer: impl Into<String>) -> Self {
        let issuer = issuer.into();
        let uri: http::Uri = issuer.parse().expect("an issuer is an address");
        assert!(uri.host().is_some(), "an issuer is an address with a host: `{issuer}`");
        let path = uri.path().trim_end_matches('/').to_owned();
        Self { shared: Arc::new(Shared { issuer, path, state: Mutex::new(State::new()) }), serving: None }
    }

    /// Creates an authorization server that listens on a loopback port, which is its issuer. It stops when the last clone is
    /// dropped.
    ///
    /// # Errors
    ///
    /// Fails if no port is free.
    pub async fn listen() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let mut server = Self::new(format!("http://{}", listener.local_addr()?));
        server.serving = Some(Arc::new(ShutdownOnDrop(HttpServer::new(server.clone()).serve(listener)?)));
        Ok(server)
    }

    /// Returns the issuer.
    pub fn issuer(&self) -> &str {
        &self.shared.issuer
    }

    /// Returns the requests since the last call.
    pub fn log(&self) -> Vec<Asked> {
        self.state().log.take()
    }

    /// Issues tokens to this user. The default is `user`.
    pub fn subject(&self, name: impl Into<String>) {
        self.state().subject = name.into();
    }

    /// Limits the scopes that users consent to. The default is all.
    pub fn agree_to<S: Into<String>>(&self, scopes: impl IntoIterator<Item = S>) {
        self.state().agreed = Some(scopes.into_iter().map(Into::into).collect());
    }

    /// Sets the lifetime of access tokens that are issued from now on. The default is an hour.
    ///
    /// It is also in `expires_in`: with no lifetime at all, a client refreshes its tokens before it uses them.
    pub fn lifetime(&self, lifetime: Duration) {
        self.state().lifetime = lifetime;
    }

    /// Issues opaque access tokens from now on, which servers have to introspect.
    pub fn opaque(&self) {
        self.state().opaque = true;
    }

    /// Changes a member of the metadata. `null` removes it.
    pub fn say(&self, member: impl Into<String>, value: impl Into<Value>) {
        self.state().members.insert(member.into(), value.into());
    }

    /// Registers a public client.
    pub fn add_client(&self, id: impl Into<String>) {
        self.state().clients.add(id.into(), None);
    }

    /// Registers a client with a secret. A server that introspects tokens needs one.
    pub fn add_client_with_secret(&self, id: impl Into<String>, secret: impl Into<String>) {
        self.state().clients.add(id.into(), Some(secret.into()));
    }

    /// Removes all clients.
    pub fn forget_clients(&self) {
        self.state().clients.forget();
    }

    /// Trusts this assertion of a platform or an identity provider: the grant `jwt-bearer`.
    pub fn trust(&self, assertion: impl Into<String>) {
        self.state().assertions.push(assertion.into());
    }

    /// Issues a token without a login, for tests of servers.
    pub fn token(&self, claims: &Claims) -> String {
        let mut state = self.state();
        let family = state.tokens.family();
        granting::signed(&mut state, &self.shared.issuer, claims, family)
    }

    /// Returns the claims of a valid access token.
    pub fn claims_of(&self, token: &str) -> Option<Value> {
        let state = self.state();
        state.tokens.claims(token, state.now()).cloned()
    }

    /// Returns the issued access tokens that are not revoked, in no order.
    pub fn issued(&self) -> Vec<String> {
        self.state().tokens.issued()
    }

    /// Binds tokens to the keys of clients that have one (DPoP, RFC 9449). Proofs have to contain this nonce.
    pub fn bind_tokens(&self, nonce: impl Into<String>) {
        self.state().nonce = Some(nonce.into());
    }

    /// Advances its clock, which ages what it has issued.
    pub fn advance(&self, by: Duration) {
        self.shift(i64::try_from(by.as_secs()).unwrap_or(i64::MAX));
    }

    /// Sets its clock back, so that what it issues from now on is older for everyone else.
    pub fn set_back(&self, by: Duration) {
        self.shift(i64::try_from(by.as_secs()).map_or(i64::MIN, |by| -by));
    }

    fn shift(&self, by: i64) {
        let mut state = self.state();
        state.ahead = state.ahead.saturating_add(by);
    }

    /// Rotates its key. The old one is no longer published.
    pub fn rotate_key(&self) {
        self.state().rotate_key();
    }

    /// Revokes the issued access tokens. Only introspection shows it.
    pub fn revoke_access(&self) {
        self.state().tokens.revoke_access();
    }

    /// Revokes the issued refresh tokens.
    pub fn revoke_refresh(&self) {
        self.state().tokens.revoke_refresh();
    }

    /// Injects a fault until [`clear_faults`](Self::clear_faults) is called.
    pub fn fault(&self, fault: Fault) {
        self.state().faults.plan(fault, None);
    }

    /// Injects a fault for a number of times. Faults of the same kind happen one after the other.
    pub fn fault_times(&self, times: usize, fault: Fault) {
        self.state().faults.plan(fault, Some(times));
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
        self.state().faults.clear_faults();
    }

    /// Holds requests to this endpoint from now on.
    pub fn hold(&self, endpoint: Endpoint) -> Hold {
        let (hold, held) = Hold::new(endpoint);
        let mut state = self.state();
        state.holds.retain(|held| !held.is_released());
        state.holds.push(held);
        hold
    }

    async fn respond(&self, request: Request<Bytes>) -> io::Result<Response<Bytes>> {
        let received = Received::read(request);
        let endpoint = Endpoint::at(&received.path, &self.shared.path);
        let held = endpoint.and_then(|endpoint| {
            let state = self.state();
            state.holds.iter().find(|held| held.holds(endpoint)).cloned()
        });
        if let Some(held) = held {
            held.pass().await;
        }
        let mut state = self.state();
        let answer = endpoint
            .map_or_else(|| Some(Answer::bare(404)), |endpoint| self.answer(&mut state, endpoint, &received));
        let log_line = received.log_line(endpoint);
        let outcome = match &answer {
            None => "cut off".to_owned(),
            Some(answer) => match answer.error() {
                Some(error) => format!("{} {error}", answer.status),
                None => answer.status.to_string(),
            },
        };
        state.log.push(Asked {
            line: format!("{log_line}: {outcome}"),
            client: received.client().map(|(id, _)| id),
            parameters: received.parameters,
            status: answer.as_ref().map(|answer| answer.status),
        });
        answer
            .map(Answer::into_response)
            .ok_or_else(|| io::Error::new(io::ErrorKind::ConnectionReset, "the connection was closed"))
    }

    /// Returns the response of an endpoint, with its faults; `None` if it cannot be reached.
    fn answer(&self, state: &mut State, endpoint: Endpoint, received: &Received) -> Option<Answer> {
        let instead = state.faults.happens(|fault| match fault {
            Fault::CutOff(at) if *at == endpoint => Some(None),
            Fault::Status(at, status) if *at == endpoint => Some(Some(Answer::bare(*status))),
            Fault::Refused(at, error) if *at == endpoint => Some(Some(Answer::refused(error, ""))),
            _ => None,
        });
        let mut answer = match instead {
            Some(instead) => instead?,
            None => self.right_answer(state, endpoint, received),
        };
        let wrong = state.faults.all(|fault| match fault {
            Fault::Answer(at, member, value) if *at == endpoint => Some((member.clone(), value.clone())),
            _ => None,
        });
        if answer.body.is_null() && !wrong.is_empty() {
            *answer.body = Value::Object(Map::new());
        }
        change(&mut answer.body, wrong);
        Some(answer)
    }

    fn right_answer(&self, state: &mut State, endpoint: Endpoint, received: &Received) -> Answer {
        let issuer = &self.shared.issuer;
        if received.method != endpoint.method() {
            return Answer::bare(405);
        }
        if state.is_full() {
            return Answer::bare(503);
        }
        match endpoint {
            Endpoint::Metadata | Endpoint::OpenidConfiguration => {
                Answer::ok(documents::metadata(state, issuer, endpoint))
            }
            Endpoint::Keys => Answer::ok(documents::keys(state)),
            Endpoint::Register => {
                let id = state.name("client");
                state.clients.register(id, received)
            }
            Endpoint::Authorize => login::authorize(state, issuer, received),
            Endpoint::Token => granting::token(state, issuer, received),
            Endpoint::Device => granting::begin_device(state, issuer, received),
            Endpoint::Introspect => granting::introspect(state, received),
            Endpoint::Revoke => granting::revoke(state, received),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B> Service<Request<B>> for AuthorizationServer
where
    B: http_body::Body<Data: Send, Error: Send> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<Body>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = read_body(body, &BodyLimits::default()).await;
            let body = body.map_err(|_| io::Error::other("the body of the request cannot be read"))?;
            let answer = server.respond(Request::from_parts(head, body)).await?;
            Ok(answer.map(Body::full))
        })
    }
}

impl fmt::Debug for AuthorizationServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorizationServer").field("issuer", &self.shared.issuer).finish_non_exhaustive()
    }
}
