//! A revision newer than the newest, added by one file and one row of `pintle-proto`: spoken by our client and our server
//! over a byte stream and over HTTP, beside those that exist.

use std::time::Duration;

use pintle::{
    Client, Server,
    client::{
        Answer, Change, Event,
        http::{Http, Proxy},
    },
    proto::Revision,
    server::{Arguments, Cx, ToolError, method, resource, tool},
    transport::Stream,
};
use serde_json::{Value, json};
use tokio::io::{duplex, split};

use crate::support::{eras::R5, http_client::Wire, pipe::Pipe};

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Seat {
    #[expect(dead_code, reason = "printed")]
    number: String,
}

/// All revisions, the one that does not exist first.
fn all() -> impl Iterator<Item = Revision> {
    std::iter::once(Revision::NEXT).chain(Revision::all())
}

fn server() -> Server {
    let book = |cx: Cx, Arguments(arguments): Arguments| async move {
        cx.progress_with(1.0, 2.0, "asking").await;
        let seat = cx.elicit::<Seat>("seat", "Which seat?").await?;
        Ok::<_, ToolError>(format!("{} {seat:?}", arguments.as_str()))
    };
    let echo = |_: Cx, params: Value| async move {
        Ok::<_, pintle::types::RpcError>(json!({"echo": params["text"]}))
    };
    Server::new("desk", "1.0.0")
        .tool(tool("book", book))
        .tool(tool("add", |Arguments(arguments): Arguments| async move { arguments.as_str().to_owned() }))
        .resource(resource("note://a", "a", || async { "a" }))
        .method(method("server/echo", echo))
        .may_change()
}

fn client(revision: Revision) -> Client {
    Client::new("t", "1")
        .revisions([revision])
        .on_elicit(|_| async { Answer::accept(json!({"number": "12A"})) })
}

/// What a client does in every revision; the answer to a question where the revision has questions.
async fn converse(connection: &pintle::Connection, revision: Revision, asks: bool) {
    assert_eq!(connection.revision(), revision);
    let tools: Vec<_> = connection.tools().await.unwrap().iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(tools, ["book", "add"], "{revision}");
    let sum = connection.call_tool("add", json!({"a": 1})).await.unwrap();
    assert_eq!(sum.content[0].as_text(), Some(r#"{"a":1}"#), "{revision}");
    if asks {
        let booked = connection.call_tool("book", json!({"to": "Oslo"})).await.unwrap();
        let text = booked.content[0].as_text().unwrap();
        assert!(text.contains("Oslo") && text.contains("12A"), "{revision}: {text}");
    }
    let read = connection.read_resource("note://a").await.unwrap();
    assert_eq!(read.contents.len(), 1);
    let echo = connection.call_raw("server/echo", r#"{"text":"hi"}"#.parse().unwrap());
    assert_eq!(echo.await.is_ok(), revision == Revision::NEXT, "{revision}");
}

/// The two oldest have no forms.
fn has_forms(revision: Revision) -> bool {
    revision == Revision::NEXT || Revision::all().take(3).any(|newer| newer == revision)
}

#[tokio::test]
async fn every_revision_over_a_byte_stream() {
    let server = server().revisions(all());
    for revision in all() {
        let (ours, theirs) = duplex(1 << 16);
        let (reader, writer) = split(theirs);
        let serving = server.serve(Stream::new(reader, writer)).unwrap();
        let (reader, writer) = split(ours);
        let connection = client(revision).connect(Stream::new(reader, writer)).await.unwrap();
        converse(&connection, revision, has_forms(revision)).await;
        let mut changes = connection.changes().await.unwrap();
        connection.subscribe("note://a").await.unwrap();
        server.resource_updated("note://a");
        loop {
            match changes.next().await {
                Some(Event::Changed(Change::Resource(uri))) => break assert_eq!(&*uri, "note://a"),
                Some(_) => {}
                None => panic!("no change in {revision}"),
            }
        }
        connection.close().await;
        drop(serving);
    }
}

#[tokio::test]
async fn every_revision_over_http() {
    let serving = server().revisions(all()).serve_http("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", serving.address());
    // The oldest has an endpoint of its own.
    for revision in all().take(5) {
        let http = Http::new(&url).unwrap().proxy(Proxy::none());
        let connection = client(revision).connect(http).await.unwrap();
        converse(&connection, revision, has_forms(revision)).await;
        connection.close().await;
    }
    serving.shutdown(Duration::from_secs(5)).await;
}

fn stamped(mut params: Value) -> Value {
    params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": Revision::NEXT.as_str(),
        "io.modelcontextprotocol/clientCapabilities": {}});
    params
}

#[tokio::test]
async fn its_shapes_are_on_the_wire_of_a_stream() {
    let (mut pipe, _serving) = Pipe::open(&server().revisions(all()), 1 << 16);
    let call = stamped(json!({"name": "add", "input": {"a": 1}}));
    pipe.say(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})).await;
    assert_eq!(pipe.receive().await["result"]["content"][0]["text"], r#"{"a":1}"#);
    pipe.say(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": stamped(json!({}))})).await;
    let list = pipe.receive().await;
    assert!(list["result"]["tools"]["add"].is_object() && list["result"]["maxAgeMs"].is_u64(), "{list}");
    assert_eq!(list["result"].get("ttlMs"), None);
}

#[tokio::test]
async fn its_shapes_are_on_the_wire_of_http() {
    let http = server().revisions(all()).http().unwrap();
    let wire = Wire::new(&http).with("mcp-protocol-version", Revision::NEXT.as_str());
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": stamped(json!({"name": "add", "input": {"a": 1}}))});
    let mut answer = wire.with("mcp-method", "tools/call").with("mcp-name", "add").post(call).await;
    assert_eq!(answer.json().await["result"]["content"][0]["text"], r#"{"a":1}"#);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": stamped(json!({}))});
    for _ in 0..2 {
        // The second comes from the cache of lowered results.
        let mut answer = wire.with("mcp-method", "tools/list").post(list.clone()).await;
        let answer = answer.json().await;
        assert!(answer["result"]["tools"]["add"].is_object(), "{answer}");
        assert!(answer["result"]["maxAgeMs"].is_u64() && answer["result"].get("ttlMs").is_none(), "{answer}");
    }
}

#[tokio::test]
async fn who_did_not_ask_for_it_does_not_get_it() {
    let (mut pipe, _serving) = Pipe::open(&server(), 1 << 16);
    pipe.say(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": stamped(json!({}))})).await;
    let refused = pipe.receive().await;
    assert_eq!(refused["error"]["code"], -32022, "{refused}");
    assert_eq!(refused["error"]["data"]["supported"][0], R5);
    let server = server().revisions(all());
    let connection = Client::new("t", "1").connect(server.in_process().unwrap()).await.unwrap();
    assert_eq!(connection.revision(), Revision::LATEST);
}
