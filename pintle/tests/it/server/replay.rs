//! A state that comes back twice: what is done once, who gets which reply, and what a lost connection leaves behind.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::Poll,
};

use pintle::{
    Server,
    server::{
        Cx, Next, Outcome, StateKeys, ToolError, around,
        store::{Expected, GetOptions, Got, Key, Life, MemoryStore, Put, Space, Store, Stored},
        tool,
    },
    types::RpcError,
};
use pintle_testing::kits::store::LossyStore;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::support::line_client::{Raw, modern};

#[derive(Deserialize, JsonSchema)]
struct Seats {
    #[schemars(range(min = 1, max = 9))]
    count: u8,
}

/// A tool that counts how often it acts, with a gate that it has to pass after the act.
#[derive(Clone)]
struct Desk {
    /// Behind the question, wrapped in `once`.
    once: Arc<AtomicUsize>,
    /// Behind that, bare.
    bare: Arc<AtomicUsize>,
    begun: Arc<Semaphore>,
    gate: Arc<Semaphore>,
    keys: Arc<Mutex<Vec<String>>>,
}

impl Desk {
    fn new() -> Self {
        Self {
            once: Arc::default(),
            bare: Arc::default(),
            begun: Arc::new(Semaphore::new(0)),
            gate: Arc::new(Semaphore::new(0)),
            keys: Arc::default(),
        }
    }

    fn open(self) -> Self {
        self.gate.add_permits(1000);
        self
    }

    fn counts(&self) -> (usize, usize) {
        (self.once.load(Ordering::SeqCst), self.bare.load(Ordering::SeqCst))
    }

    fn server(&self) -> Server {
        let desk = self.clone();
        Server::new("desk", "1").tool(tool("book", move |cx: Cx| {
            let desk = desk.clone();
            async move {
                desk.keys.lock().unwrap().push(cx.call_key());
                let seats = cx.elicit::<Seats>("seats", "How many?").await?.accepted();
                let count = seats.map_or(0, |seats| seats.count);
                let number = cx.once("act", async { desk.once.fetch_add(1, Ordering::SeqCst) + 1 }).await?;
                desk.begun.add_permits(1);
                desk.gate.acquire().await.unwrap().forget();
                desk.bare.fetch_add(1, Ordering::SeqCst);
                Ok::<_, ToolError>(format!("{number}: {count}"))
            }
        }))
    }
}

fn can() -> Value {
    json!({"elicitation": {}})
}

fn answered(state: &str, count: Value) -> Value {
    let answers = json!({"seats": {"action": "accept", "content": {"count": count}}});
    modern(json!({"name": "book", "requestState": state, "inputResponses": answers}), can())
}

async fn asked(raw: &mut Raw) -> String {
    raw.request("tools/call", modern(json!({"name": "book"}), can())).await;
    let asked = raw.recv().await;
    asked["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{asked}")).to_owned()
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

fn text_of(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

#[tokio::test(start_paused = true)]
async fn the_same_again_gets_the_same_reply_and_nothing_is_done() {
    let desk = Desk::new().open();
    let server = desk.server();
    let mut raw = Raw::new(&server);
    let state = asked(&mut raw).await;
    let mut replies = Vec::new();
    for _ in 0..3 {
        let id = raw.request("tools/call", answered(&state, 4.into())).await;
        let reply = raw.recv().await;
        assert_eq!(reply["id"], id);
        assert_eq!(text(&reply), "1: 4");
        replies.push(reply["result"].clone());
    }
    assert_eq!(replies[0], replies[2]);
    // Another connection, and the answers printed in another way.
    let mut other = Raw::new(&server);
    let shuffled = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"inputResponses": {{"seats":{{ "content" : {{"count":4}}, "action":"accept"}}}}, "requestState":"{state}","name":"book","_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{}}}}}}}}}}"#
    );
    other.send_text(shuffled).await;
    assert_eq!(text(&other.recv().await), "1: 4");
    assert_eq!(desk.counts(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_state_whose_reply_is_not_kept_is_refused() {
    let long = tool("book", |cx: Cx| async move {
        cx.elicit::<Seats>("seats", "How many?").await?;
        Ok::<_, ToolError>("x".repeat(2_000))
    });
    let server = Server::new("desk", "1").tool(long).replay_store(MemoryStore::new().bytes(1_000));
    let mut raw = Raw::new(&server);
    let state = asked(&mut raw).await;
    raw.request("tools/call", answered(&state, 4.into())).await;
    assert_eq!(text(&raw.recv().await).len(), 2_000);
    raw.request("tools/call", answered(&state, 4.into())).await;
    let refused = raw.recv().await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert!(text_of(&refused).contains("its reply is not kept any more"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn the_same_at_the_same_time_waits_for_the_first() {
    let desk = Desk::new();
    let server = desk.server();
    let (mut one, mut other) = (Raw::new(&server), Raw::new(&server));
    let state = asked(&mut one).await;
    let first = one.request("tools/call", answered(&state, 4.into())).await;
    desk.begun.acquire().await.unwrap().forget();
    let second = one.request("tools/call", answered(&state, 4.into())).await;
    let third = other.request("tools/call", answered(&state, 4.into())).await;
    other.request("tools/call", answered(&state, 5.into())).await;
    assert!(text_of(&other.recv().await).starts_with("`requestState` was already used with other answers"));
    desk.gate.add_permits(3);
    let mut ids = Vec::new();
    for raw in [&mut one, &mut other] {
        let replies = if ids.is_empty() { 2 } else { 1 };
        for _ in 0..replies {
            let reply = raw.recv().await;
            assert_eq!(text(&reply), "1: 4");
            ids.push(reply["id"].as_i64().unwrap());
        }
    }
    assert_eq!(ids, [first, second, third]);
    assert_eq!(desk.counts(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn other_answers_are_refused_and_change_nothing() {
    let desk = Desk::new().open();
    let mut raw = Raw::new(&desk.server());
    let state = asked(&mut raw).await;
    raw.request("tools/call", answered(&state, 4.into())).await;
    assert_eq!(text(&raw.recv().await), "1: 4");
    raw.request("tools/call", answered(&state, 5.into())).await;
    let refused = raw.recv().await;
    assert_eq!(refused["error"]["code"], -32602);
    assert!(text_of(&refused).ends_with("start the call again"), "{refused}");
    raw.request("tools/call", answered(&state, 4.into())).await;
    assert_eq!(text(&raw.recv().await), "1: 4");
    assert_eq!(desk.counts(), (1, 1));
    // An escaped letter in the state is the same state.
    let escaped = answered("STATE", 5.into())
        .to_string()
        .replace("STATE", &format!("\\u00{:02x}{}", state.as_bytes()[0], &state[1..]));
    raw.send_text(format!(r#"{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{escaped}}}"#)).await;
    assert!(text_of(&raw.recv().await).contains("other answers"));
}

#[tokio::test(start_paused = true)]
async fn a_refused_answer_does_not_use_the_state_up() {
    let desk = Desk::new().open();
    let mut raw = Raw::new(&desk.server());
    let state = asked(&mut raw).await;
    // No answer to such a question at all; one that does not fit the form; then one that does.
    let mut params = answered(&state, 4.into());
    params["inputResponses"]["seats"] = json!({"action": "perhaps"});
    raw.request("tools/call", params).await;
    assert!(text_of(&raw.recv().await).contains("seats"));
    raw.request("tools/call", answered(&state, 40.into())).await;
    assert!(text_of(&raw.recv().await).contains("may be at most 9"));
    raw.request("tools/call", answered(&state, 4.into())).await;
    assert_eq!(text(&raw.recv().await), "1: 4");
    assert_eq!(desk.counts(), (1, 1));
    let keys = desk.keys.lock().unwrap().clone();
    assert_eq!(keys.len(), 3, "the malformed one never came to the handler");
    assert!(keys.iter().all(|key| *key == keys[0] && key.len() >= 16), "{keys:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_use_leaves_what_was_done_to_the_next() {
    let desk = Desk::new();
    let server = desk.server();
    let mut raw = Raw::new(&server);
    let state = asked(&mut raw).await;
    let id = raw.request("tools/call", answered(&state, 4.into())).await;
    desk.begun.acquire().await.unwrap().forget();
    // One waits meanwhile, and takes over when the first is cancelled.
    let mut other = Raw::new(&server);
    other.request("tools/call", answered(&state, 4.into())).await;
    raw.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}))
        .await;
    desk.begun.acquire().await.unwrap().forget();
    assert_eq!(desk.counts(), (1, 0), "the act is not done again");
    // It is lost with its connection; then the first one comes again.
    drop(other);
    raw.request("tools/call", answered(&state, 4.into())).await;
    desk.begun.acquire().await.unwrap().forget();
    desk.gate.add_permits(1);
    assert_eq!(text(&raw.recv().await), "1: 4");
    assert_eq!(desk.counts(), (1, 1));
    let keys = desk.keys.lock().unwrap().clone();
    assert_eq!(keys.len(), 4);
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    asked(&mut raw).await;
    assert_ne!(desk.keys.lock().unwrap().last(), keys.first(), "a first request made anew is another call");
}

#[tokio::test(start_paused = true)]
async fn an_act_that_was_cut_short_is_not_begun_again() {
    let acts = Arc::new(AtomicUsize::new(0));
    let (count, begun) = (acts.clone(), Arc::new(Semaphore::new(0)));
    let began = begun.clone();
    let server = Server::new("s", "0").tool(tool("book", move |cx: Cx| {
        let (count, began) = (count.clone(), began.clone());
        async move {
            cx.elicit::<Seats>("seats", "How many?").await?;
            let act = async {
                count.fetch_add(1, Ordering::SeqCst);
                began.add_permits(1);
                std::future::pending::<u8>().await
            };
            let number = cx.once("act", act).await?;
            Ok::<_, ToolError>(number.to_string())
        }
    }));
    let mut raw = Raw::new(&server);
    let state = asked(&mut raw).await;
    let id = raw.request("tools/call", answered(&state, 4.into())).await;
    begun.acquire().await.unwrap().forget();
    raw.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}))
        .await;
    raw.request("tools/call", answered(&state, 4.into())).await;
    let answer = raw.recv().await;
    assert_eq!(answer["result"]["isError"], true);
    assert!(text(&answer).starts_with("outcome unknown: `act`"), "{answer}");
    assert_eq!(acts.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn two_of_one_key_at_the_same_time_act_once() {
    let acts = Arc::new(AtomicUsize::new(0));
    let count = acts.clone();
    let server = Server::new("s", "0").tool(tool("book", move |cx: Cx| {
        let count = count.clone();
        async move {
            let act = || async {
                tokio::task::yield_now().await;
                count.fetch_add(1, Ordering::SeqCst) + 1
            };
            // The question does not cut them short.
            let (one, other, asked) = tokio::join!(
                cx.once("act", act()),
                cx.once("act", act()),
                cx.elicit::<Seats>("seats", "How many?")
            );
            asked?;
            Ok::<_, ToolError>(format!("{} {}", one?, other?))
        }
    }));
    let mut raw = Raw::new(&server);
    let state = asked(&mut raw).await;
    assert_eq!(acts.load(Ordering::SeqCst), 1, "done before the round ended");
    raw.request("tools/call", answered(&state, 4.into())).await;
    assert_eq!(text(&raw.recv().await), "1 1");
    assert_eq!(acts.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_round_that_asks_more_is_answered_with_the_same_questions_and_state() {
    let runs = Arc::new(AtomicUsize::new(0));
    let count = runs.clone();
    let server = Server::new("s", "0").tool(tool("book", move |cx: Cx| {
        count.fetch_add(1, Ordering::SeqCst);
        async move {
            cx.elicit::<Seats>("seats", "How many?").await?;
            cx.elicit::<Seats>("more", "How many more?").await?;
            Ok::<_, ToolError>("done")
        }
    }));
    let mut raw = Raw::new(&server);
    let state = asked(&mut raw).await;
    let mut replies = Vec::new();
    for _ in 0..2 {
        raw.request("tools/call", answered(&state, 4.into())).await;
        replies.push(raw.recv().await["result"].take());
    }
    assert_eq!(replies[0]["resultType"], "input_required");
    assert_eq!(replies[0], replies[1]);
    assert_eq!(runs.load(Ordering::SeqCst), 2, "not even the first step of a handler runs again");
    let mut params = answered(replies[1]["requestState"].as_str().unwrap(), 4.into());
    params["inputResponses"] = json!({"more": {"action": "decline"}});
    raw.request("tools/call", params).await;
    assert_eq!(text(&raw.recv().await), "done");
}

#[tokio::test(start_paused = true)]
async fn who_may_no_more_does_not_get_the_reply() {
    let desk = Desk::new().open();
    let allowed = Arc::new(AtomicBool::new(true));
    let asks = allowed.clone();
    let server = desk.server().layer(&around(move |cx: Cx, next: Next| {
        let allowed = asks.load(Ordering::SeqCst);
        async move {
            match allowed {
                true => next.run(cx).await,
                false => Outcome::Failed(RpcError::invalid_request("not any more")),
            }
        }
    }));
    let mut raw = Raw::new(&server);
    let state = asked(&mut raw).await;
    // A layer that refuses uses nothing up either.
    for (may, expected) in [(false, Err(())), (true, Ok("1: 4")), (false, Err(())), (true, Ok("1: 4"))] {
        allowed.store(may, Ordering::SeqCst);
        raw.request("tools/call", answered(&state, 4.into())).await;
        let reply = raw.recv().await;
        match expected {
            Ok(expected) => assert_eq!(text(&reply), expected),
            Err(()) => assert_eq!(text_of(&reply), "not any more"),
        }
    }
    assert_eq!(desk.counts(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_not_kept_is_an_error_and_no_second_run() {
    let desk = Desk::new().open();
    let server = desk.server().replay_store(MemoryStore::new().bytes(560));
    let mut raw = Raw::new(&server);
    let state = asked(&mut raw).await;
    raw.request("tools/call", answered(&state, 4.into())).await;
    assert_eq!(text(&raw.recv().await), "1: 4");
    // A second one takes the place of the first one's reply, a third that of the knowledge of it.
    for _ in 0..3 {
        let newer = asked(&mut raw).await;
        raw.request("tools/call", answered(&newer, 4.into())).await;
        raw.recv().await;
        let before = desk.counts();
        raw.request("tools/call", answered(&state, 4.into())).await;
        assert!(text_of(&raw.recv().await).starts_with("`requestState` was used already"));
        assert_eq!(desk.counts(), before);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_before_its_question_is_a_call_of_its_own() {
    let desk = Desk::new().open();
    let mut raw = Raw::new(&desk.server());
    for number in 1..=2 {
        let mut params = answered("", 4.into());
        params.as_object_mut().unwrap().remove("requestState");
        raw.request("tools/call", params).await;
        assert_eq!(text(&raw.recv().await), format!("{number}: 4"));
    }
}

#[tokio::test(start_paused = true)]
async fn two_servers_of_a_fleet_share_a_store() {
    let (desk, store) = (Desk::new().open(), Arc::new(MemoryStore::new()));
    let keys = || StateKeys::from([7; 32]);
    let one = desk.server().state_keys(keys()).replay_store(store.clone());
    let other = desk.server().state_keys(keys()).replay_store(store);
    let state = asked(&mut Raw::new(&one)).await;
    for server in [&other, &one, &other] {
        let mut raw = Raw::new(server);
        raw.request("tools/call", answered(&state, 4.into())).await;
        assert_eq!(text(&raw.recv().await), "1: 4");
    }
    assert_eq!(desk.counts(), (1, 1));
}

/// Servers of processes that share a store in which the sign of life of each of them is lost.
fn taken_over(desk: impl Fn() -> Server) -> [Server; 2] {
    let store = Arc::new(Processes(MemoryStore::new()));
    [(); 2].map(|()| desk().state_keys(StateKeys::from([7; 32])).replay_store(store.clone()))
}

#[derive(Debug)]
struct Processes(MemoryStore);

impl Store for Processes {
    fn get<'a>(&'a self, key: Key<'a>, how: GetOptions) -> Stored<'a, Got> {
        if key.space == Space::Lease { Stored::now(Got::None) } else { self.0.get(key, how) }
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

#[tokio::test(start_paused = true)]
async fn what_a_process_did_before_it_was_gone_is_known_to_the_next() {
    let desk = Desk::new();
    let [server, other] = taken_over(|| desk.server());
    let mut raw = Raw::new(&server);
    let state = asked(&mut raw).await;
    raw.request("tools/call", answered(&state, 4.into())).await;
    // It has acted, and does not get any further.
    desk.begun.acquire().await.unwrap().forget();
    let mut next = Raw::new(&other);
    next.request("tools/call", answered(&state, 4.into())).await;
    desk.begun.acquire().await.unwrap().forget();
    desk.gate.add_permits(2);
    assert_eq!(text(&next.recv().await), "1: 4");
    assert_eq!(desk.counts().0, 1);
    let keys = desk.keys.lock().unwrap().clone();
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
}

#[tokio::test(start_paused = true)]
async fn the_outcome_of_an_act_whose_process_is_gone_is_unknown() {
    let (acts, acting, proceed) = (Arc::<AtomicUsize>::default(), Semaphore::new(0), Semaphore::new(0));
    let (acting, proceed) = (Arc::new(acting), Arc::new(proceed));
    let (counted, begun, waits) = (acts.clone(), acting.clone(), proceed.clone());
    let book = tool("book", move |cx: Cx| {
        let (acts, acting, proceed) = (counted.clone(), begun.clone(), waits.clone());
        async move {
            cx.elicit::<Seats>("seats", "How many?").await?;
            let act = async {
                acts.fetch_add(1, Ordering::SeqCst);
                acting.add_permits(1);
                drop(proceed.acquire().await);
            };
            cx.once("act", act).await?;
            // The process that was taken for gone cannot begin another one.
            cx.once("next", async { acts.fetch_add(1, Ordering::SeqCst) }).await?;
            Ok::<_, ToolError>("done")
        }
    });
    let [server, other] = taken_over(|| Server::new("desk", "1").tool(book.clone()));
    let mut raw = Raw::new(&server);
    let state = asked(&mut raw).await;
    raw.request("tools/call", answered(&state, 4.into())).await;
    acting.acquire().await.unwrap().forget();
    let mut next = Raw::new(&other);
    next.request("tools/call", answered(&state, 4.into())).await;
    let answer = next.recv().await;
    assert!(answer.to_string().contains("outcome unknown: `act`"), "{answer}");
    proceed.add_permits(1);
    let late = raw.recv().await.to_string();
    assert!(late.contains("`next` was not started") && late.contains("taken over"), "{late}");
    assert_eq!(acts.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_runs_if_nobody_knows_whether_it_ran() {
    let desk = Desk::new().open();
    let store = LossyStore::new(MemoryStore::new());
    store.set_down(true);
    let mut raw = Raw::new(&desk.server().replay_store(store));
    let state = asked(&mut raw).await;
    raw.request("tools/call", answered(&state, 4.into())).await;
    let refused = raw.recv().await;
    assert_eq!(refused["error"]["code"], -31503);
    assert!(refused["error"]["data"]["retryAfterMs"].is_u64(), "{refused}");
    assert!(text_of(&refused).ends_with("try again later"));
    assert_eq!(desk.counts(), (0, 0));
}

#[cfg(feature = "http-server")]
#[tokio::test(start_paused = true)]
async fn over_http_a_lost_request_leaves_what_was_done_and_two_at_once_are_one() {
    use crate::support::http_client::Wire;

    let desk = Desk::new();
    let wire = Wire::new(&desk.server().http().unwrap());
    let first = wire.modern(1, "tools/call", json!({"name": "book"}), can()).await.json().await;
    let state = first["result"]["requestState"].as_str().unwrap().to_owned();
    let again = |id: i64| {
        let (wire, params) = (wire.clone(), answered(&state, 4.into()));
        async move { wire.modern(id, "tools/call", params, can()).await.json().await }
    };
    // The client goes while the handler waits behind its act.
    {
        let mut lost = pin!(again(2));
        poll_fn(|task| {
            assert!(lost.as_mut().poll(task).is_pending());
            Poll::Ready(())
        })
        .await;
        desk.begun.acquire().await.unwrap().forget();
    }
    assert_eq!(desk.counts(), (1, 0));
    desk.gate.add_permits(2);
    let (one, other) = tokio::join!(again(3), again(4));
    assert_eq!((text(&one), text(&other)), ("1: 4", "1: 4"));
    assert_eq!((&one["id"], &other["id"]), (&json!(3), &json!(4)));
    assert_eq!(desk.counts(), (1, 1));
}
