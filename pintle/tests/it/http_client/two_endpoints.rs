//! The oldest transport: two endpoints, one of them a stream.

use std::time::Duration;

use pintle::Error;

use crate::support::scripted_http::{Asked, Saying, Script, client, script};

const GET: &str = "GET http://server.test/mcp";
const ENDPOINT: &str = "POST http://server.test/messages?sessionId=7";

async fn refuses_post(server: &mut Script, status: u16) -> Asked {
    server.receives("server/discover").await.status(status);
    server.receives("initialize").await.status(status);
    let listening = server.line(GET).await;
    assert_eq!(listening.header("accept"), Some("text/event-stream"));
    assert_eq!(listening.header("mcp-protocol-version"), None);
    listening
}

async fn shakes(server: &mut Script, stream: &Saying) {
    let hello = server.line(ENDPOINT).await;
    let message = hello.message();
    assert_eq!(message["method"], "initialize");
    hello.answer(202, &[], "Accepted");
    let id = &message["id"];
    stream.sends(&format!("event: message\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"protocolVersion\":\"2024-11-05\",\"capabilities\":{{\"tools\":{{}}}},\"serverInfo\":{{\"name\":\"old\",\"version\":\"1\"}}}}}}\n\n"));
    let notified = server.line(ENDPOINT).await;
    assert_eq!(notified.message()["method"], "notifications/initialized");
    notified.answer(202, &[], "");
}

/// Whatever the method, the address of the stream has the stream.
#[tokio::test(start_paused = true)]
async fn a_stream_in_answer_to_a_post_that_names_an_endpoint_is_recognised() {
    let (mut server, http) = script();
    let opening = tokio::spawn(async move { client().connect(http).await });
    for method in ["server/discover", "initialize"] {
        let stream = server.receives(method).await.events();
        stream.sends("event: endpoint\ndata: /messages?sessionId=6\n\n");
        stream.given_up().await;
    }
    let stream = server.line(GET).await.events();
    stream.sends("event: endpoint\ndata: /messages?sessionId=7\n\n");
    shakes(&mut server, &stream).await;
    assert_eq!(opening.await.unwrap().unwrap().revision().to_string(), "2024-11-05");
}

#[tokio::test(start_paused = true)]
async fn a_server_of_the_oldest_transport_is_found_and_used() {
    for status in [400, 404, 405] {
        let (mut server, http) = script();
        let opening = tokio::spawn(async move { client().connect(http).await });
        let stream = refuses_post(&mut server, status).await.events();
        stream.sends("event: endpoint\ndata: /messages?sessionId=7\n\n");
        shakes(&mut server, &stream).await;
        let connection = opening.await.unwrap().unwrap();
        assert_eq!(connection.revision().to_string(), "2024-11-05");

        let call = tokio::spawn({
            let connection = connection.clone();
            async move { connection.call_tool("t", ()).await }
        });
        let asked = server.line(ENDPOINT).await;
        let id = asked.message()["id"].clone();
        asked.answer(200, &[("content-type", "text/plain")], "ok");
        stream.sends(&format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[]}}}}\n\n"));
        call.await.unwrap().unwrap();

        // A POST that fails fails its call, and a cancelled one is told of.
        let (called, ()) = tokio::join!(connection.call_tool("t", ()), async {
            server.line(ENDPOINT).await.status(500);
        });
        assert!(matches!(called, Err(Error::Failed(failed)) if failed.status == Some(500)));
        let call = tokio::spawn({
            let connection = connection.clone();
            async move { connection.call_tool("t", ()).await }
        });
        server.line(ENDPOINT).await.status(202);
        call.abort();
        let notified = server.line(ENDPOINT).await;
        assert_eq!(notified.message()["method"], "notifications/cancelled");
        notified.status(202);

        // Closing is hanging up.
        connection.close().await;
        stream.given_up().await;
        server.receives_nothing(Duration::from_secs(60)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_stream_is_the_end_of_the_session() {
    let (mut server, http) = script();
    let opening = tokio::spawn(async move { client().connect(http).await });
    let stream = refuses_post(&mut server, 405).await.events();
    stream.sends("event: endpoint\ndata: messages?sessionId=7\n\n");
    shakes(&mut server, &stream).await;
    let connection = opening.await.unwrap().unwrap();
    let call = tokio::spawn({
        let connection = connection.clone();
        async move { connection.call_tool("t", ()).await }
    });
    server.line(ENDPOINT).await.status(202);
    stream.breaks();
    assert!(matches!(call.await.unwrap(), Err(Error::Closed(_))));
    // The next session is opened the same way, without the first question.
    server.receives("initialize").await.status(405);
    let stream = server.line(GET).await.events();
    stream.sends("event: endpoint\ndata: http://server.test/messages?sessionId=7\n\n");
    shakes(&mut server, &stream).await;
    let call = tokio::spawn(async move { connection.call_tool("t", ()).await });
    let asked = server.line(ENDPOINT).await;
    let id = asked.message()["id"].clone();
    asked.status(202);
    stream.sends(&format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[]}}}}\n\n"));
    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_elsewhere_is_refused() {
    for (events, text) in [
        ("event: endpoint\ndata: https://evil.test/messages\n\n", "redirected to another origin"),
        ("event: endpoint\ndata: //evil.test/messages\n\n", "redirected to another origin"),
        (": nothing\n\n", "`http://server.test/mcp` named no endpoint for messages"),
    ] {
        let (mut server, http) = script();
        let opening = tokio::spawn(async move { client().connect(http).await });
        let stream = refuses_post(&mut server, 404).await.events();
        stream.sends(events);
        drop(stream);
        let error = opening.await.unwrap().unwrap_err().to_string();
        assert!(error.contains(text), "{events}: {error}");
        server.receives_nothing(Duration::from_secs(60)).await;
    }
}
