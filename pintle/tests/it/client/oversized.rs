//! Messages of more bytes than a stream takes: whoever waits for one is told at once.

use pintle::{Connection, Error, Server, server::tool, transport::Stream};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

use crate::support::scripted_server::client;

const LIMIT: usize = 2_000;

/// The other side of a stream, by hand.
struct Peer {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl Peer {
    fn new() -> (Self, Stream) {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(theirs);
        let transport = Stream::new(reader, writer).limit(LIMIT);
        let (reader, writer) = tokio::io::split(ours);
        (Self { lines: BufReader::new(reader).lines(), writer }, transport)
    }

    async fn receives(&mut self) -> Value {
        serde_json::from_str(&self.lines.next_line().await.unwrap().unwrap()).unwrap()
    }

    async fn sends(&mut self, line: &str) {
        self.writer.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// As a server with a session.
    async fn accepts(&mut self) {
        let probe = self.receives().await;
        let error = json!({"code": -32601, "message": "what?"});
        self.sends(&json!({"jsonrpc": "2.0", "id": probe["id"], "error": error}).to_string()).await;
        let hello = self.receives().await;
        let result = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}});
        self.sends(&json!({"jsonrpc": "2.0", "id": hello["id"], "result": result}).to_string()).await;
        assert_eq!(self.receives().await["method"], "notifications/initialized");
    }
}

async fn open() -> (Connection, Peer) {
    let (mut peer, transport) = Peer::new();
    let client = client();
    let (connection, ()) = tokio::join!(client.connect(transport), peer.accepts());
    (connection.unwrap(), peer)
}

fn call(connection: &Connection) -> tokio::task::JoinHandle<Result<String, Error>> {
    let connection = connection.clone();
    tokio::spawn(async move { connection.call_tool("t", json!({})).await.map(|result| result.text()) })
}

const TOO_LONG: &str = "the answer has more than 2000 bytes, the most that is taken: raise `Limits::message_bytes` or the \
                        `limit` of the transport, or ask for less";

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_long_fails_its_call_at_once() {
    let (connection, mut server) = open().await;
    let text = "x".repeat(3 * LIMIT);
    for id_first in [true, false] {
        let (long, short) = (call(&connection), call(&connection));
        let (one, other) = (server.receives().await["id"].clone(), server.receives().await["id"].clone());
        let result = format!(r#""result":{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
        server
            .sends(&if id_first {
                format!(r#"{{"jsonrpc":"2.0","id":{one},{result}}}"#)
            } else {
                format!(r#"{{{result},"jsonrpc":"2.0","id":{one}}}"#)
            })
            .await;
        let error = long.await.unwrap().unwrap_err();
        assert!(matches!(&error, Error::Failed(_)), "{error:?}");
        assert_eq!(error.to_string(), TOO_LONG);
        // The other goes on.
        let result = json!({"content": [{"type": "text", "text": "short"}]});
        server.sends(&json!({"jsonrpc": "2.0", "id": other, "result": result}).to_string()).await;
        assert_eq!(short.await.unwrap().unwrap(), "short");
    }
}

#[tokio::test(start_paused = true)]
async fn what_may_be_the_answer_to_any_call_fails_all_that_are_open() {
    let (connection, mut server) = open().await;
    let calls = [call(&connection), call(&connection)];
    let ids = [server.receives().await["id"].clone(), server.receives().await["id"].clone()];
    let text = "x".repeat(LIMIT + 1);
    // Noise and notifications are nobody's answer.
    server.sends(&text).await;
    server
        .sends(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"data":"{text}"}}}}"#
        ))
        .await;
    server
        .sends(&format!(r#"{{"jsonrpc":"2.0","result":{{"text":"{text}"}},"id":{},"x":{{}}}}"#, ids[0]))
        .await;
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap_err().to_string(), TOO_LONG);
    }
    // Those that still run are not waited for any more.
    for _ in ids {
        assert_eq!(server.receives().await["method"], "notifications/cancelled");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_too_long_is_answered() {
    let (connection, mut server) = open().await;
    let text = "x".repeat(LIMIT + 1);
    let question = format!(
        r#"{{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{{"t":"{text}"}}}}"#
    );
    server.sends(&question).await;
    let refused = server.receives().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("q"), &json!(-32600)));
    drop(connection);
}

#[tokio::test(start_paused = true)]
async fn an_opening_whose_answer_is_too_long_is_reported() {
    let (mut peer, transport) = Peer::new();
    let opening = tokio::spawn(async move { client().connect(transport).await });
    let id = peer.receives().await["id"].clone();
    peer.sends(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"t":"{}"}}}}"#, "x".repeat(LIMIT + 1)))
        .await;
    assert_eq!(opening.await.unwrap().unwrap_err().to_string(), TOO_LONG);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_too_long_is_refused_under_its_id() {
    let (mut client, transport) = Peer::new();
    let _serving = Server::new("s", "0").tool(tool("t", || async { "" })).serve(transport).unwrap();
    let text = "x".repeat(LIMIT + 1);
    for (line, id) in [
        (format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"t":"{text}"}}}}"#), json!(7)),
        (format!(r#"{{"method":"tools/call","params":{{"t":"{text}"}},"jsonrpc":"2.0","id":8}}"#), json!(8)),
        (text, Value::Null),
    ] {
        client.sends(&line).await;
        let refused = client.receives().await;
        assert_eq!(refused["id"], id);
        assert_eq!(refused["error"]["message"], "the message is larger than 2000 bytes: send less");
    }
}
