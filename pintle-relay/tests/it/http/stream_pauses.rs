//! Servers behind a relay that end the event stream of a call before its answer, so that no connection is held open for it.

use std::time::Duration;

use pintle::{
    Client, Server,
    client::http::Http,
    server::{Cx, tool},
};
use pintle_relay::Relay;
use serde_json::{Value, json};

use crate::support::{
    eras::{R2, R3, R4},
    http_client::{Answer, Wire},
    scripted_http::{Saying, Script, script},
};
use crate::world;

/// A server whose tool ends its stream, and has its result two seconds later.
fn behind() -> Server {
    Server::new("s", "0").tool(tool("render", |cx: Cx| async move {
        cx.progress(1.0, None).await;
        cx.hang_up(Duration::from_millis(500)).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        "rendered"
    }))
}

async fn front(revision: &str) -> Server {
    let http = Http::new("http://localhost/mcp").unwrap().client(behind().http().unwrap());
    world::front(&Relay::new(world::client(revision).connect(http).await.unwrap()))
}

fn render() -> Value {
    json!({"name": "render", "_meta": {"progressToken": "p"}})
}

/// Reads a stream to its end, and returns the ids of its events, the last `retry`, and its messages.
async fn read(answer: &mut Answer) -> (Vec<String>, Option<u64>, Vec<Value>) {
    let (mut ids, mut retry, mut messages) = (Vec::new(), None, Vec::new());
    while let Some(event) = answer.event().await {
        ids.extend(event.id);
        retry = event.retry.or(retry);
        messages.extend((!event.data.is_empty()).then(|| serde_json::from_str(&event.data).unwrap()));
    }
    (ids, retry, messages)
}

#[tokio::test(start_paused = true)]
async fn the_stream_of_the_client_ends_early_too_and_is_resumed() {
    let client = Wire::new(&front(R4).await.http().unwrap()).open(R4, json!({})).await;
    let mut answer = client.call(1, "tools/call", render()).await;
    let (ids, retry, messages) = read(&mut answer).await;
    assert_eq!(retry, Some(500));
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(messages[0]["params"]["progress"], 1.0);
    let mut rest = client.with("last-event-id", ids.last().unwrap().clone()).get().await;
    let (_, _, messages) = read(&mut rest).await;
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(messages[0]["result"]["content"][0]["text"], "rendered");
}

#[tokio::test(start_paused = true)]
async fn clients_that_cannot_resume_wait_on_the_stream_that_they_have() {
    let http = front(R4).await.http().unwrap();
    for revision in [R2, R3] {
        let client = Wire::new(&http).open(revision, json!({})).await;
        let (_, _, messages) = read(&mut client.call(1, "tools/call", render()).await).await;
        assert_eq!(messages.len(), 2, "{revision}: {messages:?}");
    }
    let (_, _, messages) =
        read(&mut Wire::new(&http).modern(1, "tools/call", render(), json!({})).await).await;
    assert_eq!(messages.len(), 2, "{messages:?}");
}

/// A server behind that the test plays, and a client of the relay.
async fn scripted() -> (Script, Wire) {
    let (mut server, http) = script();
    let connection = server.shakes(R4, Client::new("relay", "1"), http).await;
    server.line(GET).await.status(405);
    let front = Server::new("front", "1").provider(Relay::new(connection).forward_unlisted());
    let client = Wire::new(&front.http().unwrap());
    let opening = client.open(R4, json!({}));
    (server, opening.await)
}

const GET: &str = "GET http://server.test/mcp";

/// Starts a call of the client, and returns its stream and that of the server behind.
async fn started(server: &mut Script, client: &Wire) -> (Answer, Saying, Value) {
    let call = client.call(1, "tools/call", json!({"name": "render"}));
    let (answer, (stream, id)) = tokio::join!(call, async {
        let asked = server.receives("tools/call").await;
        let id = asked.message()["id"].clone();
        let stream = asked.events();
        stream.sends("id: event-1\nretry: 700\ndata: \n\n");
        (stream, id)
    });
    (answer, stream, id)
}

fn result(id: &Value) -> String {
    let result = json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}});
    format!("id: event-2\ndata: {result}\n\n")
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_is_no_end_of_the_stream_of_the_client() {
    for ends in [true, false] {
        let (mut server, client) = scripted().await;
        let (mut answer, stream, id) = started(&mut server, &client).await;
        if ends {
            drop(stream);
        } else {
            stream.breaks();
        }
        let resumed = server.line(GET).await;
        assert_eq!(resumed.header("last-event-id"), Some("event-1"));
        resumed.events().sends(&result(&id));
        let (ids, retry, messages) = read(&mut answer).await;
        if ends {
            assert_eq!((retry, messages.len()), (Some(700), 0));
            let mut rest = client.with("last-event-id", ids.last().unwrap().clone()).get().await;
            assert_eq!(rest.message().await.unwrap()["id"], 1);
        } else {
            assert_eq!(messages.len(), 1, "{messages:?}");
            assert_eq!(messages[0]["id"], 1);
        }
    }
}
