//! Sessions: opened by a handshake, kept by a header, lost and opened again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle::{
    Error,
    client::{Answer, Event, Mode, Policy},
};
use serde_json::json;

use crate::support::scripted_http::{Script, client, script};

const GET: &str = "GET http://server.test/mcp";
const DONE: &str = r#"{"content":[]}"#;

#[tokio::test(start_paused = true)]
async fn a_session_goes_with_everything_and_is_ended() {
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let (mut server, http) = script();
        let connection = server.shakes(revision, client(), http).await;
        assert_eq!(connection.revision().to_string(), revision);
        let listening = server.line(GET).await;
        assert_eq!(listening.header("accept"), Some("text/event-stream"));
        assert_eq!(listening.header("mcp-session-id"), Some("s-1"));
        assert_eq!(listening.header("mcp-protocol-version"), Some(revision));
        assert_eq!(listening.header("last-event-id"), None);
        let stream = listening.events();

        let (called, ()) = tokio::join!(connection.call_tool("t", ()), async {
            let asked = server.receives("tools/call").await;
            assert_eq!(asked.header("accept"), Some("application/json, text/event-stream"));
            assert_eq!(asked.header("accept-encoding"), Some("identity"));
            assert_eq!(asked.header("mcp-session-id"), Some("s-1"));
            assert!(asked.head.headers["mcp-session-id"].is_sensitive());
            assert_eq!(asked.header("mcp-protocol-version"), Some(revision));
            assert_eq!((asked.header("mcp-method"), asked.header("mcp-name")), (None, None));
            asked.result(DONE);
        });
        called.unwrap();

        let ((), ()) = tokio::join!(connection.close(), async {
            let goodbye = server.line("DELETE http://server.test/mcp").await;
            assert_eq!(goodbye.header("mcp-session-id"), Some("s-1"));
            assert_eq!(goodbye.header("mcp-protocol-version"), Some(revision));
            goodbye.status(405);
        });
        stream.given_up().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_connection_ends_its_session_too() {
    let (mut server, http) = script();
    let connection = server.shakes("2025-11-25", client(), http).await;
    server.line(GET).await.status(405);
    drop(connection);
    server.line("DELETE http://server.test/mcp").await.status(200);
}

#[tokio::test(start_paused = true)]
async fn nothing_overtakes_the_end_of_the_handshake() {
    let (mut server, http) = script();
    let level = pintle::types::schema::LoggingLevel::Debug;
    let opening =
        tokio::spawn(async move { client().mode(Mode::Legacy).log_level(level).connect(http).await });
    let hello = server.receives("initialize").await;
    // As a stream, without a session, and with more in it.
    let stream = hello.events();
    stream.sends("event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n\n");
    stream.sends("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"logging\":{}},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}\n\n");
    let notified = server.receives("notifications/initialized").await;
    let connection = opening.await.unwrap().unwrap();
    server.receives_nothing(Duration::from_secs(5)).await;
    // Some servers say this.
    notified.json(200, r#"{"jsonrpc":"2.0","result":{}}"#);
    // Then the stream of the session; a server that does not answer before it has something to say is not waited for.
    let listening = server.line(GET).await;
    assert_eq!(listening.header("mcp-session-id"), None);
    let before = tokio::time::Instant::now();
    let level = server.receives("logging/setLevel").await;
    assert_eq!(before.elapsed(), Duration::from_millis(500));
    level.result("{}");
    listening.status(405);
    server.receives_nothing(Duration::from_secs(5)).await;
    // Without a session there is nothing to end.
    connection.close().await;
    server.receives_nothing(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn questions_are_answered_by_post() {
    let (mut server, http) = script();
    let asking = client().on_elicit(|_| async { Answer::accept(json!({"seat": "12A"})) });
    let connection = server.shakes("2025-11-25", asking, http).await;
    let standing = server.line(GET).await.events();
    let call = tokio::spawn({
        let connection = connection.clone();
        async move { connection.call_tool("book", ()).await }
    });
    let asked = server.receives("tools/call").await;
    let id = asked.message()["id"].clone();
    let stream = asked.events();
    stream.sends("id: 1\ndata:\n\nid: 2\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\",\"params\":{\"message\":\"which?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"seat\":{\"type\":\"string\"}}}}}\n\n");
    let answered = server.next().await;
    assert_eq!(answered.header("mcp-session-id"), Some("s-1"));
    assert_eq!(
        answered.text(),
        r#"{"jsonrpc":"2.0","id":"q","result":{"action":"accept","content":{"seat":"12A"}}}"#
    );
    answered.status(202);
    // On the stream of the session as well.
    standing.sends("data: {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n\n");
    let answered = server.next().await;
    assert_eq!(answered.text(), r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
    answered.status(202);
    stream.sends(&format!("id: 3\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{DONE}}}\n\n"));
    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_reported_to_the_server() {
    let (mut server, http) = script();
    let connection = server.shakes("2025-11-25", client(), http).await;
    server.line(GET).await.status(405);
    let call = tokio::spawn({
        let connection = connection.clone();
        async move { connection.call_tool("slow", ()).await }
    });
    let asked = server.receives("tools/call").await;
    let id = asked.message()["id"].clone();
    let stream = asked.events();
    stream.sends("id: 1\ndata:\n\n");
    call.abort();
    let notified = server.receives("notifications/cancelled").await;
    assert_eq!(notified.message()["params"]["requestId"], id);
    notified.status(202);
    // And nobody comes back for the rest.
    stream.given_up().await;
    server.receives_nothing(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn nobody_thinks_about_a_question_of_a_call_that_was_given_up() {
    /// Counts those who still think.
    struct Thinking(Arc<AtomicUsize>);
    impl Drop for Thinking {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let thinking = Arc::new(AtomicUsize::new(0));
    let count = thinking.clone();
    let asking = client().on_elicit(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        let thinks = Thinking(count.clone());
        async move {
            let _thinks = thinks;
            std::future::pending::<Answer>().await
        }
    });
    let (mut server, http) = script();
    let connection = server.shakes("2025-11-25", asking, http).await;
    server.line(GET).await.status(405);
    let question = |id: &str| {
        format!(
            "data: {{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"method\":\"elicitation/create\",\"params\":{{\"message\":\"which?\",\"requestedSchema\":{{\"type\":\"object\",\"properties\":{{}}}}}}}}\n\n"
        )
    };
    // Two calls are asked something, and one of them is given up.
    let calls = ["one", "other"].map(|name| {
        let connection = connection.clone();
        tokio::spawn(async move { connection.call_tool(name, ()).await })
    });
    let mut streams = Vec::new();
    for _ in &calls {
        let asked = server.receives("tools/call").await;
        let (name, stream) = (asked.message()["params"]["name"].clone(), asked.events());
        stream.sends(&question(name.as_str().unwrap()));
        streams.push(stream);
    }
    while thinking.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    calls[0].abort();
    // The server is told, and need not wait for an answer either.
    let mut notified = Vec::new();
    for _ in 0..2 {
        let asked = server.next().await;
        notified.push(asked.message());
        asked.status(202);
    }
    notified.sort_by_key(|message| message.get("error").is_some());
    assert_eq!(notified[0]["method"], "notifications/cancelled");
    assert_eq!(notified[1]["id"], "one");
    assert_eq!(notified[1]["error"]["message"], "the call that this was asked for was given up");
    assert_eq!(thinking.load(Ordering::SeqCst), 1, "the other one goes on");
}

#[tokio::test(start_paused = true)]
async fn a_lost_session_is_opened_again_and_what_it_did_not_take_is_sent_again() {
    let (mut server, http) = script();
    let connection = server.shakes("2025-11-25", client(), http).await;
    server.line(GET).await.status(405);
    let mut changes = connection.changes().await.unwrap();
    let delivered = tokio::spawn({
        let connection = connection.clone();
        async move { connection.call_tool("running", ()).await }
    });
    let running = server.receives("tools/call").await.events();
    running.sends(": working\n\n");
    let calls: Vec<_> = (0..2)
        .map(|_| {
            let connection = connection.clone();
            tokio::spawn(async move { connection.call_tool("t", json!({"n": 1})).await })
        })
        .collect();
    // Both are refused; the one that runs is lost with its session.
    let (first, second) = (server.receives("tools/call").await, server.receives("tools/call").await);
    first.status(404);
    second.json(404, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#);
    running.given_up().await;
    let error = delivered.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Closed(_)), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the connection is closed: the peer disconnected: `http://server.test/mcp`: the server has forgotten the session"
    );

    server.initializes("2025-11-25", "s-2").await;
    server.line(GET).await.status(405);
    let mut again = Vec::new();
    for _ in 0..2 {
        let asked = server.receives("tools/call").await;
        assert_eq!(asked.header("mcp-session-id"), Some("s-2"));
        assert_eq!(asked.message()["params"]["arguments"], json!({"n": 1}));
        again.push(asked.message()["id"].clone());
        asked.result(DONE);
    }
    assert_ne!(again[0], again[1]);
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(changes.next().await, Some(Event::Reopened));

    // Once: a session that is lost at once again fails the call.
    let call = tokio::spawn(async move { connection.call_tool("t", ()).await });
    server.receives("tools/call").await.status(404);
    server.initializes("2025-11-25", "s-3").await;
    server.line(GET).await.status(405);
    server.receives("tools/call").await.status(404);
    server.initializes("2025-11-25", "s-4").await;
    let error = call.await.unwrap().unwrap_err();
    assert!(matches!(&error, Error::Failed(failed) if failed.status == Some(404)), "{error:?}");
}

/// What servers after the examples of the TypeScript SDK answer for a session that they do not have.
const NO_SESSION: &str = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#;

#[tokio::test(start_paused = true)]
async fn a_400_means_that_the_session_is_lost_and_one_more_is_tried() {
    let (mut server, http) = script();
    let connection = server.shakes("2025-11-25", client(), http).await;
    server.line(GET).await.status(405);
    let call = || {
        let connection = connection.clone();
        tokio::spawn(async move { connection.call_tool("t", ()).await })
    };
    let calls = [call(), call()];
    let (first, second) = (server.receives("tools/call").await, server.receives("tools/call").await);
    first.json(400, NO_SESSION);
    second.status(400);
    server.initializes("2025-11-25", "s-2").await;
    server.line(GET).await.status(405);
    for _ in 0..2 {
        let asked = server.receives("tools/call").await;
        assert_eq!(asked.header("mcp-session-id"), Some("s-2"));
        asked.result(DONE);
    }
    for call in calls {
        call.await.unwrap().unwrap();
    }

    // The new session refuses too: the request is at fault, and no third one is opened for it.
    let call = call();
    server.receives("tools/call").await.json(400, NO_SESSION);
    let error = call.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("No valid session ID"), "{error}");
    server.receives_nothing(Duration::from_secs(60)).await;
    // Later it may have been lost again.
    let call = tokio::spawn(async move { connection.call_tool("t", ()).await });
    server.receives("tools/call").await.json(400, NO_SESSION);
    server.initializes("2025-11-25", "s-3").await;
    server.line(GET).await.status(405);
    server.receives("tools/call").await.result(DONE);
    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_400_that_says_what_is_wrong_with_a_request_leaves_the_session_alone() {
    let (mut server, http) = script();
    let connection = server.shakes("2025-11-25", client(), http).await;
    server.line(GET).await.status(405);
    for code in [-32700, -32601, -32602, -32603, -32020] {
        let (called, ()) = tokio::join!(connection.call_tool("t", ()), async {
            let asked = server.receives("tools/call").await;
            let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": "no"}});
            asked.json(400, &error.to_string());
        });
        assert!(matches!(&called, Err(Error::Rpc(error)) if error.code.0 == code), "{called:?}");
    }
    server.receives_nothing(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_a_session_that_is_refused_with_400_was_lost_with_it() {
    let (mut server, http) = script();
    let _connection = server.shakes("2025-11-25", client(), http).await;
    let stream = server.line(GET).await.events();
    stream.sends(": here\n\n");
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(stream);
    server.line(GET).await.json(400, NO_SESSION);
    server.initializes("2025-11-25", "s-2").await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ran_when_the_session_was_lost_is_not_sent_again() {
    let (mut server, http) = script();
    let connection = server.shakes("2025-11-25", client(), http).await;
    server.line(GET).await.status(405);
    let call = tokio::spawn({
        let connection = connection.clone();
        async move { connection.call_tool("once", ()).await }
    });
    let stream = server.receives("tools/call").await.events();
    stream.sends("id: 1\ndata:\n\n");
    stream.breaks();
    // It is asked for the rest, and knows nothing of it.
    let resumed = server.line(GET).await;
    assert_eq!(resumed.header("last-event-id"), Some("1"));
    resumed.status(404);
    server.initializes("2025-11-25", "s-2").await;
    assert!(call.await.unwrap().is_err());
    server.line(GET).await.status(405);
    server.receives_nothing(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn several_requests_are_one_post_where_the_revision_has_that() {
    let (mut server, http) = script();
    let connection = server.shakes("2025-03-26", client(), http).await;
    server.line(GET).await.status(405);
    let batch =
        tokio::spawn(async move { connection.batch().call_tool("a", ()).call_tool("b", ()).send().await });
    let asked = server.next().await;
    let messages = asked.message();
    let (first, second) = (messages[0]["id"].clone(), messages[1]["id"].clone());
    let stream = asked.events();
    stream.sends(&format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{second},\"result\":{DONE}}}\n\n"));
    stream.sends(&format!("data: [{{\"jsonrpc\":\"2.0\",\"id\":{first},\"result\":{DONE}}}]\n\n"));
    assert!(batch.await.unwrap().into_iter().all(|result| result.is_ok()));
    stream.given_up().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_a_session_that_cannot_be_taken_up_is_opened_anew() {
    let (mut server, http) = script();
    let _connection = server.shakes("2025-11-25", client(), http).await;
    let stream = server.line(GET).await.events();
    stream.sends("id: 7\ndata: \n\n");
    tokio::time::sleep(Duration::from_millis(50)).await;
    stream.breaks();
    let resumed = server.line(GET).await;
    assert_eq!(resumed.header("last-event-id"), Some("7"));
    resumed.json(400, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"not kept any more"}}"#);
    let anew = server.line(GET).await;
    assert_eq!(anew.header("last-event-id"), None);
    assert_eq!(anew.header("mcp-session-id"), Some("s-1"));
    anew.status(405);
    server.receives_nothing(Duration::from_secs(3600)).await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_client_notices_that_its_session_is_gone() {
    let (mut server, http) = script();
    let connection = server.shakes("2025-11-25", client(), http).await;
    let stream = server.line(GET).await.events();
    stream.sends(": here\n\n");
    let mut changes = connection.changes().await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    // The server is restarted: for a while there is none, then one that knows nothing of the session.
    drop(stream);
    server.line(GET).await.status(503);
    let resumed = server.line(GET).await;
    assert_eq!(resumed.header("mcp-session-id"), Some("s-1"));
    resumed.status(404);
    server.initializes("2025-11-25", "s-2").await;
    server.line(GET).await.status(405);
    assert_eq!(changes.next().await, Some(Event::Reopened));
}

#[tokio::test(start_paused = true)]
async fn a_server_without_a_stream_for_its_session_may_say_so_with_404() {
    let (mut server, http) = script();
    let connection = server.shakes("2025-11-25", client(), http).await;
    server.line(GET).await.status(404);
    server.receives_nothing(Duration::from_secs(3600)).await;
    let (called, ()) = tokio::join!(connection.call_tool("t", ()), async {
        let asked = server.receives("tools/call").await;
        assert_eq!(asked.header("mcp-session-id"), Some("s-1"));
        asked.result(DONE);
    });
    called.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_sent_again_to_another_session_is_decided_on_again() {
    async fn lists(server: &mut Script, hints: &str) {
        server.receives("tools/list").await.result(&format!(
            r#"{{"tools":[{{"name":"t","inputSchema":{{"type":"object"}},"annotations":{hints}}}]}}"#
        ));
    }
    let reads_only = client().policy(|call| match call.hints().read_only {
        true => Policy::Allow,
        false => Policy::deny("it writes"),
    });
    let (mut server, http) = script();
    let connection = server.shakes("2025-11-25", reads_only, http).await;
    let _stream = server.line(GET).await.events();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let call = tokio::spawn({
        let connection = connection.clone();
        async move { connection.call_tool("t", ()).await }
    });
    lists(&mut server, r#"{"readOnlyHint":true}"#).await;
    server.receives("tools/call").await.status(404);
    server.initializes("2025-11-25", "s-2").await;
    server.line(GET).await.status(405);
    lists(&mut server, "{}").await;
    let refused = call.await.unwrap().unwrap_err();
    assert!(matches!(refused, Error::Refused(_)), "{refused:?}");
    server.receives_nothing(Duration::from_secs(60)).await;
}
