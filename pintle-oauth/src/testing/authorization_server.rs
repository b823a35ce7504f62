use std::{
    fmt, io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use pintle::server::http::{Body, HttpServer, HttpServing, Patience, read_body};
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
    gate::Gate,
    granting, login,
    received::Received,
    state::State,
};

/// An authorization server for tests: discovery, registration, logins, tokens, keys and introspection, all in the process
/// of the test.
///
/// Users log in without being asked, with codes that are good once and PKCE that is checked; refresh tokens are rotated,
/// and one that comes twice takes its successors with it. Access tokens are signed with ES256 and say whom they are for
/// (RFC 9068), or say nothing at all: [`opaque`](Self::opaque). All of it can be changed while it is in use; clones are
/// the same one.
///
/// It is a `tower` service: put it into [`Hosts`](super::Hosts), or have it [`listen`](Self::listen) on a real socket.
///
/// ```
/// use pintle_oauth::testing::{AuthorizationServer, Fault};
///
/// let login = AuthorizationServer::new("https://login.test");
/// login.fault(Fault::redirect("iss", "https://evil.test"));
/// // A client that logs in now has to notice.
/// login.mend();
/// ```
#[derive(Clone)]
pub struct AuthorizationServer {
    shared: Arc<Shared>,
    /// What listens, as long as somebody has this.
    serving: Option<Arc<Listening>>,
}

struct Shared {
    issuer: String,
    /// The path of the issuer, without a `/` at its end.
    path: String,
    state: Mutex<State>,
}

/// A server on a port, until this is dropped.
#[derive(Debug)]
struct Listening(HttpServing);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.handle().close(Duration::ZERO);
    }
}

impl AuthorizationServer {
    /// One that calls itself by this address, in memory.
    ///
    /// # Panics
    ///
    /// It is no address.
    pub fn new(issuer: impl Into<String>) -> Self {
        let issuer = issuer.into();
        let uri: http::Uri = issuer.parse().expect("an issuer is an address");
        assert!(uri.host().is_some(), "an issuer is an address with a host: `{issuer}`");
        let path = uri.path().trim_end_matches('/').to_owned();
        Self { shared: Arc::new(Shared { issuer, path, state: Mutex::new(State::new()) }), serving: None }
    }

    /// One that listens on a port of this machine, and calls itself by that. It stops when the last clone is dropped.
    ///
    /// # Errors
    ///
    /// No port can be had.
    pub async fn listen() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let mut server = Self::new(format!("http://{}", listener.local_addr()?));
        server.serving = Some(Arc::new(Listening(HttpServer::new(server.clone()).serve(listener)?)));
        Ok(server)
    }

    /// What it calls itself.
    pub fn issuer(&self) -> &str {
        &self.shared.issuer
    }

    /// What was asked since the last time that this was.
    pub fn log(&self) -> Vec<Asked> {
        self.state().log.take()
    }

    /// Tokens are issued to this user. `user` if nothing is said.
    pub fn subject(&self, name: impl Into<String>) {
        self.state().subject = name.into();
    }

    /// Users agree to these scopes at most. To everything if nothing is said.
    pub fn agree_to<S: Into<String>>(&self, scopes: impl IntoIterator<Item = S>) {
        self.state().agreed = Some(scopes.into_iter().map(Into::into).collect());
    }

    /// Access tokens live for so long from now on. An hour if nothing is said.
    ///
    /// A client is told so too: one whose tokens live for no time at all replaces them before it uses them.
    pub fn lifetime(&self, lifetime: Duration) {
        self.state().lifetime = lifetime;
    }

    /// Access tokens say nothing from now on: a server has to ask about them.
    pub fn opaque(&self) {
        self.state().opaque = true;
    }

    /// Says something else about itself: `null` leaves a member of the metadata out.
    pub fn say(&self, member: impl Into<String>, value: impl Into<Value>) {
        self.state().members.insert(member.into(), value.into());
    }

    /// Knows a client that proves itself with nothing.
    pub fn add_client(&self, id: impl Into<String>) {
        self.state().clients.add(id.into(), None);
    }

    /// Knows a client with a secret. A server that asks about tokens is one too.
    pub fn add_client_with_secret(&self, id: impl Into<String>, secret: impl Into<String>) {
        self.state().clients.add(id.into(), Some(secret.into()));
    }

    /// Forgets every client.
    pub fn forget_clients(&self) {
        self.state().clients.forget();
    }

    /// Trusts what a platform or an identity provider says about somebody: the grant `jwt-bearer`.
    pub fn trust(&self, assertion: impl Into<String>) {
        self.state().assertions.push(assertion.into());
    }

    /// A token without any login, for tests of servers.
    pub fn token(&self, claims: &Claims) -> String {
        let mut state = self.state();
        let family = state.tokens.family();
        granting::signed(&mut state, &self.shared.issuer, claims, family)
    }

    /// What an access token says, as long as it is good.
    pub fn claims_of(&self, token: &str) -> Option<Value> {
        let state = self.state();
        state.tokens.claims(token, state.now()).cloned()
    }

    /// The access tokens that it has issued and not revoked, in no order: those that a thief would like to have.
    pub fn issued(&self) -> Vec<String> {
        self.state().tokens.issued()
    }

    /// Binds tokens to the keys of clients that have one (DPoP, RFC 9449), whose proofs have to hold this nonce.
    pub fn bind_tokens(&self, nonce: impl Into<String>) {
        self.state().nonce = Some(nonce.into());
    }

    /// Puts its clock forward: what it gave out gets old by that.
    pub fn advance(&self, by: Duration) {
        self.shift(i64::try_from(by.as_secs()).unwrap_or(i64::MAX));
    }

    /// Puts its clock back: to everyone else, what it gives out from now on is that much older.
    pub fn set_back(&self, by: Duration) {
        self.shift(i64::try_from(by.as_secs()).map_or(i64::MIN, |by| -by));
    }

    fn shift(&self, by: i64) {
        let mut state = self.state();
        state.ahead = state.ahead.saturating_add(by);
    }

    /// Signs with another key from now on. The old one is no longer published.
    pub fn rotate_key(&self) {
        self.state().rotate_key();
    }

    /// Revokes the access tokens that it has issued. Only who asks about them gets to know.
    pub fn revoke_access(&self) {
        self.state().tokens.revoke_access();
    }

    /// Revokes the refresh tokens that it has issued.
    pub fn revoke_refresh(&self) {
        self.state().tokens.revoke_refresh();
    }

    /// Does this wrong until it is mended.
    pub fn fault(&self, fault: Fault) {
        self.state().faults.plan(fault, None);
    }

    /// Does this wrong so many times. Faults of the same kind come one after the other.
    pub fn fault_times(&self, times: usize, fault: Fault) {
        self.state().faults.plan(fault, Some(times));
    }

    /// Does nothing wrong from now on.
    pub fn mend(&self) {
        self.state().faults.mend();
    }

    /// Holds up whoever asks this from now on.
    pub fn hold(&self, endpoint: Endpoint) -> Gate {
        let (gate, held) = Gate::new(endpoint);
        let mut state = self.state();
        state.gates.retain(|held| !held.is_open());
        state.gates.push(held);
        gate
    }

    async fn respond(&self, request: Request<Bytes>) -> io::Result<Response<Bytes>> {
        let received = Received::read(request);
        let endpoint = Endpoint::at(&received.path, &self.shared.path);
        let held = endpoint.and_then(|endpoint| {
            let state = self.state();
            state.gates.iter().find(|held| held.holds(endpoint)).cloned()
        });
        if let Some(held) = held {
            held.pass().await;
        }
        let mut state = self.state();
        let answer = endpoint
            .map_or_else(|| Some(Answer::bare(404)), |endpoint| self.answer(&mut state, endpoint, &received));
        let told = received.told(endpoint);
        let outcome = match &answer {
            None => "cut off".to_owned(),
            Some(answer) => match answer.error() {
                Some(error) => format!("{} {error}", answer.status),
                None => answer.status.to_string(),
            },
        };
        state.log.push(Asked {
            line: format!("{told}: {outcome}"),
            client: received.client().map(|(id, _)| id),
            parameters: received.parameters,
            status: answer.as_ref().map(|answer| answer.status),
        });
        answer
            .map(Answer::into_response)
            .ok_or_else(|| io::Error::new(io::ErrorKind::ConnectionReset, "the connection was cut off"))
    }

    /// What an endpoint says, right or wrong; `None` if it cannot be reached.
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
            let body = read_body(body, &Patience::default()).await;
            let body = body.map_err(|_| io::Error::other("a request whose body cannot be read"))?;
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
