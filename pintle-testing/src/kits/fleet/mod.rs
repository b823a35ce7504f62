//! Checks that the processes of a fleet serve their clients as one.
//!
//! Two services share a store, and each request of a client goes to the other one on purpose. Run it on a
//! [`SharedStore`] that you wrote, after the kits of its parts: [`store`](super::store),
//! [`event_log`](super::event_log) and [`nodes`](super::nodes).
//!
//! ```
//! use pintle::server::http::nodes::MemoryFleet;
//! use pintle_testing::kits;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let checked = kits::fleet::check(async || {
//!     let fleet = MemoryFleet::new();
//!     Ok([fleet.node()?, fleet.node()?])
//! });
//! if let Err(broken) = checked.await {
//!     panic!("{broken:#?}");
//! }
//! # }
//! ```

mod kit_client;
mod matrix;

use std::{
    future::{Future as _, poll_fn},
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use http::StatusCode;
use pintle::{
    Server,
    server::{
        Cx, StateKeys,
        http::{Http, nodes::SharedStore},
        template, tool,
    },
    types::method,
};
use serde_json::{Value, json};
use tokio::{
    sync::Semaphore,
    time::{sleep, timeout},
};

use self::{
    kit_client::{KitClient, KitResponse, SOON},
    matrix::{QuestionKind, asked_in_sessions, asked_without_sessions, counted},
};
use super::harness::{Broken, Check, Checked, at_once, wrong};

/// Checks every property, with two processes of one fleet that `open` returns.
///
/// Every call has to return new processes, which may be in the same fleet. It takes some seconds.
///
/// # Errors
///
/// All properties that do not hold.
pub async fn check<S: SharedStore>(open: impl AsyncFn() -> io::Result<[S; 2]>) -> Result<(), Vec<Broken>> {
    let mut check = Check::new(async || open().await.and_then(Fleet::new));
    check.that("a session is served by every process", served).await;
    check.that("an answer reaches the call that asked, whichever process receives it", answered).await;
    let in_sessions = "every kind of question in every revision is answered or cancelled elsewhere, and its stream \
                       resumed there";
    check.that(in_sessions, asked_in_sessions).await;
    let without_sessions = "every kind of question of a stateless call is answered elsewhere, and the same again gets \
                            the same";
    check.that(without_sessions, asked_without_sessions).await;
    check.that("a second answer, and one of another session, have no effect", answered_twice).await;
    check.that("a cancellation ends the call, whichever process receives it", cancelled).await;
    check.that("a session that one process ends is over, with its calls, for all", ended).await;
    check.that("a session that was ended stays ended", stays_ended).await;
    check.that("a stream is resumed at another process without a gap or a repetition", resumed).await;
    check.that("a stream that has ended is replayed by every process", replayed).await;
    check.that("a change of the list of tools reaches clients of other processes", list_changed).await;
    check.that("a subscription counts for every process", subscribed).await;
    check.that("changes of one session at two processes are both kept", both_changed).await;
    check.that("a GET stream is resumed at another process", get_resumed).await;
    let two_streams = "of two GET streams at two processes one has the changes, and then the other one";
    check.that(two_streams, two_get_streams).await;
    check.end()
}

/// Two services that share a store.
struct Fleet {
    a: Node,
    b: Node,
    /// The calls of `wait` and `steps` go on, one step for each permit.
    go: Arc<Semaphore>,
    /// The number of calls that run.
    running: Arc<AtomicUsize>,
}

struct Node {
    server: Server,
    http: Http,
}

/// A running call, counted until it is dropped.
struct Running(Arc<AtomicUsize>);

impl Running {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The key of the states of stateless calls, which the processes share.
const STATE_KEY: [u8; 32] = [7; 32];

/// The number of progress notifications of the tool `steps`.
const STEPS: usize = 6;

impl Fleet {
    fn new<S: SharedStore>([a, b]: [S; 2]) -> io::Result<Self> {
        let (go, running) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
        let node = |store: S| {
            let server = kit_server(&go, &running);
            let http = server.http().map_err(io::Error::other)?.shared(store);
            Ok::<_, io::Error>(Node { server, http })
        };
        Ok(Self { a: node(a)?, b: node(b)?, go, running })
    }

    /// Waits until this many calls run.
    async fn expect_running(&self, count: usize) -> Checked {
        for _ in 0..SOON.as_millis() / 10 {
            if self.running.load(Ordering::SeqCst) == count {
                return Ok(());
            }
            sleep(Duration::from_millis(10)).await;
        }
        wrong(format!("{} calls run, expected {count}", self.running.load(Ordering::SeqCst)))
    }
}

fn kit_server(go: &Arc<Semaphore>, running: &Arc<AtomicUsize>) -> Server {
    let steps = {
        let (go, running) = (go.clone(), running.clone());
        tool("steps", move |cx: Cx| {
            let (go, running) = (go.clone(), Running::new(&running));
            async move {
                let _running = running;
                for step in 0..STEPS {
                    if let Ok(permit) = go.acquire().await {
                        permit.forget();
                    }
                    #[expect(clippy::cast_precision_loss, reason = "it is a small number")]
                    cx.progress(step as f64, None).await;
                }
                "done"
            }
        })
    };
    let mut server = Server::new("kit", "0").may_change().state_keys(StateKeys::from(STATE_KEY)).tool(steps);
    for kind in QuestionKind::ALL {
        let running = running.clone();
        server = server.tool(tool(kind.tool(), move |cx: Cx| counted(kind, cx, Running::new(&running))));
    }
    server.template(template("note://{n}", "note", || async { "" }))
}

async fn served(fleet: Fleet) -> Checked {
    let client = KitClient::open(&fleet.a.http).await?;
    for (id, http) in [(1, &fleet.b.http), (2, &fleet.a.http), (3, &fleet.b.http)] {
        client.call(http, id, method::PING, json!({})).await?.expect_status(StatusCode::OK)?;
    }
    Ok(())
}

fn answer(question: &Value, root: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [{"uri": root}]}})
}

fn expect_text(message: &Value, text: &str) -> Checked {
    match message["result"]["content"][0]["text"].as_str() {
        Some(found) if found == text => Ok(()),
        _ => wrong(format!("expected the result `{text}`, received {message}")),
    }
}

async fn answered(fleet: Fleet) -> Checked {
    for (here, there) in [(&fleet.a, &fleet.b), (&fleet.b, &fleet.a)] {
        let client = KitClient::open(&fleet.a.http).await?;
        let mut asked = client.call_tool(&here.http, 1, "ask").await?;
        let (_, question) = asked.message().await?;
        let accepted = client.post(&there.http, &answer(&question, "file:///there")).await?;
        accepted.expect_status(StatusCode::ACCEPTED)?;
        expect_text(&asked.message().await?.1, "file:///there")?;
    }
    Ok(())
}

async fn answered_twice(fleet: Fleet) -> Checked {
    let (client, other) = (KitClient::open(&fleet.a.http).await?, KitClient::open(&fleet.a.http).await?);
    // Both processes have both sessions.
    for client in [&client, &other] {
        client.call(&fleet.b.http, 9, method::PING, json!({})).await?.expect_status(StatusCode::OK)?;
    }
    let mut asked = client.call_tool(&fleet.a.http, 1, "ask").await?;
    let (_, question) = asked.message().await?;
    other.post(&fleet.b.http, &answer(&question, "file:///other")).await?;
    client.post(&fleet.b.http, &answer(&question, "file:///first")).await?;
    client.post(&fleet.b.http, &answer(&question, "file:///second")).await?;
    expect_text(&asked.message().await?.1, "file:///first")?;
    // The next question has an answer of its own.
    let mut asked = client.call_tool(&fleet.a.http, 2, "ask").await?;
    let (_, question) = asked.message().await?;
    client.post(&fleet.a.http, &answer(&question, "file:///third")).await?;
    expect_text(&asked.message().await?.1, "file:///third")
}

async fn cancelled(fleet: Fleet) -> Checked {
    let client = KitClient::open(&fleet.a.http).await?;
    let mut asked = client.call_tool(&fleet.a.http, 1, "ask").await?;
    asked.message().await?;
    fleet.expect_running(1).await?;
    let cancel = json!({
        "jsonrpc": "2.0",
        "method": method::NOTIFICATIONS_CANCELLED,
        "params": {"requestId": 1, "reason": "enough"},
    });
    client.post(&fleet.b.http, &cancel).await?.expect_status(StatusCode::ACCEPTED)?;
    match asked.rest().await?.iter().find(|message| message["id"] == 1) {
        None => fleet.expect_running(0).await,
        Some(response) => wrong(format!("a cancelled call was answered with {response}")),
    }
}

async fn ended(fleet: Fleet) -> Checked {
    let client = KitClient::open(&fleet.a.http).await?;
    let mut asked = client.call_tool(&fleet.a.http, 1, "ask").await?;
    asked.message().await?;
    let mut stream = client.get(&fleet.a.http, None).await?;
    fleet.expect_running(1).await?;
    client.delete(&fleet.b.http).await?.expect_status(StatusCode::NO_CONTENT)?;
    if !asked.rest().await?.iter().any(|message| message["id"] == 1 && message["error"].is_object()) {
        return wrong("a call of the session was not answered with an error");
    }
    fleet.expect_running(0).await?;
    if !stream.rest().await?.is_empty() {
        return wrong("the GET stream sent messages after the end of its session");
    }
    for http in [&fleet.a.http, &fleet.b.http] {
        client.call(http, 2, method::PING, json!({})).await?.expect_status(StatusCode::NOT_FOUND)?;
    }
    Ok(())
}

async fn stays_ended(fleet: Fleet) -> Checked {
    for round in 0..8 {
        let client = KitClient::open(&fleet.a.http).await?;
        // The session is changed at one process while it is ended at the other.
        let (changing, http) = (client.clone(), fleet.a.http.clone());
        let subscribing = tokio::spawn(async move {
            let params = json!({"uri": "note://1"});
            changing.call(&http, 1, method::RESOURCES_SUBSCRIBE, params).await.map(drop)
        });
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        client.delete(&fleet.b.http).await?.expect_status(StatusCode::NO_CONTENT)?;
        subscribing.await??;
        for http in [&fleet.a.http, &fleet.b.http] {
            client.call(http, 2, method::PING, json!({})).await?.expect_status(StatusCode::NOT_FOUND)?;
        }
    }
    Ok(())
}

/// Returns the progress of a notification.
fn progress(message: &Value) -> Option<f64> {
    message["params"]["progress"].as_f64()
}

fn expect_steps(messages: &[Value], first: usize) -> Checked {
    #[expect(clippy::cast_precision_loss, reason = "it is a small number")]
    let steps = (first..STEPS).map(|step| Some(step as f64));
    let (result, before) = messages.split_last().ok_or("the stream has no messages")?;
    expect_text(result, "done")?;
    if before.iter().map(progress).eq(steps) {
        Ok(())
    } else {
        wrong(format!("the stream does not continue after step {first} up to the last: {messages:?}"))
    }
}

async fn resumed(fleet: Fleet) -> Checked {
    for disconnects in [true, false] {
        let client = KitClient::open(&fleet.a.http).await?;
        fleet.go.add_permits(2);
        let mut call = client.call_tool(&fleet.a.http, 1, "steps").await?;
        call.message().await?;
        let (last, _) = call.message().await?;
        let held = if disconnects {
            drop(call);
            None
        } else {
            Some(call)
        };
        let mut there = client.get(&fleet.b.http, Some(&last)).await?.expect_status(StatusCode::OK)?;
        // One message while it is read, and the others at once.
        fleet.go.add_permits(1);
        let mut messages = vec![there.message().await?.1];
        fleet.go.add_permits(STEPS - 3);
        messages.extend(there.rest().await?);
        expect_steps(&messages, 2)?;
        drop(held);
        fleet.expect_running(0).await?;
    }
    Ok(())
}

async fn replayed(fleet: Fleet) -> Checked {
    let client = KitClient::open(&fleet.a.http).await?;
    fleet.go.add_permits(STEPS);
    let mut call = client.call_tool(&fleet.a.http, 1, "steps").await?;
    let mut ids = Vec::new();
    while let Some((id, _)) = call.next().await? {
        ids.push(id);
    }
    for http in [&fleet.b.http, &fleet.a.http] {
        for (seen, id) in ids.iter().enumerate().take(STEPS) {
            let mut again = client.get(http, Some(id)).await?.expect_status(StatusCode::OK)?;
            expect_steps(&again.rest().await?, seen + 1)?;
        }
    }
    Ok(())
}

async fn expect_notification(
    stream: &mut kit_client::KitResponse,
    method: &str,
    uri: Option<&str>,
) -> Checked {
    // There may be others: those of another property are processes that are gone.
    loop {
        let (_, message) = stream.message().await.map_err(|error| format!("expected `{method}`: {error}"))?;
        if message["method"] == method && message["params"]["uri"].as_str() == uri {
            return Ok(());
        }
    }
}

async fn list_changed(fleet: Fleet) -> Checked {
    let client = KitClient::open(&fleet.a.http).await?;
    let mut stream = client.get(&fleet.b.http, None).await?;
    fleet.a.server.tools_changed();
    expect_notification(&mut stream, method::NOTIFICATIONS_TOOLS_LIST_CHANGED, None).await?;
    // A process notifies its own clients too, once.
    fleet.b.server.tools_changed();
    expect_notification(&mut stream, method::NOTIFICATIONS_TOOLS_LIST_CHANGED, None).await?;
    match timeout(Duration::from_millis(300), stream.next()).await {
        Err(_) => Ok(()),
        Ok(other) => wrong(format!("the change was announced again: {other:?}")),
    }
}

async fn subscribed(fleet: Fleet) -> Checked {
    let client = KitClient::open(&fleet.a.http).await?;
    let mut stream = client.get(&fleet.b.http, None).await?;
    let subscribe =
        client.call(&fleet.a.http, 1, method::RESOURCES_SUBSCRIBE, json!({"uri": "note://1"})).await?;
    subscribe.expect_status(StatusCode::OK)?;
    // The other process learns it with the next request at the latest.
    client.call(&fleet.b.http, 2, method::PING, json!({})).await?;
    for server in [&fleet.a.server, &fleet.b.server] {
        server.resource_updated("note://1");
        expect_notification(&mut stream, method::NOTIFICATIONS_RESOURCES_UPDATED, Some("note://1")).await?;
    }
    Ok(())
}

async fn both_changed(fleet: Fleet) -> Checked {
    let client = KitClient::open(&fleet.a.http).await?;
    client.call(&fleet.b.http, 0, method::PING, json!({})).await?;
    let watchers = (0..8).map(|n| {
        let (client, http) = (client.clone(), if n % 2 == 0 { &fleet.a.http } else { &fleet.b.http }.clone());
        async move {
            let params = json!({"uri": format!("note://{n}")});
            let subscribed = client.call(&http, n + 1, method::RESOURCES_SUBSCRIBE, params).await?;
            subscribed.expect_status(StatusCode::OK)
        }
    });
    for watched in at_once(watchers).await? {
        watched?;
    }
    // Every process knows all of them, once it has read the session again.
    for node in [&fleet.a, &fleet.b] {
        client.call(&node.http, 20, method::PING, json!({})).await?;
        let mut stream = client.get(&node.http, None).await?;
        for n in 0..8 {
            let uri = format!("note://{n}");
            node.server.resource_updated(uri.as_str());
            // A process may announce changes that were made before the stream was opened, too.
            while stream.message().await?.1["params"]["uri"] != uri.as_str() {}
        }
    }
    Ok(())
}

async fn get_resumed(fleet: Fleet) -> Checked {
    let client = KitClient::open(&fleet.a.http).await?;
    let mut stream = client.get(&fleet.a.http, None).await?;
    fleet.a.server.tools_changed();
    let (first, _) = stream.message().await?;
    fleet.a.server.tools_changed();
    let (second, _) = stream.message().await?;
    drop(stream);
    let mut there = client.get(&fleet.b.http, Some(&first)).await?.expect_status(StatusCode::OK)?;
    match there.message().await? {
        (id, _) if id == second => {}
        other => return wrong(format!("expected the event `{second}`, received {other:?}")),
    }
    fleet.a.server.tools_changed();
    expect_notification(&mut there, method::NOTIFICATIONS_TOOLS_LIST_CHANGED, None).await
}

async fn two_get_streams(fleet: Fleet) -> Checked {
    for a_closes in [true, false] {
        let client = KitClient::open(&fleet.a.http).await?;
        let mut here = client.get(&fleet.a.http, None).await?;
        // The other process gets to know the session with this request, and that there is an older stream.
        let mut there = client.get(&fleet.b.http, None).await?;
        for _ in 0..3 {
            fleet.a.server.tools_changed();
            first_message(&mut here, &mut there).await?;
        }
        let (mut open, closed) = if a_closes { (there, here) } else { (here, there) };
        drop(closed);
        fleet.b.server.tools_changed();
        // Also if the stream that was closed had taken it before.
        fleet.a.server.tools_changed();
        expect_notification(&mut open, method::NOTIFICATIONS_TOOLS_LIST_CHANGED, None).await?;
        fleet.a.server.tools_changed();
        expect_notification(&mut open, method::NOTIFICATIONS_TOOLS_LIST_CHANGED, None).await?;
    }
    Ok(())
}

/// Waits for a message of either stream.
async fn first_message(one: &mut KitResponse, other: &mut KitResponse) -> Checked {
    let (mut one, mut other) = (pin!(one.message()), pin!(other.message()));
    poll_fn(|task| match one.as_mut().poll(task) {
        Poll::Pending => other.as_mut().poll(task),
        ready => ready,
    })
    .await
    .map(drop)
}
