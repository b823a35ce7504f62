//! What goes wrong only when two things happen at the same moment: readers that replace each other, connections that
//! break between two steps, and what must not pile up.

use std::{
    collections::BTreeSet,
    future::{Future, poll_fn},
    pin::Pin,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use pintle::{
    Server,
    server::{
        Cx,
        http::log::{Appended, EventId, EventLog, MemoryLog, Replay},
        store::{MemoryStore, Stored},
        template, tool,
    },
};
use serde_json::{Value, json};
use tokio::{
    sync::{Notify, Semaphore},
    time::timeout,
};

use crate::support::{
    eras::{R1, R2, R4},
    http_client::{Answer, Wire},
};

/// Less than the time after which a stream shows a sign of life: that would wake up whoever was forgotten.
const SOON: Duration = Duration::from_secs(5);

/// Polls once; it must not be ready.
async fn waits<F: Future>(mut future: Pin<&mut F>) {
    poll_fn(|task| {
        assert!(future.as_mut().poll(task).is_pending());
        Poll::Ready(())
    })
    .await;
}

/// Reads the first event of a stream, which has only an id, and leaves the rest to a task.
async fn listen(mut stream: Answer) -> (String, tokio::task::JoinHandle<(Option<Value>, Answer)>) {
    let first = stream.event().await.unwrap().id.unwrap();
    let listening = tokio::spawn(async move { (stream.message().await, stream) });
    tokio::task::yield_now().await;
    (first, listening)
}

fn method(message: Option<Value>) -> String {
    message.map_or_else(|| "the end".into(), |message| message["method"].as_str().unwrap().to_owned())
}

const TOOLS: &str = "notifications/tools/list_changed";

#[tokio::test(start_paused = true)]
async fn a_reader_that_was_replaced_takes_no_wake_up_with_it() {
    let permits = Arc::new(Semaphore::new(1));
    let steps = permits.clone();
    let server = Server::new("s", "0").tool(tool("steps", move |cx: Cx| {
        let permits = steps.clone();
        async move {
            for n in 1..=2 {
                permits.acquire().await.unwrap().forget();
                cx.progress(f64::from(n), None).await;
            }
            "done"
        }
    }));
    let client = Wire::new(&server.http().unwrap()).open(R4, json!({})).await;
    let params = json!({"name": "steps", "_meta": {"progressToken": 1}});
    let mut half_open = client.call(1, "tools/call", params).await;
    assert_eq!(half_open.message().await.unwrap()["params"]["progress"], 1.0);
    let first = "3-1";
    let old = tokio::spawn(async move { half_open.messages().await });
    tokio::task::yield_now().await;
    // It comes back, and waits for more, before the old one hears that it was replaced.
    let new = tokio::spawn(async move { client.with("last-event-id", first).get().await.messages().await });
    assert!(old.await.unwrap().is_empty());
    permits.add_permits(1);
    let rest = timeout(SOON, new).await.expect("nobody woke the reader").unwrap();
    assert_eq!(rest.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_get_stream_that_takes_over_is_notified_at_once() {
    let server = Server::new("s", "0").tool(tool("one", || async { "" }));
    let client = Wire::new(&server.http().unwrap()).open(R4, json!({})).await;
    let (_, first) = listen(client.get().await).await;
    let (_, second) = listen(client.get().await).await;
    second.abort();
    assert!(second.await.is_err());
    server.add_tool(tool("two", || async { "" })).unwrap();
    let (received, _) = timeout(SOON, first).await.expect("nobody woke the older stream").unwrap();
    assert_eq!(method(received), TOOLS);
}

#[tokio::test(start_paused = true)]
async fn who_comes_back_to_a_get_stream_takes_it_over() {
    let server = Server::new("s", "0").tool(tool("one", || async { "" }));
    let client = Wire::new(&server.http().unwrap()).open(R4, json!({})).await;
    let (id, half_open) = listen(client.get().await).await;
    // The old connection is dead, but nobody has noticed.
    let mut again = client.with("last-event-id", id).get().await;
    assert_eq!(again.status, 200);
    let (received, half_open) = timeout(SOON, half_open).await.expect("it goes on").unwrap();
    assert_eq!(method(received), "the end");
    drop(half_open);
    server.add_tool(tool("two", || async { "" })).unwrap();
    let received = timeout(SOON, again.message()).await.expect("it hears nothing");
    assert_eq!(method(received), TOOLS);
}

#[tokio::test]
async fn what_a_slow_get_stream_had_no_room_for_is_there_when_it_comes_back() {
    let server = Server::new("s", "0").template(template("note://{n}", "note", || async { "" }));
    let client = Wire::new(&server.http().unwrap()).open(R4, json!({})).await;
    let uris: BTreeSet<String> = (0..300).map(|n| format!("note://{n}")).collect();
    for uri in &uris {
        let notified = client.call(1, "resources/subscribe", json!({"uri": uri})).await.json().await;
        assert_eq!(notified["result"], json!({}), "{notified}");
    }
    let mut stream = client.get().await;
    stream.event().await.unwrap();
    uris.iter().for_each(|uri| server.resource_updated(&**uri));
    let mut received = Vec::new();
    while received.len() < uris.len() {
        let event = timeout(SOON, stream.event()).await.expect("something is missing").unwrap();
        let last = event.id.unwrap();
        let message: Value = serde_json::from_str(&event.data).unwrap();
        received.push(message["params"]["uri"].as_str().unwrap().to_owned());
        // As often as a piece has been read to its end.
        if stream.is_drained() {
            drop(stream);
            stream = client.with("last-event-id", &*last).get().await;
        }
    }
    assert_eq!(received.iter().cloned().collect::<BTreeSet<_>>(), uris, "each of them, and once");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_not_taken_is_passed_on() {
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let signals = (begun.clone(), go.clone());
    let server = Server::new("s", "0").concurrency(1).tool(tool("wait", move || {
        let (begun, go) = signals.clone();
        async move {
            begun.notify_one();
            go.notified().await;
            ""
        }
    }));
    let client = Wire::new(&server.http().unwrap().json_only()).open(R4, json!({})).await;
    let begin = |id| {
        let client = client.clone();
        async move { client.call(id, "tools/call", json!({"name": "wait"})).await }
    };
    let mut first = Box::pin(begin(1));
    waits(first.as_mut()).await;
    begun.notified().await;
    let (second, third) = (tokio::spawn(begin(2)), tokio::spawn(begin(3)));
    tokio::task::yield_now().await;
    // The second is offered the turn of the first, and cancelled before it has looked.
    go.notify_one();
    assert_eq!(first.await.status, 200);
    let params = json!({"requestId": 2});
    client.post(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})).await;
    assert_eq!(second.await.unwrap().status, 202);
    timeout(SOON, begun.notified()).await.expect("the third never had its turn");
    go.notify_one();
    assert_eq!(third.await.unwrap().status, 200);
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_call_begins_with_its_turn() {
    let server = Server::new("s", "0").call_timeout(Duration::from_secs(10)).concurrency(1);
    let server = server.tool(tool("work", || async {
        tokio::time::sleep(Duration::from_secs(6)).await;
        "done"
    }));
    let client = Wire::new(&server.http().unwrap()).open(R4, json!({})).await;
    let begin = |id| {
        let client = client.clone();
        tokio::spawn(
            async move { client.call(id, "tools/call", json!({"name": "work"})).await.result().await },
        )
    };
    for call in [1, 2, 3].map(begin) {
        assert_eq!(call.await.unwrap()["result"]["content"][0]["text"], "done");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_within_a_batch_cancels_nothing_of_it() {
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (ran, calls) = (Arc::new(Semaphore::new(0)), Arc::new(Mutex::new(0)));
    let signals = (begun.clone(), go.clone());
    let running = ran.clone();
    let server = Server::new("s", "0")
        .on_notification("x/slow", move |_, _| {
            let (begun, go) = signals.clone();
            async move {
                begun.notify_one();
                go.notified().await;
            }
        })
        .tool(tool("run", move || {
            let (ran, calls) = (running.clone(), calls.clone());
            async move {
                *calls.lock().unwrap() += 1;
                ran.add_permits(1);
                ""
            }
        }));
    let client = Wire::new(&server.http().unwrap()).open(R2, json!({})).await;
    let call =
        |id: i64| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "run"}});
    let batch = json!([call(1), {"jsonrpc": "2.0", "method": "x/slow", "params": {}}, call(2)]);
    let mut posted = Box::pin(client.post(batch));
    waits(posted.as_mut()).await;
    begun.notified().await;
    drop(posted);
    go.notify_one();
    let both = timeout(SOON, ran.acquire_many(2)).await;
    both.expect("a closed connection has cancelled a call of a session").unwrap().forget();
    // And they are over: their ids are free again.
    assert_eq!(client.post(json!([call(1), call(2)])).await.json().await.as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_two_endpoints_do_not_need_a_session_that_is_written_down() {
    let opened = Arc::new(Mutex::new(Vec::new()));
    let (sessions, ends) = (opened.clone(), opened.clone());
    let server = Server::new("s", "0")
        .tool(tool("greet", || async { "Hello!" }))
        .on_session(move |opened| sessions.lock().unwrap().push(opened.session.is_some()))
        .on_close(move |_, _| ends.lock().unwrap().push(false));
    let http = server.http().unwrap().two_endpoints("/sse", "/messages").session_store(MemoryStore::new());
    let wire = Wire::new(&http);
    let mut stream = wire.send(wire.request("GET", "/sse", "")).await;
    let target = stream.event().await.unwrap().data;
    let post =
        async |message: Value| wire.send(wire.request("POST", &target, message.to_string())).await.status;
    let params =
        json!({"protocolVersion": R1, "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}});
    assert_eq!(post(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})).await, 202);
    assert_eq!(stream.message().await.unwrap()["result"]["protocolVersion"], R1);
    assert_eq!(post(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await, 202);
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "greet"}});
    assert_eq!(post(call).await, 202);
    assert_eq!(stream.message().await.unwrap()["result"]["content"][0]["text"], "Hello!");
    drop(stream);
    assert_eq!(http.sessions(), 0);
    assert_eq!(*opened.lock().unwrap(), [true, false], "the hooks hear of it, as of every session");
}

/// A log that counts the streams it has to know of.
#[derive(Debug, Default)]
struct Counting {
    log: MemoryLog,
    known: Arc<Mutex<BTreeSet<u64>>>,
}

impl EventLog for Counting {
    fn open<'a>(&'a self, session: &'a str, stream: u64, opening: Bytes) -> Stored<'a, ()> {
        self.known.lock().unwrap().insert(stream);
        self.log.open(session, stream, opening)
    }

    fn append<'a>(&'a self, session: &'a str, id: EventId, data: Bytes) -> Stored<'a, Appended> {
        self.known.lock().unwrap().insert(id.stream);
        self.log.append(session, id, data)
    }

    fn append_last<'a>(&'a self, session: &'a str, id: EventId, data: Bytes) -> Stored<'a, Appended> {
        self.known.lock().unwrap().remove(&id.stream);
        self.log.append_last(session, id, data)
    }

    fn describe<'a>(&'a self, session: &'a str, newest: EventId, opening: Bytes) -> Stored<'a, Appended> {
        self.log.describe(session, newest, opening)
    }

    fn after<'a>(&'a self, session: &'a str, last: EventId) -> Stored<'a, Replay> {
        self.log.after(session, last)
    }

    fn end<'a>(&'a self, session: &'a str, stream: u64) -> Stored<'a, ()> {
        self.known.lock().unwrap().remove(&stream);
        self.log.end(session, stream)
    }

    fn forget_stream<'a>(&'a self, session: &'a str, stream: u64) -> Stored<'a, ()> {
        self.known.lock().unwrap().remove(&stream);
        self.log.forget_stream(session, stream)
    }

    fn forget_session<'a>(&'a self, session: &'a str) -> Stored<'a, ()> {
        self.known.lock().unwrap().clear();
        self.log.forget_session(session)
    }
}

#[tokio::test]
async fn get_streams_that_are_opened_over_and_over_do_not_pile_up() {
    let server = Server::new("s", "0").tool(tool("one", || async { "" }));
    let log = Counting::default();
    let known = log.known.clone();
    let client = Wire::new(&server.http().unwrap().event_log(log)).open(R4, json!({})).await;
    let mut held = Vec::new();
    for n in 0..1_000 {
        let mut stream = client.get().await;
        stream.event().await.unwrap();
        // Some are held open, most are not.
        if n % 10 == 0 {
            held.push(stream);
        }
    }
    assert!(known.lock().unwrap().len() < 100, "{}", known.lock().unwrap().len());
    // The first ones were shown out; the last one is told.
    assert!(held[0].message().await.is_none());
    drop(held);
    let (id, newest) = listen(client.get().await).await;
    newest.abort();
    assert_eq!(client.with("last-event-id", id).get().await.status, 200, "it is known");
}

#[tokio::test]
async fn a_session_that_found_no_place_is_not_written_down() {
    let server = Server::new("s", "0").tool(tool("one", || async { "" }));
    let store = Arc::new(MemoryStore::new());
    let http = server.http().unwrap().max_sessions(1).session_store(store.clone());
    let wire = Wire::new(&http);
    let first = wire.open(R4, json!({})).await;
    let _stream = first.get().await;
    let params =
        json!({"protocolVersion": R4, "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}});
    assert_eq!(wire.call(0, "initialize", params).await.status, 503);
    assert_eq!(store.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_about_to_go_lets_calls_of_the_oldest_revision_come_to_their_end() {
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let signals = (begun.clone(), go.clone());
    let server = Server::new("s", "0").tool(tool("wait", move || {
        let (begun, go) = signals.clone();
        async move {
            begun.notify_one();
            go.notified().await;
            "done"
        }
    }));
    let http = server.http().unwrap().two_endpoints("/sse", "/messages");
    let wire = Wire::new(&http);
    let mut stream = wire.send(wire.request("GET", "/sse", "")).await;
    let target = stream.event().await.unwrap().data;
    let post =
        async |message: Value| wire.send(wire.request("POST", &target, message.to_string())).await.status;
    let params =
        json!({"protocolVersion": R1, "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}});
    post(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})).await;
    stream.message().await.unwrap();
    post(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "wait"}})).await;
    begun.notified().await;
    http.close_streams();
    let rest = tokio::spawn(async move { stream.messages().await });
    tokio::task::yield_now().await;
    go.notify_one();
    let rest = timeout(SOON, rest).await.expect("the stream ends with the last call").unwrap();
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0]["result"]["content"][0]["text"], "done");
    assert_eq!(http.sessions(), 0);
}
