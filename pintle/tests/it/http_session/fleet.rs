//! Processes that share their sessions: what a client sees that reaches another one with each request.

use std::{sync::Arc, time::Duration};

use pintle::{
    Server,
    server::{
        Cx, ToolError,
        http::{Http, nodes::MemoryFleet},
        tool,
    },
};
use pintle_testing::kits;
use serde_json::json;
use tokio::{sync::Semaphore, time::timeout};

use crate::support::{eras::R4, http_client::Wire};

#[tokio::test]
async fn messages_between_services_of_one_process() {
    let open = async || {
        let fleet = MemoryFleet::new();
        Ok([fleet.node()?, fleet.node()?, fleet.node()?])
    };
    kits::nodes::check(open).await.unwrap();
}

#[tokio::test]
async fn services_of_one_fleet_serve_their_clients_as_one() {
    let open = async || {
        let fleet = MemoryFleet::new();
        Ok([fleet.node()?, fleet.node()?])
    };
    kits::fleet::check(open).await.unwrap();
}

/// A server with a tool that reports its progress each time that it may.
pub(super) fn counting(go: &Arc<Semaphore>) -> Server {
    let go = go.clone();
    Server::new("s", "0").tool(tool("count", move |cx: Cx| {
        let go = go.clone();
        async move {
            for n in 1..=4 {
                go.acquire().await.unwrap().forget();
                cx.progress(f64::from(n), None).await;
            }
            "done"
        }
    }))
}

fn at(client: &Wire, http: &Http) -> Wire {
    Wire { http: http.clone(), ..client.clone() }
}

/// Far more than anything here takes, under a paused clock.
const SOON: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn a_call_whose_process_is_gone_is_answered_with_an_error_once() {
    let (fleet, go) = (MemoryFleet::new(), Arc::new(Semaphore::new(0)));
    let server = counting(&go);
    let node = || server.http().unwrap().shared(fleet.node().unwrap());
    let crashing = fleet.node().unwrap();
    let (a, b, c) = (server.http().unwrap().shared(crashing.clone()), node(), node());
    let client = Wire::new(&a).open(R4, json!({})).await;
    go.add_permits(2);
    let params = json!({"name": "count", "_meta": {"progressToken": "p"}});
    let mut call = client.call(7, "tools/call", params).await;
    let last = loop {
        let event = call.event().await.unwrap();
        if event.data.contains("\"progress\":2") {
            break event.id.unwrap();
        }
    };
    drop(call);
    crashing.disconnect();
    let resume = async |http: &Http| {
        let mut resumed = at(&client, http).with("last-event-id", last.clone()).get().await;
        timeout(SOON, resumed.messages()).await.expect("the stream ends")
    };
    let (at_b, at_c) = tokio::join!(resume(&b), resume(&c));
    // Those who come later see the same, even if the process was only cut off and goes on.
    go.add_permits(2);
    tokio::task::yield_now().await;
    let later = resume(&b).await;
    for answers in [at_b, at_c, later] {
        assert_eq!(answers.len(), 1, "{answers:?}");
        assert_eq!(answers[0]["id"], 7);
        let message = answers[0]["error"]["message"].as_str().unwrap();
        assert!(message.contains("the process that ran the call is gone"), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_is_sent_on_the_get_stream_of_another_process() {
    let fleet = MemoryFleet::new();
    let server = Server::new("s", "0").tool(tool("ask", |cx: Cx| async move {
        let roots = cx.roots().await?;
        Ok::<_, ToolError>(roots.into_iter().map(|root| root.uri).collect::<String>())
    }));
    // Without event streams for calls, the only way to the client is its GET stream.
    let node = || server.http().unwrap().json_only().shared(fleet.node().unwrap());
    let (a, b) = (node(), node());
    let client = Wire::new(&a).open(R4, json!({"roots": {}})).await;
    let there = at(&client, &b);
    for round in 0..2 {
        let mut stream = there.get().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        let calling = client.clone();
        let call = tokio::spawn(async move {
            let mut answer = calling.call(1, "tools/call", json!({"name": "ask"})).await;
            answer.json().await["result"]["content"][0]["text"].clone()
        });
        let question = timeout(SOON, stream.message()).await.expect("it is sent").unwrap();
        assert_eq!(question["method"], "roots/list");
        let root = format!("file:///{round}");
        let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [{"uri": root}]}});
        assert_eq!(there.post(answer).await.status, 202);
        assert_eq!(timeout(SOON, call).await.unwrap().unwrap(), root);
        // The process whose call it is learns that the stream is gone.
        drop(stream);
        tokio::time::sleep(Duration::from_millis(1)).await;
        let refused = client.call(2, "tools/call", json!({"name": "ask"}));
        let reply = timeout(SOON, refused).await.expect("it does not wait").json().await;
        assert!(reply["error"].is_object() || reply["result"]["isError"] == true, "{reply}");
    }
}
