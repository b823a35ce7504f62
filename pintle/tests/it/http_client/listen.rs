//! `subscriptions/listen`: a stream that stays open, and is opened again.

use std::time::Duration;

use pintle::{
    Error,
    client::{Change, Event, Policy},
};
use tokio::time::Instant;

use crate::support::scripted_http::{Saying, Script, client, script};

async fn acknowledges(server: &mut Script) -> Saying {
    let asked = server.receives("subscriptions/listen").await;
    let id = asked.message()["id"].clone();
    let stream = asked.events();
    stream.sends(&format!(
        "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{{\"_meta\":{{\"io.modelcontextprotocol/subscriptionId\":{id}}},\"notifications\":{{\"toolsListChanged\":true}}}}}}\n\n"
    ));
    stream
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_breaks_is_opened_again() {
    let (mut server, http) = script();
    let connection = server.opens(client(), http).await;
    let (changes, stream) = tokio::join!(connection.changes(), acknowledges(&mut server));
    let mut changes = changes.unwrap();
    stream.sends("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":2}}}\n\n");
    assert_eq!(changes.next().await, Some(Event::Changed(Change::Tools)));

    // Broken, refused once with nothing to read, then open again: anything may have happened meanwhile.
    let broke = Instant::now();
    stream.breaks();
    server.receives("subscriptions/listen").await.status(502);
    assert_eq!(broke.elapsed(), Duration::from_secs(1));
    let stream = acknowledges(&mut server).await;
    assert_eq!(broke.elapsed(), Duration::from_secs(3));
    assert_eq!(changes.next().await, Some(Event::Reopened));

    // The connection was never gone.
    let (called, ()) = tokio::join!(connection.call_tool("t", ()), async {
        server.receives("tools/call").await.result(r#"{"resultType":"complete","content":[]}"#);
    });
    called.unwrap();
    drop(changes);
    connection.close().await;
    stream.given_up().await;
    server.receives_nothing(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_never_came_to_be_is_an_error() {
    let (mut server, http) = script();
    let connection = server.opens(client(), http).await;
    let (changes, ()) = tokio::join!(connection.subscribe("file:///a"), async {
        server.receives("subscriptions/listen").await.status(500);
    });
    let error = changes.unwrap_err().to_string();
    assert!(error.contains("answered `subscriptions/listen` with status 500"), "{error}");
}

async fn lists(server: &mut Script, hints: &str) {
    server.receives("tools/list").await.result(&format!(
        r#"{{"resultType":"complete","ttlMs":60000,"cacheScope":"private","tools":[{{"name":"t","inputSchema":{{"type":"object"}},"annotations":{hints}}}]}}"#
    ));
}

/// As when the server is restarted, and says good-bye before.
#[tokio::test(start_paused = true)]
async fn a_policy_does_not_decide_on_what_was_said_before_a_subscription_ended() {
    let reads_only = client().policy(|call| match call.hints().read_only {
        true => Policy::Allow,
        false => Policy::deny("it writes"),
    });
    for graceful in [true, false] {
        let (mut server, http) = script();
        let connection = server.opens(reads_only.clone(), http).await;
        let (changes, stream) = tokio::join!(connection.changes(), acknowledges(&mut server));
        let mut changes = changes.unwrap();
        let (listed, ()) = tokio::join!(connection.tools(), lists(&mut server, r#"{"readOnlyHint":true}"#));
        listed.unwrap();
        let (called, ()) = tokio::join!(connection.call_tool("t", ()), async {
            server.receives("tools/call").await.result(r#"{"resultType":"complete","content":[]}"#);
        });
        called.unwrap();

        if graceful {
            stream.sends("data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"resultType\":\"complete\",\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":2}}}\n\n");
        } else {
            stream.breaks();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        let (refused, ()) = tokio::join!(connection.call_tool("t", ()), lists(&mut server, "{}"));
        assert!(matches!(refused.unwrap_err(), Error::Refused(_)), "graceful: {graceful}");
        // Whoever listens is told that something may have been missed.
        let _stream = acknowledges(&mut server).await;
        assert_eq!(changes.next().await, Some(Event::Reopened), "graceful: {graceful}");
        let (refused, ()) = tokio::join!(connection.call_tool("t", ()), lists(&mut server, "{}"));
        assert!(matches!(refused.unwrap_err(), Error::Refused(_)));
    }
}
