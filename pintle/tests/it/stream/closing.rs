//! Ends: whoever hangs up, is told to stop, or does not read, the connection is over in time.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use pintle::{
    Ended, Server,
    server::{Arguments, Cx, ToolError, tool},
    transport::{Stream, memory},
};
use serde_json::json;
use tokio::{
    io::AsyncWrite,
    time::{Instant, sleep},
};

use crate::support::pipe::{Pipe, asked, call, session_call, settle, text, within};

const GRACE: Duration = Duration::from_secs(5);

fn server() -> Server {
    Server::new("s", "0")
        .tool(tool("echo", |Arguments(arguments)| async move { arguments.as_str().to_owned() }))
        .tool(tool("stuck", std::future::pending::<String>))
        .tool(tool("slow", || async {
            sleep(Duration::from_secs(1)).await;
            "slow"
        }))
        .tool(tool("fat", || async { "f".repeat(4 << 20) }))
        .tool(tool("ask", |cx: Cx| async move {
            asked(&cx, "first").await.ok();
            let again = asked(&cx, "second").await;
            Ok::<_, ToolError>(format!("{}", again.is_err()))
        }))
}

#[tokio::test(start_paused = true)]
async fn requests_that_were_piped_in_are_answered_after_the_end() {
    for concurrency in [1, 100] {
        let (mut pipe, serving) = Pipe::open(&server().concurrency(concurrency), 1 << 16);
        pipe.say(call(1, "slow", json!({}))).await;
        pipe.write(&call(2, "echo", json!({"last": "without its line's end"})).to_string()).await;
        pipe.hang_up().await;
        let mut ids: Vec<_> =
            pipe.receive_all().await.iter().map(|line| line["id"].as_u64().unwrap()).collect();
        ids.sort_unstable();
        assert_eq!(ids, [1, 2]);
        assert_eq!(within(serving.wait()).await.unwrap(), Ended::ByPeer { known: None });
    }
}

#[tokio::test(start_paused = true)]
async fn a_notification_that_was_piped_in_is_handled_after_the_end() {
    let (tx, mut received) = tokio::sync::mpsc::channel(1);
    let server = server().on_notification("notifications/mine", move |_, _| {
        let tx = tx.clone();
        async move {
            sleep(Duration::from_millis(500)).await;
            tx.send(()).await.unwrap();
        }
    });
    let (mut pipe, serving) = Pipe::open(&server, 1 << 16);
    pipe.say(json!({"jsonrpc": "2.0", "method": "notifications/mine"})).await;
    pipe.hang_up().await;
    assert_eq!(within(serving.wait()).await.unwrap(), Ended::ByPeer { known: None });
    assert!(received.try_recv().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_waits_for_an_answer_fails_at_once_when_the_client_leaves() {
    let (mut pipe, serving) =
        Pipe::session(&server(), 1 << 16, "2025-11-25", json!({"elicitation": {}})).await;
    pipe.say(session_call(1, "ask", json!({}))).await;
    pipe.receive().await;
    let before = Instant::now();
    pipe.hang_up().await;
    // It asks a second time, after the end: that is not sent either.
    let rest = pipe.receive_all().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(text(&rest[0]), "true");
    assert_eq!(within(serving.wait()).await.unwrap(), Ended::ByPeer { known: None });
    assert_eq!(before.elapsed(), Duration::ZERO, "no grace had to pass");
}

#[tokio::test(start_paused = true)]
async fn a_stopped_connection_takes_its_questions_back_and_ends() {
    let (mut pipe, serving) =
        Pipe::session(&server(), 1 << 16, "2025-11-25", json!({"elicitation": {}})).await;
    pipe.say(session_call(1, "ask", json!({}))).await;
    let question = pipe.receive().await;
    let before = Instant::now();
    assert_eq!(within(serving.close(GRACE)).await.unwrap(), Ended::Stopped);
    assert_eq!(before.elapsed(), Duration::ZERO);
    let rest = pipe.receive_all().await;
    assert_eq!(rest[0]["method"], "notifications/cancelled", "{rest:?}");
    assert_eq!(rest[0]["params"]["requestId"], question["id"]);
    assert_eq!(text(&rest[1]), "true");
}

#[tokio::test(start_paused = true)]
async fn stuck_handlers_have_their_grace_and_no_more() {
    let (mut pipe, serving) = Pipe::open(&server(), 1 << 16);
    for id in 0..100 {
        pipe.say(call(id, "stuck", json!({}))).await;
    }
    pipe.say(call("slow", "slow", json!({}))).await;
    settle().await;
    let before = Instant::now();
    assert_eq!(within(serving.close(GRACE)).await.unwrap(), Ended::Stopped);
    assert!(before.elapsed() >= GRACE && before.elapsed() < GRACE + Duration::from_secs(1));
    assert_eq!(text(&pipe.receive_all().await[0]), "slow");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_cannot_keep_it_open() {
    let (mut pipe, serving) = Pipe::open(&server(), 64);
    pipe.say(call(1, "fat", json!({}))).await;
    settle().await;
    let before = Instant::now();
    assert_eq!(within(serving.close(GRACE)).await.unwrap(), Ended::Stopped);
    assert!(before.elapsed() < GRACE + Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_stop_after_the_client_left_takes_effect_at_once() {
    let (mut pipe, serving) = Pipe::open(&server(), 1 << 16);
    pipe.say(call(1, "stuck", json!({}))).await;
    pipe.hang_up().await;
    settle().await;
    let before = Instant::now();
    assert_eq!(within(serving.close(Duration::ZERO)).await.unwrap(), Ended::ByPeer { known: None });
    assert!(before.elapsed() < Duration::from_millis(10), "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_grace_without_end_is_no_panic() {
    let (mut pipe, serving) = Pipe::open(&server(), 1 << 16);
    pipe.say(call(1, "slow", json!({}))).await;
    settle().await;
    assert_eq!(within(serving.close(Duration::MAX)).await.unwrap(), Ended::Stopped);
    assert_eq!(text(&pipe.receive().await), "slow");
}

#[tokio::test(start_paused = true)]
async fn a_flood_does_not_drown_the_wish_to_stop() {
    // A transport that always has one more message.
    #[derive(Debug)]
    struct Flood;
    impl pintle::transport::Transport for Flood {
        fn poll_recv(
            &mut self,
            _: &mut Context<'_>,
        ) -> Poll<std::io::Result<Option<pintle::transport::Incoming>>> {
            let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
            Poll::Ready(Ok(Some(pintle::transport::Incoming::Message(ping.into()))))
        }
        fn send(&mut self, _: bytes::Bytes) {}
        fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }
    let serving = server().serve(Flood).unwrap();
    tokio::task::yield_now().await;
    let mut closing = Box::pin(serving.close(GRACE));
    let mut ended = None;
    for _ in 0..10 {
        tokio::select! {
            biased;
            end = &mut closing => { ended = Some(end); break }
            () = tokio::task::yield_now() => {}
        }
    }
    assert_eq!(ended.expect("the flood goes on").unwrap(), Ended::Stopped);
}

#[tokio::test(start_paused = true)]
async fn what_is_waited_for_can_be_closed() {
    let (_pipe, serving) = Pipe::open(&server(), 1 << 16);
    // Whoever stops waiting has ended nothing, and may wait again.
    tokio::select! {
        biased;
        ended = serving.wait() => panic!("nobody has asked for it: {ended:?}"),
        () = settle() => {}
    }
    let handle = serving.handle();
    let waits =
        async { tokio::join!(serving.wait(), serving.wait(), async { handle.close(Duration::ZERO) }) };
    let (waited, again, ()) = within(waits).await;
    assert_eq!((waited.unwrap(), again.unwrap()), (Ended::Stopped, Ended::Stopped));
    assert_eq!(within(serving.close(Duration::ZERO)).await.unwrap(), Ended::Stopped, "it is over");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_handle_lets_the_connection_go_on() {
    let (mut pipe, serving) = Pipe::open(&server(), 1 << 16);
    drop(serving);
    pipe.say(call(1, "echo", json!({}))).await;
    assert_eq!(text(&pipe.receive().await), "{}");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_is_gone_altogether_is_an_end_and_no_error() {
    let (ours, theirs) = memory();
    let serving = server().serve(ours).unwrap();
    let mut theirs = theirs;
    {
        use pintle::transport::Transport;
        theirs.send(call(1, "slow", json!({})).to_string().into());
        std::future::poll_fn(|cx| theirs.poll_flush(cx)).await.unwrap();
    }
    settle().await;
    drop(theirs);
    assert_eq!(within(serving.wait()).await.unwrap(), Ended::ByPeer { known: None });
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_ends_the_connection_and_its_calls() {
    struct Broken(usize);
    impl AsyncWrite for Broken {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<std::io::Result<usize>> {
            let written = bytes.len().min(self.0);
            self.0 -= written;
            Poll::Ready(if written == 0 { Err(std::io::Error::other("torn")) } else { Ok(written) })
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
            Poll::Ready(Ok(()))
        }
        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }
    let alive = Arc::new(());
    let held = alive.clone();
    let hold = move || {
        let held = held.clone();
        async move {
            let _held = held;
            std::future::pending::<String>().await
        }
    };
    let server = server().tool(tool("hold", hold));
    let (mut ours, theirs) = tokio::io::duplex(1 << 16);
    let serving = server.serve(Stream::new(theirs, Broken(50))).unwrap();
    use tokio::io::AsyncWriteExt;
    let lines = format!("{}\n{}\n", call(1, "hold", json!({})), call(2, "echo", json!({})));
    ours.write_all(lines.as_bytes()).await.unwrap();
    let error = within(serving.wait()).await.unwrap_err();
    assert!(error.to_string().contains("torn"), "{error}");
    settle().await;
    assert_eq!(Arc::strong_count(&alive), 2);
}
