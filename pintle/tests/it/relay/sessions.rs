//! Which connection to the server behind a client uses.

use std::sync::atomic::{AtomicU32, Ordering};

use pintle::{
    Server,
    server::{Caller, Cx, ToolError, tool},
};
use serde_json::{Value, json};

use super::world;
use crate::support::{
    eras::{R4, R5},
    line_client::{Raw, modern},
};

#[derive(Default)]
struct Calls(AtomicU32);

/// A server that counts the calls of each session.
fn counting() -> Server {
    Server::new("dice", "1.0.0").tool(tool("count", |cx: Cx| async move {
        let session = cx.session().ok_or("no session")?;
        let calls = session.get_or_insert_with(Calls::default)?;
        Ok::<_, ToolError>((calls.0.fetch_add(1, Ordering::SeqCst) + 1).to_string())
    }))
}

async fn count(client: &mut Raw, params: Value) -> String {
    let id = client.request("tools/call", params).await;
    loop {
        let message = client.recv().await;
        if message["id"] == id {
            return message["result"]["content"][0]["text"]
                .as_str()
                .unwrap_or_else(|| panic!("{message}"))
                .to_owned();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_session_has_its_own_behind_the_relay() {
    let front = world::relayed(&counting(), R4).await;
    let (mut ann, mut bob) = (Raw::new(&front), Raw::new(&front));
    ann.open(R4, json!({})).await;
    bob.open(R4, json!({})).await;
    let params = json!({"name": "count"});
    assert_eq!(count(&mut ann, params.clone()).await, "1");
    assert_eq!(count(&mut ann, params.clone()).await, "2");
    assert_eq!(count(&mut bob, params).await, "1");
}

#[tokio::test(start_paused = true)]
async fn principals_without_a_session_share_nothing_behind_the_relay() {
    let front = world::relayed(&counting(), R4).await;
    let mut ann = Raw::known(&front, Caller::new().principal("ann"));
    let mut bob = Raw::known(&front, Caller::new().principal("bob"));
    let mut nobody = Raw::known(&front, Caller::new());
    let params = modern(json!({"name": "count"}), json!({}));
    assert_eq!(count(&mut ann, params.clone()).await, "1");
    assert_eq!(count(&mut ann, params.clone()).await, "2");
    assert_eq!(count(&mut bob, params.clone()).await, "1");
    for _ in 0..2 {
        assert_eq!(count(&mut nobody, params.clone()).await, "1", "anonymous clients share nothing");
    }
}

#[tokio::test(start_paused = true)]
async fn anonymous_clients_share_a_session_only_if_that_is_allowed() {
    let behind = counting();
    // The options are those of one handle, whatever other handles there are.
    let denied = world::relay(&behind, R4).await;
    let front = world::front(&denied.clone().share_anonymous());
    let mut nobody = Raw::known(&front, Caller::new());
    let params = modern(json!({"name": "count"}), json!({}));
    assert_eq!(count(&mut nobody, params.clone()).await, "1");
    assert_eq!(count(&mut nobody, params.clone()).await, "2");
    let mut local = Raw::known(&front, Caller::local());
    assert_eq!(count(&mut local, params.clone()).await, "1", "the local user shares nothing with them");
    let mut nobody = Raw::known(&world::front(&denied), Caller::new());
    for _ in 0..2 {
        assert_eq!(count(&mut nobody, params.clone()).await, "1");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_ends_behind_the_relay() {
    let behind = counting();
    let front = world::relayed(&behind, R4).await;
    let before = behind.sessions().len();
    let mut ann = Raw::new(&front);
    ann.open(R4, json!({})).await;
    count(&mut ann, json!({"name": "count"})).await;
    assert_eq!(behind.sessions().len(), before + 1);
    drop(ann);
    for _ in 0..1000 {
        if behind.sessions().len() == before {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(behind.sessions().len(), before);
    // A server without sessions has one connection, whoever calls.
    assert_eq!(world::relayed(&behind, R5).await.sessions().len(), 0);
}
