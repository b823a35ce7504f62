//! Sessions over HTTP that another process restores: what their clients watch through a relay is watched again.

use std::{sync::Arc, time::Duration};

use http::Request;
use pintle::{
    Server,
    server::{
        Authenticated, Cx, Decision, GateRequest, Next, around,
        http::{Http, log::MemoryLog},
        resource,
        store::MemoryStore,
    },
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::{
    eras::{R4, R5},
    http_client::{Answer, Wire},
};
use crate::world;

/// A server behind that tells what is watched, in a session or by the only client.
fn behind() -> (Server, mpsc::UnboundedReceiver<String>) {
    let (watched, notified) = mpsc::unbounded_channel();
    let server = Server::new("notes", "1")
        .resource(resource("note://1", "one", || async { "" }))
        .resource(resource("note://secret", "secret", || async { "" }))
        .layer(&around(move |cx: Cx, next: Next| {
            let uris = cx.targets().iter().map(|target| target.name().to_owned()).collect::<Vec<_>>();
            let (method, watched) = (cx.method().to_owned(), watched.clone());
            async move {
                let outcome = next.run(cx).await;
                if matches!(&*method, "resources/subscribe" | "subscriptions/listen") {
                    uris.into_iter().for_each(|uri| watched.send(uri).unwrap());
                }
                outcome
            }
        }));
    (server, notified)
}

async fn next(notified: &mut mpsc::UnboundedReceiver<String>) -> String {
    tokio::time::timeout(Duration::from_secs(20), notified.recv()).await.unwrap().unwrap()
}

/// What processes of one server share.
#[derive(Default)]
struct Shared {
    sessions: Arc<MemoryStore>,
    events: Arc<MemoryLog>,
}

impl Shared {
    fn process(&self, server: &Server) -> Http {
        server.http().unwrap().session_store(self.sessions.clone()).event_log(self.events.clone())
    }
}

/// Sends a request as `ann`.
async fn send(wire: &Wire, method: &str, message: &str) -> Answer {
    let mut request: Request<String> = wire.request(method, "/mcp", message);
    request.extensions_mut().insert(Authenticated::new("ann"));
    wire.send(request).await
}

async fn call(wire: &Wire, method: &str, params: Value) -> Value {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let mut answer = send(wire, "POST", &message.to_string()).await;
    match answer.is_stream() {
        true => answer.message().await.unwrap(),
        false => answer.json().await,
    }
}

/// Opens a session as `ann`.
async fn open(http: &Http) -> Wire {
    let wire = Wire::new(http);
    let params =
        json!({"protocolVersion": R4, "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}});
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let opened = send(&wire, "POST", &message.to_string()).await;
    let wire = wire.with("mcp-session-id", opened.header("mcp-session-id").unwrap());
    let notified = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(send(&wire, "POST", &notified.to_string()).await.status, 202);
    wire
}

fn no_secrets(request: &GateRequest<'_>) -> Decision {
    if request.name().contains("secret") { Decision::Hide } else { Decision::Allow }
}

#[tokio::test(start_paused = true)]
async fn a_restored_session_is_notified_of_what_it_watches_without_subscribing_again() {
    for upstream in [R4, R5] {
        let (behind, mut notified) = behind();
        let shared = Shared::default();
        // One relay for all, if the server behind has no sessions, is that of a principal.
        let process = async || {
            let relay = world::relay(&behind, upstream).await;
            let relay = if upstream == R5 { relay.for_principal("ann") } else { relay };
            shared.process(&Server::new("front", "1").mount("n", relay).gate(no_secrets))
        };
        let client = open(&process().await).await;
        let watched = call(&client, "resources/subscribe", json!({"uri": "note://1"})).await;
        assert!(watched["result"].is_object(), "{watched}");
        assert_eq!(next(&mut notified).await, "note://1");

        let other = process().await;
        let client = Wire { http: other, ..client };
        assert!(call(&client, "ping", json!({})).await["result"].is_object());
        let mut stream = send(&client, "GET", "").await;
        assert_eq!(next(&mut notified).await, "note://1", "{upstream}");
        behind.resource_updated("note://1");
        loop {
            let received = stream.message().await.unwrap();
            if received["method"] == "notifications/resources/updated" {
                assert_eq!(received["params"]["uri"], "note://1", "{upstream}");
                break;
            }
        }
    }
}

/// What a client may not watch any more is not watched for it.
#[tokio::test(start_paused = true)]
async fn what_became_hidden_is_not_watched_for_a_restored_session() {
    let (behind, mut notified) = behind();
    let shared = Shared::default();
    let front = async || Server::new("front", "1").provider(world::relay(&behind, R4).await);
    let client = open(&shared.process(&front().await)).await;
    for uri in ["note://secret", "note://1"] {
        call(&client, "resources/subscribe", json!({"uri": uri})).await;
        assert_eq!(next(&mut notified).await, uri);
    }
    let other = shared.process(&front().await.gate(no_secrets));
    let client = Wire { http: other, ..client };
    assert!(call(&client, "ping", json!({})).await["result"].is_object());
    assert_eq!(next(&mut notified).await, "note://1");
    call(&client, "resources/unsubscribe", json!({"uri": "note://1"})).await;
    assert!(notified.try_recv().is_err());
}
