//! Requests of one session that overlap, where the session store or the event log takes its time.

use std::{
    future::{Future, poll_fn},
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
        http::{
            Http,
            log::{Appended, EventId, EventLog, MemoryLog, Replay},
        },
        store::{Expected, GetOptions, Got, Key, Life, MemoryStore, Put, Space, Store, Stored},
        template, tool,
    },
};
use serde_json::{Value, json};
use tokio::{sync::Semaphore, time::timeout};

use crate::support::{
    eras::{R2, R4},
    http_client::{Answer, Wire},
};

/// Less than the time after which a stream shows a sign of life.
const SOON: Duration = Duration::from_secs(5);

/// Where one operation of a store waits until the test lets it go on.
#[derive(Debug)]
struct Gate {
    reached: Semaphore,
    open: Semaphore,
}

impl Gate {
    async fn reached(&self) {
        timeout(Duration::from_secs(600), self.reached.acquire())
            .await
            .expect("not reached")
            .unwrap()
            .forget();
    }

    fn open(&self) {
        self.open.add_permits(1);
    }
}

/// The operation that is held next, and the gate that it waits at.
type HeldOperation = (&'static str, Arc<Gate>);

/// A store and a log that several nodes share, and whose operations wait or fail when a test says so.
#[derive(Clone, Debug, Default)]
struct Backend {
    store: Arc<MemoryStore>,
    log: Arc<MemoryLog>,
    held: Arc<Mutex<Option<HeldOperation>>>,
    put_fails: Arc<AtomicBool>,
    /// How often the log was told to forget a session.
    forgotten: Arc<AtomicUsize>,
}

impl Backend {
    /// Holds the next operation of this name.
    fn hold(&self, operation: &'static str) -> Arc<Gate> {
        let gate = Arc::new(Gate { reached: Semaphore::new(0), open: Semaphore::new(0) });
        *self.held.lock().unwrap() = Some((operation, gate.clone()));
        gate
    }

    async fn pass(&self, operation: &'static str) {
        let gate = self.held.lock().unwrap().take_if(|(held, _)| *held == operation);
        if let Some((_, gate)) = gate {
            gate.reached.add_permits(1);
            gate.open.acquire().await.unwrap().forget();
        }
    }

    fn node(&self) -> (Server, Http) {
        let mut timeouts = Timeouts::default();
        timeouts.idle_session = Duration::from_secs(60);
        let server = Server::new("s", "0")
            .timeouts(timeouts)
            .template(template("note://{n}", "note", || async { "" }))
            .tool(tool("one", || async { "1" }));
        let http = server.http().unwrap().session_store(self.clone()).event_log(self.clone());
        (server, http)
    }

    async fn watched(&self, client: &Wire) -> Value {
        let id = id_of(client);
        let stored = self.store.get(Key::new(Space::Session, &id), GetOptions::default()).await.unwrap();
        let Got::Value { value, .. } = stored else { panic!("{stored:?}") };
        serde_json::from_slice::<Value>(&value).unwrap()["watched"].take()
    }
}

impl Store for Backend {
    fn get<'a>(&'a self, key: Key<'a>, how: GetOptions) -> Stored<'a, Got> {
        if how.prolong.is_none() {
            return self.store.get(key, how);
        }
        Stored::later(async move {
            let found = self.store.get(key, how).await;
            self.pass("get").await;
            found
        })
    }

    fn put<'a>(&'a self, key: Key<'a>, at: Expected, value: &'a [u8], life: Life) -> Stored<'a, Put> {
        Stored::later(async move {
            self.pass("put").await;
            if self.put_fails.load(Ordering::SeqCst) {
                return Err(io::Error::other("it is broken"));
            }
            self.store.put(key, at, value, life).await
        })
    }

    fn remove<'a>(&'a self, key: Key<'a>) -> Stored<'a, bool> {
        Stored::later(async move {
            self.pass("remove").await;
            self.store.remove(key).await
        })
    }

    fn count<'a>(&'a self, key: Key<'a>, add: i64, life: Life) -> Stored<'a, i64> {
        self.store.count(key, add, life)
    }

    fn now(&self) -> Stored<'_, u64> {
        self.store.now()
    }
}

impl EventLog for Backend {
    fn open<'a>(&'a self, session: &'a str, stream: u64, opening: Bytes) -> Stored<'a, ()> {
        Stored::later(async move {
            self.pass("open").await;
            self.log.open(session, stream, opening).await
        })
    }

    fn append<'a>(&'a self, session: &'a str, id: EventId, data: Bytes) -> Stored<'a, Appended> {
        Stored::later(async move {
            self.pass("append").await;
            self.log.append(session, id, data).await
        })
    }

    fn append_last<'a>(&'a self, session: &'a str, id: EventId, data: Bytes) -> Stored<'a, Appended> {
        Stored::later(async move {
            self.pass("append").await;
            self.log.append_last(session, id, data).await
        })
    }

    fn describe<'a>(&'a self, session: &'a str, newest: EventId, opening: Bytes) -> Stored<'a, Appended> {
        self.log.describe(session, newest, opening)
    }

    fn after<'a>(&'a self, session: &'a str, last: EventId) -> Stored<'a, Replay> {
        self.log.after(session, last)
    }

    fn end<'a>(&'a self, session: &'a str, stream: u64) -> Stored<'a, ()> {
        self.log.end(session, stream)
    }

    fn forget_stream<'a>(&'a self, session: &'a str, stream: u64) -> Stored<'a, ()> {
        self.log.forget_stream(session, stream)
    }

    fn forget_session<'a>(&'a self, session: &'a str) -> Stored<'a, ()> {
        Stored::later(async move {
            self.pass("forget").await;
            self.forgotten.fetch_add(1, Ordering::SeqCst);
            self.log.forget_session(session).await
        })
    }
}

fn id_of(client: &Wire) -> String {
    client.headers.iter().find(|(name, _)| *name == "mcp-session-id").unwrap().1.clone()
}

fn at(client: &Wire, http: &Http) -> Wire {
    Wire { http: http.clone(), ..client.clone() }
}

/// Sends a request from a task of its own.
fn send(client: &Wire, id: i64, method: &'static str, params: Value) -> tokio::task::JoinHandle<Value> {
    let client = client.clone();
    tokio::spawn(async move { client.call(id, method, params).await.result().await })
}

fn subscribe(client: &Wire, id: i64, uri: &str) -> tokio::task::JoinHandle<Value> {
    send(client, id, "resources/subscribe", json!({ "uri": uri }))
}

/// Polls a request until it has reached the gate, and hangs up.
async fn hang_up_at<F: Future>(gate: &Gate, request: F) {
    let mut request = Box::pin(request);
    let mut reached = Box::pin(gate.reached());
    poll_fn(|task| {
        assert!(request.as_mut().poll(task).is_pending(), "it does not wait");
        reached.as_mut().poll(task)
    })
    .await;
}

/// Lets all tasks come as far as they can.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

async fn receives(stream: &mut Answer, uri: &str) {
    let message = timeout(SOON, stream.message()).await.expect("nothing is heard of the resource").unwrap();
    assert_eq!(message["params"]["uri"], uri, "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_record_that_was_read_before_a_subscription_does_not_undo_it() {
    let backend = Backend::default();
    let (server, http) = backend.node();
    let client = Wire::new(&http).open(R4, json!({})).await;
    let mut stream = client.get().await;
    stream.event().await.unwrap();
    let gate = backend.hold("get");
    let ping = send(&client, 1, "ping", json!({}));
    gate.reached().await;
    assert_eq!(subscribe(&client, 2, "note://1").await.unwrap()["result"], json!({}));
    gate.open();
    assert_eq!(ping.await.unwrap()["result"], json!({}));
    server.resource_updated("note://1");
    receives(&mut stream, "note://1").await;
}

#[tokio::test(start_paused = true)]
async fn a_record_that_was_read_while_a_subscription_was_written_does_not_undo_it() {
    let backend = Backend::default();
    let (server, http) = backend.node();
    let client = Wire::new(&http).open(R4, json!({})).await;
    let mut stream = client.get().await;
    stream.event().await.unwrap();
    let gate = backend.hold("put");
    let subscribed = subscribe(&client, 1, "note://1");
    gate.reached().await;
    assert_eq!(send(&client, 2, "ping", json!({})).await.unwrap()["result"], json!({}));
    gate.open();
    assert_eq!(subscribed.await.unwrap()["result"], json!({}));
    server.resource_updated("note://1");
    receives(&mut stream, "note://1").await;
}

#[tokio::test(start_paused = true)]
async fn the_sweep_does_not_undo_a_subscription() {
    let backend = Backend::default();
    let (server, http) = backend.node();
    let client = Wire::new(&http).open(R4, json!({})).await;
    let mut stream = client.get().await;
    stream.event().await.unwrap();
    let gate = backend.hold("get");
    gate.reached().await;
    assert_eq!(subscribe(&client, 1, "note://1").await.unwrap()["result"], json!({}));
    gate.open();
    settle().await;
    server.resource_updated("note://1");
    receives(&mut stream, "note://1").await;
}

#[tokio::test(start_paused = true)]
async fn an_older_record_does_not_replace_a_newer_one() {
    let backend = Backend::default();
    let ((server, http), (_, other)) = (backend.node(), backend.node());
    let client = Wire::new(&http).open(R4, json!({})).await;
    let mut stream = client.get().await;
    stream.event().await.unwrap();
    let gate = backend.hold("get");
    let ping = send(&client, 1, "ping", json!({}));
    gate.reached().await;
    assert_eq!(subscribe(&at(&client, &other), 2, "note://1").await.unwrap()["result"], json!({}));
    assert_eq!(send(&client, 3, "ping", json!({})).await.unwrap()["result"], json!({}));
    gate.open();
    assert_eq!(ping.await.unwrap()["result"], json!({}));
    server.resource_updated("note://1");
    receives(&mut stream, "note://1").await;
}

#[tokio::test(start_paused = true)]
async fn two_changes_of_a_session_are_written_in_order() {
    let backend = Backend::default();
    let (_, http) = backend.node();
    let client = Wire::new(&http).open(R4, json!({})).await;
    let gate = backend.hold("put");
    let first = subscribe(&client, 1, "note://1");
    gate.reached().await;
    let second = subscribe(&client, 2, "note://2");
    settle().await;
    gate.open();
    assert_eq!(first.await.unwrap()["result"], json!({}));
    assert_eq!(second.await.unwrap()["result"], json!({}));
    assert_eq!(backend.watched(&client).await, json!(["note://1", "note://2"]));
}

fn batch() -> Value {
    json!([
        {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "note://1"}},
        {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "one"}},
    ])
}

#[tokio::test(start_paused = true)]
async fn a_batch_whose_session_could_not_be_written_leaves_no_id_in_use() {
    let backend = Backend::default();
    let (_, http) = backend.node();
    let client = Wire::new(&http).open(R2, json!({})).await;
    backend.put_fails.store(true, Ordering::SeqCst);
    let refused = client.post(batch()).await;
    assert_eq!(refused.status, 503);
    backend.put_fails.store(false, Ordering::SeqCst);
    let answers = client.post(batch()).await.json().await;
    assert!(answers.as_array().unwrap().iter().all(|answer| answer.get("result").is_some()), "{answers}");
    assert_eq!(backend.watched(&client).await, json!(["note://1"]));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_hangs_up_while_its_session_is_written_cancels_nothing() {
    let backend = Backend::default();
    let (server, http) = backend.node();
    let ran = Arc::new(AtomicUsize::new(0));
    let runs = ran.clone();
    server
        .add_tool(tool("count", move || {
            let runs = runs.clone();
            async move {
                runs.fetch_add(1, Ordering::SeqCst);
                ""
            }
        }))
        .unwrap();
    let client = Wire::new(&http).open(R2, json!({})).await;
    let mut batch = batch();
    batch[1]["params"]["name"] = "count".into();
    let gate = backend.hold("put");
    hang_up_at(&gate, client.post(batch)).await;
    gate.open();
    settle().await;
    assert_eq!(ran.load(Ordering::SeqCst), 1, "a closed connection cancels nothing in a session");
    assert_eq!(backend.watched(&client).await, json!(["note://1"]));
    let again = send(&client, 7, "tools/call", json!({"name": "count"})).await.unwrap();
    assert!(again.get("result").is_some(), "{again}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_sends_delete_and_hangs_up_has_ended_its_session() {
    let backend = Backend::default();
    let ((_, http), (_, other)) = (backend.node(), backend.node());
    let client = Wire::new(&http).open(R4, json!({})).await;
    let gate = backend.hold("remove");
    hang_up_at(&gate, client.delete()).await;
    gate.open();
    settle().await;
    assert_eq!(at(&client, &other).call(1, "ping", json!({})).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_ended_while_it_was_written_is_not_in_the_store() {
    let backend = Backend::default();
    let ((_, http), (_, other)) = (backend.node(), backend.node());
    let client = Wire::new(&http).open(R4, json!({})).await;
    let gate = backend.hold("put");
    let subscribed = subscribe(&client, 1, "note://1");
    gate.reached().await;
    let deleting = client.clone();
    let deleted = tokio::spawn(async move { deleting.delete().await.status });
    settle().await;
    gate.open();
    assert_eq!(deleted.await.unwrap(), 204);
    subscribed.await.unwrap();
    assert_eq!(at(&client, &other).call(1, "ping", json!({})).await.status, 404);
}

/// Opens a stream, reads its first event and leaves the rest to a task.
async fn listen(client: &Wire) -> (String, tokio::task::JoinHandle<Option<Value>>) {
    let mut stream = client.get().await;
    let first = stream.event().await.unwrap().id.unwrap();
    (first, tokio::spawn(async move { stream.message().await }))
}

const TOOLS: &str = "notifications/tools/list_changed";

#[tokio::test(start_paused = true)]
async fn a_message_that_is_logged_while_its_client_resumes_is_sent_on_the_new_stream() {
    for hangs_up in [false, true] {
        let backend = Backend::default();
        let (server, http) = backend.node();
        let client = Wire::new(&http).open(R4, json!({})).await;
        let (id, old) = listen(&client).await;
        settle().await;
        let gate = backend.hold("append");
        server.add_tool(tool("two", || async { "" })).unwrap();
        gate.reached().await;
        if hangs_up {
            old.abort();
            let _ = old.await;
        }
        let mut again = client.with("last-event-id", id).get().await;
        assert_eq!(again.status, 200);
        gate.open();
        let received = timeout(SOON, again.message()).await.expect("it is sent on neither stream").unwrap();
        assert_eq!(received["method"], TOOLS);
        assert!(timeout(SOON, again.message()).await.is_err(), "once");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_stream_is_here_does_not_make_room_for_others() {
    let backend = Backend::default();
    let ((_, http), (_, other)) = (backend.node(), backend.node());
    let http = http.max_sessions(1);
    let opened = Wire::new(&http).call(0, "initialize", handshake()).await;
    let id = opened.header("mcp-session-id").unwrap();
    let client = Wire::new(&http).with("mcp-session-id", id).with("mcp-protocol-version", R4);
    // Its messages reach the other node, its stream is here.
    let there = at(&client, &other);
    assert_eq!(
        there.post(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await.status,
        202
    );
    let (_, stream) = listen(&client).await;
    assert_eq!(
        Wire::new(&http).call(0, "initialize", handshake()).await.status,
        503,
        "somebody uses the session"
    );
    assert!(timeout(SOON, stream).await.is_err(), "the stream goes on");
}

fn handshake() -> Value {
    json!({"protocolVersion": R4, "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}})
}

#[tokio::test(start_paused = true)]
async fn the_events_of_a_session_that_made_room_are_forgotten_if_the_newcomer_hangs_up() {
    let backend = Backend::default();
    let server = Server::new("s", "0").tool(tool("one", || async { "" }));
    let wire = Wire::new(&server.http().unwrap().event_log(backend.clone()).max_sessions(1));
    assert_eq!(wire.call(0, "initialize", handshake()).await.status, 200);
    let gate = backend.hold("forget");
    hang_up_at(&gate, wire.call(0, "initialize", handshake())).await;
    gate.open();
    settle().await;
    assert_eq!(backend.forgotten.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_opened_while_its_session_ends_leaves_nothing_in_the_log() {
    let backend = Backend::default();
    let (_, http) = backend.node();
    let client = Wire::new(&http).open(R4, json!({})).await;
    let gate = backend.hold("open");
    let opening = client.clone();
    let opened = tokio::spawn(async move { opening.get().await });
    gate.reached().await;
    assert_eq!(client.delete().await.status, 204);
    gate.open();
    let mut stream = opened.await.unwrap();
    let first = stream.event().await.unwrap().id.unwrap();
    let first = EventId::parse(&first).unwrap();
    let kept = backend.log.after(&id_of(&client), first).await.unwrap();
    assert!(matches!(kept, Replay::Gone), "{kept:?}");
}

#[tokio::test]
async fn a_session_that_is_somebody_elses_is_neither_restored_nor_ended() {
    let backend = Backend::default();
    let who = |http: Http| {
        http.principal(|head| head.headers.get("x-user").map(|user| user.to_str().unwrap().to_owned()))
    };
    let (here, other) = (who(backend.node().1), who(backend.node().1));
    let ann = Wire::new(&here).with("x-user", "ann").open(R4, json!({})).await;
    let eve = ann.with("x-user", "eve");
    assert_eq!(at(&eve, &other).call(1, "ping", json!({})).await.status, 404);
    assert_eq!(other.sessions(), 0, "it is not restored for somebody else");
    assert_eq!(at(&ann, &other).call(1, "ping", json!({})).await.status, 200);
    assert!(backend.store.remove(Key::new(Space::Session, &id_of(&ann))).await.unwrap());
    assert_eq!(eve.call(1, "ping", json!({})).await.status, 404);
    assert_eq!(here.sessions(), 1, "nobody else ends it");
    assert_eq!(ann.call(1, "ping", json!({})).await.status, 404);
    assert_eq!(here.sessions(), 0);
}
