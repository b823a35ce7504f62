//! Full pipes: nobody waits for ever, and nobody makes the server hold much.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Server,
    server::{Arguments, Cx, ToolError, tool},
};
use serde_json::json;
use tokio::sync::Notify;

use crate::support::pipe::{Pipe, asked, call, cancel, session_call, settle, text, within, yes};

const MIB: usize = 1 << 20;

fn echo() -> Server {
    Server::new("echo", "0")
        .tool(tool("echo", |Arguments(arguments)| async move { arguments.as_str().to_owned() }))
        .tool(tool("big", |Arguments(_)| async move {
            tokio::task::yield_now().await;
            "b".repeat(10 * MIB)
        }))
}

#[tokio::test(start_paused = true)]
async fn ten_mebibytes_are_written_before_anything_is_read() {
    let (mut pipe, _serving) = Pipe::open(&echo(), 4096);
    pipe.say(call(1, "big", json!({}))).await;
    // The server writes its ten while this side writes its own, and reads nothing.
    let large = "a".repeat(10 * MIB);
    pipe.say(call(2, "echo", json!({ "text": large }))).await;
    let mut lengths = Vec::new();
    for _ in 0..2 {
        let answer = pipe.receive().await;
        lengths.push((answer["id"].as_u64().unwrap(), text(&answer).len() >= 10 * MIB));
    }
    lengths.sort_unstable();
    assert_eq!(lengths, [(1, true), (2, true)]);
}

#[tokio::test(start_paused = true)]
async fn many_small_calls_are_written_before_anything_is_read() {
    let (mut pipe, _serving) = Pipe::open(&echo(), 4096);
    let line = "a".repeat(1000);
    for n in 0..5000 {
        pipe.say(call(n, "echo", json!({ "text": line }))).await;
    }
    for n in 0..5000 {
        assert_eq!(pipe.receive().await["id"], n);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_reads_is_not_served_without_end() {
    let made = Arc::new(AtomicUsize::new(0));
    let counted = made.clone();
    let fat = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async move { "f".repeat(MIB / 16) }
    };
    let server = Server::new("s", "0").tool(tool("fat", fat));
    let (pipe, _serving) = Pipe::open(&server, 4096);
    let Pipe { mut reader, mut writer } = pipe;
    let write = async {
        use tokio::io::AsyncWriteExt;
        for n in 0..1000 {
            writer.write_all(format!("{}\n", call(n, "fat", json!({}))).as_bytes()).await.unwrap();
        }
    };
    let read = async {
        settle().await;
        assert!(made.load(Ordering::SeqCst) < 40, "results that nobody reads are not made");
        for n in 0..1000 {
            let line = within(reader.next_line()).await.unwrap().unwrap();
            let answer: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert_eq!(answer["id"], n);
        }
    };
    within(async { tokio::join!(write, read) }).await;
}

#[tokio::test(start_paused = true)]
async fn results_of_tasks_wait_for_a_slow_reader_and_then_all_come() {
    let slow = |Arguments(_)| async move {
        tokio::task::yield_now().await;
        "s".repeat(MIB / 32)
    };
    let server = Server::new("s", "0").tool(tool("slow", slow));
    let (mut pipe, _serving) = Pipe::open(&server, 4096);
    for n in 0..400 {
        pipe.say(call(n, "slow", json!({}))).await;
    }
    settle().await;
    let mut seen = vec![false; 400];
    for _ in 0..400 {
        let id = usize::try_from(pipe.receive().await["id"].as_u64().unwrap()).unwrap();
        assert!(!std::mem::replace(&mut seen[id], true), "{id} twice");
    }
    pipe.say(json!({"jsonrpc": "2.0", "id": "p", "method": "ping"})).await;
    assert_eq!(pipe.receive().await["id"], "p");
}

#[tokio::test(start_paused = true)]
async fn one_who_asks_and_reads_nothing_cannot_fill_the_memory() {
    let made = Arc::new(AtomicUsize::new(0));
    let counted = made.clone();
    let fat = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async move { "f".repeat(MIB / 16) }
    };
    let ask = |cx: Cx| async move {
        asked(&cx, "q").await?;
        Ok::<_, ToolError>("asked")
    };
    let server = Server::new("s", "0").tool(tool("fat", fat)).tool(tool("ask", ask));
    let (pipe, _serving) = Pipe::session(&server, 4096, "2025-11-25", json!({"elicitation": {}})).await;
    let Pipe { mut reader, mut writer } = pipe;
    let write = async {
        use tokio::io::AsyncWriteExt;
        let ask = session_call("ask", "ask", json!({}));
        writer.write_all(format!("{ask}\n").as_bytes()).await.unwrap();
        for n in 0..500 {
            writer.write_all(format!("{}\n", session_call(n, "fat", json!({}))).as_bytes()).await.unwrap();
        }
        writer
    };
    let read = async {
        settle().await;
        assert!(made.load(Ordering::SeqCst) < 40, "results that nobody reads are not made");
        let mut question = None;
        for _ in 0..501 {
            let line = within(reader.next_line()).await.unwrap().unwrap();
            let line: serde_json::Value = serde_json::from_str(&line).unwrap();
            if line["method"] == "elicitation/create" {
                question = Some(line);
            }
        }
        question.unwrap()
    };
    let (mut writer, question) = within(async { tokio::join!(write, read) }).await;
    use tokio::io::AsyncWriteExt;
    writer.write_all(format!("{}\n", yes(&question)).as_bytes()).await.unwrap();
    let line = within(reader.next_line()).await.unwrap().unwrap();
    assert!(line.contains("asked"), "{line}");
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_is_handled_although_the_output_is_full() {
    let gone = Arc::new(());
    let held = gone.clone();
    let stuck = move || {
        let held = held.clone();
        async move {
            let _held = held;
            std::future::pending::<String>().await
        }
    };
    let server = echo().tool(tool("stuck", stuck));
    let (mut pipe, _serving) = Pipe::open(&server, 4096);
    pipe.say(call(1, "stuck", json!({}))).await;
    pipe.say(call(2, "big", json!({}))).await;
    settle().await;
    assert_eq!(Arc::strong_count(&gone), 3);
    pipe.say(cancel(1)).await;
    settle().await;
    assert_eq!(Arc::strong_count(&gone), 2, "it goes on although nobody wants it");
    assert_eq!(pipe.receive().await["id"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_waits_for_an_answer_gets_it_although_the_output_is_full() {
    let ask = |cx: Cx| async move {
        asked(&cx, "q").await?;
        Ok::<_, ToolError>("asked")
    };
    let server = echo().tool(tool("ask", ask));
    let (mut pipe, _serving) = Pipe::session(&server, 4096, "2025-06-18", json!({"elicitation": {}})).await;
    pipe.say(session_call(1, "ask", json!({}))).await;
    let question = pipe.receive().await;
    pipe.say(session_call(2, "big", json!({}))).await;
    settle().await;
    pipe.say(yes(&question)).await;
    assert_eq!(pipe.receive().await["id"], 2);
    assert_eq!(text(&pipe.receive().await), "asked");
}

#[tokio::test(start_paused = true)]
async fn a_handler_sends_more_than_fits_in_its_first_poll() {
    let chatty = |cx: Cx| async move {
        for n in 0..1000 {
            cx.progress(f64::from(n), None).await;
        }
        "said"
    };
    let server = Server::new("s", "0").tool(tool("chatty", chatty));
    let (mut pipe, _serving) = Pipe::open(&server, 1 << 16);
    for id in [1, 2] {
        let mut message = call(id, "chatty", json!({}));
        message["params"]["_meta"]["progressToken"] = id.into();
        pipe.say(message).await;
    }
    let (mut reported, mut ended) = ([None, None], 0);
    while ended < 2 {
        let line = pipe.receive().await;
        let id = line["id"].as_u64().or(line["params"]["progressToken"].as_u64()).unwrap();
        let reported = &mut reported[id as usize - 1];
        if line["id"].is_null() {
            let progress = line["params"]["progress"].as_f64();
            assert!(progress > *reported, "{line} after {reported:?}");
            *reported = progress;
        } else {
            // What is left out is never the last.
            assert_eq!(*reported, Some(999.0), "the result comes last");
            ended += 1;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn messages_of_other_tasks_never_follow_the_result() {
    let chatty = |cx: Cx| async move {
        for at in 0..300 {
            let cx = cx.clone();
            tokio::spawn(async move { cx.progress(f64::from(at), None).await });
        }
        tokio::task::yield_now().await;
        "done"
    };
    let server = Server::new("s", "0").tool(tool("chatty", chatty));
    let (mut pipe, _serving) = Pipe::open(&server, 1 << 16);
    for id in 1..4 {
        let mut message = call(id, "chatty", json!({}));
        message["params"]["_meta"]["progressToken"] = id.into();
        pipe.say(message).await;
    }
    settle().await;
    pipe.say(json!({"jsonrpc": "2.0", "id": 9, "method": "ping"})).await;
    let mut ended = Vec::new();
    loop {
        let line = pipe.receive().await;
        match line["id"].as_u64() {
            Some(9) => break,
            Some(id) => ended.push(id),
            None => {
                let of = line["params"]["progressToken"].as_u64().unwrap();
                assert!(!ended.contains(&of), "{line} after the result");
            }
        }
    }
    assert_eq!(ended.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn unread_messages_of_a_cancelled_call_are_not_sent() {
    let go = Arc::new(Notify::new());
    let gate = go.clone();
    let chatty = move |cx: Cx| {
        let gate = gate.clone();
        async move {
            cx.progress(0.0, None).await;
            gate.notified().await;
            for n in 1..50 {
                cx.progress(f64::from(n), None).await;
            }
            std::future::pending::<String>().await
        }
    };
    let server = echo().tool(tool("chatty", chatty));
    let (mut pipe, _serving) = Pipe::open(&server, 4096);
    let mut message = call(1, "chatty", json!({}));
    message["params"]["_meta"]["progressToken"] = 1.into();
    pipe.say(message).await;
    assert_eq!(pipe.receive().await["params"]["progress"], 0.0);
    pipe.say(call(2, "big", json!({}))).await;
    settle().await;
    // The output is full: what is said now waits, and meanwhile nobody wants to know any more.
    go.notify_one();
    settle().await;
    pipe.say(cancel(1)).await;
    pipe.say(json!({"jsonrpc": "2.0", "id": 3, "method": "ping"})).await;
    for id in [2, 3] {
        let line = pipe.receive().await;
        assert_eq!(line["id"], id, "{}", line["method"]);
    }
    pipe.say(json!({"jsonrpc": "2.0", "id": 4, "method": "ping"})).await;
    assert_eq!(pipe.receive().await["id"], 4);
}

#[tokio::test(start_paused = true)]
async fn messages_of_a_call_precede_its_result_although_it_never_waited() {
    let quick = |cx: Cx| async move {
        for n in 0..3 {
            cx.progress(f64::from(n), None).await;
        }
        "done"
    };
    let server = Server::new("s", "0").tool(tool("quick", quick));
    let (mut pipe, _serving) = Pipe::open(&server, 1 << 16);
    for id in 1..4 {
        let mut message = call(id, "quick", json!({}));
        message["params"]["_meta"]["progressToken"] = id.into();
        pipe.say(message).await;
    }
    for id in 1..4 {
        for n in 0..3 {
            let line = pipe.receive().await;
            assert_eq!(line["params"]["progressToken"], id, "{line}");
            assert_eq!(line["params"]["progress"], f64::from(n), "{line}");
        }
        assert_eq!(pipe.receive().await["id"], id);
    }
}

#[tokio::test(start_paused = true)]
async fn one_at_a_time_and_reading_goes_on() {
    let ask = |cx: Cx| async move {
        asked(&cx, "q").await?;
        Ok::<_, ToolError>("asked")
    };
    let go = Arc::new(Notify::new());
    let gate = go.clone();
    let hold = move || {
        let gate = gate.clone();
        async move {
            gate.notified().await;
            "held"
        }
    };
    let server = echo().tool(tool("ask", ask)).tool(tool("hold", hold)).concurrency(1);
    let (mut pipe, _serving) =
        Pipe::session(&server, 1 << 16, "2025-11-25", json!({"elicitation": {}})).await;
    // One that waits for its client leaves its place to the next, and has to wait for it when it is answered.
    pipe.say(session_call(0, "ask", json!({}))).await;
    let question = pipe.receive().await;
    pipe.say(session_call(1, "hold", json!({}))).await;
    pipe.say(yes(&question)).await;
    for id in 2..6 {
        pipe.say(session_call(id, "echo", json!({}))).await;
    }
    pipe.say(cancel(3)).await;
    pipe.say(json!({"jsonrpc": "2.0", "id": "p", "method": "ping"})).await;
    assert_eq!(pipe.receive().await["id"], "p");
    go.notify_one();
    for id in [1, 0, 2, 4, 5] {
        assert_eq!(pipe.receive().await["id"], id);
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_jumps_the_queue() {
    let go = Arc::new(Notify::new());
    let gate = go.clone();
    let wait = move || {
        let gate = gate.clone();
        async move {
            gate.notified().await;
            "waited"
        }
    };
    let server = echo().tool(tool("wait", wait)).concurrency(1);
    let (mut pipe, _serving) = Pipe::open(&server, 1 << 20);
    pipe.say(call(0, "wait", json!({}))).await;
    for id in 1..200 {
        pipe.say(call(id, "echo", json!({}))).await;
    }
    settle().await;
    // The place becomes free and one more call comes in, both before the connection looks.
    go.notify_one();
    pipe.say(call(200, "echo", json!({}))).await;
    for id in 0..=200 {
        assert_eq!(pipe.receive().await["id"], id);
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_answered_although_one_of_it_is_cancelled() {
    let stuck = std::future::pending::<String>;
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = ran.clone();
    let count = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        std::future::ready("ran")
    };
    let server = echo().tool(tool("stuck", stuck)).tool(tool("count", count));
    for limit in [1, 100] {
        let server = server.clone().concurrency(limit);
        let (mut pipe, _serving) = Pipe::session(&server, 1 << 16, "2025-03-26", json!({})).await;
        // Cancelled in the same batch: it need not even begin.
        let batch =
            json!([session_call(1, "count", json!({})), session_call(2, "echo", json!({})), cancel(1),]);
        pipe.say(batch).await;
        assert_eq!(pipe.receive().await.as_array().map(Vec::len), Some(1));
        assert_eq!(ran.load(Ordering::SeqCst), 0);
        // Cancelled later, running or waiting.
        pipe.say(json!([
            session_call(3, "echo", json!({})),
            session_call(4, "stuck", json!({})),
            session_call(5, "stuck", json!({})),
        ]))
        .await;
        settle().await;
        pipe.say(cancel(5)).await;
        pipe.say(cancel(4)).await;
        let answers = pipe.receive().await;
        assert_eq!(answers[0]["id"], 3, "{answers}");
        assert_eq!(answers.as_array().map(Vec::len), Some(1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_waits_for_is_taken_back() {
    let ask = |cx: Cx| async move {
        let gave_up = tokio::time::timeout(Duration::from_secs(5), asked(&cx, "q")).await.is_err();
        // The call goes on: it is not its end that takes the question back.
        tokio::time::sleep(Duration::from_secs(5)).await;
        format!("{gave_up}")
    };
    let server = Server::new("s", "0").tool(tool("ask", ask));
    let (mut pipe, _serving) =
        Pipe::session(&server, 1 << 16, "2025-11-25", json!({"elicitation": {}})).await;
    pipe.say(session_call(1, "ask", json!({}))).await;
    let question = pipe.receive().await;
    let asked = tokio::time::Instant::now();
    let taken_back = pipe.receive().await;
    assert_eq!(asked.elapsed().as_secs(), 5, "when the handler gave up, not when it ended");
    assert_eq!(taken_back["method"], "notifications/cancelled", "{taken_back}");
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
    assert_eq!(text(&pipe.receive().await), "true");
}

#[tokio::test(start_paused = true)]
async fn one_who_writes_for_ever_and_never_reads_is_made_to_wait() {
    use tokio::io::AsyncWriteExt;
    let (pipe, _serving) = Pipe::open(&echo(), 64 << 10);
    let Pipe { mut reader, mut writer } = pipe;
    writer.write_all(format!("{}\n", call("big", "big", json!({}))).as_bytes()).await.unwrap();
    settle().await;
    let padding = "p".repeat(64 << 10);
    let mut written = 0;
    let write = async {
        for id in 0.. {
            let ping = json!({"jsonrpc": "2.0", "id": id, "method": "ping", "params": {"p": padding}});
            writer.write_all(format!("{ping}\n").as_bytes()).await.unwrap();
            written = id + 1;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(60), write).await.is_err());
    // As much as one large message, so that a peer that writes one before it reads is not stuck; no more.
    let mebibytes = written * padding.len() / MIB;
    assert!((15..20).contains(&mebibytes), "{mebibytes} MiB were taken");
    assert!(within(reader.next_line()).await.unwrap().unwrap().len() > 10 * MIB);
    for id in 0..written {
        let line = within(reader.next_line()).await.unwrap().unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap()["id"], id);
    }
}

#[tokio::test(start_paused = true)]
async fn notifications_are_handled_in_order_and_a_slow_handler_holds_few() {
    use tokio::io::AsyncWriteExt;
    let (tx, mut received) = tokio::sync::mpsc::unbounded_channel();
    let go = Arc::new(Notify::new());
    let gate = go.clone();
    let server = echo().on_notification("notifications/mine", move |notification, _| {
        let (tx, gate) = (tx.clone(), gate.clone());
        async move {
            gate.notified().await;
            gate.notify_one();
            let params = notification.params.unwrap_or_default();
            tx.send(params.decode_member::<usize>("n").unwrap().unwrap()).unwrap();
        }
    });
    let (mut pipe, serving) = Pipe::open(&server, 4096);
    let mut written = 0;
    let write = async {
        for n in 0..5000 {
            let message = json!({"jsonrpc": "2.0", "method": "notifications/mine", "params": {"n": n}});
            pipe.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
            written = n + 1;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(60), write).await.is_err(), "it holds {written}");
    go.notify_one();
    // The rest of the line that was cut short is noise; the next message is whole again.
    pipe.write("\n").await;
    pipe.say(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await;
    while pipe.receive().await["id"] != 1 {}
    pipe.hang_up().await;
    within(serving.wait()).await.unwrap();
    let mut order = Vec::new();
    while let Ok(n) = received.try_recv() {
        order.push(n);
    }
    assert!(order.len() >= written, "{} of {written}", order.len());
    assert!(order.iter().copied().eq(0..order.len()));
}

#[tokio::test(start_paused = true)]
async fn notifications_that_wait_are_bounded_in_bytes() {
    use tokio::io::AsyncWriteExt;
    let server = echo().on_notification("notifications/mine", |_, _| std::future::pending());
    let (mut pipe, _serving) = Pipe::open(&server, MIB);
    let mut written = 0;
    let write = async {
        let message =
            json!({"jsonrpc": "2.0", "method": "notifications/mine", "params": {"x": "y".repeat(MIB)}});
        for _ in 0..100 {
            pipe.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
            written += 1;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(60), write).await.is_err(), "it holds {written}");
    assert!((16..24).contains(&written), "{written}");
}

#[tokio::test(start_paused = true)]
async fn a_refused_client_that_never_reads_is_made_to_wait() {
    use tokio::io::AsyncWriteExt;
    let reason = "not you ".repeat(1 << 10);
    let refuse =
        move |_: &pintle::server::Opened| Err(pintle::types::RpcError::invalid_request(reason.clone()));
    let (pipe, _serving) = Pipe::open(&echo().on_open(refuse), 64 << 10);
    let Pipe { mut reader, mut writer } = pipe;
    let mut written = 0;
    let write = async {
        for id in 0..20_000 {
            // A probe does not end the connection.
            let probe = json!({"jsonrpc": "2.0", "id": id, "method": "server/discover"});
            writer.write_all(format!("{probe}\n").as_bytes()).await.unwrap();
            written = id + 1;
        }
    };
    let waits = tokio::time::timeout(Duration::from_secs(60), write).await.is_err();
    assert!(waits, "{written} refused requests were read, and none of the answers");
    for id in 0..written {
        let line = within(reader.next_line()).await.unwrap().unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap()["id"], id);
    }
}
