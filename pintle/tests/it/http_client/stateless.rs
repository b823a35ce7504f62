//! Every request stands alone: one POST, and what comes back for it.

use std::{io, time::Duration};

use pintle::{Error, client::http::Limits, transport::Delivery};
use serde_json::json;

use crate::support::scripted_http::{client, script};

#[tokio::test(start_paused = true)]
async fn a_call_is_one_post_with_headers_that_repeat_it() {
    let (mut server, http) = script();
    let connection = server.opens(client(), http.header("x-tenant", "7").header("accept", "text/html")).await;
    let call = tokio::spawn({
        let connection = connection.clone();
        async move { connection.call_tool("grüßen", json!({"a": 1})).await }
    });
    let asked = server.receives("tools/call").await;
    for (name, value) in [
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "=?base64?Z3LDvMOfZW4=?="),
        ("x-tenant", "7"),
    ] {
        assert_eq!(asked.header(name), Some(value), "{name}");
    }
    assert_eq!(asked.header("mcp-session-id"), None);
    assert!(asked.header("user-agent").unwrap().starts_with("pintle/"));
    assert_eq!(
        asked.text(),
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"grüßen","arguments":{"a":1},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}}}"#
    );
    asked.json(200, r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[{"type":"text","text":"hallo"}]}}"#);
    assert_eq!(call.await.unwrap().unwrap().content[0].as_text(), Some("hallo"));
    // Nothing is said at the end: there is no session.
    connection.close().await;
    server.receives_nothing(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_may_be_a_stream() {
    let (mut server, http) = script();
    let connection = server.opens(client(), http).await;
    let (steps, mut notified) = tokio::sync::mpsc::unbounded_channel();
    let call = tokio::spawn(async move {
        connection.call("count").on_progress(move |p| steps.send(p.progress).unwrap()).send().await
    });
    let stream = server.receives("tools/call").await.events();
    stream.sends(": alive\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":2,\"progress\":0.5}}\n\n");
    assert_eq!(notified.recv().await, Some(0.5));
    stream.sends("data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":[],\ndata: \"resultType\":\"complete\"}}\n\n");
    assert!(call.await.unwrap().unwrap().content.is_empty());
    // A server that does not hang up is hung up on.
    stream.given_up().await;
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_closes_its_stream_and_says_nothing() {
    let (mut server, http) = script();
    let connection = server.opens(client(), http).await;
    // Before the head of the answer, and after.
    let call = tokio::spawn({
        let connection = connection.clone();
        async move { connection.call_tool("slow", ()).await }
    });
    let asked = server.receives("tools/call").await;
    call.abort();
    asked.given_up().await;

    let call = tokio::spawn({
        let connection = connection.clone();
        async move { connection.call_tool("slow", ()).await }
    });
    let stream = server.receives("tools/call").await.events();
    stream.sends(": working\n\n");
    call.abort();
    stream.given_up().await;
    server.receives_nothing(Duration::from_secs(10)).await;

    // A timeout does the same.
    let call = connection.call("slow").timeout(Duration::from_secs(2)).send();
    let (called, ()) = tokio::join!(call, async { server.receives("tools/call").await.given_up().await });
    assert!(matches!(called, Err(Error::Timeout(_))));
    server.receives_nothing(Duration::from_secs(10)).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_fails_fails_alone() {
    let (mut server, http) = script();
    let mut limits = Limits::default();
    limits.answer = Some(1000);
    let connection = server.opens(client(), http.limits(limits)).await;
    let other = tokio::spawn({
        let connection = connection.clone();
        async move { connection.call_tool("other", ()).await }
    });
    let other_asked = server.receives("tools/call").await;
    let long = "x".repeat(1001);
    let json = [("content-type", "application/json")];
    let events = [("content-type", "text/event-stream")];
    let html = [("content-type", "text/html; charset=utf-8")];
    type Kind<'a> = Option<(u16, &'a [(&'a str, &'a str)], &'a str)>;
    let cases: [(Kind<'_>, Delivery, &str); 10] = [
        (
            None,
            Delivery::Maybe,
            "`http://server.test/mcp` broke off before it answered `tools/call`: connection reset: the server may have carried it out all the same",
        ),
        (
            Some((500, &[], "out of\nluck")),
            Delivery::Maybe,
            "`http://server.test/mcp` answered `tools/call` with status 500: out of luck; look at the server's log",
        ),
        (
            Some((502, &html, "<html>")),
            Delivery::Maybe,
            "`http://server.test/mcp` answered `tools/call` with status 502; look at the server's log",
        ),
        (
            Some((404, &[], "")),
            Delivery::Never,
            "`http://server.test/mcp` answered `tools/call` with status 404; check that the URL is that of an MCP endpoint",
        ),
        (
            Some((413, &[], "")),
            Delivery::Never,
            "`http://server.test/mcp` answered `tools/call` with status 413; send less at once",
        ),
        (
            Some((200, &html, "<html>")),
            Delivery::Maybe,
            "`http://server.test/mcp` answered `tools/call` with content of type `text/html`: check that the URL is that of an MCP endpoint",
        ),
        (
            Some((202, &[], "")),
            Delivery::Maybe,
            "`http://server.test/mcp` answered `tools/call` with nothing: check that the URL is that of an MCP endpoint",
        ),
        (
            Some((200, &json, &long)),
            Delivery::Maybe,
            "the answer of `http://server.test/mcp` to `tools/call` is longer than 1000 bytes: ask for less, or raise `answer` of the `Limits` of `client::http`",
        ),
        (
            Some((200, &json, r#"{"jsonrpc":"2.0","id":99,"result":{}}"#)),
            Delivery::Maybe,
            "the server's answer to the request ended without an answer in it: the server may have carried it out; it answered request 99, which was never sent",
        ),
        (
            Some((200, &events, "data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n")),
            Delivery::Maybe,
            "the stream of `http://server.test/mcp` for `tools/call` ended before the answer came: the server may have carried it out",
        ),
    ];
    for (answer, delivery, message) in cases {
        let call = connection.call_tool("t", ());
        let (called, ()) = tokio::join!(call, async {
            let asked = server.receives("tools/call").await;
            match answer {
                Some((status, headers, body)) => asked.answer(status, headers, body),
                None => asked.fails(io::ErrorKind::ConnectionReset),
            }
        });
        let Err(Error::Failed(failed)) = called else { panic!("{message}: {called:?}") };
        assert_eq!(failed.to_string(), message);
        assert_eq!(failed.delivery, delivery, "{message}");
    }
    // What is over the limit in a stream, and what breaks in the middle.
    for (text, message) in [
        (format!("data: {long}\n\n"), "cannot be read: an event of the stream is longer than 1000 bytes"),
        ("data: {".into(), "broke off: connection reset"),
    ] {
        let call = connection.call_tool("t", ());
        let (called, ()) = tokio::join!(call, async {
            let stream = server.receives("tools/call").await.events();
            stream.sends(&text);
            stream.breaks();
        });
        let error = called.unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    other_asked.result(r#"{"resultType":"complete","content":[]}"#);
    other.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_protocol_is_one_whatever_its_status() {
    let (mut server, http) = script();
    let connection = server.opens(client(), http).await;
    for (status, id) in [(404, "2"), (400, "null"), (200, "4")] {
        let call = connection.call_tool("t", ());
        let (called, ()) = tokio::join!(call, async {
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no"}}}}"#);
            server.receives("tools/call").await.json(status, &body);
        });
        assert!(matches!(called, Err(Error::Rpc(error)) if error.message == "no"), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_did_not_arrive_is_sent_again() {
    let (mut server, http) = script();
    let connection = server.opens(client(), http).await;
    let call = connection.call_tool("t", ());
    let (called, ()) = tokio::join!(call, async {
        server.receives("tools/call").await.fails(io::ErrorKind::ConnectionRefused);
        server.receives("tools/call").await.answer(503, &[("retry-after", "3")], "");
        let before = tokio::time::Instant::now();
        let asked = server.receives("tools/call").await;
        assert_eq!(before.elapsed(), Duration::from_secs(3));
        asked.result(r#"{"resultType":"complete","content":[]}"#);
    });
    called.unwrap();

    let call = connection.call_tool("t", ());
    let (called, ()) = tokio::join!(call, async {
        for _ in 0..3 {
            server.receives("tools/call").await.fails(io::ErrorKind::ConnectionRefused);
        }
    });
    let Err(Error::Failed(failed)) = called else { panic!() };
    assert_eq!(failed.delivery, Delivery::Never);
    assert_eq!(
        failed.to_string(),
        "`http://server.test/mcp` could not be reached: connection refused: check the address, and that the server is running"
    );
    server.receives_nothing(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_version_that_is_offered_again_is_tried_again() {
    let (mut server, http) = script();
    let opening = tokio::spawn(async move { client().connect(http).await });
    let unsupported = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"],"requested":"2026-07-28"}}}"#;
    server.receives("server/discover").await.json(400, unsupported);
    server.receives("server/discover").await.result(
        r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"public"}"#,
    );
    opening.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_another_request_is_named() {
    let (mut server, http) = script();
    let connection = server.opens(client(), http).await;
    let (called, ()) = tokio::join!(connection.call_tool("t", ()), async {
        let asked = server.receives("tools/call").await;
        asked.json(200, r#"{"jsonrpc":"2.0","id":4711,"result":{}}"#);
    });
    let error = called.unwrap_err().to_string();
    assert!(error.contains("it answered request 4711, which was never sent"), "{error}");
    // One whose id became a text is the answer, in a body and on a stream.
    for events in [false, true] {
        let (called, ()) = tokio::join!(connection.call_tool("t", ()), async {
            let asked = server.receives("tools/call").await;
            let id = asked.message()["id"].clone();
            let answer = format!(
                "\u{feff}{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"result\":{{\"resultType\":\"complete\",\"content\":[]}}}}"
            );
            match events {
                true => asked.events().sends(&format!("data: {answer}\n\n")),
                false => asked.json(200, &answer),
            }
        });
        called.unwrap();
    }
}
