//! A question takes its time: whose time that is, whose place it takes, and what happens when nobody answers.

use std::{sync::Arc, time::Duration};

use pintle::{
    Server, Timeouts,
    server::{Arguments, Cx, ToolError, tool},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{sync::Semaphore, time::sleep};

use crate::support::{
    eras::{R4, WITH_FORMS},
    line_client::Raw,
};

#[derive(Deserialize, JsonSchema)]
struct Seats {
    #[expect(dead_code, reason = "whatever it is")]
    count: u8,
}

fn can() -> Value {
    json!({"elicitation": {}})
}

fn yes() -> Value {
    json!({"action": "accept", "content": {"count": 1}})
}

/// Works for some seconds, asks, and works for as many again.
fn worker() -> Server {
    #[derive(Deserialize)]
    struct Work {
        seconds: u64,
    }
    Server::new("s", "0").tool(tool("work", |cx: Cx, Arguments(arguments): Arguments| async move {
        let Work { seconds } = arguments.decode()?;
        sleep(Duration::from_secs(seconds)).await;
        cx.elicit::<Seats>("seats", "How many?").await?;
        sleep(Duration::from_secs(seconds)).await;
        Ok::<_, ToolError>("done")
    }))
}

#[tokio::test(start_paused = true)]
async fn the_users_time_is_not_the_calls() {
    let server = worker().call_timeout(Duration::from_secs(10));
    for revision in WITH_FORMS.into_iter().filter(|revision| *revision <= R4) {
        let mut raw = Raw::new(&server);
        raw.open(revision, can()).await;
        for (seconds, in_time) in [(4, true), (6, false)] {
            raw.request("tools/call", json!({"name": "work", "arguments": {"seconds": seconds}})).await;
            let question = raw.recv().await;
            sleep(Duration::from_secs(1800)).await;
            raw.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": yes()})).await;
            let answer = raw.recv().await;
            match in_time {
                true => assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}"),
                // What was left of its time counts on.
                false => assert!(
                    answer["error"]["message"].as_str().unwrap().contains("longer than 10"),
                    "{answer}"
                ),
            }
        }
    }
}

/// `ask` asks and then says so; `hold` holds its place until it is let go.
fn held() -> (Server, Arc<Semaphore>, Arc<Semaphore>) {
    let (begun, gate) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (begins, waits) = (begun.clone(), gate.clone());
    let server = Server::new("s", "0")
        .concurrency(1)
        .tool(tool("ask", |cx: Cx| async move {
            cx.elicit::<Seats>("seats", "How many?").await?;
            Ok::<_, ToolError>("asked")
        }))
        .tool(tool("hold", move || {
            let (begins, waits) = (begins.clone(), waits.clone());
            async move {
                begins.add_permits(1);
                waits.acquire().await.unwrap().forget();
                "held"
            }
        }));
    (server, begun, gate)
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_the_user_takes_nobodys_place_on_a_pipe() {
    let (server, begun, gate) = held();
    let mut raw = Raw::new(&server);
    raw.open(R4, can()).await;
    let asks = raw.request("tools/call", json!({"name": "ask"})).await;
    let question = raw.recv().await;
    assert_eq!(question["method"], "elicitation/create");
    let first = raw.request("tools/call", json!({"name": "hold"})).await;
    begun.acquire().await.unwrap().forget();
    // Its answer is there, but not its turn: the one that holds it comes first.
    let second = raw.request("tools/call", json!({"name": "hold"})).await;
    raw.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": yes()})).await;
    raw.request("ping", json!({})).await;
    assert_eq!(raw.recv().await["result"], json!({}));
    gate.add_permits(1);
    assert_eq!(raw.recv().await["id"], first);
    let next = raw.recv().await;
    assert_eq!((&next["id"], &next["result"]["content"][0]["text"]), (&json!(asks), &json!("asked")));
    gate.add_permits(1);
    assert_eq!(raw.recv().await["id"], second);
    // A question that is given up leaves no hole and holds no place.
    let asks = raw.request("tools/call", json!({"name": "ask"})).await;
    let question = raw.recv().await;
    raw.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": asks}}))
        .await;
    let taken_back = raw.recv().await;
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
    for _ in 0..2 {
        raw.request("tools/call", json!({"name": "hold"})).await;
    }
    begun.acquire().await.unwrap().forget();
    begun.acquire().await.unwrap().forget();
    tokio::task::yield_now().await;
    assert_eq!(begun.available_permits(), 0, "one at a time");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_is_taken_back() {
    async fn asked(server: &Server, after: Duration) {
        let mut raw = Raw::new(server);
        raw.open(R4, can()).await;
        raw.request("tools/call", json!({"name": "ask"})).await;
        let question = raw.recv().await;
        let began = tokio::time::Instant::now();
        let taken_back = raw.recv().await;
        assert_eq!(taken_back["method"], "notifications/cancelled");
        assert_eq!(taken_back["params"]["requestId"], question["id"]);
        assert_eq!(began.elapsed().as_secs(), after.as_secs());
        let answer = raw.recv().await.to_string();
        assert!(answer.contains(&format!("did not answer within {} s", after.as_secs())), "{answer}");
    }
    let ask = || {
        tool("ask", |cx: Cx| async move {
            cx.elicit::<Seats>("seats", "How many?").await?;
            Ok::<_, ToolError>("")
        })
    };
    asked(&Server::new("s", "0").tool(ask()), Duration::from_secs(3600)).await;
    let mut timeouts = Timeouts::default();
    timeouts.question = Duration::from_secs(90);
    asked(&Server::new("s", "0").tool(ask()).timeouts(timeouts.clone()), Duration::from_secs(90)).await;
    let own = tool("ask", |cx: Cx| async move {
        cx.question_timeout(Duration::from_secs(5));
        cx.ask_all([("roots".to_owned(), pintle::server::Question::Roots)]).await.map(drop).ok();
        cx.elicit::<Seats>("seats", "How many?").await?;
        Ok::<_, ToolError>("")
    });
    asked(&Server::new("s", "0").tool(own).timeouts(timeouts), Duration::from_secs(5)).await;
}

#[cfg(feature = "http-server")]
mod over_http {
    use super::*;
    use crate::support::http_client::Wire;

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_the_user_takes_nobodys_place_in_a_session() {
        let (server, begun, gate) = held();
        let wire = Wire::new(&server.http().unwrap()).open(R4, can()).await;
        let mut asks = wire.call(1, "tools/call", json!({"name": "ask"})).await;
        let question = asks.message().await.unwrap();
        assert_eq!(question["method"], "elicitation/create");
        let holding = {
            let wire = wire.clone();
            tokio::spawn(
                async move { wire.call(2, "tools/call", json!({"name": "hold"})).await.result().await },
            )
        };
        begun.acquire().await.unwrap().forget();
        assert_eq!(
            wire.post(json!({"jsonrpc": "2.0", "id": question["id"], "result": yes()})).await.status,
            202
        );
        // Whoever reads it drives it, and it waits all the same.
        let mut next = Box::pin(asks.message());
        assert!(
            tokio::time::timeout(Duration::from_secs(5), &mut next).await.is_err(),
            "the turn is another one's"
        );
        gate.add_permits(1);
        assert_eq!(next.await.unwrap()["result"]["content"][0]["text"], "asked");
        assert_eq!(holding.await.unwrap()["id"], 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_given_up_takes_its_question_back_where_somebody_reads() {
        let (server, ..) = held();
        let wire = Wire::new(&server.http().unwrap()).open(R4, can()).await;
        let mut standing = wire.get().await;
        let mut asks = wire.call(1, "tools/call", json!({"name": "ask"})).await;
        let question = asks.message().await.unwrap();
        drop(asks);
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
        assert_eq!(wire.post(cancel).await.status, 202);
        let taken_back = standing.message().await.unwrap();
        assert_eq!(taken_back["method"], "notifications/cancelled");
        assert_eq!(taken_back["params"]["requestId"], question["id"]);
    }
}
