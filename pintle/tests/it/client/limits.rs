//! What a server can make a client hold.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pintle::{Client, Connection, Error, client::Mode, proto::Limits, transport::Stream};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, split};

use crate::support::scripted_server::{BOTH, client, open};

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

/// A server on a byte stream that shakes hands, and answers everything else with that many bytes.
async fn chatters(stream: DuplexStream, bytes: usize) {
    let (reader, mut writer) = split(stream);
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let asked: Value = serde_json::from_str(&line).unwrap();
        let result = match asked["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}
            }),
            Some("tools/call") => json!({"content": [{"type": "text", "text": "x".repeat(bytes)}]}),
            _ => continue,
        };
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
        writer.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
    }
}

async fn connect(client: Client, own: Option<usize>) -> Connection {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    tokio::spawn(chatters(theirs, 2000));
    let (reader, writer) = split(ours);
    let stream = Stream::new(reader, writer);
    let stream = match own {
        Some(bytes) => stream.limit(bytes),
        None => stream,
    };
    client.mode(Mode::Legacy).connect(stream).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_a_message_is_the_clients_unless_the_transport_has_its_own() {
    for (message_bytes, own, taken) in
        [(1000, None, false), (4000, None, true), (1000, Some(4000), true), (4000, Some(1000), false)]
    {
        let limited = client().limits(limits(|limits| limits.message_bytes = message_bytes));
        let called = connect(limited, own).await.call_tool("t", ()).await;
        assert_eq!(called.is_ok(), taken, "{message_bytes} {own:?}: {called:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_is_bounded_over_all_its_pages() {
    for revision in BOTH {
        let client = client().limits(limits(|limits| limits.list_bytes = 10_000));
        let (server, mut peer) = open(&client, revision, json!({"tools": {}})).await;
        let pages = Arc::new(AtomicUsize::new(0));
        let serving = tokio::spawn({
            let pages = pages.clone();
            async move {
                loop {
                    let list = peer.receives("tools/list").await;
                    let page = pages.fetch_add(1, Ordering::SeqCst);
                    let tool = json!({"name": format!("t{page}"), "description": "x".repeat(3000), "inputSchema": {}});
                    let next = format!("{page}");
                    let result = json!({
                        "resultType": "complete", "tools": [tool], "nextCursor": next, "ttlMs": 0, "cacheScope": "private"
                    });
                    peer.answers(&list, result).await;
                }
            }
        });
        let error = server.tools().await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "`tools/list` has more than 10000 bytes in all: take it page by page, or raise `Limits::list_bytes`"
        );
        assert!(matches!(error, Error::Refused(_)));
        assert_eq!(pages.load(Ordering::SeqCst), 4);
        // Page by page it is for the caller to say when it is enough.
        let mut tools = server.tools_stream();
        for _ in 0..10 {
            assert!(tools.next().await.unwrap().is_some());
        }
        serving.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_has_so_many_pages_and_does_not_go_in_circles() {
    for (circles, most) in [(true, 10_000), (false, 5)] {
        let client = client().limits(limits(|limits| limits.list_pages = most));
        let (server, mut peer) = open(&client, BOTH[0], json!({"tools": {}})).await;
        let serving = tokio::spawn(async move {
            for page in 0.. {
                let list = peer.receives("tools/list").await;
                let next = if circles { page % 3 } else { page };
                peer.answers(&list, json!({"tools": [], "nextCursor": format!("{next}")})).await;
            }
        });
        let error = server.tools().await.unwrap_err().to_string();
        assert!(error.contains("`tools/list` never ends"), "{error}");
        assert!(error.contains(&format!("more than {most}: raise `Limits::list_pages`")), "{error}");
        serving.abort();
    }
}
