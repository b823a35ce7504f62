//! The authorization server of the test kit: it has to refuse what a real one refuses, or tests with it prove nothing.

use std::time::Duration;

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use bytes::Bytes;
use http::{Request, Uri};
use pintle::{
    client::http::{Body, Proxy, Requests},
    server::http::{BodyLimits, read_body},
};
use pintle_oauth::testing::{AuthorizationServer, Claims, Endpoint, Fault};
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::{Value, json};
use tower_service::Service as _;

const VERIFIER: &str = "a-verifier-that-is-long-enough-for-anyone-who-counts";
const BACK: &str = "http://127.0.0.1:1/callback";

/// What comes back: a status, where it leads, and a body.
type Received = (u16, String, Value);

async fn sent(login: &AuthorizationServer, request: Request<Body>) -> Received {
    let (head, body) = login.clone().call(request).await.unwrap().into_parts();
    let body = read_body(body, &BodyLimits::default()).await.unwrap();
    let to = head.headers.get("location").map(|to| to.to_str().unwrap().to_owned());
    (head.status.as_u16(), to.unwrap_or_default(), serde_json::from_slice(&body).unwrap_or_default())
}

async fn get(login: &AuthorizationServer, path: &str) -> Received {
    sent(login, Request::get(path).body(Body::default()).unwrap()).await
}

async fn post(login: &AuthorizationServer, path: &str, form: &str) -> (u16, Value) {
    let request = Request::post(path).header("content-type", "application/x-www-form-urlencoded");
    let (status, _, body) =
        sent(login, request.body(Body::from(Bytes::from(form.to_owned()))).unwrap()).await;
    (status, body)
}

async fn register(login: &AuthorizationServer) -> String {
    let body = json!({"redirect_uris": [BACK], "token_endpoint_auth_method": "none"}).to_string();
    let request = Request::post("/register").header("content-type", "application/json");
    let (status, _, body) = sent(login, request.body(Body::from(Bytes::from(body))).unwrap()).await;
    assert_eq!(status, 201);
    body["client_id"].as_str().unwrap().to_owned()
}

fn challenge() -> String {
    URL_SAFE_NO_PAD.encode(ring::digest::digest(&ring::digest::SHA256, VERIFIER.as_bytes()))
}

/// The address of a login, with something else in it.
fn login_at(client: &str, more: &str) -> String {
    format!(
        "/authorize?response_type=code&client_id={client}&redirect_uri={BACK}&state=s&scope=a%20b\
         &resource=https://mcp.test/mcp&code_challenge={}&code_challenge_method=S256{more}",
        challenge()
    )
}

fn code(to: &str) -> String {
    let (_, rest) = to.split_once("code=").unwrap();
    rest.split('&').next().unwrap().to_owned()
}

fn redeem(client: &str, code: &str) -> String {
    format!(
        "grant_type=authorization_code&client_id={client}&code={code}&redirect_uri={BACK}&code_verifier={VERIFIER}"
    )
}

async fn active(login: &AuthorizationServer, token: &str) -> Value {
    let request = Request::post("/introspect")
        .header("content-type", "application/x-www-form-urlencoded")
        .header("authorization", format!("Basic {}", STANDARD.encode("mcp:s3cret")));
    let request = request.body(Body::from(Bytes::from(format!("token={token}")))).unwrap();
    sent(login, request).await.2
}

#[tokio::test]
async fn a_code_is_for_a_token_that_says_whom_it_is_for() {
    let login = AuthorizationServer::new("https://login.test");
    login.subject("alice");
    let client = register(&login).await;
    let (status, to, _) = get(&login, &login_at(&client, "")).await;
    assert_eq!((status, &to[..33]), (302, "http://127.0.0.1:1/callback?code="));
    assert!(to.ends_with("&iss=https%3A%2F%2Flogin.test&state=s"), "{to}");
    let (status, given) = post(&login, "/token", &redeem(&client, &code(&to))).await;
    assert_eq!((status, &given["expires_in"], &given["scope"]), (200, &json!(3600), &json!("a b")));

    let token = given["access_token"].as_str().unwrap();
    let parts: Vec<_> = token.split('.').collect();
    let part =
        |part: &str| -> Value { serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap() };
    let claims = part(parts[1]);
    assert_eq!(claims["iss"], "https://login.test");
    assert_eq!(claims["aud"], "https://mcp.test/mcp");
    assert_eq!((&claims["sub"], &claims["scope"]), (&json!("alice"), &json!("a b")));
    assert_eq!(claims["client_id"], client);

    let (_, _, keys) = get(&login, "/jwks").await;
    let key = &keys["keys"][0];
    assert_eq!(part(parts[0]), json!({"alg": "ES256", "typ": "at+jwt", "kid": key["kid"]}));
    let mut point = vec![4];
    for coordinate in ["x", "y"] {
        point.extend(URL_SAFE_NO_PAD.decode(key[coordinate].as_str().unwrap()).unwrap());
    }
    let signature = URL_SAFE_NO_PAD.decode(parts[2]).unwrap();
    let signed = format!("{}.{}", parts[0], parts[1]);
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(signed.as_bytes(), &signature).unwrap();
    assert_eq!(
        login.log(),
        [
            "POST /register: 201",
            "GET /authorize (a b): 302",
            "POST /token (authorization_code): 200",
            "GET /jwks: 200"
        ]
    );
}

#[tokio::test]
async fn nobody_is_sent_where_no_client_asked_to_be_sent() {
    let login = AuthorizationServer::new("https://login.test");
    let client = register(&login).await;
    let elsewhere = login_at(&client, "").replace(BACK, "http://127.0.0.1:2/callback");
    assert_eq!(get(&login, &elsewhere).await.0, 400);
    assert_eq!(get(&login, &login_at("nobody", "")).await.0, 401);
    // A name that comes twice is as good as none.
    assert_eq!(get(&login, &login_at(&client, "&client_id=other")).await.0, 400);
    let table = [
        (login_at(&client, "").replace("S256", "plain"), "error=invalid_request"),
        (login_at(&client, "").replace("&code_challenge_method=S256", ""), "error=invalid_request"),
        (login_at(&client, "").replace("response_type=code", "response_type=token"), "unsupported_response"),
    ];
    for (asked, expected) in table {
        let (status, to, _) = get(&login, &asked).await;
        assert!(status == 302 && to.contains(expected) && !to.contains("code="), "{to}");
    }
}

#[tokio::test]
async fn a_code_is_good_once_for_a_minute_and_for_who_asked_for_it() {
    let login = AuthorizationServer::new("https://login.test");
    login.add_client_with_secret("mcp", "s3cret");
    let (client, other) = (register(&login).await, register(&login).await);
    let fresh = async || code(&get(&login, &login_at(&client, "")).await.1);
    let refused = async |form: String| {
        let (status, reply) = post(&login, "/token", &form).await;
        assert_eq!((status, &reply["error"]), (400, &json!("invalid_grant")), "{form}");
        reply["error_description"].as_str().unwrap().to_owned()
    };
    assert_eq!(refused(redeem(&client, "guessed")).await, "no such code");
    assert_eq!(refused(redeem(&other, &fresh().await)).await, "the code was issued to another client");
    let wrong = redeem(&client, &fresh().await).replace(VERIFIER, "another");
    assert_eq!(refused(wrong).await, "`code_verifier` does not match");
    let downgraded = redeem(&client, &fresh().await).replace(&format!("&code_verifier={VERIFIER}"), "");
    assert_eq!(refused(downgraded).await, "`code_verifier` does not match");
    let old = fresh().await;
    login.advance(Duration::from_secs(60));
    assert_eq!(refused(redeem(&client, &old)).await, "the code has expired");

    let used = redeem(&client, &fresh().await);
    let (_, given) = post(&login, "/token", &used).await;
    let token = given["access_token"].as_str().unwrap();
    assert_eq!(active(&login, token).await["active"], true);
    assert_eq!(refused(used).await, "the code was used before");
    assert_eq!(active(&login, token).await, json!({"active": false}), "whoever replayed it gains nothing");
    let refresh = given["refresh_token"].as_str().unwrap();
    let form = format!("grant_type=refresh_token&client_id={client}&refresh_token={refresh}");
    assert_eq!(refused(form).await, "no such refresh token");
}

#[tokio::test]
async fn a_refresh_token_is_good_once_and_its_thief_ends_the_login() {
    let login = AuthorizationServer::new("https://login.test");
    let (client, other) = (register(&login).await, register(&login).await);
    let (_, to, _) = get(&login, &login_at(&client, "")).await;
    let (_, given) = post(&login, "/token", &redeem(&client, &code(&to))).await;
    let refresh = |token: &Value, more: &str| {
        let token = token["refresh_token"].as_str().unwrap();
        format!("grant_type=refresh_token&client_id={client}&refresh_token={token}{more}")
    };
    let (_, more) = post(&login, "/token", &refresh(&given, "")).await;
    assert_eq!(more["scope"], "a b");
    let (_, less) = post(&login, "/token", &refresh(&more, "&scope=a")).await;
    assert_eq!(less["scope"], "a");
    // What is asked for wrongly is not used up, and less once is not less for ever.
    let (_, reply) = post(&login, "/token", &refresh(&less, "&scope=a%20c")).await;
    assert_eq!(reply["error"], "invalid_scope");
    let (_, reply) = post(&login, "/token", &refresh(&less, "&resource=https://other.test/mcp")).await;
    assert_eq!(reply["error"], "invalid_target");
    let (_, reply) = post(&login, "/token", &refresh(&less, "").replace(&client, &other)).await;
    assert_eq!(reply["error_description"], "the refresh token was issued to another client");
    let (_, last) = post(&login, "/token", &refresh(&less, "")).await;
    assert_eq!(last["scope"], "a b");
    let (_, reply) = post(&login, "/token", &refresh(&given, "")).await;
    assert_eq!(reply["error_description"], "the refresh token was used before");
    let (_, reply) = post(&login, "/token", &refresh(&last, "")).await;
    assert_eq!(reply["error_description"], "no such refresh token", "the thief has none either");
}

#[tokio::test]
async fn a_server_that_asks_about_a_token_is_told_what_it_is_worth_now() {
    let login = AuthorizationServer::new("https://login.test");
    login.opaque();
    login.add_client_with_secret("mcp", "s3cret");
    let claims = Claims::new("https://mcp.test/mcp").subject("bob").client("app").scopes(["a", "b"]);
    let token = login.token(&claims);
    assert_eq!(token, "access-1");
    let notified = active(&login, &token).await;
    assert_eq!(
        (&notified["active"], &notified["sub"], &notified["scope"]),
        (&json!(true), &json!("bob"), &json!("a b"))
    );
    assert_eq!(notified["aud"], "https://mcp.test/mcp");
    login.advance(Duration::from_secs(3601));
    assert_eq!(active(&login, &token).await, json!({"active": false}));
    login.set_back(Duration::from_secs(3601));
    assert_eq!(active(&login, &token).await["active"], true);
    login.add_client("app");
    login.add_client("other");
    assert_eq!(post(&login, "/revoke", "client_id=other&token=access-1").await.0, 200);
    assert_eq!(active(&login, &token).await["active"], true, "it is not theirs");
    assert_eq!(post(&login, "/revoke", "client_id=app&token=access-1").await.0, 200);
    assert_eq!(active(&login, &token).await, json!({"active": false}));
    // Not everyone is told.
    assert_eq!(post(&login, "/introspect", "token=access-1").await.0, 401);
    assert_eq!(post(&login, "/introspect", "client_id=app&token=access-1").await.0, 401);
    let wrong = "client_id=mcp&client_secret=guessed&token=access-1";
    assert_eq!(post(&login, "/introspect", wrong).await.1["error"], "invalid_client");
}

#[tokio::test]
async fn faults_happen_in_order_and_are_mended() {
    let login = AuthorizationServer::new("https://login.test/t1");
    let at = "/.well-known/oauth-authorization-server/t1";
    login.fault(Fault::metadata("issuer", "https://evil.test"));
    login.fault(Fault::metadata("code_challenge_methods_supported", Value::Null));
    let (_, _, reply) = get(&login, at).await;
    assert_eq!(reply["issuer"], "https://evil.test");
    assert_eq!(reply.get("code_challenge_methods_supported"), None);
    login.clear_faults();
    login.fault_times(1, Fault::Status(Endpoint::Metadata, 503));
    assert_eq!(get(&login, at).await.0, 503);
    let (_, _, reply) = get(&login, at).await;
    assert_eq!(reply["issuer"], "https://login.test/t1");
    assert_eq!(reply["token_endpoint"], "https://login.test/t1/token");
    assert_eq!(get(&login, "/t1/.well-known/openid-configuration").await.2["issuer"], reply["issuer"]);
    login.fault(Fault::CutOff(Endpoint::Keys));
    let request = Request::get("/t1/jwks").body(Body::default()).unwrap();
    assert_eq!(login.clone().call(request).await.unwrap_err().to_string(), "the connection was closed");
    assert_eq!(get(&login, "/jwks").await.0, 404);
    login.clear_faults();
    assert_eq!(post(&login, "/t1/jwks", "").await.0, 405);
    let log = login.log();
    assert_eq!(log[1], "GET /.well-known/oauth-authorization-server/t1: 503");
    assert_eq!(log[4], "GET /t1/jwks: cut off");
}

#[tokio::test]
async fn who_is_held_up_at_a_gate_goes_on_when_it_opens() {
    let login = AuthorizationServer::new("https://login.test");
    let hold = login.hold(Endpoint::Keys);
    let asking = tokio::spawn({
        let login = login.clone();
        async move { get(&login, "/jwks").await.0 }
    });
    hold.reached(1).await;
    assert_eq!(get(&login, "/.well-known/openid-configuration").await.0, 200);
    assert!(!asking.is_finished());
    hold.release();
    assert_eq!(asking.await.unwrap(), 200);
    assert_eq!(get(&login, "/jwks").await.0, 200);
}

#[tokio::test]
async fn it_listens_on_a_socket_until_nobody_has_it_any_more() {
    let login = AuthorizationServer::listen().await.unwrap();
    let url: Uri = format!("{}/jwks", login.issuer()).parse().unwrap();
    let requests = Requests::new().proxy(Proxy::none());
    let get = || Request::get(url.clone()).body(Bytes::new()).unwrap();
    assert_eq!(requests.send(get()).await.unwrap().status(), 200);
    login.fault(Fault::CutOff(Endpoint::Keys));
    let error = requests.send(get()).await.unwrap_err().to_string();
    assert!(error.contains("could not be reached"), "{error}");
    assert_eq!(login.log(), ["GET /jwks: 200", "GET /jwks: cut off"]);
    let other = login.clone();
    drop(login);
    other.clear_faults();
    assert_eq!(requests.send(get()).await.unwrap().status(), 200);
    drop(other);
    assert!(Requests::new().proxy(Proxy::none()).send(get()).await.is_err());
}
