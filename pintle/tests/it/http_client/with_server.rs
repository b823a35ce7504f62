//! Our client and our server, over a socket, in every revision that they share an endpoint in.

use std::time::Duration;

use pintle::{
    Client, Server,
    client::{
        Answer,
        http::{Http, Proxy},
    },
    server::{Cx, tool},
};
use serde_json::json;

async fn book(cx: Cx) -> Result<String, pintle::server::ToolError> {
    let picked = cx.elicit::<Seat>("seat", "Which seat?").await?;
    cx.progress(1.0, 1.0).await;
    Ok(format!("{picked:?}"))
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Seat {
    #[expect(dead_code, reason = "printed")]
    number: String,
}

#[tokio::test]
async fn each_revision_asks_notifies_and_answers() {
    let server = Server::new("desk", "1.0.0").tool(tool("book", book));
    let serving = server.serve_http("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", serving.address());
    for revision in ["2026-07-28", "2025-11-25", "2025-06-18"] {
        let client = Client::new("t", "1")
            .revisions([revision.parse().unwrap()])
            .on_elicit(|_| async { Answer::accept(json!({"number": "12A"})) });
        let http = Http::new(&url).unwrap().proxy(Proxy::none());
        let connection = client.connect(http).await.unwrap();
        assert_eq!(connection.revision().to_string(), revision);
        assert_eq!(connection.tools().await.unwrap().len(), 1);
        let (steps, mut notified) = tokio::sync::mpsc::unbounded_channel();
        let call = connection.call("book").on_progress(move |step| steps.send(step.progress).unwrap());
        let result = call.send().await.unwrap();
        let text = result.content[0].as_text().unwrap();
        assert!(text.contains("12A"), "{revision}: {text}");
        assert_eq!(notified.recv().await, Some(1.0), "{revision}");
        connection.close().await;
    }
    serving.shutdown(Duration::from_secs(5)).await;
}
