//! Clients, relays and servers over HTTP.

use pintle::{
    Client, Server,
    client::{Answer, http::Http},
    proto::Revision,
    relay::Relay,
};
use serde_json::json;

use super::world::{self, ERAS, Seen};

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
