//! What a call may take: time, and room for its result.

use std::{future::pending, time::Duration};

use pintle::{
    Server,
    server::{prompt, resource, tool},
};
use serde_json::{Value, json};

use crate::support::{
    drop_counter::DropCounter,
    eras::{ALL, Client, each},
};

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_ended_and_dropped() {
    let dropped = DropCounter::default();
    let counted = dropped.clone();
    let hangs = move || {
        let dropped = counted.guard();
        async move {
            pending::<()>().await;
            drop(dropped);
            ""
        }
    };
    let server = Server::new("s", "0")
        .call_timeout(Duration::from_secs(3))
        .tool(tool("hangs", hangs))
        .tool(tool("quick", || async { "quick" }));
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        let before = dropped.count();
        let begun = tokio::time::Instant::now();
        let answer = client.call("tools/call", json!({"name": "hangs"})).await;
        assert_eq!(answer["error"]["message"], "the call took longer than 3s and was ended: ask for less");
        assert_eq!(begun.elapsed().as_secs(), 3);
        assert_eq!(dropped.count(), before + 1);
        assert_eq!(client.tool("quick").await, "quick");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_timeout_has_the_usual_one() {
    let slow = || async {
        tokio::time::sleep(Duration::from_secs(2000)).await;
        "slow"
    };
    let server = || Server::new("s", "0").tool(tool("slow", slow)).tool(tool("free", slow).timeout(None));
    let ended = "the call took longer than 1800s and was ended: ask for less";
    for (server, expected) in [(server(), json!(ended)), (server().call_timeout(None), Value::Null)] {
        each(&server, &ALL, json!({}), async |client: &mut Client| {
            let slow = client.send("tools/call", json!({"name": "slow"})).await;
            let free = client.send("tools/call", json!({"name": "free"})).await;
            tokio::time::sleep(Duration::from_secs(1990)).await;
            let answer = client.until(slow).await;
            assert_eq!(answer["error"]["message"], expected);
            assert_eq!(client.until(free).await["result"]["content"][0]["text"], "slow");
        })
        .await;
    }
}

#[tokio::test]
async fn a_result_that_is_too_large_is_reported() {
    let server = Server::new("s", "0")
        .max_content_bytes(1000)
        .tool(tool("large", || async { "x".repeat(1000) }))
        .tool(tool("fits", || async { "x".repeat(900) }))
        .prompt(prompt("large", || async { "x".repeat(1000) }))
        .resource(resource("x://large", "large", || async { "x".repeat(1000) }));
    each(&server, &ALL, json!({}), async |client: &mut Client| {
        let answer = client.call("tools/call", json!({"name": "large"})).await;
        assert_eq!(answer["result"]["isError"], true);
        assert_eq!(
            answer["result"]["content"][0]["text"],
            "the result has 1039 bytes and may have at most 1000: ask for less"
        );
        assert_eq!(client.tool("fits").await.len(), 900);
        for (method, params) in
            [("prompts/get", json!({"name": "large"})), ("resources/read", json!({"uri": "x://large"}))]
        {
            let answer = client.call(method, params).await;
            assert_eq!(answer["error"]["code"], -32603, "{answer}");
            assert!(
                answer["error"]["message"].as_str().unwrap().ends_with("may have at most 1000: ask for less")
            );
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_runs_when_the_client_has_hung_up_holds_nothing_up_for_long() {
    let mut timeouts = pintle::Timeouts::default();
    timeouts.shutdown = Duration::from_secs(600);
    for expected in [Duration::from_secs(1), Duration::from_secs(7)] {
        timeouts.disconnect = expected;
        let server = Server::new("s", "0").timeouts(timeouts.clone()).tool(tool("hangs", pending::<String>));
        let (ours, theirs) = pintle::transport::memory();
        let serving = server.serve(ours).unwrap();
        let mut client = crate::support::line_client::Raw::over(theirs);
        client
            .request("tools/call", crate::support::line_client::modern(json!({"name": "hangs"}), json!({})))
            .await;
        tokio::task::yield_now().await;
        let begun = tokio::time::Instant::now();
        drop(client);
        serving.wait().await.unwrap();
        assert_eq!(begun.elapsed().as_secs(), expected.as_secs());
    }
    assert_eq!(pintle::Timeouts::default().disconnect, Duration::from_secs(1));
}
