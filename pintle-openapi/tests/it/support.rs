//! An API that answers what a test says, and keeps the requests that it gets; no tests.

use std::sync::{Arc, Mutex};

use pintle::{Client, Connection, Server, types::schema::CallToolResult};
use pintle_openapi::{ApiTools, OpenApi};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// An API on this machine.
pub(crate) struct Api {
    pub(crate) origin: String,
    requests: Arc<Mutex<Vec<Sent>>>,
}

/// A request, as it was sent.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    /// The request line and the headers.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Sent {
    /// Returns the method and the target.
    pub(crate) fn line(&self) -> &str {
        self.head.lines().next().unwrap().trim_end_matches(" HTTP/1.1")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// What an API answers: the status line and headers, and a body.
pub(crate) type Answer = (&'static str, Vec<u8>);

/// The answer of most tests.
pub(crate) fn done(_: &Sent) -> Answer {
    ("200 OK\r\ncontent-type: application/json", br#"{"ok":true}"#.to_vec())
}

impl Api {
    pub(crate) async fn new(answer: impl Fn(&Sent) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<Sent>>> = Arc::default();
        let (kept, answer) = (requests.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (kept, answer) = (kept.clone(), answer.clone());
                tokio::spawn(async move { serve(stream, &kept, &*answer).await });
            }
        });
        Self { origin, requests }
    }

    pub(crate) async fn plain() -> Self {
        Self::new(done).await
    }

    /// Takes the requests that came since the last time.
    pub(crate) fn take(&self) -> Vec<Sent> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    /// Takes the only request.
    pub(crate) fn only(&self) -> Sent {
        let mut requests = self.take();
        assert_eq!(requests.len(), 1, "{requests:?}");
        requests.remove(0)
    }
}

async fn serve(
    mut stream: TcpStream,
    kept: &Mutex<Vec<Sent>>,
    answer: &(dyn Fn(&Sent) -> Answer + Send + Sync),
) {
    let mut read = Vec::new();
    loop {
        let end = loop {
            if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
                break end;
            }
            let mut some = [0; 4096];
            match stream.read(&mut some).await {
                Ok(0) | Err(_) => return,
                Ok(count) => read.extend_from_slice(&some[..count]),
            }
        };
        let head = String::from_utf8_lossy(&read[..end]).into_owned();
        let mut sent = Sent { head, body: Vec::new() };
        let length: usize = sent.header("content-length").map_or(0, |length| length.parse().unwrap());
        read.drain(..end + 4);
        while read.len() < length {
            let mut some = [0; 4096];
            match stream.read(&mut some).await {
                Ok(0) | Err(_) => return,
                Ok(count) => read.extend_from_slice(&some[..count]),
            }
        }
        sent.body = read.drain(..length).collect();
        let (status, body) = answer(&sent);
        kept.lock().unwrap().push(sent);
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
        if stream.write_all(head.as_bytes()).await.is_err() || stream.write_all(&body).await.is_err() {
            return;
        }
    }
}

/// Returns a document with these paths.
pub(crate) fn document(paths: Value) -> Value {
    json!({ "openapi": "3.1.0", "info": { "title": "Test", "version": "1" }, "paths": paths })
}

/// Returns a document with one operation, `POST /x` or another one, named `x`.
pub(crate) fn operation(method: &str, path: &str, mut operation: Value) -> Value {
    operation["operationId"] = "x".into();
    document(json!({ path: { method: operation } }))
}

pub(crate) fn tools(document: Value) -> ApiTools {
    OpenApi::from_value(document).unwrap().base("https://api.test").build().unwrap()
}

/// Returns the input schema of the only tool.
pub(crate) fn input(document: Value) -> Value {
    let tools = tools(document);
    assert_eq!(tools.left_out(), [], "{:?}", tools.left_out());
    Value::Object((*tools.tools().next().unwrap().input_schema).clone())
}

pub(crate) async fn connect(tools: ApiTools) -> Connection {
    let server = Server::new("test", "1").provider(tools);
    Client::new("test", "1").connect(server.in_process().unwrap()).await.unwrap()
}

/// Calls the tool `x` of a document at an API.
pub(crate) async fn call(api: &Api, document: Value, arguments: Value) -> CallToolResult {
    let tools = OpenApi::from_value(document).unwrap().base(&api.origin).build().unwrap();
    assert_eq!(tools.left_out(), []);
    connect(tools).await.call_tool("x", arguments).await.unwrap()
}
