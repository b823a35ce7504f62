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

use crate::stress_pipe::{Pipe, asked, call, cancel, session_call, settle, text, within, yes};

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
        let answer = pipe.hear().await;
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
        assert_eq!(pipe.hear().await["id"], n);
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
        let id = usize::try_from(pipe.hear().await["id"].as_u64().unwrap()).unwrap();
        assert!(!std::mem::replace(&mut seen[id], true), "{id} twice");
    }
    pipe.say(json!({"jsonrpc": "2.0", "id": "p", "method": "ping"})).await;
    assert_eq!(pipe.hear().await["id"], "p");
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
async fn a_cancellation_is_heard_although_the_output_is_full() {
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
    assert_eq!(pipe.hear().await["id"], 2);
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
    let question = pipe.hear().await;
    pipe.say(session_call(2, "big", json!({}))).await;
    settle().await;
    pipe.say(yes(&question)).await;
    assert_eq!(pipe.hear().await["id"], 2);
    assert_eq!(text(&pipe.hear().await), "asked");
}

#[tokio::test(start_paused = true)]
async fn a_handler_says_more_than_there_is_room_for_in_its_first_steps() {
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
        let line = pipe.hear().await;
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
async fn what_another_task_still_says_never_follows_the_result() {
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
        let line = pipe.hear().await;
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
async fn what_a_cancelled_call_said_and_nobody_has_read_yet_is_not_sent() {
    let chatty = |cx: Cx| async move {
        for n in 0..1000 {
            cx.progress(f64::from(n), None).await;
            tokio::task::yield_now().await;
        }
        "said"
    };
    let server = echo().tool(tool("chatty", chatty));
    let (mut pipe, _serving) = Pipe::open(&server, 4096);
    pipe.say(call(1, "big", json!({}))).await;
    settle().await;
    // The output is full: the call waits in the queue, and begins when the result is read.
    let mut message = call(2, "chatty", json!({}));
    message["params"]["_meta"]["progressToken"] = 2.into();
    pipe.say(message).await;
    assert_eq!(pipe.hear().await["id"], 1);
    pipe.say(call(3, "big", json!({}))).await;
    settle().await;
    pipe.say(cancel(2)).await;
    settle().await;
    pipe.say(json!({"jsonrpc": "2.0", "id": 4, "method": "ping"})).await;
    let mut big = false;
    loop {
        let line = pipe.hear().await;
        match line["id"].as_u64() {
            Some(3) => big = true,
            Some(4) => break,
            _ => assert!(!big, "{line} behind a result that was written before the cancellation was read"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_at_a_time_and_reading_goes_on() {
    let ask = |cx: Cx| async move {
        asked(&cx, "q").await?;
        Ok::<_, ToolError>("asked")
    };
    let server = echo().tool(tool("ask", ask)).concurrency(1);
    let (mut pipe, _serving) =
        Pipe::session(&server, 1 << 16, "2025-11-25", json!({"elicitation": {}})).await;
    pipe.say(session_call(1, "ask", json!({}))).await;
    let question = pipe.hear().await;
    for id in 2..6 {
        pipe.say(session_call(id, "echo", json!({}))).await;
    }
    pipe.say(cancel(3)).await;
    pipe.say(json!({"jsonrpc": "2.0", "id": "p", "method": "ping"})).await;
    assert_eq!(pipe.hear().await["id"], "p");
    pipe.say(yes(&question)).await;
    for id in [1, 2, 4, 5] {
        assert_eq!(pipe.hear().await["id"], id);
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_jumps_the_queue() {
    let go = Arc::new(Notify::new());
    let (gate, order) = (go.clone(), Arc::new(std::sync::Mutex::new(Vec::new())));
    let noted = order.clone();
    let wait = move |Arguments(arguments): Arguments| {
        let (gate, noted) = (gate.clone(), noted.clone());
        async move {
            noted.lock().unwrap().push(arguments.as_str().to_owned());
            gate.notified().await;
            ""
        }
    };
    let server = Server::new("s", "0").tool(tool("wait", wait)).concurrency(1);
    let (mut pipe, _serving) = Pipe::open(&server, 1 << 16);
    pipe.say(call(1, "wait", json!({"n": 1}))).await;
    pipe.say(call(2, "wait", json!({"n": 2}))).await;
    settle().await;
    // The place becomes free and the next call comes in, both before the connection looks.
    go.notify_one();
    pipe.say(call(3, "wait", json!({"n": 3}))).await;
    for id in [1, 2, 3] {
        go.notify_one();
        assert_eq!(pipe.hear().await["id"], id);
        settle().await;
    }
    assert_eq!(*order.lock().unwrap(), [r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_answered_although_one_of_it_is_cancelled() {
    let stuck = || std::future::pending::<String>();
    let server = echo().tool(tool("stuck", stuck));
    for limit in [1, 100] {
        let server = server.clone().concurrency(limit);
        let (mut pipe, _serving) = Pipe::session(&server, 1 << 16, "2025-03-26", json!({})).await;
        // Cancelled in the same batch, before and after what it cancels could end.
        let batch =
            json!([session_call(1, "echo", json!({})), session_call(2, "echo", json!({})), cancel(1),]);
        pipe.say(batch).await;
        assert_eq!(pipe.hear().await.as_array().map(Vec::len), Some(1));
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
        let answers = pipe.hear().await;
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
    let question = pipe.hear().await;
    let taken_back = pipe.hear().await;
    assert_eq!(taken_back["method"], "notifications/cancelled", "{taken_back}");
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
    assert_eq!(text(&pipe.hear().await), "true");
}
