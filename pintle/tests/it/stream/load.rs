//! A thousand calls on one pipe, some cancelled, some that panic, read slowly: everybody else is answered, once.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use pintle::{
    Server,
    proto::Limits,
    server::{Arguments, Cx, tool},
};
use serde_json::json;

use crate::support::pipe::{Dice, Pipe, call, cancel, text, within};

const CALLS: u64 = 1000;

/// `alive` counts handlers that were not dropped.
fn server(alive: &Arc<()>) -> Server {
    let alive = alive.clone();
    let work = move |cx: Cx, Arguments(arguments): Arguments| {
        let alive = alive.clone();
        async move {
            let _alive = alive;
            let n: u64 = arguments.decode_member("n").unwrap().unwrap();
            for step in 0..n % 7 {
                if n.is_multiple_of(3) {
                    tokio::time::sleep(Duration::from_millis(n % 5)).await;
                } else {
                    tokio::task::yield_now().await;
                }
                cx.progress(step as f64, None).await;
            }
            assert!(!n.is_multiple_of(13), "thirteen");
            format!("{n}")
        }
    };
    let mut limits = Limits::default();
    limits.in_flight = CALLS as usize;
    Server::new("load", "0").limits(limits).tool(tool("work", work))
}

async fn thousand(seed: u64) {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let alive = Arc::new(());
    let server = server(&alive);
    let (pipe, serving) = Pipe::open(&server, 4096);
    let Pipe { mut reader, mut writer } = pipe;
    // The ids of the second round are those of the first: if one were still in flight, or were answered late, this round
    // would show it.
    for round in 0..2 {
        let cancelled = Mutex::new(HashSet::new());
        let write = async {
            use tokio::io::AsyncWriteExt;
            let mut dice = Dice(seed + round);
            for n in 0..CALLS {
                let mut message = call(n, "work", json!({ "n": n }));
                if dice.roll(2) == 0 {
                    message["params"]["_meta"]["progressToken"] = n.into();
                }
                writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
                if dice.roll(5) == 0 {
                    let victim = dice.roll(n + 1);
                    cancelled.lock().unwrap().insert(victim);
                    writer.write_all(format!("{}\n", cancel(victim)).as_bytes()).await.unwrap();
                }
                if dice.roll(20) == 0 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
            writer.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":\"last\",\"method\":\"ping\"}\n").await.unwrap();
        };
        let read = async {
            let mut dice = Dice(seed + 77);
            let mut answers = HashMap::<u64, u32>::new();
            let (mut pinged, mut progress) = (false, HashMap::<u64, f64>::new());
            // Whoever is neither answered nor cancelled keeps this loop waiting.
            let owed = |n: &u64| !cancelled.lock().unwrap().contains(n);
            while !pinged || (0..CALLS).any(|n| owed(&n) && !answers.contains_key(&n)) {
                let line = reader.next_line().await.unwrap().unwrap();
                let line: serde_json::Value = serde_json::from_str(&line).unwrap();
                if dice.roll(50) == 0 {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                if line["method"] == "notifications/progress" {
                    let n = line["params"]["progressToken"].as_u64().unwrap();
                    let step = line["params"]["progress"].as_f64().unwrap();
                    assert!(!answers.contains_key(&n), "progress of {n} after its result");
                    assert!(progress.insert(n, step).is_none_or(|before| before < step), "order");
                } else if line["id"] == "last" {
                    pinged = true;
                } else {
                    let n = line["id"].as_u64().unwrap_or_else(|| panic!("{line}"));
                    *answers.entry(n).or_default() += 1;
                    if n.is_multiple_of(13) {
                        assert_eq!(line["error"]["code"], -32603, "{line}");
                    } else {
                        assert_eq!(text(&line), n.to_string());
                    }
                }
            }
            answers
        };
        let ((), answers) = within(async { tokio::join!(write, read) }).await;
        let cancelled = cancelled.into_inner().unwrap();
        for n in 0..CALLS {
            let times = answers.get(&n).copied().unwrap_or(0);
            assert!(times == 1 || (times == 0 && cancelled.contains(&n)), "{n} was answered {times} times");
        }
        while Arc::strong_count(&alive) > 2 {
            tokio::task::yield_now().await;
        }
    }
    drop((reader, writer));
    within(serving.wait()).await.unwrap();
    drop(server);
    while tasks() > before || Arc::strong_count(&alive) > 1 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_calls_on_one_thread() {
    for seed in 1..4 {
        within(thousand(seed)).await;
    }
}

#[test]
fn a_thousand_calls_on_many_threads() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    runtime.block_on(async { tokio::spawn(within(thousand(9))).await.unwrap() });
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_not_answered_and_its_handler_is_gone() {
    let alive = Arc::new(());
    let held = alive.clone();
    let stuck = move || {
        let held = held.clone();
        async move {
            let _held = held;
            std::future::pending::<String>().await
        }
    };
    let server = Server::new("s", "0").tool(tool("stuck", stuck));
    let (mut pipe, _serving) = Pipe::open(&server, 1 << 16);
    for n in 0..10 {
        pipe.say(call(n, "stuck", json!({}))).await;
    }
    pipe.say(json!({"jsonrpc": "2.0", "id": "a", "method": "ping"})).await;
    assert_eq!(pipe.receive().await["id"], "a");
    assert_eq!(Arc::strong_count(&alive), 12);
    for n in 0..10 {
        pipe.say(cancel(n)).await;
    }
    pipe.say(json!({"jsonrpc": "2.0", "id": "b", "method": "ping"})).await;
    assert_eq!(pipe.receive().await["id"], "b");
    crate::support::pipe::settle().await;
    assert_eq!(Arc::strong_count(&alive), 2);
}
