//! Processes that share their sessions and fail: what a client sees that reaches another one.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use pintle::{
    Server,
    server::{
        Cx, ToolError,
        http::{
            Http,
            log::{Appended, EventId, EventLog, Replay},
            nodes::{MemoryFleet, MemoryNodes, Nodes, SharedStore},
        },
        store::{Store, Stored},
        tool,
    },
    types::schema::{ContentBlock, CreateMessageParams, Role, SamplingMessage},
};
use serde_json::json;
use tokio::{sync::Semaphore, time::timeout};

use super::fleet::counting;
use crate::support::{eras::R4, http_client::Wire};

/// Far more than anything here takes, under a paused clock.
const SOON: Duration = Duration::from_secs(60);

fn at(client: &Wire, http: &Http) -> Wire {
    Wire { http: http.clone(), ..client.clone() }
}

/// A process whose connection to the log can be cut behind its requests: what it asks for is done, and it is not told.
#[derive(Clone, Debug)]
struct CutOff {
    inner: MemoryNodes,
    log: Arc<CutLog>,
}

#[derive(Debug)]
struct CutLog {
    inner: Arc<dyn EventLog>,
    is_cut: AtomicBool,
    /// Whether not even the requests arrive.
    is_down: AtomicBool,
    /// Whether an event is logged, and the answer to it waits until there is a permit, and is an error.
    is_slow: AtomicBool,
    answers: Semaphore,
}

impl CutOff {
    fn new(fleet: &MemoryFleet) -> Self {
        let inner = fleet.node().unwrap();
        let log = Arc::new(CutLog {
            inner: inner.event_log(),
            is_cut: AtomicBool::new(false),
            is_down: AtomicBool::new(false),
            is_slow: AtomicBool::new(false),
            answers: Semaphore::new(0),
        });
        Self { inner, log }
    }
}

impl SharedStore for CutOff {
    fn store(&self) -> Arc<dyn Store> {
        self.inner.store()
    }

    fn event_log(&self) -> Arc<dyn EventLog> {
        self.log.clone()
    }

    fn nodes(&self) -> Arc<dyn Nodes> {
        self.inner.nodes()
    }
}

impl CutLog {
    fn answer<T>(&self, done: io::Result<T>) -> io::Result<T> {
        match self.is_cut.load(Ordering::SeqCst) {
            true => Err(io::Error::other("the connection is cut")),
            false => done,
        }
    }

    fn arrive(&self) -> io::Result<()> {
        match self.is_down.load(Ordering::SeqCst) {
            true => Err(io::Error::other("the log is down")),
            false => Ok(()),
        }
    }
}

impl EventLog for CutLog {
    fn open<'a>(&'a self, session: &'a str, stream: u64, opening: Bytes) -> Stored<'a, ()> {
        Stored::later(async move { self.answer(self.inner.open(session, stream, opening).await) })
    }

    fn append<'a>(&'a self, session: &'a str, id: EventId, data: Bytes) -> Stored<'a, Appended> {
        Stored::later(async move {
            self.arrive()?;
            let appended = self.inner.append(session, id, data).await;
            if self.is_slow.load(Ordering::SeqCst) {
                self.answers.acquire().await.unwrap().forget();
                return Err(io::Error::other("the connection is cut"));
            }
            self.answer(appended)
        })
    }

    fn append_last<'a>(&'a self, session: &'a str, id: EventId, data: Bytes) -> Stored<'a, Appended> {
        Stored::later(async move { self.answer(self.inner.append_last(session, id, data).await) })
    }

    fn describe<'a>(&'a self, session: &'a str, newest: EventId, opening: Bytes) -> Stored<'a, Appended> {
        Stored::later(async move {
            self.arrive()?;
            self.answer(self.inner.describe(session, newest, opening).await)
        })
    }

    fn after<'a>(&'a self, session: &'a str, last: EventId) -> Stored<'a, Replay> {
        Stored::later(async move { self.answer(self.inner.after(session, last).await) })
    }

    fn end<'a>(&'a self, session: &'a str, stream: u64) -> Stored<'a, ()> {
        Stored::later(async move { self.answer(self.inner.end(session, stream).await) })
    }

    /// While the connection is cut, it does not even arrive.
    fn forget_stream<'a>(&'a self, session: &'a str, stream: u64) -> Stored<'a, ()> {
        Stored::later(async move {
            self.arrive()?;
            self.answer(Ok(()))?;
            self.inner.forget_stream(session, stream).await
        })
    }

    fn forget_session<'a>(&'a self, session: &'a str) -> Stored<'a, ()> {
        self.inner.forget_session(session)
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_whose_logging_is_unclear_is_not_repeated_by_its_own_process() {
    let (fleet, go) = (MemoryFleet::new(), Arc::new(Semaphore::new(0)));
    let cut_off = CutOff::new(&fleet);
    let http = counting(&go).http().unwrap().shared(cut_off.clone());
    let client = Wire::new(&http).open(R4, json!({})).await;
    let params = json!({"name": "count", "_meta": {"progressToken": "p"}});
    go.add_permits(1);
    let mut call = client.call(7, "tools/call", params).await;
    let first = loop {
        let event = timeout(SOON, call.event()).await.unwrap().unwrap();
        if event.data.contains("\"progress\":1") {
            break event.id.unwrap();
        }
    };
    // The second event is in the log, and the process does not know it yet.
    cut_off.log.is_slow.store(true, Ordering::SeqCst);
    go.add_permits(1);
    assert!(timeout(SOON, call.event()).await.is_err());
    let mut resumed = client.with("last-event-id", first).get().await;
    assert_eq!(resumed.status, 200);
    cut_off.log.answers.add_permits(1);
    go.add_permits(2);
    let messages = timeout(SOON, resumed.messages()).await.expect("it ends");
    let progress: Vec<_> =
        messages.iter().filter_map(|message| message["params"]["progress"].as_f64()).collect();
    assert_eq!(progress, [2.0, 3.0, 4.0], "{messages:?}");
}

#[tokio::test(start_paused = true)]
async fn an_event_whose_logging_is_unclear_is_not_repeated_by_another_process() {
    let (fleet, go) = (MemoryFleet::new(), Arc::new(Semaphore::new(0)));
    let server = counting(&go);
    let cut_off = CutOff::new(&fleet);
    let a = server.http().unwrap().shared(cut_off.clone());
    let b = server.http().unwrap().shared(fleet.node().unwrap());
    let client = Wire::new(&a).open(R4, json!({})).await;
    let params = json!({"name": "count", "_meta": {"progressToken": "p"}});
    go.add_permits(1);
    let mut call = client.call(7, "tools/call", params).await;
    let mut last = None;
    let mut until = async |n: u32| loop {
        let event = timeout(SOON, call.event()).await.unwrap().unwrap();
        last = event.id.or(last.take());
        if event.data.contains(&format!("\"progress\":{n}")) {
            return last.clone().unwrap();
        }
    };
    let first = until(1).await;
    cut_off.log.is_cut.store(true, Ordering::SeqCst);
    for n in 2..=3 {
        go.add_permits(1);
        // What a client resumes with is not the id before the event that it has received.
        let unclear = until(n).await;
        assert_ne!(unclear, first);
        for http in [&a, &b] {
            let mut resumed = at(&client, http).with("last-event-id", unclear.clone()).get().await;
            assert_eq!(resumed.status, 400);
            let detail = resumed.json().await["error"]["message"].to_string();
            assert!(detail.contains("is not kept any more"), "{detail}");
        }
    }
}

/// A server with a tool that reports its progress and asks, each when it may.
fn asking(go: &Arc<Semaphore>) -> Server {
    let go = go.clone();
    Server::new("s", "0").tool(tool("ask", move |cx: Cx| {
        let go = go.clone();
        async move {
            cx.progress(1.0, None).await;
            go.acquire().await.unwrap().forget();
            let question = SamplingMessage::new(Role::User, ContentBlock::text("why?"));
            Ok::<_, ToolError>(cx.sample("why", CreateMessageParams::new(vec![question], 10)).await?.text())
        }
    }))
}

#[tokio::test(start_paused = true)]
async fn a_question_that_could_not_be_logged_is_not_waited_for_at_another_process() {
    let (fleet, go) = (MemoryFleet::new(), Arc::new(Semaphore::new(0)));
    let server = asking(&go);
    let cut_off = CutOff::new(&fleet);
    let a = server.http().unwrap().shared(cut_off.clone());
    let b = server.http().unwrap().shared(fleet.node().unwrap());
    let client = Wire::new(&a).open(R4, json!({"sampling": {}})).await;
    let params = json!({"name": "ask", "_meta": {"progressToken": "p"}});
    let mut call = client.call(7, "tools/call", params).await;
    let first = loop {
        let event = timeout(SOON, call.event()).await.unwrap().unwrap();
        if event.data.contains("\"progress\":1") {
            break event.id.unwrap();
        }
    };
    let reader = at(&client, &b).with("last-event-id", first);
    let mut resumed = reader.get().await;
    assert_eq!(resumed.status, 200);
    let quiet = timeout(Duration::from_secs(1), resumed.event());
    let (ended, quiet) = tokio::join!(timeout(SOON, call.event()), quiet);
    assert!(ended.unwrap().is_none(), "the other process reads the stream now");
    assert!(quiet.is_err());
    cut_off.log.is_down.store(true, Ordering::SeqCst);
    go.add_permits(1);
    // The call has asked, and nobody knows.
    tokio::time::sleep(Duration::from_secs(20)).await;
    cut_off.log.is_down.store(false, Ordering::SeqCst);
    while timeout(SOON, resumed.event()).await.expect("the stream ends").is_some() {}
    let mut again = reader.get().await;
    assert_eq!(again.status, 400);
    let detail = again.json().await["error"]["message"].to_string();
    assert!(detail.contains("is not kept any more"), "{detail}");
}

#[tokio::test(start_paused = true)]
async fn when_a_process_is_gone_clients_are_notified_that_changes_may_be_missed() {
    let fleet = MemoryFleet::new();
    let server = || Server::new("s", "0").may_change().tool(tool("t", || async { "" }));
    let crashing = fleet.node().unwrap();
    let a = server().http().unwrap().shared(crashing.clone());
    let b = server().http().unwrap().shared(fleet.node().unwrap());
    let client = Wire::new(&a).open(R4, json!({})).await;
    let mut stream = at(&client, &b).get().await;
    crashing.disconnect();
    let message = timeout(SOON, stream.message()).await.expect("it is told").unwrap();
    assert_eq!(message["method"], "notifications/tools/list_changed");
}

#[tokio::test(start_paused = true)]
async fn when_a_process_is_shut_down_its_changes_are_published_and_it_is_not_taken_for_gone() {
    let fleet = MemoryFleet::new();
    let server = || Server::new("s", "0").may_change().tool(tool("t", || async { "" }));
    let stopping = server();
    let (a, b) = (stopping.http().unwrap(), server().http().unwrap());
    let (a, b) = (a.shared(fleet.node().unwrap()), b.shared(fleet.node().unwrap()));
    let client = Wire::new(&a).open(R4, json!({})).await;
    let mut stream = at(&client, &b).get().await;
    stopping.tools_changed();
    a.shutdown(Duration::ZERO).await;
    let message = timeout(SOON, stream.message()).await.expect("it is told").unwrap();
    assert_eq!(message["method"], "notifications/tools/list_changed");
    drop((a, stopping));
    let other = timeout(SOON, stream.message()).await;
    assert!(other.is_err(), "{other:?}");
}

fn unix_millis() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis()
}

#[tokio::test(start_paused = true)]
async fn when_the_process_of_the_newest_get_stream_is_gone_an_older_one_has_the_messages() {
    let fleet = MemoryFleet::new();
    let server = || Server::new("s", "0").may_change().tool(tool("t", || async { "" }));
    let crashing = fleet.node().unwrap();
    let here = server();
    let a = here.http().unwrap().shared(fleet.node().unwrap());
    let b = server().http().unwrap().shared(crashing.clone());
    let client = Wire::new(&a).open(R4, json!({})).await;
    let mut older = client.get().await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    // Streams of two processes are ordered by the clock of the system, in milliseconds.
    let opened = unix_millis();
    while unix_millis() == opened {
        std::hint::spin_loop();
    }
    let mut newest = at(&client, &b).get().await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    here.tools_changed();
    timeout(SOON, newest.message()).await.expect("it is told").unwrap();
    assert!(timeout(SOON, older.message()).await.is_err(), "a message goes to one stream");
    crashing.disconnect();
    timeout(SOON, older.message()).await.expect("it is told").unwrap();
    here.tools_changed();
    timeout(SOON, older.message()).await.expect("it is told").unwrap();
}
