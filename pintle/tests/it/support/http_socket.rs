//! A client of bare hands on a socket: it writes HTTP/1.1 as text, in as many pieces as a test likes.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{
    eras::{R1, R5},
    http_server::soon,
};

pub(crate) struct Hands {
    pub(crate) socket: TcpStream,
    read: Vec<u8>,
}

impl Hands {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self { socket: TcpStream::connect(address).await.unwrap(), read: Vec::new() }
    }

    /// Sends this and reads the answer, on a connection of its own.
    pub(crate) async fn ask(address: SocketAddr, request: &str) -> Answer {
        let mut hands = Self::connect(address).await;
        hands.write(request).await;
        hands.answer().await
    }

    pub(crate) async fn write(&mut self, text: &str) {
        self.socket.write_all(text.as_bytes()).await.unwrap();
    }

    /// The next chunk of a stream, if there is one.
    pub(crate) async fn chunk(&mut self) -> Option<String> {
        if self.read.is_empty() {
            soon(self.socket.read_buf(&mut self.read)).await.unwrap();
        }
        if self.read.starts_with(b"HTTP/1.1") {
            self.until("\r\n\r\n").await;
        }
        let size = self.until("\r\n").await;
        let size = usize::from_str_radix(size.trim_end(), 16).unwrap();
        let text = self.take(size).await;
        self.until("\r\n").await;
        (size > 0).then_some(text)
    }

    async fn take(&mut self, size: usize) -> String {
        while self.read.len() < size {
            assert_ne!(soon(self.socket.read_buf(&mut self.read)).await.unwrap(), 0);
        }
        let rest = self.read.split_off(size);
        String::from_utf8(std::mem::replace(&mut self.read, rest)).unwrap()
    }

    /// Reads until this has come; all that came up to its end.
    pub(crate) async fn until(&mut self, needle: &str) -> String {
        loop {
            let found = self.read.windows(needle.len()).position(|window| window == needle.as_bytes());
            if let Some(at) = found {
                let rest = self.read.split_off(at + needle.len());
                return String::from_utf8(std::mem::replace(&mut self.read, rest)).unwrap();
            }
            let read = soon(self.socket.read_buf(&mut self.read)).await.unwrap();
            assert_ne!(read, 0, "no `{needle}` in {}", String::from_utf8_lossy(&self.read));
        }
    }

    /// Reads events until one has this in it; all of them.
    pub(crate) async fn event(&mut self, needle: &str) -> String {
        let mut came = String::new();
        while !came.contains(needle) {
            came += &self.until("\n\n").await;
        }
        came
    }

    /// A whole answer; a stream of events to its end.
    pub(crate) async fn answer(&mut self) -> Answer {
        let head = self.until("\r\n\r\n").await;
        let status = head[9..12].parse().unwrap();
        let mut body = String::new();
        if let Some(length) = field(&head, "content-length") {
            body = self.take(length.parse().unwrap()).await;
        } else if field(&head, "transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk().await {
                body += &chunk;
            }
        }
        Answer { status, head, body }
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The messages of a stream of events.
    pub(crate) fn messages(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (field, value) = line.split_once(':')?;
        field.eq_ignore_ascii_case(name).then_some(value.trim())
    })
}

/// A request as text. What is given in `fields` is on top of what every request has.
pub(crate) fn request(line: &str, fields: &[(&str, &str)], body: &str) -> String {
    let accept = match line.starts_with("GET") {
        true => "text/event-stream",
        false => "application/json, text/event-stream",
    };
    let mut text = format!(
        "{line} HTTP/1.1\r\nhost: localhost\r\naccept: {accept}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in fields {
        text += &format!("{name}: {value}\r\n");
    }
    text + "\r\n" + body
}

/// Somebody who speaks one revision by hand: each request goes over a connection of its own, unless told otherwise.
pub(crate) struct Speaker {
    pub(crate) address: SocketAddr,
    pub(crate) revision: &'static str,
    /// Of a session, or where messages are posted in the oldest revision.
    pub(crate) session: String,
    /// The stream of the oldest revision.
    pub(crate) stream: Option<Hands>,
}

impl Speaker {
    /// Opens what the revision has to open.
    pub(crate) async fn open(address: SocketAddr, revision: &'static str) -> Self {
        let mut speaker = Self { address, revision, session: String::new(), stream: None };
        let capabilities = json!({"elicitation": {}, "sampling": {}});
        let params = json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": {"name": "hands", "version": "0"}});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let notified = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        match revision {
            R5 => return speaker,
            R1 => {
                let mut stream = Hands::connect(address).await;
                stream.write(&request("GET /sse", &[], "")).await;
                stream.until("data: ").await;
                speaker.session = stream.until("\n").await.trim_end().to_owned();
                assert_eq!(speaker.post(&hello).await.status, 202);
                stream.until("\"protocolVersion\":\"2024-11-05\"").await;
                speaker.stream = Some(stream);
            }
            _ => {
                let opened = speaker.post(&hello).await;
                speaker.session = opened.header("mcp-session-id").unwrap().to_owned();
            }
        }
        assert_eq!(speaker.post(&notified).await.status, 202);
        speaker
    }

    /// What a message looks like on the wire.
    pub(crate) fn text(&self, message: &Value) -> String {
        let body = message.to_string();
        match self.revision {
            R5 => {
                let method = message["method"].as_str().unwrap();
                let mut fields = vec![("mcp-protocol-version", R5), ("mcp-method", method)];
                fields.extend(message["params"]["name"].as_str().map(|name| ("mcp-name", name)));
                request("POST /mcp", &fields, &body)
            }
            R1 => request(&format!("POST {}", self.session), &[], &body),
            _ if self.session.is_empty() => request("POST /mcp", &[], &body),
            revision => {
                let fields = [("mcp-session-id", &*self.session), ("mcp-protocol-version", revision)];
                request("POST /mcp", &fields, &body)
            }
        }
    }

    /// A call of a tool with a mark, which wants to hear of progress.
    pub(crate) fn call(&self, id: i64, tool: &str, mark: &str) -> Value {
        let mut params = json!({"name": tool, "arguments": {"mark": mark}});
        if self.revision == R5 {
            params = crate::support::line_client::modern(params, json!({"elicitation": {}}));
        }
        params["_meta"]["progressToken"] = id.into();
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    }

    /// Sends a message over a connection of its own, and takes the answer.
    pub(crate) async fn post(&self, message: &Value) -> Answer {
        Hands::ask(self.address, &self.text(message)).await
    }

    /// Begins to send a message over a connection of its own.
    pub(crate) async fn begin(&self, message: &Value) -> Hands {
        let mut hands = Hands::connect(self.address).await;
        hands.write(&self.text(message)).await;
        hands
    }

    /// Comes back for what followed an event.
    pub(crate) async fn resume(&self, last: &str) -> Hands {
        let fields = [
            ("mcp-session-id", &*self.session),
            ("mcp-protocol-version", self.revision),
            ("last-event-id", last),
        ];
        let mut hands = Hands::connect(self.address).await;
        hands.write(&request("GET /mcp", &fields, "")).await;
        hands
    }

    /// Opens the stream of the session.
    pub(crate) async fn listen(&self) -> Hands {
        let fields = [("mcp-session-id", &*self.session), ("mcp-protocol-version", self.revision)];
        let mut hands = Hands::connect(self.address).await;
        hands.write(&request("GET /mcp", &fields, "")).await;
        hands
    }

    pub(crate) async fn delete(&self) -> Answer {
        let fields = [("mcp-session-id", &*self.session), ("mcp-protocol-version", self.revision)];
        Hands::ask(self.address, &request("DELETE /mcp", &fields, "")).await
    }
}
