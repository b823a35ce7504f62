//! Ways to serve: without sessions, one server of several, sessions that are written down.

use std::sync::Arc;

use pintle::{
    Server,
    server::{
        Cx, Opened, ToolError,
        store::{Expected, GetOptions, Got, Key, Life, MemoryStore, Put, Store, Stored},
        tool,
    },
    types::schema::{ContentBlock, CreateMessageParams, Role, SamplingMessage},
};
use pintle_testing::kits::{store, two_handles};
use serde_json::json;

use crate::support::{
    eras::{HTTP_SESSIONS, R2, R3, R4},
    http_client::Wire,
};

fn server() -> Server {
    Server::new("s", "0")
        .logging()
        .tool(tool("greet", |cx: Cx| async move {
            cx.progress(1.0, None).await;
            "Hello!"
        }))
        .tool(tool("write", |cx: Cx| async move {
            let question = SamplingMessage::new(Role::User, ContentBlock::text("Write!"));
            cx.sample("text", CreateMessageParams::new(vec![question], 10)).await?;
            Ok::<_, ToolError>("written")
        }))
}

#[tokio::test]
async fn without_sessions_each_request_is_independent() {
    let http = server().http().unwrap().sessionless();
    let wire = Wire::new(&http);
    for revision in HTTP_SESSIONS {
        let wire = wire.with("mcp-protocol-version", revision);
        let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}});
        let mut opened = wire.call(0, "initialize", params).await;
        assert_eq!(opened.header("mcp-session-id"), None);
        assert_eq!(opened.json().await["result"]["protocolVersion"], revision);
        let notified = wire.post(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        assert_eq!(notified.status, 202);
        let mut quiet = wire.call(1, "tools/call", json!({"name": "greet"})).await;
        assert_eq!(quiet.json().await["result"]["content"][0]["text"], "Hello!");
        let mut loud =
            wire.call(2, "tools/call", json!({"name": "greet", "_meta": {"progressToken": 1}})).await;
        let first = loud.event().await.unwrap();
        assert_eq!((first.id, first.retry), (None, None), "there is nothing to come back to");
        assert_eq!(loud.result().await["result"]["content"][0]["text"], "Hello!");
        let mut asks = wire.call(3, "tools/call", json!({"name": "write"})).await;
        assert!(asks.json().await.to_string().contains("did not declare"), "nobody said what it can do");
        assert_eq!(wire.get().await.status, 405);
        assert_eq!(wire.delete().await.status, 405);
        assert_eq!(http.sessions(), 0);
    }
    // Who says nothing is taken for the one that says nothing.
    let batch =
        json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": 2, "method": "ping"}]);
    assert_eq!(wire.post(batch.clone()).await.json().await.as_array().unwrap().len(), 2, "as in {R2}");
    assert_eq!(wire.with("mcp-protocol-version", R3).post(batch).await.status, 400);
    assert_eq!(wire.modern(1, "tools/list", json!({}), json!({})).await.status, 200);
}

#[tokio::test]
async fn the_head_chooses_the_server() {
    let named = |name: &'static str| Server::new(name, "0").tool(tool("name", move || async move { name }));
    let (one, two) = (named("one"), named("two"));
    let http = one.clone().http().unwrap().choose(move |head| match head.uri.path() {
        "/two" => two.clone(),
        _ => one.clone(),
    });
    let wire = Wire::new(&http);
    let params = crate::support::line_client::modern(json!({"name": "name"}), json!({}));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let modern = wire
        .with("mcp-protocol-version", "2026-07-28")
        .with("mcp-method", "tools/call")
        .with("mcp-name", "name");
    for (path, name) in [("/one", "one"), ("/two", "two")] {
        let answer = modern.send(modern.request("POST", path, body.clone())).await.json().await;
        assert_eq!(answer["result"]["content"][0]["text"], name);
    }
    // A session stays where it was opened, whatever path it comes by.
    let params =
        json!({"protocolVersion": R4, "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}});
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string();
    let opened = wire.send(wire.request("POST", "/two", initialize)).await;
    let client = wire.with("mcp-session-id", opened.header("mcp-session-id").unwrap());
    let answer = client.call(1, "tools/call", json!({"name": "name"})).await.json().await;
    assert_eq!(answer["result"]["content"][0]["text"], "two");
}

/// A store that several services share.
#[derive(Clone, Debug, Default)]
struct Shared(Arc<MemoryStore>);

impl Store for Shared {
    fn get<'a>(&'a self, key: Key<'a>, how: GetOptions) -> Stored<'a, Got> {
        // As one behind a network: later.
        Stored::later(async move {
            tokio::task::yield_now().await;
            self.0.get(key, how).await
        })
    }

    fn put<'a>(&'a self, key: Key<'a>, at: Expected, value: &'a [u8], life: Life) -> Stored<'a, Put> {
        self.0.put(key, at, value, life)
    }

    fn remove<'a>(&'a self, key: Key<'a>) -> Stored<'a, bool> {
        self.0.remove(key)
    }

    fn count<'a>(&'a self, key: Key<'a>, add: i64, life: Life) -> Stored<'a, i64> {
        self.0.count(key, add, life)
    }

    fn now(&self) -> Stored<'_, u64> {
        self.0.now()
    }
}

#[tokio::test]
async fn another_process_goes_on_with_a_session_that_was_written_down() {
    let store = Shared::default();
    let node = || server().http().unwrap().session_store(store.clone());
    let (a, b) = (node(), node());
    for revision in HTTP_SESSIONS {
        let client = Wire::new(&a).open(revision, json!({"sampling": {}})).await;
        let there = Wire { http: b.clone(), ..client.clone() };
        client.call(1, "logging/setLevel", json!({"level": "error"})).await;
        let mut answer = there.call(2, "tools/call", json!({"name": "greet"})).await;
        assert_eq!(answer.json().await["result"]["content"][0]["text"], "Hello!");
        // What one is told, the other knows.
        let mut asked = there.call(3, "tools/call", json!({"name": "write"})).await;
        assert_eq!(asked.message().await.unwrap()["method"], "sampling/createMessage");
        assert_eq!(
            there.with("mcp-protocol-version", "2024-11-05").call(4, "ping", json!({})).await.status,
            400
        );

        assert_eq!(there.delete().await.status, 204);
        assert_eq!(client.call(5, "ping", json!({})).await.status, 404, "ended for all");
        assert_eq!((a.sessions(), b.sessions()), (0, 0));
    }
}

#[tokio::test]
async fn a_store_that_keeps_its_word() {
    store::check(async || Ok(two_handles(MemoryStore::new()))).await.unwrap();
    store::check(async || Ok(two_handles(Shared::default()))).await.unwrap();
}

#[tokio::test]
async fn a_store_that_forgets_is_found_out() {
    #[derive(Debug)]
    struct Forgetful;
    impl Store for Forgetful {
        fn get<'a>(&'a self, _: Key<'a>, _: GetOptions) -> Stored<'a, Got> {
            Stored::now(Got::None)
        }
        fn put<'a>(&'a self, _: Key<'a>, _: Expected, _: &'a [u8], _: Life) -> Stored<'a, Put> {
            Stored::now(Put::Done(1))
        }
        fn remove<'a>(&'a self, _: Key<'a>) -> Stored<'a, bool> {
            Stored::now(true)
        }
        fn count<'a>(&'a self, _: Key<'a>, _: i64, _: Life) -> Stored<'a, i64> {
            Stored::now(1)
        }
        fn now(&self) -> Stored<'_, u64> {
            Stored::now(1_000_000)
        }
    }
    let broken = store::check(async || Ok(two_handles(Forgetful))).await.unwrap_err();
    assert_eq!(broken.len(), 13, "{broken:#?}");
}

#[tokio::test]
async fn hooks_see_sessions_come_and_go() {
    let (tx, mut rx) = tokio::sync::mpsc::unbounded_channel();
    let (opened, closed) = (tx.clone(), tx);
    let server = server()
        .on_session(move |session: &Opened| {
            let name = session.session.as_ref().unwrap().info.as_ref().unwrap().name.clone();
            opened.send(format!("{name} of {:?}", session.principal())).unwrap();
        })
        .on_close(move |_, ended| closed.send(format!("{ended:?}")).unwrap());
    let http = server.http().unwrap().principal(|_| Some("ann".to_owned()));
    let client = Wire::new(&http).open(R4, json!({})).await;
    assert_eq!(rx.recv().await.unwrap(), r#"raw of Some("ann")"#);
    client.delete().await;
    assert_eq!(rx.recv().await.unwrap(), "Some(ByPeer { known: None })");
}
