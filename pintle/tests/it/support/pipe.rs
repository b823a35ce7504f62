//! A client on a byte pipe, for tests that care when it reads and when it writes.
//!
//! Tests run on paused time: a side that waits for nothing is found out at once, by a timeout that no clock measures.

use std::{future::Future, time::Duration};

use pintle::{
    Server,
    server::{Answer, Cx, Question, Serving, ToolError},
    transport::Stream,
    types::schema::{ElicitFormParams, ElicitParams, ElicitSchema},
};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split,
};

use crate::support::line_client::modern;

pub(crate) struct Pipe {
    pub(crate) reader: Lines<BufReader<ReadHalf<DuplexStream>>>,
    pub(crate) writer: WriteHalf<DuplexStream>,
}

impl Pipe {
    /// Serves one end of a pipe that holds this many bytes each way.
    pub(crate) fn open(server: &Server, bytes: usize) -> (Self, Serving) {
        let (ours, theirs) = duplex(bytes);
        let (reader, writer) = split(theirs);
        let serving = server.serve(Stream::new(reader, writer)).unwrap();
        let (reader, writer) = split(ours);
        (Self { reader: BufReader::new(reader).lines(), writer }, serving)
    }

    /// The same, and opens a session.
    pub(crate) async fn session(
        server: &Server,
        bytes: usize,
        revision: &str,
        can: Value,
    ) -> (Self, Serving) {
        let (mut pipe, serving) = Self::open(server, bytes);
        let params = json!({"protocolVersion": revision, "capabilities": can, "clientInfo": {"name": "p", "version": "0"}});
        pipe.say(json!({"jsonrpc": "2.0", "id": "open", "method": "initialize", "params": params})).await;
        assert_eq!(pipe.receive().await["result"]["protocolVersion"], revision);
        pipe.say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        (pipe, serving)
    }

    pub(crate) async fn say(&mut self, message: Value) {
        self.write(&format!("{message}\n")).await;
    }

    pub(crate) async fn write(&mut self, text: &str) {
        within(self.writer.write_all(text.as_bytes())).await.unwrap();
    }

    pub(crate) async fn receive(&mut self) -> Value {
        self.receive_or_end().await.expect("a line, not the end")
    }

    pub(crate) async fn receive_or_end(&mut self) -> Option<Value> {
        let line = within(self.reader.next_line()).await.unwrap()?;
        Some(serde_json::from_str(&line).unwrap())
    }

    /// All that is left until the other side hangs up.
    pub(crate) async fn receive_all(&mut self) -> Vec<Value> {
        let mut received = Vec::new();
        while let Some(line) = self.receive_or_end().await {
            received.push(line);
        }
        received
    }

    /// Says no more, and reads on.
    pub(crate) async fn hang_up(&mut self) {
        within(self.writer.shutdown()).await.unwrap();
    }
}

/// A call of a tool by a client that stands alone.
pub(crate) fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
    let params = modern(json!({"name": tool, "arguments": arguments}), json!({"elicitation": {}}));
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": params})
}

/// A call of a tool within a session.
pub(crate) fn session_call(id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

pub(crate) fn cancel(id: impl Into<Value>) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id.into()}})
}

/// The answer "yes" to a question.
pub(crate) fn yes(question: &Value) -> Value {
    assert_eq!(question["method"], "elicitation/create", "{question}");
    json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"yes": true}}})
}

pub(crate) fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

pub(crate) fn form(message: &str) -> Question {
    let schema: ElicitSchema =
        serde_json::from_value(json!({"type": "object", "properties": {"yes": {"type": "boolean"}}}))
            .unwrap();
    Question::Elicit(Box::new(ElicitParams::Form(ElicitFormParams::new(message, schema))))
}

/// Asks a yes-or-no question.
pub(crate) async fn asked(cx: &Cx, key: &str) -> Result<(), ToolError> {
    let Answer::Elicit(_) = cx.ask(key, form(key)).await? else { return Err(ToolError::new("odd")) };
    Ok(())
}

/// Fails where nothing would ever happen again.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(600), future).await.expect("it hangs")
}

/// Lets every task that can do something do it.
pub(crate) async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

/// Numbers that look random and are the same in every run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}
