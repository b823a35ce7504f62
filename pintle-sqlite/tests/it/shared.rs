//! Sessions, call states, rates and values that are used once in an SQLite file that processes share.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::Request;
use http_body::Body as _;
use pintle::{
    Server,
    server::{
        Cx, Rules, StateKeys, ToolError,
        http::Http,
        store::{Expected, Key, Life, Put, Sealed, Space, Store as _},
        tool,
    },
};
use pintle_testing::kits;
use serde_json::{Value, json};

use crate::{folder::Folder, shared_store::SqliteStore};

const SESSION: &str = "mcp-session-id";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Seats {
    count: u8,
}

/// Two processes with one file.
fn two_processes(folder: &Folder, server: impl Fn(SqliteStore) -> Server) -> [Http; 2] {
    [(); 2].map(|()| {
        let store = SqliteStore::open(&folder.file("shared.db")).unwrap();
        let server = server(store.clone()).state_keys(StateKeys::from([7; 32])).replay_store(store.clone());
        server.http().unwrap().json_only().session_store(store)
    })
}

/// Sends a request. Returns the status, the id of the session, and the response.
async fn post(http: &Http, head: &[(&str, &str)], body: Value) -> (u16, Option<String>, Value) {
    let request =
        Request::post("/mcp").header("host", "localhost").header("content-type", "application/json");
    let request = request.header("accept", "application/json, text/event-stream");
    let request = head.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let (head, ()) = request.body(()).unwrap().into_parts();
    let response = http.answer(head, Bytes::from(body.to_string())).await;
    let session = response.headers().get(SESSION).map(|id| id.to_str().unwrap().to_owned());
    let (status, mut body, mut bytes) = (response.status().as_u16(), response.into_body(), Vec::new());
    while let Some(frame) = poll_fn(|task| Pin::new(&mut body).poll_frame(task)).await {
        bytes.extend(frame.unwrap().into_data().unwrap_or_default());
    }
    (status, session, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// Calls a tool without a session.
async fn call(http: &Http, tool: &str, more: Value) -> Value {
    let head = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", tool)];
    let mut params = json!({"name": tool, "arguments": {}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    post(http, &head, json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})).await.2
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_of_another_database_keeps_its_contract() {
    let folder = Folder::new();
    let open = || SqliteStore::open(&folder.file("kit.db"));
    kits::store::check(async || Ok([open()?, open()?])).await.unwrap();
    let sealed = || Ok::<_, std::io::Error>(Sealed::new(open()?, StateKeys::from([7; 32])));
    kits::store::check(async || Ok([sealed()?, sealed()?])).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_process_continues_and_ends_a_session() {
    let folder = Folder::new();
    let [one, other] = two_processes(&folder, |_| Server::new("notes", "1"));
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "c", "version": "0"}});
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let (_, session, _) = post(&one, &[], initialize).await;
    let session = session.unwrap();
    let head = [(SESSION, &*session), ("mcp-protocol-version", "2025-06-18")];
    let ping = || json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    for http in [&other, &one] {
        assert_eq!(post(http, &head, ping()).await.0, 200);
    }
    let store = SqliteStore::open(&folder.file("shared.db")).unwrap();
    assert!(store.remove(Key::new(Space::Session, &session)).await.unwrap());
    for http in [&other, &one] {
        assert_eq!(post(http, &head, ping()).await.0, 404);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_is_used_once_by_all_processes() {
    let folder = Folder::new();
    let booked = Arc::new(AtomicUsize::new(0));
    let [one, other] = two_processes(&folder, |_| {
        let booked = booked.clone();
        Server::new("desk", "1").tool(tool("book", move |cx: Cx| {
            let booked = booked.clone();
            async move {
                let seats = cx.elicit::<Seats>("seats", "How many?").await?.accepted();
                let number = booked.fetch_add(1, Ordering::SeqCst) + 1;
                Ok::<_, ToolError>(format!("{number}: {}", seats.map_or(0, |seats| seats.count)))
            }
        }))
    });
    let asked = call(&one, "book", json!({})).await;
    let state = &asked["result"]["requestState"];
    assert!(state.is_string(), "{asked}");
    let answer = |count: u8| {
        let answers = json!({"seats": {"action": "accept", "content": {"count": count}}});
        json!({"requestState": state, "inputResponses": answers})
    };
    let (first, again) = tokio::join!(call(&other, "book", answer(4)), call(&one, "book", answer(4)));
    for reply in [first, again, call(&other, "book", answer(4)).await] {
        assert_eq!(reply["result"]["content"][0]["text"], "1: 4", "{reply}");
    }
    let refused = call(&one, "book", answer(5)).await;
    assert!(refused["error"].to_string().contains("used with other answers"), "{refused}");
    assert_eq!(booked.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_have_one_rate() {
    let folder = Folder::new();
    let processes = two_processes(&folder, |store| {
        let set = json!({"rules": [{"rate": {"calls": 5, "seconds": 3600}, "decision": "allow"}]});
        let rules = Rules::new(serde_json::from_value(set).unwrap()).unwrap().share_rates(store);
        Server::new("dice", "1").tool(tool("roll", || async { "4" })).gate(rules)
    });
    let mut allowed = 0;
    for process in processes.iter().cycle().take(20_000) {
        let reply = call(process, "roll", json!({})).await;
        allowed += u32::from(reply["result"].is_object());
        // It knows that there are no more; without an answer of the store it asks for a short wait.
        if reply["error"]["data"]["retryAfterMs"].as_u64() > Some(1_000) {
            break;
        }
    }
    // And a block of one call on credit, at each of them.
    assert!((5..=7).contains(&allowed), "{allowed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_is_used_once_by_all_processes_and_after_a_restart() {
    let folder = Folder::new();
    let first_use = async || {
        let store = SqliteStore::open(&folder.file("shared.db")).unwrap();
        let key = Key::new(Space::Nonce, "07");
        store.put(key, Expected::Absent, b"", Life::Until(4_000_000_000_000)).await.unwrap()
    };
    assert_eq!(first_use().await, Put::Done(1));
    assert_eq!(first_use().await, Put::Other);
}
