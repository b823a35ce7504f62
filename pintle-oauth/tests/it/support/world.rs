//! A server that can be anything, the authorization servers of the test kit, and all that was asked of any of them.

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{Request, Response, Uri};
use pintle::{
    Client, Connection, Result,
    client::http::{Body, Http},
};
use pintle_oauth::{
    client::OAuth,
    testing::{Asked, AuthorizationServer, Hosts, User},
};
use serde_json::{Value, json};
use tower_service::Service;

pub(crate) const SERVER: &str = "https://mcp.test/mcp";
pub(crate) const METADATA: &str = "/.well-known/oauth-protected-resource/mcp";

/// Everything that is not the client.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) login: AuthorizationServer,
    pub(crate) hosts: Hosts,
    state: Arc<Mutex<State>>,
}

/// The server.
pub(crate) struct State {
    /// What its resource metadata says, at the path-inserted address.
    pub(crate) resource: Value,
    /// What a 401 says.
    pub(crate) challenge: String,
    /// The scope that tools need.
    pub(crate) needed: Vec<String>,
    /// What proofs have to hold.
    pub(crate) nonce: Option<String>,
    /// The nonce that replaces it with the next refusal of a token.
    pub(crate) next_nonce: Option<String>,
    /// Whose tokens it takes, by their origin.
    logins: HashMap<String, AuthorizationServer>,
    /// What was called, and with which token.
    log: Vec<String>,
}

impl World {
    pub(crate) fn new() -> Self {
        let login = AuthorizationServer::new("https://as.test");
        login.opaque();
        let state = State {
            resource: json!({"resource": SERVER, "authorization_servers": ["https://as.test"]}),
            challenge: r#"Bearer error="invalid_token", scope="basic""#.into(),
            needed: Vec::new(),
            nonce: None,
            next_nonce: None,
            logins: HashMap::new(),
            log: Vec::new(),
        };
        let state = Arc::new(Mutex::new(state));
        let served = Fake(state.clone());
        let hosts =
            Hosts::new().host("https://mcp.test", served.clone()).host("http://mcp.test", served.clone());
        let hosts = hosts.host("https://other.test", served);
        let world = Self { login, hosts, state };
        world.also(&world.login);
        world
    }

    /// There is another authorization server.
    pub(crate) fn also(&self, login: &AuthorizationServer) {
        let uri: Uri = login.issuer().parse().unwrap();
        self.change(|state| state.logins.insert(uri.host().unwrap().to_owned(), login.clone()));
        if uri.host() != Some("mcp.test") {
            drop(self.hosts.clone().host(login.issuer(), login.clone()));
        }
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap())
    }

    /// What was asked since the last time, of anyone.
    pub(crate) fn log(&self) -> Vec<String> {
        self.change(|state| {
            let mut called = std::mem::take(&mut state.log).into_iter();
            let mut asked: HashMap<_, _> =
                state.logins.iter().map(|(host, login)| (host.clone(), login.log().into_iter())).collect();
            let notified = |line: Asked| {
                let (method, url) = line.as_str().split_once(' ').unwrap();
                let url = url.rsplit_once(": ").unwrap().0.split(" (").next().unwrap();
                let uri: Uri = url.parse().unwrap();
                if uri.path() == "/mcp" {
                    return called.next().unwrap();
                }
                let host = uri.host().unwrap();
                match asked.get_mut(host).filter(|_| uri.path() != METADATA).and_then(Iterator::next) {
                    Some(asked) if method == "POST" || uri.path() == "/authorize" => {
                        of_login(host, &asked, state.resource["resource"].as_str())
                    }
                    _ => format!("{method} {url}"),
                }
            };
            self.hosts.log().into_iter().map(notified).collect()
        })
    }

    pub(crate) fn login(&self) -> OAuth {
        OAuth::login("App", User::on(self.hosts.clone())).web(self.hosts.clone())
    }

    pub(crate) async fn connect(&self, oauth: &OAuth) -> Result<Connection> {
        self.connect_to(SERVER, oauth).await
    }

    pub(crate) async fn connect_to(&self, url: &str, oauth: &OAuth) -> Result<Connection> {
        let http = Http::new(url)?.client(self.hosts.clone()).auth(oauth.clone());
        let only = ["2026-07-28".parse().unwrap()];
        Client::new("test", "0").revisions(only).connect(http).await
    }
}

/// A line about what an authorization server was asked, on behalf of this server.
fn of_login(host: &str, asked: &Asked, resource: Option<&str>) -> String {
    let parameter = |name: &str| asked.parameter(name).unwrap_or("-");
    let path = asked.as_str().split([' ', ':']).nth(1).unwrap();
    let by = asked.client().unwrap_or("-");
    match path {
        "/register" => format!("register at {host} as {}", parameter("application_type")),
        "/device" => format!("device code for {by} scope={}", parameter("scope")),
        "/token" => {
            let grant = parameter("grant_type").rsplit(':').next().unwrap();
            // [Resource Parameter Implementation]: in every one, byte for byte.
            assert_eq!(asked.parameter("resource"), resource, "{grant}");
            format!("token at {host} by {by}: {grant}")
        }
        _ => {
            let (scope, resource) = (parameter("scope"), parameter("resource"));
            let prompt = asked.parameter("prompt").map(|prompt| format!(" prompt={prompt}"));
            let prompt = prompt.unwrap_or_default();
            format!("login {host}{path} client={by} scope={scope} resource={resource}{prompt}")
        }
    }
}

impl State {
    fn serve(&mut self, request: &Request<Body>) -> Response<Body> {
        let body: Value = serde_json::from_slice(request.body().bytes()).unwrap();
        let method = body["method"].as_str().unwrap();
        let authorization = request.headers().get("authorization");
        let authorization = authorization.map(|value| value.to_str().unwrap().to_owned());
        let token = authorization.as_deref().and_then(|value| value.strip_prefix("Bearer "));
        let claims = authorization
            .as_deref()
            .and_then(|value| value.split(' ').nth(1))
            .and_then(|token| self.logins.values().find_map(|login| login.claims_of(token)));
        let bound = authorization.as_deref().and_then(|value| value.strip_prefix("DPoP "));
        if let (Some(nonce), Some(token)) = (&self.nonce, bound) {
            if !proven(request.headers(), nonce) {
                self.log.push(format!("{method} with {token} without the nonce"));
                let answer = Response::builder().status(401).header("dpop-nonce", nonce);
                let answer = answer.header("www-authenticate", "DPoP error=\"use_dpop_nonce\"");
                return answer.body(Body::default()).unwrap();
            }
            self.log.push(format!("{method} with {token} and a proof"));
        } else {
            self.log.push(format!("{method} with {}", token.unwrap_or("nothing")));
        }
        let answer = Response::builder().header("content-type", "application/json");
        let Some(claims) = claims else {
            let mut answer = answer.status(401).header("www-authenticate", &self.challenge);
            if let Some(nonce) = self.next_nonce.take() {
                answer = answer.header("dpop-nonce", &nonce);
                self.nonce = Some(nonce);
            }
            return answer.body(Body::default()).unwrap();
        };
        let scope = claims["scope"].as_str().unwrap_or_default();
        let has = |needed: &&String| scope.split(' ').any(|own| own == *needed);
        if method == "tools/call"
            && let Some(missing) = self.needed.iter().find(|needed| !has(needed))
        {
            let message = format!(r#"Bearer error="insufficient_scope", scope="{missing}""#);
            return answer.status(403).header("www-authenticate", message).body(Body::default()).unwrap();
        }
        let result = match method {
            "server/discover" => json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "public"}),
            _ => json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}]}),
        };
        let text = json!({"jsonrpc": "2.0", "id": body["id"], "result": result}).to_string();
        answer.body(Body::from(Bytes::from(text))).unwrap()
    }
}

/// The server, where a client reaches it.
#[derive(Clone)]
struct Fake(Arc<Mutex<State>>);

impl Service<Request<Body>> for Fake {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future =
        std::pin::Pin<Box<dyn Future<Output = std::result::Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let mut state = self.0.lock().unwrap();
        let answer = |status: u16, body: &Value| {
            let body = Body::from(Bytes::from(body.to_string()));
            Response::builder().status(status).body(body).unwrap()
        };
        let answer = match request.uri().path() {
            "/mcp" => state.serve(&request),
            METADATA if !state.resource.is_null() => answer(200, &state.resource),
            // Old ones are their own authorization server.
            path if path != METADATA && state.logins.contains_key("mcp.test") => {
                let mut own = state.logins["mcp.test"].clone();
                return Box::pin(async move {
                    let (head, body) = own.call(request).await.unwrap().into_parts();
                    let body = pintle::server::http::read_body(body, &Default::default()).await.unwrap();
                    Ok(Response::from_parts(head, Body::from(body)))
                });
            }
            _ => answer(404, &Value::Null),
        };
        Box::pin(std::future::ready(Ok(answer)))
    }
}

/// Whether there is a proof that holds the nonce. Who signed it is for other tests.
fn proven(headers: &http::HeaderMap, nonce: &str) -> bool {
    let proof = headers["dpop"].to_str().unwrap();
    let claims = URL_SAFE_NO_PAD.decode(proof.split('.').nth(1).unwrap()).unwrap();
    serde_json::from_slice::<Value>(&claims).unwrap()["nonce"] == nonce
}
