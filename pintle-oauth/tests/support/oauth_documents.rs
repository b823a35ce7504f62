//! A login on the words of others: resource metadata, challenges, metadata of an authorization server, its answers.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use pintle::{
    Client,
    client::http::{Body, Http},
};
use pintle_oauth::{
    client::{OAuth, Registered},
    testing::{AuthorizationServer, Endpoint, Fault, Hosts, User},
};
use serde_json::{Value, json};
use tower_service::Service;

use super::{course::Course, nasty, run};

const SERVER: &str = "https://mcp.test/mcp";
const METADATA: [&str; 8] = [
    "issuer",
    "authorization_endpoint",
    "token_endpoint",
    "registration_endpoint",
    "code_challenge_methods_supported",
    "token_endpoint_auth_methods_supported",
    "scopes_supported",
    "authorization_response_iss_parameter_supported",
];
const ANSWERED: [&str; 7] = [
    "access_token",
    "token_type",
    "expires_in",
    "refresh_token",
    "client_id",
    "client_secret",
    "token_endpoint_auth_method",
];

/// Logs in as these bytes say. It ends, nothing is sent where a server may not send a client, and a program
/// with a secret talks to no other authorization server than its own.
pub(crate) fn play(course: &[u8]) {
    run(async {
        let mut course = Course(course);
        let login = AuthorizationServer::new("https://as.test");
        login.add_client_with_secret("bot", "s3cret");
        let by_itself = course.below(2) == 1;
        let mut changed = false;
        for _ in 0..course.below(4) {
            let fault = match course.below(3) {
                0 => {
                    changed = true;
                    Fault::metadata(course.of(&METADATA), nasty(&mut course))
                }
                1 => {
                    let endpoint = course.of(&[Endpoint::Token, Endpoint::Register]);
                    Fault::answer(endpoint, course.of(&ANSWERED), nasty(&mut course))
                }
                _ => {
                    let value = String::from_utf8_lossy(course.bytes(8)).into_owned();
                    Fault::redirect(course.of(&["iss", "state", "code"]), value)
                }
            };
            login.fault(fault);
        }
        let served = Served { resource: resource(&mut course), challenge: challenge(&mut course) };
        let hosts = Hosts::new().host("https://as.test", login.clone()).host("https://mcp.test", served);
        let oauth = if by_itself {
            OAuth::machine(Registered::new("https://as.test", "bot").secret("s3cret"))
        } else {
            OAuth::login("App", User::on(hosts.clone()))
        };
        let http = Http::new(SERVER).expect("it is an address").client(hosts.clone());
        let only = ["2026-07-28".parse().expect("it is a revision")];
        let client = Client::new("test", "0").revisions(only);
        if let Ok(server) = client.connect(http.auth(oauth.web(hosts.clone()))).await {
            server.close().await;
        }
        for asked in hosts.log() {
            let (method, url) = asked.as_str().split_once(' ').expect("a line has a method");
            assert!(url.starts_with("https://"), "{url}");
            for private in ["127.0.0.1", "10.0.0.1", "[::1]"] {
                assert!(!url.contains(private), "{url}");
            }
            let known = url.starts_with("https://as.test/") || url.starts_with("https://mcp.test/");
            // Where a challenge says that the server's metadata is may be anywhere: nothing is told to who is there.
            let metadata = method == "GET" && !url.contains("/.well-known/");
            assert!(known || metadata || changed || !by_itself, "{method} {url}");
        }
    });
}

/// What the server says about itself.
fn resource(course: &mut Course<'_>) -> Bytes {
    let mut document = json!({ "resource": SERVER, "authorization_servers": ["https://as.test"] });
    match course.below(4) {
        0 => {}
        1 => return Bytes::copy_from_slice(course.bytes(64)),
        2 => document["authorization_servers"] = json!([nasty(course), "https://as.test"]),
        _ => {
            let member = course.of(&["resource", "authorization_servers", "scopes_supported"]);
            document[member] = nasty(course);
        }
    }
    Bytes::from(document.to_string())
}

/// What it wants.
fn challenge(course: &mut Course<'_>) -> HeaderValue {
    let bearer = HeaderValue::from_static("Bearer");
    match course.below(3) {
        0 => bearer,
        1 => {
            let value = nasty(course).as_str().unwrap_or_default().to_owned();
            let text = format!(r#"Bearer resource_metadata="{value}", scope="a b", error="invalid_token""#);
            HeaderValue::try_from(text).unwrap_or(bearer)
        }
        _ => HeaderValue::from_bytes(course.bytes(64)).unwrap_or(bearer),
    }
}

/// The server: it lets everybody in who has a token.
#[derive(Clone)]
struct Served {
    resource: Bytes,
    challenge: HeaderValue,
}

impl Service<Request<Body>> for Served {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let mut response = Response::new(Body::default());
        if request.uri().path().ends_with("/oauth-protected-resource/mcp") {
            *response.body_mut() = Body::from(self.resource.clone());
        } else if request.uri().path() != "/mcp" {
            *response.status_mut() = http::StatusCode::NOT_FOUND;
        } else if request.headers().contains_key("authorization") {
            let message: Value = serde_json::from_slice(request.body().bytes()).unwrap_or_default();
            let result = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": {}, "ttlMs": 0, "cacheScope": "public"});
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            *response.body_mut() = Body::from(Bytes::from(answer.to_string()));
            response.headers_mut().insert("content-type", HeaderValue::from_static("application/json"));
        } else {
            *response.status_mut() = http::StatusCode::UNAUTHORIZED;
            response.headers_mut().insert("www-authenticate", self.challenge.clone());
        }
        Box::pin(std::future::ready(Ok(response)))
    }
}
