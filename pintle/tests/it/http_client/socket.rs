//! What goes over a socket: how many connections, how many writes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Client, Connection, Error,
    client::http::{Http, Proxy, Retry},
    transport::Delivery,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
};

/// A server that answers every request at once, and counts.
#[derive(Clone, Default)]
pub(crate) struct Counted {
    pub(crate) connections: Arc<AtomicUsize>,
    pub(crate) requests: Arc<AtomicUsize>,
    /// Requests that did not come in one piece.
    pieces: Arc<AtomicUsize>,
    /// Connections that have ended.
    ended: Arc<AtomicUsize>,
}

impl Counted {
    pub(crate) async fn listens(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let counted = self.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                counted.connections.fetch_add(1, Ordering::SeqCst);
                let counted = counted.clone();
                tokio::spawn(async move {
                    counted.serves(socket).await;
                    counted.ended.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        url
    }

    async fn serves(&self, mut socket: TcpStream) {
        let mut buffer = vec![0; 64 << 10];
        loop {
            let Some((head, body, reads)) = request(&mut socket, &mut buffer).await else { return };
            assert!(head.starts_with("POST /mcp HTTP/1.1\r\n"), "{head}");
            self.requests.fetch_add(1, Ordering::SeqCst);
            self.pieces.fetch_add(usize::from(reads > 1), Ordering::SeqCst);
            let message: Value = serde_json::from_str(&body).unwrap();
            let id = &message["id"];
            if message["params"]["name"] == "hang" {
                // Until the other side hangs up.
                let _ = socket.read(&mut buffer).await;
                return;
            }
            if message["params"]["name"] == "stream" {
                let event = format!(
                    "data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"resultType\":\"complete\",\"content\":[]}}}}\n\n"
                );
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
                let chunk = format!("{head}{:x}\r\n{event}\r\n0\r\n\r\n", event.len());
                socket.write_all(chunk.as_bytes()).await.unwrap();
                continue;
            }
            let body = json!({"jsonrpc": "2.0", "id": id, "result": {
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}, "content": [],
                "ttlMs": 0, "cacheScope": "public",
            }})
            .to_string();
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            socket.write_all(answer.as_bytes()).await.unwrap();
            if message["params"]["name"] == "leave" {
                return;
            }
        }
    }
}

/// The next request: its head, its body, and how many reads it took.
pub(crate) async fn request(socket: &mut TcpStream, buffer: &mut [u8]) -> Option<(String, String, usize)> {
    let (mut bytes, mut reads) = (Vec::new(), 0);
    loop {
        let read = socket.read(buffer).await.ok().filter(|read| *read > 0)?;
        reads += 1;
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let lengths = head.lines().filter_map(|line| line.strip_prefix("content-length: "));
        let length: usize = lengths.map(|length| length.parse().unwrap()).next().unwrap_or(0);
        if body.len() >= length {
            return Some((head.to_owned(), body.to_owned(), reads));
        }
    }
}

fn direct(url: &str) -> Http {
    Http::new(url).unwrap().proxy(Proxy::none())
}

async fn connect(url: &str) -> Connection {
    Client::new("t", "1").connect(direct(url)).await.unwrap()
}

#[tokio::test]
async fn connections_are_kept_and_a_request_is_one_write() {
    let server = Counted::default();
    let connection = connect(&server.listens().await).await;
    for _ in 0..50 {
        connection.call_tool("t", json!({"text": "x".repeat(2000)})).await.unwrap();
        connection.call_tool("stream", ()).await.unwrap();
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
    assert_eq!(server.requests.load(Ordering::SeqCst), 101);
    assert_eq!(server.pieces.load(Ordering::SeqCst), 0);

    // Eight at a time: no more connections than that, and they are kept as well.
    for _ in 0..10 {
        let calls: Vec<_> = (0..8)
            .map(|_| {
                let connection = connection.clone();
                tokio::spawn(async move { connection.call_tool("t", ()).await })
            })
            .collect();
        for call in calls {
            call.await.unwrap().unwrap();
        }
    }
    let connections = server.connections.load(Ordering::SeqCst);
    assert!(connections <= 9, "{connections}");
}

#[tokio::test]
async fn clones_of_a_transport_share_its_sockets_unless_they_are_reached_in_another_way() {
    let server = Counted::default();
    let http = direct(&server.listens().await);
    for _ in 0..5 {
        let connection = Client::new("t", "1").connect(http.clone()).await.unwrap();
        connection.call_tool("t", ()).await.unwrap();
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
    assert_eq!(server.requests.load(Ordering::SeqCst), 10);

    // A socket that was opened before must not be used for what has to go elsewhere, or nowhere.
    let elsewhere = http.clone().proxy(Proxy::none());
    Client::new("t", "1").connect(elsewhere).await.unwrap();
    assert_eq!(server.connections.load(Ordering::SeqCst), 2);
    let refused = Client::new("t", "1").connect(http.clone().only(|_| false)).await.unwrap_err();
    assert!(refused.to_string().contains("connections to its address are not allowed"), "{refused}");
}

#[tokio::test]
async fn a_connection_that_the_server_closed_is_not_used_again() {
    let server = Counted::default();
    let connection = connect(&server.listens().await).await;
    for closed in 1..=3 {
        connection.call_tool("leave", ()).await.unwrap();
        wait_for(|| server.ended.load(Ordering::SeqCst) == closed).await;
        // The runtime looks at its sockets now and then.
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
    }
    connection.call_tool("t", ()).await.unwrap();
    assert_eq!(server.connections.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn a_dropped_call_closes_its_connection() {
    let server = Counted::default();
    let connection = connect(&server.listens().await).await;
    let hung = tokio::spawn({
        let connection = connection.clone();
        async move { connection.call_tool("hang", ()).await }
    });
    wait_for(|| server.requests.load(Ordering::SeqCst) == 2).await;
    hung.abort();
    wait_for(|| server.ended.load(Ordering::SeqCst) == 1).await;
    connection.call_tool("t", ()).await.unwrap();
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_reported() {
    // Bound, so that nobody else takes the port, and not listening.
    let bound = TcpSocket::new_v4().unwrap();
    bound.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/mcp?key=s3cret", bound.local_addr().unwrap());
    let mut retry = Retry::default();
    retry.first_wait = Duration::from_millis(1);
    let error = Client::new("t", "1").connect(direct(&url).retry(retry)).await.unwrap_err();
    let Error::Failed(failed) = &error else { panic!("{error:?}") };
    assert_eq!(failed.delivery, Delivery::Never);
    let detail = error.to_string();
    assert!(detail.contains("could not be reached: Connection refused"), "{detail}");
    assert!(!detail.contains("s3cret"), "{detail}");
}

#[tokio::test]
async fn a_connection_that_breaks_in_the_middle_fails_its_call() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let mut buffer = vec![0; 64 << 10];
        let found = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"public"}}"#;
        for answer in [
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{found}",
                found.len()
            ),
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{\"json".into(),
            String::new(),
            format!("HTTP/1.1 200 OK\r\nx-long: {}\r\n\r\n", "x".repeat(100 << 10)),
        ] {
            let (mut socket, _) = listener.accept().await.unwrap();
            request(&mut socket, &mut buffer).await.unwrap();
            let _ = socket.write_all(answer.as_bytes()).await;
        }
    });
    let connection = connect(&url).await;
    for detail in [
        "to `tools/call` broke off",
        "broke off before it answered `tools/call`",
        "to `tools/call` is longer than 65536 bytes: raise the limit `head`",
    ] {
        let error = connection.call_tool("t", ()).await.unwrap_err();
        assert!(matches!(&error, Error::Failed(failed) if failed.delivery == Delivery::Maybe), "{error:?}");
        assert!(error.to_string().contains(detail), "{error}");
    }
    serving.await.unwrap();
}

/// Looks until it is so: what another task on another socket does cannot be waited for otherwise.
async fn wait_for(so: impl Fn() -> bool) {
    let looking = async {
        while !so() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), looking).await.expect("it did not come to that");
}
