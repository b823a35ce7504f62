//! Handles to live sessions over HTTP: their values, pings, messages and keepalive.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use pintle::{
    Server, Timeouts,
    server::{Authenticated, Cx, SessionError, ToolError, tool},
};
use serde_json::json;
use tokio::time::sleep;

use crate::support::{
    eras::{HTTP_SESSIONS, R4},
    http_client::{Answer, Wire},
};

const EVERY: Duration = Duration::from_secs(10);

async fn count(cx: Cx) -> Result<String, ToolError> {
    let Some(session) = cx.session() else { return Ok("none".to_owned()) };
    let calls = session.get_or_insert_with(|| AtomicU32::new(0))?;
    Ok((calls.fetch_add(1, Ordering::Relaxed) + 1).to_string())
}

fn server() -> Server {
    let mut timeouts = Timeouts::default();
    timeouts.keepalive = Some(EVERY);
    Server::new("s", "0").tool(tool("count", count)).timeouts(timeouts)
}

async fn text(mut answer: Answer) -> String {
    answer.result().await["result"]["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn values_belong_to_a_session_and_end_with_it() {
    let server = Server::new("s", "0").tool(tool("count", count));
    let wire = Wire::new(&server.http().unwrap());
    for revision in HTTP_SESSIONS {
        let (one, other) = (wire.open(revision, json!({})).await, wire.open(revision, json!({})).await);
        for (wire, expected) in [(&one, "1"), (&other, "1"), (&one, "2")] {
            let answer = wire.call(1, "tools/call", json!({"name": "count"})).await;
            assert_eq!(text(answer).await, expected, "{revision}");
        }
        let sessions = server.sessions();
        assert_eq!(sessions.len(), 2, "{revision}");
        let value = Arc::downgrade(&sessions[0].get::<AtomicU32>().unwrap());
        assert_eq!(one.delete().await.status, 204);
        assert_eq!(value.strong_count(), 0, "dropped with the session");
        assert!(sessions[0].is_closed() && !sessions[1].is_closed());
        assert_eq!(other.delete().await.status, 204);
        assert!(server.sessions().is_empty());
    }
    let stateless = wire.modern(1, "tools/call", json!({"name": "count"}), json!({})).await;
    assert_eq!(text(stateless).await, "none");
}

#[tokio::test]
async fn a_session_is_closed_by_its_handle() {
    let server = Server::new("s", "0").tool(tool("wait", std::future::pending::<String>));
    let http = server.http().unwrap();
    for revision in HTTP_SESSIONS {
        let wire = Wire::new(&http).open(revision, json!({})).await;
        let mut stream = wire.get().await;
        let (waiting, params) = (wire.clone(), json!({"name": "wait"}));
        let call = tokio::spawn(async move { waiting.call(1, "tools/call", params).await });
        tokio::task::yield_now().await;
        let session = server.sessions().remove(0);
        assert!(session.server().is_some_and(|of| of.sessions().len() == 1));
        assert_eq!(session.close().await, Ok(()));
        let ended = call.await.unwrap().result().await;
        assert!(ended["error"]["message"].as_str().unwrap().contains("the session ended"), "{ended}");
        assert_eq!(stream.message().await, None);
        assert_eq!(wire.call(2, "ping", json!({})).await.status, 404, "{revision}");
        assert_eq!((http.sessions(), session.server().is_none()), (0, true));
        assert_eq!(session.close().await, Err(SessionError::Ended));
    }
}

#[tokio::test]
async fn a_session_id_has_the_prefix_of_its_process() {
    let id = |wire: &Wire| wire.headers.iter().find(|(name, _)| *name == "mcp-session-id").unwrap().1.clone();
    let http = Server::new("s", "0").http().unwrap().session_prefix(0xbeef);
    let (one, other) =
        (Wire::new(&http).open(R4, json!({})).await, Wire::new(&http).open(R4, json!({})).await);
    assert!(id(&one).starts_with("0000beef") && id(&one).len() == 32, "{}", id(&one));
    assert_ne!(id(&one), id(&other));
    assert_eq!(one.call(1, "ping", json!({})).await.status, 200);
    let guessed = one.with("mcp-session-id", format!("0000beef{}", "0".repeat(24)));
    assert_eq!(guessed.call(1, "ping", json!({})).await.status, 404);
}

#[tokio::test]
async fn without_sessions_there_are_none() {
    let server = Server::new("s", "0").tool(tool("count", count));
    let wire = Wire::new(&server.http().unwrap().sessionless()).with("mcp-protocol-version", R4);
    assert_eq!(text(wire.call(1, "tools/call", json!({"name": "count"})).await).await, "none");
    assert!(server.sessions().is_empty());
}

#[tokio::test]
async fn the_live_sessions_have_a_principal_and_no_credential() {
    let server = Server::new("s", "0");
    let wire = Wire::new(&server.http().unwrap().principal(|head| {
        head.extensions
            .get::<Authenticated>()
            .and_then(Authenticated::principal)
            .map(str::to_owned)
            .or_else(|| head.headers.get("x-user").and_then(|user| user.to_str().ok()).map(str::to_owned))
    }));
    let ann = wire.with("x-user", "ann").open(R4, json!({})).await;
    let secret = ann.headers.iter().find(|(name, _)| *name == "mcp-session-id").unwrap().1.clone();
    let sessions = server.sessions();
    assert_eq!(sessions[0].principal().as_deref(), Some("ann"));
    assert!(!format!("{sessions:?}").contains(&secret));
}

#[tokio::test]
async fn a_ping_needs_a_stream_and_returns_when_it_is_answered() {
    let server = Server::new("s", "0");
    let wire = Wire::new(&server.http().unwrap());
    for revision in HTTP_SESSIONS {
        let wire = wire.open(revision, json!({})).await;
        let session = server.sessions().remove(0);
        assert_eq!(session.ping().await, Err(SessionError::NoStream));
        session.notify("notifications/early", &json!({})).unwrap();
        let long = json!({"text": "x".repeat(1 << 20)});
        assert_eq!(session.notify("notifications/long", &long), Err(SessionError::NoStream));
        let mut stream = wire.get().await;
        assert_eq!(stream.message().await.unwrap()["method"], "notifications/early", "kept for the stream");
        let handle = session.clone();
        let ping = tokio::spawn(async move { handle.ping().await });
        let asked = stream.message().await.unwrap();
        assert_eq!(asked["method"], "ping");
        assert!(!ping.is_finished());
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}});
        assert_eq!(wire.post(answer).await.status, 202);
        assert_eq!(ping.await.unwrap(), Ok(()));
        let handle = session.clone();
        let ping = tokio::spawn(async move { handle.ping().await });
        assert_eq!(stream.message().await.unwrap()["method"], "ping");
        assert_eq!(wire.delete().await.status, 204);
        assert_eq!(ping.await.unwrap(), Err(SessionError::Ended), "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_with_a_stream_that_does_not_answer_pings_is_given_up() {
    let server = server();
    let http = server.http().unwrap();
    let wire = Wire::new(&http).open(R4, json!({})).await;
    let mut stream = wire.get().await;
    for _ in 0..2 {
        assert_eq!(stream.message().await.unwrap()["method"], "ping");
    }
    while let Some(message) = stream.message().await {
        assert_eq!(message["method"], "ping");
    }
    assert_eq!(http.sessions(), 0);
    assert_eq!(wire.call(1, "tools/list", json!({})).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_answers_pings_or_has_no_stream_is_kept() {
    let server = server();
    let http = server.http().unwrap();
    let wire = Wire::new(&http);
    let _silent = wire.open(R4, json!({})).await;
    let alive = wire.open(R4, json!({})).await;
    let mut stream = alive.get().await;
    for _ in 0..20 {
        let ping = stream.message().await.unwrap();
        assert_eq!(ping["method"], "ping");
        let answer = json!({"jsonrpc": "2.0", "id": ping["id"], "result": {}});
        assert_eq!(alive.post(answer).await.status, 202);
    }
    sleep(EVERY / 2).await;
    assert_eq!(http.sessions(), 2);
}

#[tokio::test]
async fn a_session_over_http_has_its_own_tools() {
    let server = Server::new("s", "0").tool(tool("count", count));
    let wire = Wire::new(&server.http().unwrap());
    for revision in HTTP_SESSIONS {
        let (one, other) = (wire.open(revision, json!({})).await, wire.open(revision, json!({})).await);
        let mut stream = one.get().await;
        server.sessions()[0].add_tool(tool("count", || async { "own" })).unwrap();
        assert_eq!(stream.message().await.unwrap()["method"], "notifications/tools/list_changed");
        for (wire, expected) in [(&one, "own"), (&other, "1"), (&one, "own")] {
            let answer = wire.call(1, "tools/call", json!({"name": "count"})).await;
            assert_eq!(text(answer).await, expected, "{revision}");
        }
        assert_eq!(one.delete().await.status, 204);
        assert_eq!(other.delete().await.status, 204);
    }
}

#[tokio::test]
async fn the_rights_of_a_principals_tool_count_and_not_those_of_the_tool_that_it_replaces() {
    let server = Server::new("s", "0")
        .tool(tool("open", || async { "of everybody" }).requires(["admin"]))
        .tool(tool("close", || async { "of everybody" }));
    server.add_tool_for("ann", tool("open", || async { "of ann" })).unwrap();
    server.add_tool_for("ann", tool("close", || async { "of ann" }).requires(["admin"])).unwrap();
    let http = server
        .http()
        .unwrap()
        .principal(|head| head.headers.get("x-user").and_then(|user| user.to_str().ok()).map(str::to_owned));
    for (user, name, expected) in [
        ("ann", "open", Some("of ann")),
        ("ann", "close", None),
        ("bob", "open", None),
        ("bob", "close", Some("of everybody")),
    ] {
        let wire = Wire::new(&http).with("x-user", user);
        let session = wire.open(R4, json!({})).await;
        let stateless = wire.modern(1, "tools/call", json!({"name": name}), json!({})).await;
        for answer in [stateless, session.call(1, "tools/call", json!({"name": name})).await] {
            match expected {
                Some(expected) => assert_eq!(text(answer).await, expected, "{user} {name}"),
                None => assert_eq!(answer.status, 403, "{user} {name}"),
            }
        }
    }
}

#[tokio::test]
async fn little_is_kept_for_a_client_that_never_opens_a_stream() {
    let server = Server::new("s", "0");
    let wire = Wire::new(&server.http().unwrap());
    let _session = wire.open(R4, json!({})).await;
    let session = server.sessions().remove(0);
    for text in ["x".to_owned(), "x".repeat(4 << 10), "x".repeat(100 << 10)] {
        let sent =
            (0..1000).take_while(|_| session.notify("notifications/x", &json!({"text": text})).is_ok());
        let sent = sent.count();
        assert!(sent * text.len() <= 16 << 10 && sent <= 16, "{sent} of {} bytes", text.len());
    }
    assert_eq!(session.notify("notifications/x", &json!({})), Err(SessionError::NoStream));
}
