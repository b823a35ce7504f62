//! What a server speaks is found out: the stateless era first, then a handshake, then two endpoints.

use std::{io, time::Duration};

use pintle::{
    Error,
    client::{Mode, OpenError, http::Http},
};

use crate::support::scripted_http::{client, script};

#[tokio::test(start_paused = true)]
async fn what_is_no_answer_to_the_probe_leads_to_a_handshake() {
    let plain = |status| (status, vec![], "");
    let json = vec![("content-type", "application/json")];
    for (status, headers, body) in [
        plain(400),
        plain(404),
        plain(405),
        plain(406),
        plain(202),
        plain(500),
        plain(501),
        (
            400,
            json.clone(),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}"#,
        ),
        (
            404,
            json.clone(),
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}"#,
        ),
        (
            200,
            json.clone(),
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid request parameters"}}"#,
        ),
        (200, json.clone(), "[]"),
        (200, vec![("content-type", "text/html")], "<html>"),
    ] {
        let (mut server, http) = script();
        let opening = tokio::spawn(async move { client().connect(http).await });
        let probe = server.receives("server/discover").await;
        assert_eq!(probe.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(probe.header("mcp-method"), Some("server/discover"));
        probe.answer(status, &headers, body);
        server.initializes("2025-06-18", "s").await;
        let connection = opening.await.unwrap().unwrap();
        assert_eq!(connection.revision().to_string(), "2025-06-18", "{status} {body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_silent_is_asked_otherwise_and_the_first_stream_is_closed() {
    let (mut server, http) = script();
    let opening = tokio::spawn(async move { client().connect(http).await });
    server.receives("server/discover").await.given_up().await;
    server.initializes("2025-03-26", "s").await;
    opening.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_stateless_era_is_no_reason_to_fall_back() {
    for error in [
        r#"{"code":-32020,"message":"header"}"#,
        r#"{"code":-32021,"message":"capability","data":{"requiredCapabilities":{}}}"#,
        r#"{"code":-32022,"message":"version","data":{"supported":["2030-01-01"],"requested":"2026-07-28"}}"#,
    ] {
        let (mut server, http) = script();
        let opening = tokio::spawn(async move { client().connect(http).await });
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#);
        server.receives("server/discover").await.json(400, &body);
        let refused = opening.await.unwrap().unwrap_err();
        assert!(matches!(refused, Error::Open { .. }), "{error}: {refused:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_identify_the_era_is_an_error() {
    for (status, message) in [
        (401, "answered `server/discover` with status 401; authorize with `Http::bearer` or `Http::auth`"),
        (502, "answered `server/discover` with status 502; look at the server's log"),
        (429, "answered `server/discover` with status 429; try again later"),
    ] {
        let (mut server, http) = script();
        let opening = tokio::spawn(async move { client().connect(http).await });
        server.receives("server/discover").await.status(status);
        let error = opening.await.unwrap().unwrap_err();
        assert!(matches!(error, Error::Failed(_)), "{error:?}");
        assert_eq!(error.to_string(), format!("`http://server.test/mcp` {message}"));
    }
    let (mut server, http) = script();
    let opening = tokio::spawn(async move { client().connect(http).await });
    for _ in 0..3 {
        server.receives("server/discover").await.fails(io::ErrorKind::ConnectionRefused);
    }
    let error = opening.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("could not be reached: connection refused"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_to_come_back_later_is_probed_again_then() {
    // Longer than a probe or a handshake waits for an answer.
    for status in [429, 503] {
        let (mut server, http) = script();
        let opening = tokio::spawn(async move { client().connect(http).await });
        server.receives("server/discover").await.answer(status, &[("retry-after", "20")], "");
        server.receives_nothing(Duration::from_secs(19)).await;
        let body = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#;
        server.receives("server/discover").await.json(404, body);
        server.receives("initialize").await.answer(status, &[("retry-after", "20")], "");
        server.receives_nothing(Duration::from_secs(19)).await;
        server.initializes("2025-11-25", "s").await;
        opening.await.unwrap().unwrap();
    }
    // Not for ever, and not as often as the server likes.
    let (mut server, http) = script();
    let opening = tokio::spawn(async move { client().connect(http).await });
    for _ in 0..3 {
        server.receives("server/discover").await.answer(429, &[("retry-after", "1")], "");
    }
    let error = opening.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("with status 429; try again later"), "{error}");
    let (mut server, http) = script();
    let opening = tokio::spawn(async move { client().connect(http).await });
    server.receives("server/discover").await.answer(429, &[("retry-after", "3600")], "");
    let error = opening.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("with status 429; try again later"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_saves_the_probe() {
    let (mut server, http) = script();
    let remembering = client().remember("2025-11-25".parse().unwrap());
    let opening = tokio::spawn(async move { remembering.connect(http).await });
    server.initializes("2025-11-25", "s").await;
    opening.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_of_another_kind_is_reported_as_one() {
    let (mut server, http) = script();
    let opening = tokio::spawn(async move { client().connect(http).await });
    server.receives("server/discover").await.status(404);
    server.receives("initialize").await.status(404);
    server.line("GET http://server.test/mcp").await.status(404);
    let error = opening.await.unwrap().unwrap_err();
    assert!(
        matches!(
            error,
            Error::Open { error: OpenError::Garbled { method: "initialize", status: Some(404) }, .. }
        ),
        "{error:?}"
    );
    assert!(error.to_string().contains("check that the URL is that of an MCP endpoint"));
}

/// Whoever is refused is told so first, whatever the server does with the requests after that.
#[tokio::test(start_paused = true)]
async fn a_caller_that_was_refused_gets_the_reason_by_status() {
    for last in [405, 501, 502] {
        let (mut server, http) = script();
        let opening = tokio::spawn(async move { client().connect(http).await });
        let text = [("content-type", "text/plain")];
        server.receives("server/discover").await.answer(403, &text, "host `vm` is not allowed");
        server.receives("initialize").await.answer(404, &text, "gone, status 401");
        server.line("GET http://server.test/mcp").await.status(last);
        let error = opening.await.unwrap().unwrap_err();
        assert_eq!(error.status(), Some(403), "{last}: {error:?}");
        let shown = error.to_string();
        assert!(shown.starts_with("the server refused `server/discover` with "), "{last}: {shown}");
        assert!(shown.contains("status 403: host `vm` is not allowed"), "{last}: {shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_id_that_no_header_could_carry_is_refused() {
    let (mut server, http) = script();
    let opening = tokio::spawn(async move { client().mode(Mode::Legacy).connect(http).await });
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;
    let headers = [("content-type", "application/json"), ("mcp-session-id", "a b")];
    server.receives("initialize").await.answer(200, &headers, answer);
    let error = opening.await.unwrap().unwrap_err().to_string();
    assert_eq!(error, "the server's `Mcp-Session-Id` is not made of visible ASCII");
}

#[tokio::test(start_paused = true)]
async fn a_setting_that_cannot_be_is_an_error_of_the_opening() {
    let (_server, http) = script();
    let error = client().connect(http.header("x-key", "a\nb")).await.unwrap_err().to_string();
    assert_eq!(error, "the header `x-key` has a value that none can carry");
    for url in ["example.com/mcp", "ftp://example.com", "http://u:p@example.com"] {
        assert!(matches!(Http::new(url), Err(Error::Misuse(_))), "{url}");
    }
}

const HOST: &str = "`Host: server.test` is not allowed here; add it on the server with `Guard::hosts`";

#[tokio::test(start_paused = true)]
async fn the_reason_of_a_server_that_lets_nobody_in_is_shown() {
    let text = vec![("content-type", "text/plain; charset=utf-8")];
    let json = vec![("content-type", "application/json")];
    let error = format!(r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":-32600,"message":"{HOST}"}}}}"#);
    for (headers, body) in [(text, HOST), (vec![], HOST), (json, error.as_str())] {
        for mode in [Mode::Auto, Mode::Legacy, Mode::Modern] {
            let (mut server, http) = script();
            let opening = tokio::spawn(async move { client().mode(mode).connect(http).await });
            let serving = tokio::spawn({
                let (headers, body) = (headers.clone(), body.to_owned());
                async move {
                    loop {
                        server.next().await.answer(403, &headers, &body);
                    }
                }
            });
            let refused = opening.await.unwrap().unwrap_err().to_string();
            serving.abort();
            assert!(refused.contains(HOST), "{mode:?}: {refused}");
            assert_eq!(refused.matches("is not allowed here").count(), 1, "{mode:?}: {refused}");
            assert!(!refused.contains("check that the URL"), "{mode:?}: {refused}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_later_does_not_hide_the_first_reason() {
    type Ends = fn(crate::support::scripted_http::Asked);
    let ends: [(Ends, &str); 4] = [
        (|asked| asked.status(403), "HTTP status 403"),
        (|asked| asked.status(500), "with status 500"),
        (|asked| asked.answer(200, &[("content-type", "text/html")], "<html>"), "is not a JSON-RPC message"),
        (|asked| asked.answer(404, &[], "no such page"), "no such page"),
    ];
    for (end, last) in ends {
        let (mut server, http) = script();
        let opening = tokio::spawn(async move { client().connect(http).await });
        server.receives("server/discover").await.answer(403, &[], "the tenant is suspended");
        let serving = tokio::spawn(async move {
            loop {
                end(server.next().await);
            }
        });
        let refused = opening.await.unwrap().unwrap_err().to_string();
        serving.abort();
        assert!(refused.contains("the tenant is suspended"), "{refused}");
        assert!(refused.contains(last), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reason_is_cut_and_cannot_move_the_cursor() {
    let (mut server, http) = script();
    let opening = tokio::spawn(async move { client().mode(Mode::Legacy).connect(http).await });
    let long = format!("no:\u{1b}[2J\n\u{202e}{}", "x".repeat(1 << 20));
    server.receives("initialize").await.answer(403, &[], &long);
    // This one says something, and then nothing for ever.
    let _saying = {
        let saying = server.line("GET http://server.test/mcp").await.begins(403, &[]);
        saying.sends("half a reason");
        saying
    };
    let refused = opening.await.unwrap().unwrap_err().to_string();
    assert!(refused.contains("no:\\u{1b}[2J \\u{202e}xxx") && refused.contains("xxx…"), "{refused}");
    assert!(refused.contains("half a reason"), "{refused}");
    assert!(refused.len() < 1000 && !refused.contains('\u{1b}'), "{refused}");
}
