//! Servers and callers that misbehave: nothing hangs, nothing grows, nobody else notices.

use std::{
    future::poll_fn,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use pintle::{
    Ended, Error, Server, Timeouts,
    client::OpenError,
    server::{Args, tool},
    transport::{Incoming, Memory, Transport, memory},
    types::{
        Message, RawObject,
        schema::{ContentBlock, CreateMessageResult},
    },
};
use pintle_testing::Peer;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};

use crate::support::scripted_server::{BOTH, SESSION, STATELESS, accept, client, open, settle, text};

#[tokio::test(start_paused = true)]
async fn a_thousand_calls_at_once_some_of_them_dropped() {
    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, json!({})).await;
        let mut calls = JoinSet::new();
        for n in 0..1000 {
            let server = server.clone();
            calls.spawn(async move {
                let call = server.call_tool("echo", json!({"n": n}));
                if n % 3 == 0 {
                    assert!(tokio::time::timeout(Duration::from_secs(1), call).await.is_err());
                    return;
                }
                assert_eq!(call.await.unwrap().content[0].as_text(), Some(n.to_string().as_str()));
            });
        }
        let script = async {
            let (mut kept, mut cancelled) = (Vec::new(), 0);
            while kept.len() + cancelled < 1000 {
                let message = peer.next().await.unwrap();
                match message["method"].as_str().unwrap() {
                    "tools/call" if message["params"]["arguments"]["n"].as_u64().unwrap() % 3 != 0 => {
                        kept.push(message)
                    }
                    "tools/call" => {}
                    "notifications/cancelled" => cancelled += 1,
                    other => panic!("{other}"),
                }
            }
            assert_eq!(cancelled, 334);
            // In another order than they came.
            for call in kept.iter().rev() {
                peer.answers(call, text(&call["params"]["arguments"]["n"].to_string())).await;
            }
        };
        let all = async {
            while let Some(ended) = calls.join_next().await {
                ended.unwrap()
            }
        };
        tokio::join!(all, script);
    }
}

#[tokio::test(start_paused = true)]
async fn reading_goes_on_while_writing_waits() {
    let (server, mut peer) = open(&client(), SESSION, json!({})).await;
    let large = "x".repeat(300 << 10);
    let mut calls = JoinSet::new();
    for n in 0..20 {
        let (server, large) = (server.clone(), large.clone());
        calls.spawn(async move { (n, server.call_tool("t", json!({"n": n, "x": large})).await) });
    }
    settle().await;
    // The pipe is full: the first calls are in it. The server answers without having read.
    peer.answers(&json!({"id": 3}), text("early")).await;
    let (n, first) = calls.join_next().await.unwrap().unwrap();
    assert_eq!(first.unwrap().content[0].as_text(), Some("early"));
    // Then it reads, and everything goes its way.
    for _ in 0..20 {
        let call = peer.receives("tools/call").await;
        if call["params"]["arguments"]["n"] != n {
            peer.answers(&call, text("ok")).await;
        }
    }
    while let Some(ended) = calls.join_next().await {
        assert!(ended.unwrap().1.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_only_asks_and_never_reads_is_made_to_wait() {
    let (server, mut peer) = open(&client(), SESSION, json!({})).await;
    // Fills the pipe towards the server, so that no answer can leave.
    let stuck = server.clone();
    let stuck = tokio::spawn(async move {
        let large = "x".repeat(300 << 10);
        tokio::join!(stuck.call_tool("a", json!({"x": large})), stuck.call_tool("b", json!({"x": large})))
    });
    settle().await;
    let mut asked = 0;
    for id in 0..20_000 {
        let ask = peer.asks(id, "ping", json!({"padding": "y".repeat(1000)}));
        if tokio::time::timeout(Duration::from_millis(10), ask).await.is_err() {
            break;
        }
        asked = id;
    }
    assert!(asked < 3000, "{asked} questions were taken in without an answer");
    stuck.abort();
    server.close().await;
}

/// A transport that stops writing when it is told to, and counts what it is given meanwhile.
#[derive(Debug)]
struct Stuck {
    inner: Memory,
    stuck: Arc<AtomicBool>,
    given: Arc<AtomicUsize>,
}

impl Transport for Stuck {
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Incoming>>> {
        self.inner.poll_recv(cx)
    }

    fn send(&mut self, message: Bytes) {
        self.given.fetch_add(1, Ordering::Relaxed);
        self.inner.send(message);
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.stuck.load(Ordering::Relaxed) { Poll::Pending } else { self.inner.poll_flush(cx) }
    }
}

#[tokio::test(start_paused = true)]
async fn callers_wait_for_a_server_that_does_not_read_and_nothing_piles_up() {
    let (mut peer, inner) = Peer::new();
    let (stuck, given) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let transport = Stuck { inner, stuck: stuck.clone(), given: given.clone() };
    let client = client();
    let (server, ()) = tokio::join!(client.connect(transport), accept(&mut peer, SESSION, json!({})));
    let server = server.unwrap();
    stuck.store(true, Ordering::Relaxed);
    given.store(0, Ordering::Relaxed);
    let mut calls = JoinSet::new();
    for _ in 0..2000 {
        let server = server.clone();
        calls.spawn(async move { server.call_tool("t", json!({})).await });
    }
    settle().await;
    assert!(given.load(Ordering::Relaxed) <= 64, "{given:?} were taken from their callers");
    while let Some(call) = calls.join_next().await {
        assert!(matches!(call.unwrap().unwrap_err(), Error::Timeout(_)));
    }
    // Not even closing waits for ever.
    server.close().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_piles_up_before_the_first_is_written() {
    let (mut peer, inner) = Peer::new();
    let given = Arc::new(AtomicUsize::new(0));
    let transport = Stuck { inner, stuck: Arc::default(), given: given.clone() };
    let client = client();
    let (server, ()) = tokio::join!(client.connect(transport), accept(&mut peer, SESSION, json!({})));
    let server = server.unwrap();
    settle().await;
    given.store(0, Ordering::Relaxed);
    let mut calls: Vec<_> = (0..200).map(|_| Box::pin(server.call_tool("t", json!({})))).collect();
    // All of them before any other task has its turn.
    poll_fn(|cx| {
        calls.iter_mut().for_each(|call| assert!(call.as_mut().poll(cx).is_pending()));
        Poll::Ready(())
    })
    .await;
    assert!(given.load(Ordering::Relaxed) <= 65, "{given:?} were taken from their callers");
    for _ in 0..200 {
        let call = peer.receives("tools/call").await;
        peer.answers(&call, text("t")).await;
    }
    for call in calls {
        assert!(call.await.is_ok());
    }
}

#[tokio::test]
async fn a_transport_that_panics_ends_its_connection_and_not_its_caller() {
    #[derive(Debug)]
    struct Panicking(Memory);

    impl Transport for Panicking {
        fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Incoming>>> {
            self.0.poll_recv(cx)
        }

        fn send(&mut self, message: Bytes) {
            assert!(!message.windows(5).any(|word| word == b"panic"), "as it was told");
            self.0.send(message);
        }

        fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.0.poll_flush(cx)
        }
    }

    let (mut peer, inner) = Peer::new();
    let client = client();
    let (server, ()) = tokio::join!(client.connect(Panicking(inner)), accept(&mut peer, SESSION, json!({})));
    let server = server.unwrap();
    settle().await;
    let (waiting, panicking) = tokio::join!(server.call_tool("t", ()), server.call_tool("panic", ()));
    assert!(matches!(waiting.unwrap_err(), Error::Closed(_)));
    assert!(matches!(panicking.unwrap_err(), Error::Closed(_)));
    assert!(matches!(server.call_tool("t", ()).await.unwrap_err(), Error::Closed(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_on_many_threads_share_a_connection() {
    let echo = |Args(Echo { n }): Args<Echo>| async move { n.to_string() };
    let (theirs, ours) = memory();
    let _serving = Server::new("s", "0").tool(tool("echo", echo)).serve(theirs).unwrap();
    let server = client().connect(ours).await.unwrap();
    let mut callers = JoinSet::new();
    for caller in 0..8 {
        let server = server.clone();
        callers.spawn(async move {
            for n in 0..500 {
                let n = caller * 1000 + n;
                let mut call = Box::pin(server.call_tool("echo", json!({"n": n})));
                // Some are given up as soon as they are sent, or waiting to be.
                if n % 7 == 0 {
                    let _ = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await;
                } else {
                    assert_eq!(call.await.unwrap().text(), n.to_string());
                }
            }
        });
    }
    callers.join_all().await;
    server.close().await;
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    n: u32,
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_stops_talking_is_still_silent() {
    /// Has always something to say, and never what was asked.
    #[derive(Debug)]
    struct Chatter;

    impl Transport for Chatter {
        fn poll_recv(&mut self, _: &mut Context<'_>) -> Poll<io::Result<Option<Incoming>>> {
            Poll::Ready(Ok(Some(Incoming::Message(Bytes::from_static(b"blah")))))
        }

        fn send(&mut self, _: Bytes) {}

        fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    // Time does not pass by itself while somebody talks.
    let passing = tokio::spawn(async {
        loop {
            tokio::time::advance(Duration::from_millis(100)).await;
            tokio::task::yield_now().await;
        }
    });
    let error = client().connect(Chatter).await.unwrap_err();
    passing.abort();
    assert!(matches!(error, Error::Open { error: OpenError::Silent { .. }, seen: Some(_) }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_last_messages_of_a_server_are_received() {
    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, json!({})).await;
        let script = async {
            let call = peer.receives("tools/call").await;
            for n in 0..200 {
                peer.prints(format!("about to exit: {n}")).await;
            }
            peer.answers(&call, text("done")).await;
            drop(peer);
            // This one cannot even be written.
            server.call_tool("late", ()).await
        };
        let (result, late) = tokio::join!(server.call_tool("t", ()), script);
        assert_eq!(result.unwrap().content[0].as_text(), Some("done"));
        assert!(matches!(late.unwrap_err(), Error::Closed(_)));
        assert_eq!(server.noise(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn nonsense_is_ignored() {
    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, json!({})).await;
        let script = async {
            let call = peer.receives("tools/call").await;
            for line in [
                "",
                "null",
                "[]",
                "[1]",
                "{}",
                "{\"jsonrpc\":\"2.0\"}",
                "\u{0}",
                "{\"jsonrpc\":\"2.0\",\"method\":5}",
                r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":[],"progress":1}}"#,
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#,
                r#"{"jsonrpc":"2.0","method":"notifications/message"}"#,
                r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"}"#,
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#,
                r#"{"jsonrpc":"2.0","id":99999,"result":{}}"#,
                r#"{"jsonrpc":"2.0","id":-1,"result":5}"#,
            ] {
                peer.prints(line).await;
            }
            peer.answers(&call, text("ok")).await;
        };
        let (result, ()) = tokio::join!(server.call_tool("t", ()), script);
        assert!(result.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_answer_ends_its_call_only() {
    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, json!({})).await;
        let script = async {
            for bad in [json!({"result": 5}), json!({"result": {}, "error": {"code": 1, "message": "x"}})] {
                let call = peer.receives("tools/call").await;
                let mut bad = bad;
                bad["id"] = call["id"].clone();
                peer.sends(bad).await;
            }
            let call = peer.receives("tools/call").await;
            peer.answers(&call, json!({"content": "not a list"})).await;
        };
        let calls = async {
            for _ in 0..2 {
                assert!(matches!(server.call_tool("t", ()).await.unwrap_err(), Error::Protocol(_)));
            }
            assert!(matches!(server.call_tool("t", ()).await.unwrap_err(), Error::Decode(_)));
        };
        tokio::join!(calls, script);
    }
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_panics_is_survived() {
    let calls = Arc::new(AtomicUsize::new(0));
    let client = client().on_log({
        let calls = calls.clone();
        move |_| {
            calls.fetch_add(1, Ordering::Relaxed);
            panic!("this callback is broken");
        }
    });
    let (server, mut peer) = open(&client, SESSION, json!({})).await;
    let script = async {
        let call = peer.receives("tools/call").await;
        for _ in 0..3 {
            peer.notifies("notifications/message", json!({"level": "info", "data": 1})).await;
        }
        peer.answers(&call, text("ok")).await;
    };
    let (result, ()) = tokio::join!(server.call_tool("t", ()), script);
    assert!(result.is_ok());
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callback_that_hangs_keeps_no_result_back_for_ever() {
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = Mutex::new(held);
    let client = client().on_log(move |_| {
        let _ = held.lock().unwrap().recv();
    });
    let (server, mut peer) = open(&client, SESSION, json!({})).await;
    let script = async {
        let call = peer.receives("tools/call").await;
        peer.notifies("notifications/message", json!({"level": "info", "data": 1})).await;
        peer.answers(&call, text("ok")).await;
    };
    let (result, ()) = tokio::join!(server.call_tool("t", ()), script);
    assert!(result.is_ok());
    drop(release);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_a_sign_of_life_is_given_up() {
    let mut timeouts = Timeouts::default();
    timeouts.keepalive = Some(Duration::from_secs(10));
    let client = client().timeouts(timeouts);
    let (server, mut peer) = open(&client, SESSION, json!({})).await;
    let started = Instant::now();
    for _ in 0..3 {
        let ping = peer.receives("ping").await;
        peer.answers(&ping, json!({})).await;
    }
    assert!((30..70).contains(&started.elapsed().as_secs()));
    for _ in 0..3 {
        peer.receives("ping").await;
    }
    assert_eq!(server.wait().await, Ended::Dead);

    // Where there is no such question nothing is asked.
    let (server, mut peer) = open(&client, STATELESS, json!({})).await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(peer.receives_now().await, None);
    drop(server);
}

#[tokio::test(start_paused = true)]
async fn a_sign_of_life_can_be_asked_for_in_both_eras() {
    for (revision, method) in [(SESSION, "ping"), (STATELESS, "server/discover")] {
        let (server, mut peer) = open(&client(), revision, json!({})).await;
        let script = async {
            let ping = peer.receives(method).await;
            peer.answers(&ping, json!({})).await;
        };
        let (alive, ()) = tokio::join!(server.ping(), script);
        alive.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_revision_lacks_is_reported_before_anything_is_sent() {
    let (server, mut peer) = open(&client(), "2024-11-05", json!({})).await;
    let error = server.call_raw("subscriptions/listen", RawObject::empty()).await.unwrap_err();
    assert!(
        matches!(&error, Error::Misuse(detail) if detail.contains("has no `subscriptions/listen`")),
        "{error}"
    );
    settle().await;
    assert_eq!(peer.receives_now().await, None);
}

#[tokio::test(start_paused = true)]
async fn the_servers_own_questions_do_not_wait_for_its_answers() {
    // A server that asks while we are busy, and while its own pipe is used by progress.
    let client = client()
        .on_sample(|_| async { CreateMessageResult::new("m", ContentBlock::text("a")) })
        .on_progress(|_| {});
    let (server, mut peer) = open(&client, SESSION, json!({})).await;
    let script = async {
        let call = peer.receives("tools/call").await;
        for id in 0..50 {
            peer.notifies("notifications/progress", json!({"progressToken": call["id"], "progress": id}))
                .await;
            peer.asks(id, "sampling/createMessage", json!({"messages": [], "maxTokens": 1})).await;
        }
        let mut answered: Vec<u64> = Vec::new();
        for _ in 0..50 {
            answered.push(peer.next().await.unwrap()["id"].as_u64().unwrap());
        }
        answered.sort_unstable();
        assert_eq!(answered, (0..50).collect::<Vec<_>>());
        peer.answers(&call, text("ok")).await;
    };
    let (result, ()) = tokio::join!(server.call_tool("t", ()), script);
    assert!(result.is_ok());
}

#[tokio::test(start_paused = true)]
async fn numbers_and_names_come_back_as_they_were() {
    // 64-bit integers survive both ways.
    let (server, mut peer) = open(&client(), STATELESS, json!({})).await;
    let script = async {
        let call = peer.receives("tools/call").await;
        assert_eq!(call["params"]["arguments"]["n"], json!(u64::MAX));
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[],"structuredContent":{{"n":{}}}}}}}"#,
            call["id"],
            u64::MAX
        );
        assert!(Message::parse(line.as_bytes()).is_ok());
        peer.prints(line).await;
    };
    let (result, ()) = tokio::join!(server.call_tool_as::<Value>("t", json!({"n": u64::MAX})), script);
    assert_eq!(result.unwrap(), json!({"n": u64::MAX}));
}

#[tokio::test(start_paused = true)]
async fn what_other_sdks_put_up_with_is_put_up_with() {
    for revision in BOTH {
        let (server, mut peer) = open(&client(), revision, json!({"tools": {}})).await;
        for answer in [
            r#"{"jsonrpc":"2.0","id":"ID","result":RESULT}"#,
            r#"{"jsonrpc":"2.0","id":ID,"result":RESULT,"error":null}"#,
            "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":RESULT}",
        ] {
            let result = json!({
                "resultType": "complete", "content": [{"type": "text", "text": "ok", "_meta": null}], "_meta": null
            });
            let script = async {
                let call = peer.receives("tools/call").await;
                let answer = answer.replace("RESULT", &result.to_string());
                peer.prints(answer.replace("ID", &call["id"].to_string())).await;
            };
            let (called, ()) = tokio::join!(server.call_tool("t", ()), script);
            assert_eq!(called.unwrap().text(), "ok", "{revision} {answer}");
        }
        let script = async {
            let list = peer.receives("tools/list").await;
            let tool = json!({"name": "t", "inputSchema": {"type": "object"}, "_meta": null});
            let result = json!({"resultType": "complete", "tools": [tool], "ttlMs": 0, "cacheScope": "private", "_meta": null});
            peer.answers(&list, result).await;
        };
        let (tools, ()) = tokio::join!(server.tools(), script);
        assert_eq!(tools.unwrap().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_asked_for_is_named_when_none_else_comes() {
    let (mut peer, transport) = Peer::new();
    let connecting = client().mode(pintle::client::Mode::Legacy);
    let script = async {
        peer.receives("initialize").await;
        peer.sends(json!({"id": "req-\u{1b}7", "result": {}})).await;
        // It says no more.
        std::future::pending::<()>().await;
    };
    let error = tokio::select! {
        connected = connecting.connect(transport) => connected.unwrap_err().to_string(),
        () = script => unreachable!(),
    };
    assert!(error.contains("did not answer `initialize`"), "{error}");
    assert!(error.contains("it answered request \"req-\\u{1b}7\", which was never sent"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn errors_are_in_the_words_of_json_and_advise_only_the_reader() {
    let (server, mut peer) = open(&client(), SESSION, json!({"tools": {}})).await;
    let script = async {
        let list = peer.receives("tools/list").await;
        peer.answers(&list, json!({"tools": ["add"]})).await;
        let call = peer.receives("tools/call").await;
        peer.prints(format!(r#"{{"jsonrpc":"1.0","id":{},"result":{{}}}}"#, call["id"])).await;
    };
    let calls = async {
        let error = server.tools().await.unwrap_err().to_string();
        assert!(
            error.ends_with("the result of `tools/list`: invalid type: string \"add\", expected an object"),
            "{error}"
        );
        let error = server.call_tool("t", ()).await.unwrap_err().to_string();
        assert!(error.ends_with("is malformed: `jsonrpc` is not \"2.0\""), "{error}");
    };
    tokio::join!(calls, script);
}
