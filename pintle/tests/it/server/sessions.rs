//! Handles to live sessions, on a byte stream: their values, pings and messages.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use pintle::{
    Ended, Server,
    server::{Caller, Cx, SessionError, SessionHandle, ToolError, tool},
};
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::support::{
    eras::{ALL, Client, R4, R5, each},
    line_client::Raw,
    pipe::{Pipe, settle, within},
};

/// Counts the calls of a session, and those that were dropped.
struct Calls(AtomicU32, Arc<AtomicU32>);

impl Drop for Calls {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

fn counting(dropped: &Arc<AtomicU32>) -> Server {
    let dropped = dropped.clone();
    let count = move |cx: Cx| {
        let dropped = dropped.clone();
        async move {
            let Some(session) = cx.session() else { return Ok("none".to_owned()) };
            let calls = session.get_or_insert_with(|| Calls(AtomicU32::new(0), dropped))?;
            Ok::<_, ToolError>((calls.0.fetch_add(1, Ordering::Relaxed) + 1).to_string())
        }
    };
    Server::new("s", "0").tool(tool("count", count))
}

fn only(server: &Server) -> SessionHandle {
    let mut sessions = server.sessions();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    sessions.remove(0)
}

#[tokio::test]
async fn values_belong_to_a_session_and_end_with_it() {
    let dropped = Arc::new(AtomicU32::new(0));
    let server = counting(&dropped);
    let mut sessions = 0;
    for revision in ALL {
        let mut client = Client::open(&server, revision, json!({})).await;
        let expected = match client.is_stateless() {
            true => ["none", "none"],
            false => ["1", "2"],
        };
        for expected in expected {
            assert_eq!(client.tool("count").await, expected, "{revision}");
        }
        sessions += u32::from(!client.is_stateless());
        drop(client);
        settle().await;
        assert_eq!(dropped.load(Ordering::Relaxed), sessions, "{revision}");
    }
    assert!(server.sessions().is_empty());
}

#[tokio::test]
async fn the_number_of_values_is_limited_and_types_are_kept_apart() {
    struct Of<const N: usize>;
    macro_rules! insert {
        ($session:expr, $($n:literal)*) => { $(drop($session.insert(Of::<$n>).unwrap());)* };
    }
    let server = Server::new("s", "0");
    let mut raw = Raw::new(&server);
    raw.open(R4, json!({})).await;
    let session = only(&server);
    insert!(session, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
    insert!(session, 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61);
    assert_eq!(session.insert("a").unwrap(), None);
    assert_eq!(session.insert("b").unwrap().as_deref(), Some(&"a"));
    assert_eq!(session.insert(1_u8).unwrap(), None);
    assert_eq!(session.insert(1_u16).unwrap_err(), SessionError::TooManyValues);
    assert_eq!(session.get_or_insert_with(|| 1_u16).unwrap_err(), SessionError::TooManyValues);
    assert_eq!(session.insert(2_u8).unwrap().as_deref(), Some(&1), "replacing one is no more");
    assert_eq!(session.remove::<u8>().as_deref(), Some(&2));
    assert_eq!((session.get::<u8>(), session.get::<&str>().as_deref()), (None, Some(&"b")));
    drop(raw);
    settle().await;
    assert_eq!(session.get::<&str>(), None);
    assert_eq!(session.insert(1_u8).unwrap_err(), SessionError::Ended);
}

#[tokio::test(start_paused = true)]
async fn the_live_sessions_are_listed() {
    let server = Server::new("s", "0");
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        // The connection of the previous one has to end.
        settle().await;
        assert_eq!(server.sessions().len(), usize::from(!client.is_stateless()));
        client.call("tools/list", json!({})).await;
    })
    .await;
    settle().await;
    assert!(server.sessions().is_empty());
    let mut ann = Raw::known(&server, Caller::new().principal("ann"));
    assert!(server.sessions().is_empty(), "a connection is not a session");
    ann.open(R4, json!({})).await;
    sleep(Duration::from_secs(7)).await;
    let mut anonymous = Raw::new(&server);
    anonymous.open(R4, json!({})).await;
    let sessions = server.sessions();
    let principals: Vec<_> = sessions.iter().map(SessionHandle::principal).collect();
    assert_eq!(principals, [Some("ann".to_owned()), None]);
    assert_eq!(sessions[0].age(), Some(Duration::from_secs(7)));
    assert_eq!(sessions[0].peer().unwrap().info.as_ref().unwrap().name, "raw");
    assert_ne!(sessions[0].id(), sessions[1].id());
    drop(ann);
    settle().await;
    assert_eq!(only(&server).id(), sessions[1].id());
    assert!(sessions[0].is_closed() && sessions[0].id().is_none() && sessions[0].peer().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_ping_returns_when_the_client_has_answered() {
    for answer in [json!({"result": {}}), json!({"error": {"code": -32601, "message": "what?"}})] {
        let server = Server::new("s", "0");
        let (mut pipe, _serving) = Pipe::session(&server, 1 << 16, R4, json!({})).await;
        let session = only(&server);
        let ping = tokio::spawn(async move { session.ping().await });
        let asked = pipe.receive().await;
        assert_eq!(asked["method"], "ping");
        settle().await;
        assert!(!ping.is_finished(), "it is not answered yet");
        let mut answer = answer.clone();
        (answer["jsonrpc"], answer["id"]) = ("2.0".into(), asked["id"].clone());
        pipe.say(answer).await;
        assert_eq!(within(ping).await.unwrap(), Ok(()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_ping_without_an_answer_is_withdrawn_and_ends_with_the_session() {
    let server = Server::new("s", "0");
    let (mut pipe, serving) = Pipe::session(&server, 1 << 16, R4, json!({})).await;
    let session = only(&server);
    assert!(timeout(Duration::from_secs(1), session.ping()).await.is_err());
    let first = pipe.receive().await;
    let again = session.clone();
    let ping = tokio::spawn(async move { again.ping().await });
    let withdrawn = pipe.receive().await;
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], first["id"]);
    assert_eq!(pipe.receive().await["method"], "ping");
    pipe.hang_up().await;
    within(serving.wait()).await.unwrap();
    assert_eq!(within(ping).await.unwrap(), Err(SessionError::Ended));
    assert_eq!(session.ping().await, Err(SessionError::Ended));
    assert_eq!(session.notify("notifications/x", &json!({})), Err(SessionError::Ended));
}

#[tokio::test(start_paused = true)]
async fn one_session_is_notified_and_no_other() {
    let server = Server::new("s", "0");
    let (mut ann, _ann) = Pipe::session(&server, 1 << 16, R4, json!({})).await;
    let (mut bob, _bob) = Pipe::session(&server, 1 << 16, R4, json!({})).await;
    let sessions = server.sessions();
    sessions[0].notify("notifications/lunch", &json!({"at": "noon"})).unwrap();
    let error = sessions[0].notify("notifications/lunch", &"noon").unwrap_err();
    assert!(error.to_string().starts_with("the params are not an object"), "{error}");
    let notified = ann.receive().await;
    assert_eq!(
        (&notified["method"], &notified["params"]["at"]),
        (&json!("notifications/lunch"), &json!("noon"))
    );
    sessions[1].notify("notifications/tea", &json!({})).unwrap();
    assert_eq!(bob.receive().await["method"], "notifications/tea");
}

#[tokio::test(start_paused = true)]
async fn a_session_is_closed_by_its_handle_and_running_calls_have_some_time() {
    let server = Server::new("s", "0")
        .tool(tool("slow", || async {
            sleep(Duration::from_millis(500)).await;
            "done"
        }))
        .tool(tool("stuck", std::future::pending::<String>));
    for (name, answered) in [("slow", true), ("stuck", false)] {
        let (mut pipe, serving) = Pipe::session(&server, 1 << 16, R4, json!({})).await;
        let (mut other, _other) = Pipe::session(&server, 1 << 16, R4, json!({})).await;
        pipe.say(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name}})).await;
        settle().await;
        let session = server.sessions().remove(0);
        assert!(session.server().is_some());
        assert_eq!(session.close().await, Ok(()));
        if answered {
            assert_eq!(pipe.receive().await["id"], 1);
        }
        assert_eq!(within(serving.wait()).await.unwrap(), Ended::Stopped);
        assert_eq!(session.close().await, Err(SessionError::Ended));
        assert!(session.server().is_none());
        other.say(json!({"jsonrpc": "2.0", "id": 2, "method": "ping"})).await;
        assert_eq!(other.receive().await["id"], 2, "another session goes on");
        drop(other);
        settle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_client_does_not_read_is_closed_too() {
    let server = Server::new("s", "0");
    let (_pipe, serving) = Pipe::session(&server, 1 << 10, R4, json!({})).await;
    let session = only(&server);
    session.notify("notifications/long", &json!({"text": "x".repeat(2 << 20)})).unwrap();
    settle().await;
    session.close().await.unwrap();
    assert_eq!(within(serving.wait()).await.unwrap(), Ended::Stopped);
}

#[tokio::test(start_paused = true)]
async fn messages_for_a_client_that_does_not_read_are_bounded() {
    let server = Server::new("s", "0");
    let (_pipe, _serving) = Pipe::session(&server, 1 << 10, R4, json!({})).await;
    let session = only(&server);
    let long = json!({"text": "x".repeat(64 << 10)});
    let mut sent = 0;
    while sent < 1000 && session.notify("notifications/long", &long).is_ok() {
        sent += 1;
        settle().await;
    }
    // A megabyte is unwritten, and another waits.
    assert!((16..40).contains(&sent), "{sent}");
}

#[tokio::test]
async fn a_stateless_call_on_the_connection_of_a_session_is_in_no_session() {
    let server = counting(&Arc::default());
    let mut raw = Raw::new(&server);
    raw.open(R4, json!({})).await;
    for (params, expected) in [
        (json!({"name": "count"}), "1"),
        (crate::support::line_client::modern(json!({"name": "count"}), json!({})), "none"),
        (json!({"name": "count"}), "2"),
    ] {
        raw.request("tools/call", params).await;
        assert_eq!(raw.recv().await["result"]["content"][0]["text"], expected, "{R5}");
    }
}

#[tokio::test]
async fn a_session_has_the_number_of_its_connection_in_hooks() {
    let opened = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = opened.clone();
    let server = Server::new("s", "0").on_session(move |opened| seen.lock().unwrap().push(opened.id));
    // A session without hooks has a number too.
    #[cfg(feature = "http-server")]
    let _quiet = {
        let http = Server::new("quiet", "0").http().unwrap();
        crate::support::http_client::Wire::new(&http).open(R4, json!({})).await
    };
    let _one = Client::open(&server, R4, json!({})).await;
    let _other = Client::open(&server, R4, json!({})).await;
    let ids: Vec<_> = server.sessions().iter().filter_map(SessionHandle::id).collect();
    assert_eq!(*opened.lock().unwrap(), ids);
}

#[tokio::test]
async fn the_client_of_a_session_is_that_of_the_newest_handshake() {
    use pintle::server::{Next, around};
    let layered = Server::new("s", "0").layer(&around(|cx: Cx, next: Next| next.run(cx)));
    for server in [Server::new("s", "0"), layered] {
        let mut raw = Raw::new(&server);
        raw.open("2025-06-18", json!({})).await;
        raw.open(R4, json!({"roots": {}})).await;
        // A gateway let another client use the stream.
        let peer = only(&server).peer().unwrap();
        assert_eq!((peer.revision.as_str(), peer.capabilities.roots.is_some()), (R4, true));
    }
}
