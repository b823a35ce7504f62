//! Functions that are not `async`: they run on the blocking pool, unless they are said to run in place.

use std::{
    sync::{Arc, Condvar, Mutex},
    thread,
    time::Duration,
};

use pintle::{
    Server,
    server::{Caller, Cx, State, blocking, prompt, resource},
};
use serde_json::json;

use crate::support::{
    eras::{Client, R4, R5, each},
    line_client::Raw,
};

/// Something that a thread waits for.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    /// Waits until the gate is open, and shuts it. Returns whether that happened before the test is given up.
    fn pass(&self) -> bool {
        let limit = Duration::from_secs(30);
        let (mut open, timeout) =
            self.0.1.wait_timeout_while(self.0.0.lock().unwrap(), limit, |open| !*open).unwrap();
        *open = false;
        !timeout.timed_out()
    }
}

#[pintle::tool]
fn wait(State(gate): State<Gate>) -> &'static str {
    if gate.pass() { "passed" } else { "nobody opened the gate" }
}

#[pintle::tool]
async fn open(State(gate): State<Gate>) -> &'static str {
    gate.open();
    "open"
}

#[tokio::test]
async fn a_waiting_function_holds_up_no_other_call() {
    let server = Server::new("s", "0").with_state(Gate::default()).tools(pintle::tools![wait, open]);
    each(&server, &[R4, R5], json!({}), async |client: &mut Client| {
        let waiting = client.send("tools/call", json!({"name": "wait"})).await;
        assert_eq!(client.tool("open").await, "open");
        let answer = client.until(waiting).await;
        assert_eq!(answer["result"]["content"][0]["text"], "passed", "{answer}");
    })
    .await;
}

#[tokio::test]
async fn prompts_resources_and_functions_by_hand_wait_too() {
    let gate = Gate::default();
    let (asks, reads) = (gate.clone(), gate.clone());
    let server = Server::new("s", "0")
        .with_state(gate)
        .tools(pintle::tools![open])
        .prompt(prompt("p", blocking(move || asks.pass().to_string())))
        .resource(resource("r://1", "r", blocking(move || reads.pass().to_string())));
    each(&server, &[R4, R5], json!({}), async |client: &mut Client| {
        for (method, params) in
            [("prompts/get", json!({"name": "p"})), ("resources/read", json!({"uri": "r://1"}))]
        {
            let waiting = client.send(method, params).await;
            client.tool("open").await;
            let answer = client.until(waiting).await;
            assert!(answer["result"].to_string().contains("true"), "{answer}");
        }
    })
    .await;
}

#[pintle::tool]
fn elsewhere() -> String {
    format!("{:?}", thread::current().id())
}

#[pintle::tool(inline)]
fn here() -> String {
    format!("{:?}", thread::current().id())
}

#[tokio::test]
async fn an_inline_function_runs_in_place() {
    let server = Server::new("s", "0").tools(pintle::tools![here, elsewhere]);
    let mut client = Client::open(&server, R5, json!({})).await;
    let this = format!("{:?}", thread::current().id());
    assert_eq!(client.tool("here").await, this);
    assert_ne!(client.tool("elsewhere").await, this);
}

#[pintle::tool]
fn panics() -> String {
    panic!("on the way")
}

#[tokio::test]
async fn a_panic_fails_the_call_and_no_other() {
    let server = Server::new("s", "0").tools(pintle::tools![panics, elsewhere]);
    each(&server, &[R4, R5], json!({}), async |client: &mut Client| {
        let answer = client.call("tools/call", json!({"name": "panics"})).await;
        assert_eq!(answer["error"]["message"], "the handler failed: see the server's log", "{answer}");
        client.tool("elsewhere").await;
    })
    .await;
}

/// Where a function is, and whether it noticed that its call was cancelled.
#[derive(Clone, Default)]
struct Run {
    started: Gate,
    cancelled: Gate,
    noticed: Gate,
}

#[pintle::tool]
fn long(cx: Cx, State(run): State<Run>) {
    assert!(!cx.is_cancelled());
    run.started.open();
    assert!(run.cancelled.pass());
    if cx.is_cancelled() {
        run.noticed.open();
    }
}

#[tokio::test]
async fn a_cancelled_function_can_ask_whether_it_was() {
    let run = Run::default();
    let server = Server::new("s", "0").with_state(run.clone()).tools(pintle::tools![long, elsewhere]);
    each(&server, &[R4, R5], json!({}), async |client: &mut Client| {
        let id = client.send("tools/call", json!({"name": "long"})).await;
        // Another call is answered meanwhile, so the first was started or is queued.
        client.tool("elsewhere").await;
        let waiting = run.clone();
        assert!(tokio::task::spawn_blocking(move || waiting.started.pass()).await.unwrap());
        client.notify("notifications/cancelled", json!({"requestId": id})).await;
        client.tool("elsewhere").await;
        run.cancelled.open();
        let noticed = run.noticed.clone();
        assert!(tokio::task::spawn_blocking(move || noticed.pass()).await.unwrap());
    })
    .await;
}

#[cfg(feature = "logging")]
#[pintle::tool]
fn logs() {
    tracing::info!("from a thread");
}

/// The subscriber is that of the whole process, because a function runs on another thread.
#[cfg(feature = "logging")]
#[tokio::test]
async fn what_a_function_logs_goes_to_its_client() {
    use tracing_subscriber::layer::SubscriberExt as _;

    let subscriber = Arc::new(tracing_subscriber::registry().with(pintle::logging::layer()));
    #[pintle::tool]
    fn logs_here(State(subscriber): State<tracing::Dispatch>) {
        tracing::dispatcher::with_default(&subscriber, logs);
    }
    let dispatch = tracing::Dispatch::new(subscriber);
    let _here = tracing::dispatcher::set_default(&dispatch);
    let server = Server::new("s", "0").logging().with_state(dispatch).tools(pintle::tools![logs_here]);
    each(&server, &[R4, R5], json!({}), async |client: &mut Client| {
        client.log_level("info").await;
        client.call("tools/call", json!({"name": "logs_here"})).await;
        let received = client.received();
        assert_eq!(received.len(), 1, "{received:?}");
        assert_eq!(received[0]["params"]["data"]["msg"], "from a thread");
    })
    .await;
}

/// Something that many threads wait for.
#[derive(Clone, Default)]
struct Release(Arc<(Mutex<bool>, Condvar)>);

impl Release {
    fn wait(&self) {
        let limit = Duration::from_secs(30);
        let released = self.0.0.lock().unwrap();
        drop(self.0.1.wait_timeout_while(released, limit, |released| !*released).unwrap());
    }
}

impl Drop for ReleaseOnDrop {
    fn drop(&mut self) {
        *self.0.0.0.lock().unwrap() = true;
        self.0.0.1.notify_all();
    }
}

/// Lets the threads go even if the test fails, or its runtime would wait for them.
struct ReleaseOnDrop(Release);

#[pintle::tool]
fn hang(State(release): State<Release>) {
    release.wait();
}

#[pintle::tool]
fn quick() -> &'static str {
    "quick"
}

#[tokio::test]
async fn one_caller_does_not_use_up_the_threads_of_the_others() {
    let release = Release::default();
    let _release = ReleaseOnDrop(release.clone());
    let server = Server::new("s", "0").with_state(release).tools(pintle::tools![hang, quick]);
    let client = async |name: &str| {
        let raw = Raw::known(&server, Caller::new().principal(name));
        Client::over(raw, R5, json!({})).await
    };
    // On several connections: it is the caller that counts.
    let mut greedy = [client("greedy").await, client("greedy").await];
    for at in 0..400 {
        greedy[at % 2].send("tools/call", json!({"name": "hang"})).await;
    }
    greedy[0].send("ping", json!({})).await;
    let mut other = client("other").await;
    let answered = tokio::time::timeout(Duration::from_secs(10), other.tool("quick")).await;
    assert_eq!(answered.as_deref(), Ok("quick"));
}

#[test]
fn a_program_does_not_wait_for_a_function_at_its_end() {
    let run = Run::default();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let server = Server::new("s", "0").with_state(run.clone()).tools(pintle::tools![long]);
        let mut client = Client::open(&server, R5, json!({})).await;
        client.send("tools/call", json!({"name": "long"})).await;
        let waiting = run.clone();
        assert!(tokio::task::spawn_blocking(move || waiting.started.pass()).await.unwrap());
    });
    drop(runtime);
    run.cancelled.open();
    assert!(run.noticed.pass(), "the function still waited when the runtime had ended");
}

#[tokio::test(start_paused = true)]
async fn paused_time_waits_for_a_function() {
    let run = Run::default();
    let server = Server::new("s", "0").with_state(run.clone()).tools(pintle::tools![long]);
    let server = server.call_timeout(Duration::from_secs(1));
    let mut client = Client::open(&server, R5, json!({})).await;
    let opener = thread::spawn(move || {
        let started = run.started.pass();
        run.cancelled.open();
        started
    });
    let answer = client.call("tools/call", json!({"name": "long"})).await;
    assert!(opener.join().unwrap());
    assert_eq!(answer["result"]["isError"], json!(null), "{answer}");
}

#[pintle::tool]
fn asks_the_runtime() -> String {
    tokio::runtime::Handle::current().block_on(async { "its own runtime".to_owned() })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_may_use_the_runtime() {
    let server = Server::new("s", "0").tools(pintle::tools![asks_the_runtime]);
    let mut client = Client::open(&server, R5, json!({})).await;
    assert_eq!(client.tool("asks_the_runtime").await, "its own runtime");
}
