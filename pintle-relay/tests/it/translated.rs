//! What one era has and the other lacks.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pintle::{
    Server,
    server::{Cx, tool},
    types::{ErrorCode, RpcError},
};
use serde_json::{Value, json};

use super::world;
use crate::support::eras::{Client, R4, R5};

/// A server that requires a login at a URL before the first call.
fn members_only(calls: &Arc<AtomicUsize>) -> Server {
    let calls = calls.clone();
    Server::new("club", "1.0.0").tool(tool("enter", move |_: Cx| {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        async move {
            let page = json!({"mode": "url", "message": "Log in.", "url": "https://example.com/login",
                "elicitationId": "e-1"});
            let required = RpcError::new(ErrorCode::URL_ELICITATION_REQUIRED, "log in first");
            match call {
                0 => Err(required.with_data(&json!({"elicitations": [page]}))),
                _ => Ok("welcome"),
            }
        }
    }))
}

fn shows_pages() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}})
}

#[tokio::test(start_paused = true)]
async fn a_url_that_a_session_requires_first_is_a_question_without_one() {
    for (action, calls_made) in [("accept", 2), ("decline", 1)] {
        let calls = Arc::default();
        let front = world::relayed(&members_only(&calls), R4).await;
        let mut client = Client::open(&front, R5, shows_pages()).await;
        client.answer = Box::new(move |method, params| {
            assert_eq!(method, "elicitation/create");
            assert_eq!(
                params,
                &json!({"mode": "url", "message": "Log in.", "url": "https://example.com/login"})
            );
            json!({"action": action})
        });
        let answered = client.call("tools/call", json!({"name": "enter"})).await;
        assert_eq!(calls.load(Ordering::SeqCst), calls_made);
        match action {
            "accept" => assert_eq!(answered["result"]["content"][0]["text"], "welcome", "{answered}"),
            _ => assert_eq!(answered["error"]["message"], "log in first", "{answered}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_of_the_same_era_gets_the_error_with_its_urls() {
    let front = world::relayed(&members_only(&Arc::default()), R4).await;
    let mut client = Client::open(&front, R4, shows_pages()).await;
    let answered = client.call("tools/call", json!({"name": "enter"})).await;
    assert_eq!(answered["error"]["code"], -32042, "{answered}");
    assert_eq!(answered["error"]["data"]["elicitations"][0]["elicitationId"], "e-1");
}
