//! Sessions that another process restores from the store: at which server, and by leave of which hooks.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Server,
    server::{
        Opened,
        http::Http,
        store::{Expected, GetOptions, Got, Key, Life, Put, Space, Store as _},
        tool,
    },
    types::RpcError,
};
use serde_json::{Value, json};

use super::stores::{Shared, at};
use crate::support::{eras::R4, http_client::Wire};

const IDLE: Duration = Duration::from_secs(60);

fn tenant(name: &'static str) -> Server {
    Server::new(name, "1").tool(tool("name", move || async move { name }))
}

/// A process with two tenants. The header `x-b` chooses the second.
fn tenants(shared: &Shared) -> Http {
    let (a, b) = (tenant("a"), tenant("b"));
    let http = a.http().unwrap().session_store(shared.clone()).event_log(shared.clone());
    http.choose(move |head| if head.headers.contains_key("x-b") { b.clone() } else { a.clone() })
}

fn id(session: &Wire) -> &str {
    &session.headers.iter().find(|(name, _)| *name == "mcp-session-id").unwrap().1
}

async fn name(session: &Wire) -> Value {
    let mut answer = session.call(1, "tools/call", json!({"name": "name"})).await;
    assert_eq!(answer.status, 200);
    answer.json().await["result"]["content"][0]["text"].take()
}

#[tokio::test]
async fn a_session_is_restored_only_at_the_server_that_it_was_opened_with() {
    let shared = Shared::default();
    let (one, other) = (tenants(&shared), tenants(&shared));
    for (opened, named, elsewhere) in [("", "a", "1"), ("1", "b", "")] {
        let client = Wire::new(&one).with("x-b", opened).open(R4, json!({})).await;
        let there = at(&client, &other);
        let wrong = there.with("x-b", elsewhere);
        assert_eq!(wrong.call(1, "tools/call", json!({"name": "name"})).await.status, 404);
        assert_eq!(wrong.get().await.status, 404);
        assert_eq!(wrong.delete().await.status, 404);
        assert_eq!(other.sessions(), 0);
        // It is not lost for its own server, in either process.
        assert_eq!(name(&client).await, named);
        assert_eq!(name(&there).await, named);
        // Where it lives, its own server answers, whichever the request chooses.
        assert_eq!(name(&wrong).await, named);
        assert_eq!(there.delete().await.status, 204);
    }
}

#[tokio::test]
async fn a_record_that_names_no_server_is_restored_only_if_there_is_no_choice() {
    let shared = Shared::default();
    let client = Wire::new(&tenants(&shared)).open(R4, json!({})).await;
    let key = Key::new(Space::Session, id(&client));
    let stored = shared.store.get(key, GetOptions::default()).await.unwrap();
    let Got::Value { version: 1, value } = stored else { panic!("{stored:?}") };
    let mut record: Value = serde_json::from_slice(&value).unwrap();
    record.as_object_mut().unwrap().remove("server");
    let record = record.to_string();
    let put = shared.store.put(key, Expected::Version(1), record.as_bytes(), Life::Idle(IDLE));
    assert_eq!(put.await.unwrap(), Put::Done(2));
    for chosen in ["", "1"] {
        let there = at(&client, &tenants(&shared)).with("x-b", chosen);
        assert_eq!(there.call(1, "ping", json!({})).await.status, 404);
    }
    let single = tenant("a").http().unwrap().session_store(shared.clone());
    assert_eq!(name(&at(&client, &single)).await, "a");
    // The record is that of another server, so this one has no such session.
    let client = Wire::new(&tenants(&shared)).open(R4, json!({})).await;
    let another = tenant("b").http().unwrap().session_store(shared.clone());
    assert_eq!(at(&client, &another).call(1, "ping", json!({})).await.status, 404);
}

#[tokio::test]
async fn the_hooks_are_asked_when_a_session_is_restored() {
    let shared = Shared::default();
    for session_hook in [false, true] {
        let refuses = Arc::new(AtomicBool::new(false));
        let asked = Arc::new(AtomicUsize::new(0));
        let closed = Arc::new(Mutex::new(Vec::new()));
        let node = || {
            let (refuses, asked, closed) = (refuses.clone(), asked.clone(), closed.clone());
            let hook = move |opened: &Opened| {
                asked.fetch_add(1, Ordering::SeqCst);
                assert_eq!(opened.session.is_some(), session_hook);
                if refuses.load(Ordering::SeqCst) {
                    return Err(RpcError::invalid_request("this client is blocked"));
                }
                Ok(())
            };
            let server = tenant("a");
            let server = if session_hook { server.on_session(hook) } else { server.on_open(hook) };
            let server = server.on_close(move |_, ended| closed.lock().unwrap().push(format!("{ended:?}")));
            server.http().unwrap().session_store(shared.clone()).event_log(shared.clone())
        };
        let (one, other) = (node(), node());
        let client = Wire::new(&one).open(R4, json!({})).await;
        let there = at(&client, &other);
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        refuses.store(true, Ordering::SeqCst);
        for mut refused in [there.call(1, "ping", json!({})).await, there.get().await, there.delete().await] {
            assert_eq!(refused.status, 403);
            assert_eq!(refused.json().await["error"]["message"], "this client is blocked");
        }
        assert_eq!(other.sessions(), 0);
        assert_eq!(asked.load(Ordering::SeqCst), 4);
        assert_eq!(*closed.lock().unwrap(), ["Some(Stopped)"; 3]);
        // A live session was accepted already, and one that is accepted is not asked about again.
        assert_eq!(name(&client).await, "a");
        refuses.store(false, Ordering::SeqCst);
        for _ in 0..3 {
            assert_eq!(name(&there).await, "a");
        }
        assert_eq!(asked.load(Ordering::SeqCst), 5);
        assert_eq!(there.delete().await.status, 204);
        assert_eq!(closed.lock().unwrap().len(), 4);
    }
}
