//! Sessions and events that are written down: what holds when a store or a log fails, is full, or is used by others.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use pintle::{
    Server, Timeouts,
    server::{
        Cx, Next, around,
        http::{
            Http,
            log::{Appended, EventId, EventLog, MemoryLog, Replay},
        },
        store::{Expected, GetOptions, Got, Key, Life, MemoryStore, Put, Store, Stored},
        tool,
    },
};
use serde_json::json;
use tokio::sync::Notify;

use crate::support::{eras::R4, http_client::Wire};

/// A log and a store that several services share, and that fail when they are told to.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared {
    log: Arc<MemoryLog>,
    pub(super) store: Arc<MemoryStore>,
    /// Appending what holds this fails.
    fails_at: Arc<Mutex<Option<&'static str>>>,
    down: Arc<AtomicBool>,
    /// Removing a session fails.
    remove_fails: Arc<AtomicBool>,
    forgotten: Arc<Mutex<Vec<String>>>,
    /// How often forgetting a stream fails.
    forget_fails: Arc<AtomicUsize>,
    put_fails: Arc<AtomicBool>,
    put_panics: Arc<AtomicBool>,
    puts: Arc<AtomicUsize>,
}

fn broken<T: Send + 'static>() -> Stored<'static, T> {
    Stored::later(async { Err(io::Error::other("it is broken")) })
}

impl EventLog for Shared {
    fn open<'a>(&'a self, session: &'a str, stream: u64, opening: Bytes) -> Stored<'a, ()> {
        self.log.open(session, stream, opening)
    }

    fn append<'a>(&'a self, session: &'a str, id: EventId, data: Bytes) -> Stored<'a, Appended> {
        let text = String::from_utf8_lossy(&data).into_owned();
        if self.fails_at.lock().unwrap().is_some_and(|mark| text.contains(mark)) {
            return broken();
        }
        self.log.append(session, id, data)
    }

    fn append_last<'a>(&'a self, session: &'a str, id: EventId, data: Bytes) -> Stored<'a, Appended> {
        let text = String::from_utf8_lossy(&data).into_owned();
        if self.fails_at.lock().unwrap().is_some_and(|mark| text.contains(mark)) {
            return broken();
        }
        self.log.append_last(session, id, data)
    }

    fn describe<'a>(&'a self, session: &'a str, newest: EventId, opening: Bytes) -> Stored<'a, Appended> {
        self.log.describe(session, newest, opening)
    }

    fn after<'a>(&'a self, session: &'a str, last: EventId) -> Stored<'a, Replay> {
        if self.down.load(Ordering::SeqCst) { broken() } else { self.log.after(session, last) }
    }

    fn end<'a>(&'a self, session: &'a str, stream: u64) -> Stored<'a, ()> {
        self.log.end(session, stream)
    }

    fn forget_stream<'a>(&'a self, session: &'a str, stream: u64) -> Stored<'a, ()> {
        let less = |left: usize| left.checked_sub(1);
        if self.forget_fails.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok() {
            return broken();
        }
        self.log.forget_stream(session, stream)
    }

    fn forget_session<'a>(&'a self, session: &'a str) -> Stored<'a, ()> {
        self.forgotten.lock().unwrap().push(session.to_owned());
        self.log.forget_session(session)
    }
}

impl Store for Shared {
    fn get<'a>(&'a self, key: Key<'a>, how: GetOptions) -> Stored<'a, Got> {
        if how.prolong.is_some() && self.down.load(Ordering::SeqCst) {
            broken()
        } else {
            self.store.get(key, how)
        }
    }

    fn put<'a>(&'a self, key: Key<'a>, at: Expected, value: &'a [u8], life: Life) -> Stored<'a, Put> {
        self.puts.fetch_add(1, Ordering::SeqCst);
        if at != Expected::Absent {
            assert!(!self.put_panics.load(Ordering::SeqCst), "it panics");
            if self.put_fails.load(Ordering::SeqCst) {
                return broken();
            }
        }
        self.store.put(key, at, value, life)
    }

    fn remove<'a>(&'a self, key: Key<'a>) -> Stored<'a, bool> {
        if self.remove_fails.load(Ordering::SeqCst) { broken() } else { self.store.remove(key) }
    }

    fn count<'a>(&'a self, key: Key<'a>, add: i64, life: Life) -> Stored<'a, i64> {
        self.store.count(key, add, life)
    }

    fn now(&self) -> Stored<'_, u64> {
        self.store.now()
    }
}

impl Shared {
    fn node(&self) -> Http {
        let mut timeouts = Timeouts::default();
        timeouts.idle_session = Duration::from_secs(60);
        let count = tool("count", |cx: Cx| async move {
            for n in 1..=4 {
                cx.progress(f64::from(n), None).await;
            }
            "done"
        });
        let server = Server::new("s", "0").timeouts(timeouts).tool(count);
        server.http().unwrap().session_store(self.clone()).event_log(self.clone())
    }

    fn forgot(&self, session: &Wire) -> usize {
        let (_, id) = session.headers.iter().find(|(name, _)| *name == "mcp-session-id").unwrap();
        self.forgotten.lock().unwrap().iter().filter(|other| *other == id).count()
    }
}

pub(super) fn at(session: &Wire, http: &Http) -> Wire {
    Wire { http: http.clone(), ..session.clone() }
}

#[tokio::test]
async fn an_event_that_could_not_be_kept_leaves_no_gap() {
    let shared = Shared::default();
    let (node, other) = (shared.node(), shared.node());
    let client = Wire::new(&node).open(R4, json!({})).await;
    for mark in [None, Some("\"progress\":3"), Some("done")] {
        *shared.fails_at.lock().unwrap() = mark;
        let params = json!({"name": "count", "_meta": {"progressToken": "p"}});
        let mut answer = client.call(1, "tools/call", params).await;
        // Whoever reads it all the time gets all of it.
        let mut events = Vec::new();
        while let Some(event) = answer.event().await {
            events.push(event);
        }
        let reply: Vec<_> = events.iter().filter(|event| !event.data.is_empty()).collect();
        assert_eq!(reply.len(), 5, "{mark:?}");
        let first = reply[0].id.clone().unwrap();
        // Whoever comes back gets all that followed, or is told that something is missing, here and elsewhere.
        for wire in [&client, &at(&client, &other)] {
            let mut again = wire.with("last-event-id", first.clone()).get().await;
            if mark.is_none() {
                assert_eq!(again.status, 200);
                let rest = again.messages().await;
                assert_eq!(rest.len(), 4);
            } else {
                assert_eq!(again.status, 400, "{mark:?}");
                let error = again.json().await["error"]["message"].as_str().unwrap().to_owned();
                assert!(error.contains("not kept any more"), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn a_stream_that_could_not_be_forgotten_at_once_is_not_resumed_elsewhere() {
    for failures in [1, 2] {
        let shared = Shared::default();
        *shared.fails_at.lock().unwrap() = Some("\"progress\":3");
        shared.forget_fails.store(failures, Ordering::SeqCst);
        let more = Arc::new(Notify::new());
        let server = Server::new("s", "0").tool(tool("count", {
            let more = more.clone();
            move |cx: Cx| {
                let more = more.clone();
                async move {
                    for n in 1..=3 {
                        cx.progress(f64::from(n), None).await;
                    }
                    more.notified().await;
                    cx.progress(4.0, None).await;
                    std::future::pending::<&str>().await
                }
            }
        }));
        let node = || server.http().unwrap().session_store(shared.clone()).event_log(shared.clone());
        let (here, other) = (node(), node());
        let client = Wire::new(&here).open(R4, json!({})).await;
        let params = json!({"name": "count", "_meta": {"progressToken": "p"}});
        let mut answer = client.call(1, "tools/call", params).await;
        let mut ids = Vec::new();
        for n in 1..=3 {
            let event = loop {
                let event = answer.event().await.unwrap();
                if !event.data.is_empty() {
                    break event;
                }
            };
            ids.push(event.id.unwrap());
            assert!(event.data.contains(&format!("\"progress\":{n}")), "{}", event.data);
        }
        if failures > 1 {
            // Tried again with the next message.
            more.notify_one();
            answer.message().await.unwrap();
        }
        // Neither from one that is in the log, nor from the one that is not.
        for id in [&ids[0], &ids[2]] {
            for wire in [at(&client, &other), client.clone()] {
                let mut again = wire.with("last-event-id", id.clone()).get().await;
                assert_eq!(again.status, 400, "{failures}");
                let error = again.json().await["error"]["message"].as_str().unwrap().to_owned();
                assert!(error.contains("not kept any more"), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn a_log_that_is_down_has_not_forgotten() {
    let shared = Shared::default();
    let node =
        Server::new("s", "0").tool(tool("t", || async { "" })).http().unwrap().event_log(shared.clone());
    let client = Wire::new(&node).open(R4, json!({})).await;
    let mut stream = client.get().await;
    let first = stream.event().await.unwrap().id.unwrap();
    drop(stream);
    shared.down.store(true, Ordering::SeqCst);
    let refused = client.with("last-event-id", first.clone()).get().await;
    assert_eq!(refused.status, 503);
    assert!(refused.headers.contains_key("retry-after"));
    shared.down.store(false, Ordering::SeqCst);
    assert_eq!(client.with("last-event-id", first).get().await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn an_open_stream_keeps_its_session_where_it_is_written_down() {
    let shared = Shared::default();
    let (a, b) = (shared.node(), shared.node());
    let client = Wire::new(&a).open(R4, json!({})).await;
    let stream = client.get().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(at(&client, &b).call(1, "ping", json!({})).await.status, 200);
    // One that was ended elsewhere is over here too, without being asked for.
    assert_eq!(at(&client, &b).delete().await.status, 204);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(a.sessions(), 0);
    drop(stream);
}

#[tokio::test]
async fn a_node_that_is_full_does_not_say_that_there_is_no_such_session() {
    let shared = Shared::default();
    let (a, b) = (shared.node(), shared.node().max_sessions(1));
    let client = Wire::new(&a).open(R4, json!({})).await;
    let there = Wire::new(&b).open(R4, json!({})).await;
    // It is in use, so it makes no room.
    let _stream = there.get().await;
    let mut refused = at(&client, &b).call(1, "ping", json!({})).await;
    assert_eq!(refused.status, 503);
    assert!(refused.headers.contains_key("retry-after"));
    assert!(refused.json().await["error"]["message"].as_str().unwrap().contains("try again later"));
    assert_eq!(client.call(1, "ping", json!({})).await.status, 200);
    assert_eq!(there.delete().await.status, 204);
    assert_eq!(at(&client, &b).call(1, "ping", json!({})).await.status, 200);
    // Nor does one whose store is down.
    shared.down.store(true, Ordering::SeqCst);
    let refused = client.call(1, "ping", json!({})).await;
    assert_eq!(refused.status, 503);
    assert!(refused.headers.contains_key("retry-after"));
}

#[tokio::test(start_paused = true)]
async fn the_process_that_used_a_session_last_deletes_its_events() {
    let shared = Shared::default();
    let (a, b) = (shared.node(), shared.node());
    let client = Wire::new(&a).open(R4, json!({})).await;
    let there = at(&client, &b);
    for _ in 0..6 {
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(there.call(1, "ping", json!({})).await.status, 200);
    }
    assert_eq!(a.sessions(), 0, "nobody uses it here");
    assert_eq!(shared.forgot(&client), 0, "but elsewhere");
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(b.sessions(), 0);
    assert_eq!(shared.forgot(&client), 1);
    assert_eq!(there.call(1, "ping", json!({})).await.status, 404);
}

#[tokio::test]
async fn a_session_that_could_not_be_removed_is_not_reported_as_ended() {
    let shared = Shared::default();
    let (a, b) = (shared.node(), shared.node());
    let client = Wire::new(&a).open(R4, json!({})).await;
    shared.remove_fails.store(true, Ordering::SeqCst);
    for _ in 0..2 {
        let mut refused = client.delete().await;
        assert_eq!(refused.status, 503);
        assert!(refused.headers.contains_key("retry-after"));
        assert!(refused.json().await["error"]["message"].as_str().unwrap().contains("try again later"));
    }
    // The application learns it too, from a process that has the session.
    let elsewhere = at(&client, &b);
    assert_eq!(elsewhere.call(1, "ping", json!({})).await.status, 200);
    let id = client.headers.iter().find(|(name, _)| *name == "mcp-session-id").unwrap().1.clone();
    assert!(b.end_session(&id).await.is_err());
    // The retry ends it, for all processes.
    shared.remove_fails.store(false, Ordering::SeqCst);
    assert_eq!(client.delete().await.status, 204);
    for wire in [&client, &elsewhere] {
        assert_eq!(wire.call(1, "ping", json!({})).await.status, 404);
    }
}

#[tokio::test]
async fn a_session_that_its_handle_closes_is_removed_from_the_store() {
    let shared = Shared::default();
    let server = Server::new("s", "0");
    let a = server.http().unwrap().session_store(shared.clone()).event_log(shared.clone());
    let client = Wire::new(&a).open(R4, json!({})).await;
    let session = server.sessions().remove(0);
    shared.remove_fails.store(true, Ordering::SeqCst);
    let error = session.close().await.unwrap_err().to_string();
    assert!(error.contains("the session store failed: it is broken"), "{error}");
    shared.remove_fails.store(false, Ordering::SeqCst);
    // It is still in the store, and continued; then it is closed for good.
    assert_eq!(client.call(1, "ping", json!({})).await.status, 200);
    assert_eq!(server.sessions().remove(0).close().await, Ok(()));
    let b = shared.node();
    for wire in [&client, &at(&client, &b)] {
        assert_eq!(wire.call(1, "ping", json!({})).await.status, 404);
    }
    assert_eq!(shared.forgot(&client), 2);
}

#[tokio::test]
async fn a_change_that_layers_pass_on_is_stored_before_it_is_answered() {
    let shared = Shared::default();
    let pass = |cx: Cx, next: Next| next.run(cx);
    let server = Server::new("s", "0").logging().layer(&around(pass));
    let node = || server.http().unwrap().session_store(shared.clone()).event_log(shared.clone());
    let (a, b) = (node(), node());
    let client = Wire::new(&a).open(R4, json!({})).await;
    let set = |level: &str| json!({"level": level});
    shared.put_fails.store(true, Ordering::SeqCst);
    let mut refused = client.call(1, "logging/setLevel", set("error")).await;
    assert_eq!(refused.status, 503);
    let reply = refused.json().await;
    assert_eq!(reply["error"]["code"], -31503, "{reply}");
    assert!(reply["error"]["message"].as_str().unwrap().contains("the session store is unavailable"));
    shared.put_fails.store(false, Ordering::SeqCst);
    let before = shared.puts.load(Ordering::SeqCst);
    let mut done = client.call(2, "logging/setLevel", set("warning")).await;
    assert_eq!(done.json().await["result"], json!({}));
    assert_eq!(shared.puts.load(Ordering::SeqCst), before + 1);
    // The other process goes on with it.
    assert_eq!(at(&client, &b).call(3, "ping", json!({})).await.status, 200);
}

#[tokio::test]
async fn a_store_that_panics_is_an_error_of_the_request_and_of_no_other() {
    let shared = Shared::default();
    let server = Server::new("s", "0").logging();
    let http = server.http().unwrap().session_store(shared.clone()).event_log(shared.clone());
    let client = Wire::new(&http).open(R4, json!({})).await;
    shared.put_panics.store(true, Ordering::SeqCst);
    let mut failed = client.call(1, "logging/setLevel", json!({"level": "error"})).await;
    assert_eq!(failed.status, 500);
    let reply = failed.json().await;
    assert!(reply["error"]["message"].as_str().unwrap().contains("could not be stored"), "{reply}");
    shared.put_panics.store(false, Ordering::SeqCst);
    assert_eq!(client.call(1, "ping", json!({})).await.status, 200);
    let again = client.call(2, "logging/setLevel", json!({"level": "error"})).await;
    assert_eq!(again.status, 200);
}
