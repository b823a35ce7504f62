//! Clients, relays and servers over HTTP.

mod headers;
mod push_streams;
mod restored;
mod stream_pauses;

use std::sync::atomic::{AtomicUsize, Ordering};

use pintle::{
    Client, Server,
    client::{Answer, http::Http},
    proto::Revision,
    server::{Cx, tool},
};
use pintle_relay::Relay;
use serde_json::json;

use super::world::{self, ERAS, Seen};
use crate::support::eras::{Client as EraClient, R4};

fn over_http(server: &Server) -> Http {
    Http::new("http://localhost/mcp").unwrap().client(server.http().unwrap())
}

/// Asks two questions, and reports progress.
async fn scenario(server: &Server, revision: &str) -> (String, Vec<f64>) {
    let client = Client::new("demo", "1.0.0").revisions([revision.parse::<Revision>().unwrap()]).on_elicit(
        |question| async move {
            let asked = question.message == "Sure?";
            Answer::accept(if asked { json!({}) } else { json!({"count": 3}) })
        },
    );
    let connection = client.connect(over_http(server)).await.unwrap();
    let (steps, mut reported) = tokio::sync::mpsc::unbounded_channel();
    let call = connection.call("book").on_progress(move |progress| {
        let _ = steps.send(progress.progress);
    });
    let text = call.send().await.unwrap().text();
    let mut progress = Vec::new();
    while let Some(step) = reported.recv().await {
        progress.push(step);
    }
    progress.dedup();
    (text, progress)
}

#[tokio::test]
async fn every_pairing_of_eras_over_http_is_the_direct_connection() {
    for downstream in ERAS {
        for upstream in ERAS {
            let behind = world::server(&Seen::default());
            let direct = scenario(&behind, downstream).await;
            assert_eq!(direct, ("3 guests, true".to_owned(), vec![1.0]));
            let target = behind.clone();
            let connector = move || {
                let http = over_http(&target);
                async { Ok(http) }
            };
            let relay = Relay::connect(world::client(upstream), connector).await.unwrap();
            let through = scenario(&world::front(&relay.share_anonymous()), downstream).await;
            assert_eq!(through, direct, "{downstream} to {upstream}");
        }
    }
}

/// The server behind forgets one of two sessions, and has a 404 for it, or a 400 as many servers do.
#[tokio::test]
async fn an_expired_session_is_opened_again_alone_and_a_safe_call_is_repeated() {
    for status in [404, 400] {
        an_expired_session_is_opened_again(status).await;
    }
}

async fn an_expired_session_is_opened_again(status: u16) {
    let session = tool("session", |cx: Cx| async move { format!("{:?}", cx.session().unwrap().id()) });
    let behind = Server::new("dice", "1.0.0").tool(session.read_only());
    let refused = axum::middleware::map_response(move |mut response: axum::response::Response| async move {
        if response.status() == 404 {
            *response.status_mut() = status.try_into().unwrap();
        }
        response
    });
    let http = axum::Router::new().fallback_service(behind.http().unwrap()).layer(refused);
    let connector = move || {
        let http = Http::new("http://localhost/mcp").unwrap().client(http.clone());
        async { Ok(http) }
    };
    let front = world::front(&Relay::connect(world::client(R4), connector).await.unwrap());
    let mut ann = EraClient::open(&front, R4, json!({})).await;
    let mut bob = EraClient::open(&front, R4, json!({})).await;
    ann.listen(&[]).await;
    ann.call("tools/list", json!({})).await;
    let (of_ann, of_bob) = (ann.tool("session").await, bob.tool("session").await);
    assert_ne!(of_ann, of_bob);
    for session in behind.sessions() {
        if format!("{:?}", session.id()) == of_ann {
            session.close().await.unwrap();
        }
    }
    let again = ann.tool("session").await;
    assert!(again != of_ann && again != of_bob, "{again}");
    let received = ann.receive().await;
    assert!(received["method"].as_str().unwrap().ends_with("/list_changed"), "{received}");
    assert_eq!(bob.tool("session").await, of_bob);
}

#[tokio::test]
async fn a_result_that_is_too_long_says_so_and_that_it_would_be_again() {
    for upstream in ERAS {
        let long = tool("long", || async { "x".repeat(100_000) });
        let behind = Server::new("dice", "1.0.0").tool(long.read_only());
        let connector = move || {
            let http = over_http(&behind);
            async { Ok(http) }
        };
        let mut limits = pintle::proto::Limits::default();
        limits.message_bytes = 1 << 16;
        let relay = Relay::connect(world::client(upstream).limits(limits), connector).await.unwrap();
        let mut client = EraClient::open(&world::front(&relay), R4, json!({})).await;
        let called = client.call("tools/call", json!({"name": "long"})).await;
        assert_eq!(
            called["error"]["message"],
            "the answer of `dice`, the server behind this one, is longer than what is passed on: ask for less, or raise the limit of \
             messages here",
            "{upstream}: {called}"
        );
    }
}

/// A client of a bridge cannot set the limits of a library.
#[tokio::test]
async fn a_connection_whose_opening_is_too_long_says_so_too() {
    let opened = AtomicUsize::new(0);
    let connector = move || {
        let length = 100_000 * opened.fetch_add(1, Ordering::Relaxed);
        let http = over_http(
            &Server::new("dice", "1.0.0")
                .instructions("x".repeat(length))
                .tool(tool("roll", || async { "4" })),
        );
        async { Ok(http) }
    };
    let mut limits = pintle::proto::Limits::default();
    limits.message_bytes = 1 << 16;
    let relay = Relay::connect(world::client(R4).limits(limits), connector).await.unwrap();
    let mut client = EraClient::open(&world::front(&relay), R4, json!({})).await;
    let called = client.call("tools/call", json!({"name": "roll"})).await;
    let message = called["error"]["message"].as_str().unwrap();
    assert!(message.contains("is longer than what is passed on: ask for less"), "{message}");
}
