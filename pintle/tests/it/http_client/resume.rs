//! Streams that break, and are taken up again where they broke.

use std::time::Duration;

use tokio::time::Instant;

use crate::support::scripted_http::{Asked, Script, client, script};

const GET: &str = "GET http://server.test/mcp";

fn answer(asked: &Asked) -> String {
    let id = asked.message()["id"].clone();
    format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[]}}}}\n\n")
}

async fn without_standing_stream(revision: &str) -> (Script, pintle::Connection) {
    let (mut server, http) = script();
    let connection = server.shakes(revision, client(), http).await;
    server.line(GET).await.status(405);
    (server, connection)
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_taken_up_again_exactly_when_the_server_says() {
    let (mut server, connection) = without_standing_stream("2025-11-25").await;
    let call = tokio::spawn({
        let connection = connection.clone();
        async move { connection.call_tool("test_reconnection", ()).await }
    });
    let asked = server.receives("tools/call").await;
    let answer = answer(&asked);
    let stream = asked.events();
    stream.sends("id: event-1\nretry: 500\ndata: \n\n");
    tokio::time::sleep(Duration::from_millis(50)).await;
    let closed = Instant::now();
    drop(stream);
    let resumed = server.line(GET).await;
    let waited = closed.elapsed();
    assert!(waited >= Duration::from_millis(500) && waited < Duration::from_millis(510), "{waited:?}");
    assert_eq!(resumed.header("last-event-id"), Some("event-1"));
    assert_eq!(resumed.header("mcp-session-id"), Some("s-1"));
    assert_eq!(resumed.header("mcp-protocol-version"), Some("2025-11-25"));
    assert_eq!(resumed.header("accept"), Some("text/event-stream"));
    resumed.events().sends(&format!("id: event-2\n{answer}"));
    call.await.unwrap().unwrap();
    server.receives_nothing(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn each_stream_comes_back_for_its_own_and_goes_on_from_the_last_event() {
    let (mut server, connection) = without_standing_stream("2025-06-18").await;
    let (steps, mut notified) = tokio::sync::mpsc::unbounded_channel();
    let call = tokio::spawn(async move {
        connection.call("t").on_progress(move |p| steps.send(p.progress).unwrap()).send().await
    });
    let asked = server.receives("tools/call").await;
    let (id, answer) = (asked.message()["id"].clone(), answer(&asked));
    let progress = |n: u32| {
        format!(
            "id: {n}\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{id},\"progress\":{n}}}}}\n\n"
        )
    };
    let stream = asked.events();
    stream.sends(&progress(1));
    // Cut in the middle of an event: it was never seen.
    stream.sends(&progress(2)[..20]);
    stream.breaks();
    for n in 2..=4 {
        let resumed = server.line(GET).await;
        assert_eq!(resumed.header("last-event-id"), Some((n - 1).to_string().as_str()));
        let stream = resumed.events();
        stream.sends(&progress(n));
        stream.breaks();
    }
    server.line(GET).await.events().sends(&answer);
    call.await.unwrap().unwrap();
    let mut seen = Vec::new();
    while let Ok(step) = notified.try_recv() {
        seen.push(step);
    }
    assert_eq!(seen, [1.0, 2.0, 3.0, 4.0]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_brings_nothing_new_is_given_up_after_a_while() {
    let (mut server, connection) = without_standing_stream("2025-11-25").await;
    let call = tokio::spawn({
        let connection = connection.clone();
        async move { connection.call("t").timeout(Duration::from_secs(3600)).send().await }
    });
    let stream = server.receives("tools/call").await.events();
    stream.sends("id: 1\ndata:\n\n");
    stream.breaks();
    let mut waits = Vec::new();
    let mut last = Instant::now();
    for attempt in 0..6 {
        let resumed = server.line(GET).await;
        waits.push(last.elapsed().as_millis());
        last = Instant::now();
        match attempt {
            0 => resumed.status(502),
            1 => resumed.status(429),
            _ => resumed.events().sends(": nothing\n\n"),
        }
    }
    let error = call.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("for `tools/call` ended before the answer came"), "{error}");
    for (wait, least) in waits.iter().zip([250, 500, 1_000, 2_000, 4_000, 8_000]) {
        assert!((least..=least * 5 / 4 + 1).contains(wait), "{waits:?}");
    }
    server.receives_nothing(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_ids_is_over_when_it_breaks() {
    let (mut server, connection) = without_standing_stream("2025-11-25").await;
    let call = tokio::spawn({
        let connection = connection.clone();
        async move { connection.call_tool("t", ()).await }
    });
    let stream = server.receives("tools/call").await.events();
    stream.sends(": alive\n\n");
    stream.breaks();
    let error = call.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("broke off: connection reset: the server may have carried it out"), "{error}");
    server.receives_nothing(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn the_stream_of_a_session_is_opened_again_and_never_ends_the_session() {
    let (mut server, http) = script();
    let connection = server.shakes("2025-11-25", client(), http).await;
    let stream = server.line(GET).await.events();
    stream.sends("id: a\nretry: 2000\ndata:\n\n");
    let closed = Instant::now();
    drop(stream);
    let again = server.line(GET).await;
    assert_eq!(closed.elapsed(), Duration::from_secs(2));
    assert_eq!(again.header("last-event-id"), Some("a"));
    again.status(500);
    server.line(GET).await.fails(std::io::ErrorKind::ConnectionReset);
    // It tries for as long as there is a session; a server that has no such stream any more is left alone.
    let later = server.line(GET).await;
    assert!(closed.elapsed() >= Duration::from_secs(6));
    later.status(405);
    server.line(GET).await.status(405);
    let (called, ()) = tokio::join!(connection.call_tool("t", ()), async {
        server.receives("tools/call").await.result(r#"{"content":[]}"#);
    });
    called.unwrap();
    server.receives_nothing(Duration::from_secs(600)).await;
}
