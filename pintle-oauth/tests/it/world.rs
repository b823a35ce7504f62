//! A server and the authorization server that it trusts, in memory, with faults on demand.

use std::{
    collections::HashMap,
    convert::Infallible,
    future::{Future, Ready, ready},
    net::IpAddr,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{Request, Response, Uri};
use pintle::{
    Client, Connection, Error, Result,
    client::http::{Body, Http},
};
use pintle_oauth::client::{Consent, OAuth, Reach, Visit, Web};
use serde_json::{Value, json};
use tower_service::Service;

pub(crate) const SERVER: &str = "https://mcp.test/mcp";

/// Everything that is not the client.
#[derive(Clone)]
pub(crate) struct World(Arc<Mutex<State>>);

pub(crate) struct State {
    /// What the server's resource metadata says, at the path-inserted address.
    pub(crate) resource: Value,
    /// What authorization servers say about themselves, by address.
    pub(crate) metadata: HashMap<String, Value>,
    /// What a 401 says.
    pub(crate) challenge: String,
    /// The scope that tools need.
    pub(crate) needed: Vec<String>,
    /// How long tokens live.
    pub(crate) expires_in: u64,
    /// What the login leads back with, besides the code and the state.
    pub(crate) led_back: String,
    /// The state that it leads back with, if not the right one.
    pub(crate) state: Option<String>,
    /// What the token endpoint says instead.
    pub(crate) token_fault: Option<(u16, Value)>,
    /// What it says to a refresh token, however good.
    pub(crate) refresh_fault: Option<(u16, Value)>,
    /// What the token endpoint says to those who ask whether a user has agreed elsewhere.
    pub(crate) pending: Vec<&'static str>,
    /// What proofs have to hold; tokens are bound to keys then.
    pub(crate) nonce: Option<String>,
    /// All that was asked, in order.
    pub(crate) log: Vec<String>,
    /// Good tokens, and their scopes.
    pub(crate) tokens: HashMap<String, String>,
    pub(crate) refresh: Vec<String>,
    /// Clients that the authorization server knows no more.
    pub(crate) forgotten: Vec<String>,
    codes: HashMap<String, HashMap<String, String>>,
    issued: u32,
    /// Waited for before a refresh is answered.
    pub(crate) gate: Option<Arc<tokio::sync::Notify>>,
}

impl World {
    pub(crate) fn new() -> Self {
        let metadata = [("https://as.test".to_owned(), issuer("https://as.test"))].into();
        Self(Arc::new(Mutex::new(State {
            resource: json!({"resource": SERVER, "authorization_servers": ["https://as.test"]}),
            metadata,
            challenge: r#"Bearer error="invalid_token", scope="basic""#.into(),
            needed: Vec::new(),
            expires_in: 3600,
            led_back: "&iss=https%3A%2F%2Fas.test".into(),
            state: None,
            token_fault: None,
            refresh_fault: None,
            pending: Vec::new(),
            nonce: None,
            log: Vec::new(),
            tokens: HashMap::new(),
            refresh: Vec::new(),
            forgotten: Vec::new(),
            codes: HashMap::new(),
            issued: 0,
            gate: None,
        })))
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }

    /// What was asked since the last time.
    pub(crate) fn log(&self) -> Vec<String> {
        self.change(|state| std::mem::take(&mut state.log))
    }

    pub(crate) fn login(&self) -> OAuth {
        OAuth::login("App", Agreeing(self.clone())).web(self.clone())
    }

    pub(crate) async fn connect(&self, oauth: &OAuth) -> Result<Connection> {
        self.connect_to(SERVER, oauth).await
    }

    pub(crate) async fn connect_to(&self, url: &str, oauth: &OAuth) -> Result<Connection> {
        let http = Http::new(url)?.client(self.clone()).auth(oauth.clone());
        let only = ["2026-07-28".parse().unwrap()];
        Client::new("test", "0").revisions(only).connect(http).await
    }

    fn authorize(&self, url: &str) -> Result<String> {
        self.change(|state| {
            let uri: Uri = url.parse().unwrap();
            let asked = pairs(uri.query().unwrap());
            state.log.push(format!(
                "login {}{} client={} scope={} resource={}{}",
                uri.host().unwrap(),
                uri.path(),
                asked["client_id"],
                asked.get("scope").map_or("-", |scope| scope),
                asked.get("resource").map_or("-", |resource| resource),
                asked.get("prompt").map_or(String::new(), |prompt| format!(" prompt={prompt}")),
            ));
            assert_eq!(asked["code_challenge_method"], "S256");
            if state.forgotten.contains(&asked["client_id"]) {
                // The user is told so, and is not sent back.
                return Err(Error::Refused("nobody came back".into()));
            }
            let code = state.name("code");
            let back = state.state.clone().unwrap_or_else(|| asked["state"].clone());
            let address = format!("{}?code={code}&state={back}{}", asked["redirect_uri"], state.led_back);
            state.codes.insert(code, asked);
            Ok(address)
        })
    }
}

impl State {
    fn name(&mut self, what: &str) -> String {
        self.issued += 1;
        format!("{what}-{}", self.issued)
    }

    fn answer(&mut self, request: &Request<Bytes>) -> (u16, Value) {
        let url = request.uri().to_string();
        if request.method() == "GET" {
            self.log.push(format!("GET {url}"));
            if url == "https://mcp.test/.well-known/oauth-protected-resource/mcp" && !self.resource.is_null()
            {
                return (200, self.resource.clone());
            }
            let issuer = url.strip_suffix("/.well-known/oauth-authorization-server");
            let found = issuer.and_then(|issuer| self.metadata.get(issuer));
            return found.map_or((404, Value::Null), |found| (200, found.clone()));
        }
        let host = request.uri().host().unwrap().to_owned();
        if request.uri().path() == "/register" {
            let body: Value = serde_json::from_slice(request.body()).unwrap();
            self.log.push(format!("register at {host} as {}", body["application_type"].as_str().unwrap()));
            let id = self.name("client");
            return (201, json!({"client_id": format!("{id}@{host}")}));
        }
        let asked = pairs(std::str::from_utf8(request.body()).unwrap());
        if request.uri().path() == "/device" {
            let scope = asked.get("scope").map_or("-", |scope| scope);
            self.log.push(format!("device code for {} scope={scope}", asked["client_id"]));
            let answer = json!({"device_code": "d3vice", "user_code": "ABCD", "verification_uri": "https://as.test/go",
                "expires_in": 600});
            return (200, answer);
        }
        let by = request.headers().get("authorization").map_or("-", |value| value.to_str().unwrap());
        let by = asked.get("client_id").map_or(by, |id| id);
        let grant = asked["grant_type"].rsplit(':').next().unwrap().to_owned();
        self.log.push(format!("token at {host} by {by}: {grant}"));
        // [Resource Parameter Implementation]: in every one, byte for byte.
        assert_eq!(asked.get("resource").map(String::as_str), self.resource["resource"].as_str(), "{grant}");
        if self.token_fault.is_none() && self.forgotten.iter().any(|id| id == by) {
            return (401, json!({"error": "invalid_client"}));
        }
        let fault = self.refresh_fault.as_ref().filter(|_| grant == "refresh_token");
        if let Some((status, fault)) = fault.or(self.token_fault.as_ref()) {
            return (*status, fault.clone());
        }
        if let Some(nonce) = &self.nonce
            && request.headers().contains_key("dpop")
            && !proven(request.headers(), nonce)
        {
            self.log.push(format!("{grant} without the nonce"));
            return (400, json!({"error": "use_dpop_nonce"}));
        }
        self.grant(&grant, &asked)
    }

    fn grant(&mut self, grant: &str, asked: &HashMap<String, String>) -> (u16, Value) {
        let invalid = (400, json!({"error": "invalid_grant", "error_description": "no good"}));
        let mut scope = asked.get("scope").cloned().unwrap_or_default();
        match grant {
            "authorization_code" => {
                let Some(code) = self.codes.remove(&asked["code"]) else { return invalid };
                let digest = ring::digest::digest(&ring::digest::SHA256, asked["code_verifier"].as_bytes());
                assert_eq!(code["code_challenge"], URL_SAFE_NO_PAD.encode(digest));
                assert_eq!(code.get("resource"), asked.get("resource"));
                assert_eq!(code["redirect_uri"], asked["redirect_uri"]);
                scope = code.get("scope").cloned().unwrap_or_default();
            }
            "refresh_token" => {
                let Some(at) = self.refresh.iter().position(|own| *own == asked["refresh_token"]) else {
                    return invalid;
                };
                self.refresh.remove(at);
                scope = "basic".into();
            }
            "device_code" if !self.pending.is_empty() => {
                assert_eq!(asked["device_code"], "d3vice");
                return (400, json!({"error": self.pending.remove(0)}));
            }
            _ => {}
        }
        let (access, refresh) = (self.name("access"), self.name("refresh"));
        self.tokens.insert(access.clone(), scope);
        self.refresh.push(refresh.clone());
        let (expires_in, kind) = (self.expires_in, if self.nonce.is_some() { "DPoP" } else { "Bearer" });
        (
            200,
            json!({"access_token": access, "token_type": kind, "expires_in": expires_in, "refresh_token": refresh}),
        )
    }

    /// The server.
    fn serve(&mut self, request: &Request<Body>) -> Response<Body> {
        let body: Value = serde_json::from_slice(request.body().bytes()).unwrap();
        let method = body["method"].as_str().unwrap();
        let authorization = request.headers().get("authorization");
        let authorization = authorization.map(|value| value.to_str().unwrap().to_owned());
        let token = authorization.as_deref().and_then(|value| value.strip_prefix("Bearer "));
        let scope = authorization
            .as_deref()
            .and_then(|value| value.split(' ').nth(1))
            .and_then(|token| self.tokens.get(token))
            .cloned();
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
        let Some(scope) = scope else {
            let answer = answer.status(401).header("www-authenticate", &self.challenge);
            return answer.body(Body::default()).unwrap();
        };
        let has = |needed: &&String| scope.split(' ').any(|own| own == *needed);
        if method == "tools/call"
            && let Some(missing) = self.needed.iter().find(|needed| !has(needed))
        {
            let said = format!(r#"Bearer error="insufficient_scope", scope="{missing}""#);
            return answer.status(403).header("www-authenticate", said).body(Body::default()).unwrap();
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

impl Web for World {
    async fn send(&self, request: Request<Bytes>, _reach: Reach) -> Result<Response<Bytes>> {
        let gate = self.change(|state| state.gate.clone());
        if let Some(gate) = gate.filter(|_| request.uri().path() == "/token") {
            gate.notified().await;
        }
        let (status, body) = self.change(|state| state.answer(&request));
        let answer = Response::builder().status(status);
        let answer = match self.change(|state| state.nonce.clone()) {
            Some(nonce) if status == 400 => answer.header("dpop-nonce", nonce),
            _ => answer,
        };
        Ok(answer.body(Bytes::from(body.to_string())).unwrap())
    }

    async fn addresses(&self, _host: &str) -> Vec<IpAddr> {
        Vec::new()
    }
}

impl Service<Request<Body>> for World {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<std::result::Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        ready(Ok(self.change(|state| state.serve(&request))))
    }
}

/// A user who agrees to everything.
pub(crate) struct Agreeing(pub(crate) World);

impl Consent for Agreeing {
    type Visit = Self;

    async fn begin(&self, _before: Option<&str>) -> Result<Self> {
        Ok(Self(self.0.clone()))
    }
}

impl Visit for Agreeing {
    fn redirect_uri(&self) -> &str {
        "http://127.0.0.1:7777/callback"
    }

    fn ask(self, url: &str) -> impl Future<Output = Result<String>> + Send {
        ready(self.0.authorize(url))
    }
}

/// What an authorization server says about itself.
pub(crate) fn issuer(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "registration_endpoint": format!("{issuer}/register"),
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    })
}

fn pairs(query: &str) -> HashMap<String, String> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap();
        (name.to_owned(), plain(value))
    };
    query.split('&').map(pair).collect()
}

fn plain(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).unwrap()
}

/// Whether there is a proof that holds the nonce. Who signed it is for other tests.
fn proven(headers: &http::HeaderMap, nonce: &str) -> bool {
    let proof = headers["dpop"].to_str().unwrap();
    let claims = URL_SAFE_NO_PAD.decode(proof.split('.').nth(1).unwrap()).unwrap();
    serde_json::from_slice::<Value>(&claims).unwrap()["nonce"] == nonce
}
