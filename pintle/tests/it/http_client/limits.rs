//! What a server over HTTP can make a client hold.

use std::time::Duration;

use pintle::{Client, client::http, proto::Limits};

use crate::support::scripted_http::{client, script};

fn limited(bytes: usize) -> Client {
    let mut limits = Limits::default();
    limits.message_bytes = bytes;
    client().limits(limits)
}

fn long(id: &serde_json::Value, bytes: usize) -> String {
    let text = "x".repeat(bytes);
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_a_message_is_the_clients_unless_http_has_its_own() {
    let clients = "raise `message_bytes` of the client's `Limits`";
    let own = "raise `answer` of the `Limits` of `client::http`";
    for (message_bytes, answer, refused) in [
        (1000, None, Some(clients)),
        (4000, None, None),
        (1000, Some(4000), None),
        (4000, Some(1000), Some(own)),
    ] {
        for events in [false, true] {
            let (mut server, http) = script();
            let mut limits = http::Limits::default();
            limits.answer = answer;
            let connection = server.opens(limited(message_bytes), http.limits(limits)).await;
            let (called, ()) = tokio::join!(connection.call_tool("t", ()), async {
                let asked = server.receives("tools/call").await;
                let answer = long(&asked.message()["id"], 2000);
                match events {
                    true => asked.events().sends(&format!("data: {answer}\n\n")),
                    false => asked.json(200, &answer),
                }
            });
            match refused {
                None => assert!(called.is_ok(), "{called:?}"),
                Some(what) => {
                    let error = called.unwrap_err().to_string();
                    assert!(error.contains("longer than 10") && error.contains(what), "{events}: {error}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_may_bring_more_than_may_wait_at_once() {
    let (mut server, http) = script();
    let connection = server.opens(limited(1000), http).await;
    let (called, ()) = tokio::join!(connection.call_tool("t", ()), async {
        let asked = server.receives("tools/call").await;
        let id = asked.message()["id"].clone();
        let stream = asked.events();
        let note = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{"x":"{}"}}}}"#,
            "x".repeat(800)
        );
        (0..100).for_each(|_| stream.sends(&format!("data: {note}\n\n")));
        stream.sends(&format!("data: {}\n\n", long(&id, 10)));
    });
    called.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_event_of_a_session_that_is_too_long_is_skipped_once() {
    let (mut server, http) = script();
    let connection = server.shakes("2025-11-25", limited(1000), http).await;
    let get = "GET http://server.test/mcp";
    let stream = server.line(get).await.events();
    stream.sends(&format!("id: 1\ndata:\n\nid: 2\ndata: {}\n\n", "x".repeat(2000)));
    // Not from the last event on: that would bring it again.
    let again = server.line(get).await;
    assert_eq!(again.header("last-event-id"), None);
    let _open = again.events();
    server.receives_nothing(Duration::from_secs(60)).await;
    drop(connection);
}
