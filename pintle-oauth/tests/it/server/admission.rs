//! Who is let in, and what the others are told.

use http::{Method, Request};
use pintle::{proto::http::Guard, server::http::Cors};
use pintle_oauth::server::{Jwt, Protected};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tower_layer::Layer;
use tower_service::Service;

use crate::support::vault::{ISSUER, METADATA, RESOURCE, Vault, plain, protected, read, stateless, tokens};

#[tokio::test]
async fn without_a_token_the_response_names_where_to_get_one() {
    let vault = Vault::new();
    for request in [
        stateless("tools/list", json!({})).done(),
        stateless("tools/list", json!({})).header("authorization", "Basic YTpi").done(),
        plain("no JSON".into()).done(),
        Request::get("/mcp").body(String::new()).unwrap(),
        Request::delete("/mcp").body(String::new()).unwrap(),
    ] {
        let answer = vault.send(request).await;
        assert_eq!(answer.status, 401);
        assert_eq!(
            answer.challenge(),
            format!(r#"Bearer scope="vault:enter", resource_metadata="{METADATA}""#)
        );
        assert_eq!(
            answer.text,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"this server requires a token; see `WWW-Authenticate`"}}"#
        );
    }
}

#[tokio::test]
async fn a_bad_token_is_401_and_a_bad_header_400() {
    let vault = Vault::new();
    let answer = vault.call("bad", "tools/list", json!({})).await;
    assert_eq!(answer.status, 401);
    let text = r#"error="invalid_token", error_description="no such token", scope="vault:enter""#;
    assert_eq!(answer.challenge(), format!(r#"Bearer {text}, resource_metadata="{METADATA}""#));
    assert_eq!(answer.json()["error"]["message"], "the token is not accepted: no such token");

    let answer = vault.call("a b", "tools/list", json!({})).await;
    assert_eq!(answer.status, 400);
    assert!(
        answer
            .challenge()
            .starts_with(r#"Bearer error="invalid_request", error_description="the `Authorization`"#)
    );

    let long = "a".repeat(20_000);
    assert_eq!(vault.call(&long, "tools/list", json!({})).await.status, 401);

    let mut request =
        stateless("tools/list", json!({})).header("authorization", "Bearer ann-app-vault~enter").done();
    *request.uri_mut() = "/mcp?access_token=ann-app-vault~enter".parse().unwrap();
    let answer = vault.send(request).await;
    assert_eq!(answer.status, 400);
    assert!(answer.text.contains("never put one into an address"));
}

#[tokio::test]
async fn a_token_that_cannot_be_checked_is_not_the_clients_fault() {
    let answer = Vault::new().call("down", "tools/list", json!({})).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.headers["retry-after"], "5");
    assert_eq!(answer.challenge(), "");
    assert!(!answer.text.contains("fire"), "{}", answer.text);
}

#[tokio::test]
async fn who_comes_when_there_is_too_much_to_do_is_asked_to_retry() {
    let answer = Vault::new().call("busy", "tools/list", json!({})).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.headers["retry-after"], "1");
    assert_eq!(answer.challenge(), "");
    let error = &answer.json()["error"];
    assert_eq!((&error["code"], &error["data"]["retryAfterMs"]), (&json!(-31503), &json!(1000)));
    assert!(
        answer.text.contains("too many tokens are waiting to be checked; try again later"),
        "{}",
        answer.text
    );
}

#[tokio::test]
async fn what_every_request_needs_is_needed_by_each() {
    let vault = Vault::new();
    let answer = vault.call("ann-app-gold~see", "tools/list", json!({})).await;
    assert_eq!(answer.status, 403);
    let text = r#"error="insufficient_scope", error_description="the token lacks a required scope""#;
    assert_eq!(
        answer.challenge(),
        format!(r#"Bearer {text}, scope="vault:enter", resource_metadata="{METADATA}""#)
    );
    assert_eq!(
        answer.json()["error"]["message"],
        "the token lacks the scopes `vault:enter`, which every request needs"
    );
    assert_eq!(vault.call("ann-app-vault~enter", "tools/list", json!({})).await.status, 200);
}

#[tokio::test]
async fn metadata_is_for_everyone() {
    let protected = protected()
        .offers(["vault:enter", "gold:see"])
        .name("The vault")
        .documentation("https://mcp.test/docs");
    let vault = Vault::of(&protected, |http| http.at("/mcp"));
    for path in [
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-protected-resource/mcp/",
        "/.well-known/oauth-protected-resource",
    ] {
        let answer = vault.send(Request::get(path).body(String::new()).unwrap()).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.headers["content-type"], "application/json");
        assert_eq!(answer.headers["access-control-allow-origin"], "*");
        assert_eq!(answer.headers["cache-control"], "public, max-age=3600");
        let mut document = answer.json();
        document.as_object_mut().unwrap().remove("dpop_signing_alg_values_supported").unwrap();
        assert_eq!(
            document,
            json!({
                "resource": RESOURCE,
                "authorization_servers": [ISSUER],
                "bearer_methods_supported": ["header"],
                "scopes_supported": ["vault:enter", "gold:see"],
                "resource_name": "The vault",
                "resource_documentation": "https://mcp.test/docs",
            })
        );
    }
    let asks =
        |method: Method, path: &str| Request::builder().method(method).uri(path).body(String::new()).unwrap();
    let path = "/.well-known/oauth-protected-resource/mcp";
    let leave = vault.send(asks(Method::OPTIONS, path)).await;
    assert_eq!(leave.status, 204);
    assert_eq!(leave.headers["access-control-allow-headers"], "*");
    assert_eq!(vault.send(asks(Method::HEAD, path)).await.text, "");
    assert_eq!(vault.send(asks(Method::POST, path)).await.status, 405);
    for elsewhere in
        ["/.well-known/oauth-protected-resource/mcp2", "/.well-known/oauth-protected-resources", "/"]
    {
        assert_eq!(vault.send(asks(Method::GET, elsewhere)).await.status, 401, "{elsewhere}");
    }
}

#[test]
fn a_resource_is_kept_byte_for_byte_and_its_metadata_lies_beside_it() {
    for (resource, path) in [
        ("https://mcp.test", "/.well-known/oauth-protected-resource"),
        ("https://mcp.test/", "/.well-known/oauth-protected-resource"),
        ("https://MCP.test:8443/a/b/", "/.well-known/oauth-protected-resource/a/b"),
        ("http://localhost:3000/mcp", "/.well-known/oauth-protected-resource/mcp"),
    ] {
        let protected = Protected::new(resource, tokens()).unwrap();
        assert_eq!(protected.metadata_path(), path);
    }
    for resource in
        ["", "/mcp", "mcp.test", "http://mcp.test/mcp", "https://mcp.test/mcp#x", "https://a@mcp.test/"]
    {
        let text = Protected::new(resource, tokens()).unwrap_err().to_string();
        assert!(text.contains("cannot be protected"), "{text}");
    }
}

#[tokio::test]
async fn several_issuers_are_distinguished_by_their_tokens() {
    let keys =
        r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
    let jwt = Jwt::new("https://other.test").unwrap().keys(keys).unwrap();
    let protected = Protected::new(RESOURCE, jwt).unwrap().or(tokens());
    let vault = Vault::of(&protected, |http| http);
    assert_eq!(
        vault.call("ann-app-", "tools/list", json!({})).await.status,
        200,
        "no JWT, so the other one's"
    );
    let path = protected.metadata_path();
    let document = vault.send(Request::get(path).body(String::new()).unwrap()).await.json();
    assert_eq!(document["authorization_servers"], json!(["https://other.test", ISSUER]));
    assert_eq!(document.get("scopes_supported"), None);
    // {"alg":"EdDSA"} {"iss":"https://other.test"}
    let token = "eyJhbGciOiJFZERTQSJ9.eyJpc3MiOiJodHRwczovL290aGVyLnRlc3QifQ.AAAA";
    let answer = vault.call(token, "tools/list", json!({})).await;
    assert!(answer.text.contains("it was not issued for `https://mcp.test/mcp`"), "{}", answer.text);
    let alone = Protected::new(RESOURCE, Jwt::new("https://third.test").unwrap()).unwrap();
    let answer = Vault::of(&alone, |http| http).call(token, "tools/list", json!({})).await;
    assert!(answer.text.contains("it was not issued by `https://third.test`"), "{}", answer.text);
}

#[tokio::test]
async fn a_framework_mounts_the_layer_and_the_metadata_apart() {
    let protected = protected();
    let vault = Vault::new();
    let mut router: axum::Router = axum::Router::new()
        .route_service("/mcp", protected.layer(crate::support::vault::server(&vault.called).http().unwrap()))
        .route_service(&protected.metadata_path(), protected.metadata());
    let mut status = async |request: Request<String>| {
        let request = request.map(axum::body::Body::from);
        let response: http::Response<axum::body::Body> = router.call(request).await.unwrap();
        response.status().as_u16()
    };
    assert_eq!(
        status(Request::get("/.well-known/oauth-protected-resource/mcp").body(String::new()).unwrap()).await,
        200
    );
    assert_eq!(status(stateless("tools/list", json!({})).done()).await, 401);
    // The whole router behind it works too: what answers is of the framework's type.
    let mut whole =
        protected.layer(axum::Router::new().route("/x", axum::routing::get(|| async { "hello" })));
    let request = Request::get("/x").header("authorization", "Bearer ann-app-vault~enter");
    let response = whole.call(request.body(axum::body::Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn a_protected_server_is_served_in_one_call() {
    use pintle::{Client, client::http::Http, server::tool};

    let tools = pintle::Server::new("vault", "1").tool(tool("look", || async { "gold" }));
    let protected = Protected::new("http://127.0.0.1/mcp", tokens()).unwrap();
    let serving = protected.serve(&tools, "127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", serving.address());
    let refused = Client::new("c", "1").connect(Http::new(&url).unwrap()).await;
    assert!(refused.is_err(), "without a token");
    let http = Http::new(&url).unwrap().bearer("ann-app-").unwrap();
    let vault = Client::new("c", "1").connect(http).await.unwrap();
    assert_eq!(vault.call_tool("look", ()).await.unwrap().text(), "gold");
    serving.shutdown(std::time::Duration::from_secs(5)).await;
}

#[tokio::test]
async fn a_browser_that_asks_for_leave_has_no_token_and_needs_none() {
    let asks = |origin: &str| {
        let request = Request::options("/mcp").header("host", "mcp.test").header("origin", origin);
        let request = request.header("access-control-request-method", "POST");
        request.header("access-control-request-headers", "authorization").body(String::new()).unwrap()
    };
    // What is inside answers, and knows no pages of other origins.
    let guard = Guard::hosts(["mcp.test"]).origins(["https://app.test"]);
    let vault = Vault::of(&protected(), |http| http.guard(guard.clone()));
    let answer = vault.send(asks("https://app.test")).await;
    assert_eq!((answer.status.as_u16(), answer.challenge()), (204, ""), "{answer:?}");
    assert!(!answer.headers.contains_key("access-control-allow-origin"));
    let mut inside = protected().layer(Cors::new(guard).layer(vault.http));
    let answer = read(inside.call(asks("https://app.test")).await.unwrap()).await;
    assert_eq!(answer.status, 204);
    assert_eq!(answer.headers["access-control-allow-origin"], "https://app.test");
    assert_eq!(answer.headers["access-control-allow-headers"], "authorization");

    // Only that: whatever else is asked with OPTIONS needs a token.
    for missing in ["origin", "access-control-request-method"] {
        let mut request = asks("https://app.test");
        request.headers_mut().remove(missing);
        assert_eq!(Vault::new().send(request).await.status, 401, "{missing}");
    }
    let mut request = asks("https://app.test");
    *request.method_mut() = Method::POST;
    assert_eq!(Vault::new().send(request).await.status, 401);
}

#[tokio::test]
async fn a_page_may_read_why_it_is_not_let_in() {
    let tools = pintle::Server::new("vault", "1");
    let protected = Protected::new("http://127.0.0.1/mcp", tokens()).unwrap().scopes(["vault:enter"]);
    let serving = protected.serve(&tools, "127.0.0.1:0").await.unwrap();
    let address = serving.address();
    let text = async |method: &str, more: &str| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head =
            format!("{method} /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{more}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    for (token, status) in [("", 401), ("bad", 401), ("a b", 400), ("ann-app-gold~see", 403), ("down", 503)] {
        let token =
            if token.is_empty() { String::new() } else { format!("\r\nauthorization: Bearer {token}") };
        for (origin, reads) in [("http://localhost:6274", true), ("https://evil.test", false)] {
            let answer = text("POST", &format!("origin: {origin}{token}")).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
            assert_eq!(
                answer.contains(&format!("access-control-allow-origin: {origin}\r\n")),
                reads,
                "{answer}"
            );
            let exposed = answer.lines().find(|line| line.starts_with("access-control-expose-headers: "));
            assert_eq!(exposed.is_some_and(|line| line.contains("WWW-Authenticate")), reads, "{answer}");
        }
    }
    let asks = "origin: http://localhost:6274\r\naccess-control-request-method: POST";
    let answer = text("OPTIONS", asks).await;
    assert!(answer.starts_with("HTTP/1.1 204 "), "{answer}");
    assert!(answer.contains("access-control-allow-origin: http://localhost:6274\r\n"), "{answer}");
    serving.shutdown(std::time::Duration::from_secs(5)).await;
}
