//! Tokens that the program gets for itself: against an API that has the token endpoint, too.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pintle_oauth::client::{BearerTokens, Registered, Secret, TokenExchange};
use pintle_openapi::{ApiTools, OAuthClient, OpenApi};
use serde_json::{Value, json};

use crate::support::{Answer, Api, Sent, connect, operation};

const JSON: &str = "200 OK\r\ncontent-type: application/json";

/// Returns a document whose only operation needs a token of the endpoint at this URL.
fn document(token_url: &str) -> Value {
    let mut document = operation("post", "/x", json!({ "security": [{ "login": ["write"] }] }));
    let flows = json!({ "clientCredentials": { "tokenUrl": token_url, "scopes": {} } });
    document["components"] = json!({ "securitySchemes": {
        "login": { "type": "oauth2", "flows": flows },
        "user": { "type": "oauth2", "flows": { "implicit": {} } },
        "key": { "type": "apiKey", "in": "query", "name": "key" },
    } });
    document
}

/// An API that numbers its tokens, and refuses those before `valid`.
async fn api(valid: Arc<AtomicUsize>) -> Api {
    let issued = AtomicUsize::new(0);
    Api::new(move |sent: &Sent| -> Answer {
        if sent.line() == "POST /token" {
            let number = issued.fetch_add(1, Ordering::SeqCst) + 1;
            return (JSON, format!(r#"{{"access_token":"t0ken-{number}","expires_in":3600}}"#).into());
        }
        let token = sent.header("authorization").unwrap_or("none").to_owned();
        let number = token.rsplit('-').next().and_then(|number| number.parse::<usize>().ok());
        match number.is_some_and(|number| number >= valid.load(Ordering::SeqCst)) {
            true => (JSON, b"{}".to_vec()),
            false => ("401 Unauthorized\r\ncontent-type: text/plain", format!("refused: {token}").into()),
        }
    })
    .await
}

fn client() -> OAuthClient {
    OAuthClient::new("bot", "s3cret").scopes(["read", "write"])
}

fn built(api: &Api, document: Value, client: OAuthClient) -> ApiTools {
    OpenApi::from_value(document).unwrap().base(&api.origin).oauth_client("login", client).build().unwrap()
}

#[tokio::test]
async fn a_token_is_requested_once_and_sent_with_all_calls() {
    let api = api(Arc::default()).await;
    let connection = connect(built(&api, document("/token"), client())).await;
    let (one, other) = tokio::join!(connection.call_tool("x", ()), connection.call_tool("x", ()));
    assert_eq!((one.unwrap().is_error, other.unwrap().is_error), (None, None));
    let sent = api.take();
    let lines: Vec<_> = sent.iter().map(Sent::line).collect();
    assert_eq!(lines, ["POST /token", "POST /x", "POST /x"]);
    assert_eq!(sent[0].text(), "grant_type=client_credentials&scope=read%20write");
    assert_eq!(sent[0].header("authorization"), Some("Basic Ym90OnMzY3JldA=="));
    assert_eq!(sent[2].header("authorization"), Some("Bearer t0ken-1"));
}

#[tokio::test]
async fn a_token_that_is_refused_is_replaced_once() {
    let valid = Arc::new(AtomicUsize::new(1));
    let api = api(valid.clone()).await;
    let connection = connect(built(&api, document("/token"), client())).await;
    connection.call_tool("x", ()).await.unwrap();
    valid.store(2, Ordering::SeqCst);
    let result = connection.call_tool("x", ()).await.unwrap();
    assert_eq!(
        (result.is_error, api.take().len()),
        (None, 5),
        "a token, a call, a refusal, a token and a call"
    );
    valid.store(9, Ordering::SeqCst);
    let result = connection.call_tool("x", ()).await.unwrap();
    assert_eq!(result.is_error, Some(true));
    let text = result.text();
    assert!(text.contains("HTTP 401") && text.contains("refused: …"), "{text}");
    assert!(!text.contains("t0ken") && text.contains("it has to be valid"), "{text}");
    assert_eq!(api.take().len(), 3, "a refusal, a token and a refusal");
}

#[tokio::test]
async fn an_endpoint_that_refuses_is_the_reason_and_no_secret_is_shown() {
    let api = Api::new(|sent: &Sent| -> Answer {
        assert_eq!(sent.line(), "POST /oauth", "the API is not asked without a token");
        let refusal = r#"{"error":"invalid_client","error_description":"no s3cret"}"#;
        ("401 Unauthorized\r\ncontent-type: application/json", refusal.into())
    })
    .await;
    let client = client().token_url(format!("{}/oauth", api.origin));
    let tools = built(&api, document("/token"), client.clone());
    let planned = tools.plan("x", &serde_json::Map::new()).unwrap().unwrap();
    assert!(planned.headers.contains(&("authorization".to_owned(), None)), "{planned:?}");
    assert_eq!(api.take().len(), 0, "a plan sends nothing");
    let openapi = OpenApi::from_value(document("/token")).unwrap().oauth_client("login", client.clone());
    assert!(!format!("{client:?} {tools:?} {openapi:?}").contains("s3cret"));
    let result = connect(tools).await.call_tool("x", ()).await.unwrap();
    let text = result.text();
    assert!(text.starts_with("there is no token for the request: "), "{text}");
    assert!(text.contains("invalid_client") && !text.contains("s3cret"), "{text}");
}

#[tokio::test]
async fn a_document_does_not_send_secrets_into_a_private_network() {
    let api = api(Arc::default()).await;
    let elsewhere = format!("{}/token", api.origin);
    let openapi = OpenApi::from_value(document(&elsewhere)).unwrap().base("https://api.test");
    let tools = openapi.oauth_client("login", client()).build().unwrap();
    let text = connect(tools).await.call_tool("x", ()).await.unwrap().text();
    assert!(text.contains("are not allowed: it is in a private network"), "{text}");
    assert_eq!(api.take().len(), 0);
}

#[tokio::test]
async fn a_caller_has_its_own_token_at_the_base_only() {
    let api = api(Arc::default()).await;
    let mut document = document("/token");
    document["paths"]["/other"] =
        json!({ "post": { "operationId": "other", "servers": [{ "url": "https://other.test" }] } });
    let tools = built(&api, document, client());
    let gateway = Registered::new("https://login.test", "gateway");
    let exchange = TokenExchange::new(format!("{}/token", api.origin), gateway);
    let caller = |token: &str| BearerTokens::of_caller(exchange.clone(), Secret::new(token));
    let (ann, bob) =
        (connect(tools.for_caller(caller("ann"))).await, connect(tools.for_caller(caller("bob"))).await);
    for (connection, name, token) in [(&ann, "ann", "1"), (&bob, "bob", "2"), (&ann, "ann", "1")] {
        connection.call_tool("x", ()).await.unwrap();
        let mut sent = api.take();
        assert_eq!(sent.pop().unwrap().header("authorization"), Some(&*format!("Bearer t0ken-{token}")));
        assert!(sent.iter().all(|sent| sent.text().contains(&format!("subject_token={name}"))), "{sent:?}");
    }
    let other = ann.call_tool("other", ()).await.unwrap();
    let text = other.text();
    assert!(text.contains("`https://other.test`, which the token of the caller is not for"), "{text}");
}

#[test]
fn what_has_no_token_endpoint_is_an_error_of_the_program() {
    for (scheme, client, reason) in [
        ("user", client(), "no flow `clientCredentials` with a `tokenUrl`"),
        ("key", client(), "its security scheme is not `oauth2`"),
        ("none", client(), "there is no such security scheme"),
        ("login", client().token_url("s3cret?"), "`s3cret` is not the URL of a token endpoint"),
    ] {
        let openapi = OpenApi::from_value(document("/token")).unwrap().base("https://api.test");
        let error = openapi.oauth_client(scheme, client).build().unwrap_err().to_string();
        assert!(error.contains(&format!("the secret of `{scheme}`: ")) && error.contains(reason), "{error}");
    }
    let user = OpenApi::from_value(document("/token")).unwrap().base("https://api.test");
    user.oauth_client("user", client().token_url("https://login.test/token")).build().unwrap();
}
