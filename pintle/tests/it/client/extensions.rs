//! Extensions of a client: their result types are resolved before a caller sees them.

use std::sync::{Arc, Mutex};

use pintle::{
    Client, Server,
    client::{
        CallStart, ClientExtension, ClientInstallation, Cx as ClientCx, Direction, Mode, Next, Question,
        Report, Unresolved, around,
    },
    server::{Cx, Installation, IntoToolResult, Outcome, ProtocolExtension, ToolError, method, tool},
    types::{JsonObject, RawObject, RpcError, schema::CallToolResult},
};
use serde_json::json;

/// Some calls are answered with a ticket, which is exchanged for the result.
#[derive(Clone, Copy)]
struct Tickets(&'static str);

const RESULT_TYPE: &str = "ticket";

impl ClientExtension for Tickets {
    fn name(&self) -> &str {
        self.0
    }

    fn settings(&self) -> JsonObject {
        json!({"color": "red"}).as_object().unwrap().clone()
    }

    fn install(self, tickets: ClientInstallation) -> ClientInstallation {
        tickets.result_type(RESULT_TYPE, ["tools/call"], |call: Unresolved| async move {
            assert_eq!(call.method(), "tools/call");
            let ticket = call.result().without(&["resultType", "_meta"]);
            call.connection().call_raw("tickets/redeem", ticket).await
        })
    }
}

struct Counter;

impl ProtocolExtension for Counter {
    fn name(&self) -> &str {
        "com.example/tickets"
    }

    fn install(self, counter: Installation) -> Installation {
        counter.result_type(RESULT_TYPE).method(method(
            "tickets/redeem",
            |cx: Cx, ticket: JsonObject| async move {
                assert_eq!(cx.extension("com.example/tickets"), Some(&json!({"color": "red"})));
                let text = format!("redeemed {}", ticket["number"]);
                Ok::<_, RpcError>(json!({"content": [{"type": "text", "text": text}]}))
            },
        ))
    }
}

struct Ticket;

impl IntoToolResult for Ticket {
    fn into_tool_result(self) -> Result<CallToolResult, Outcome> {
        let ticket: RawObject = r#"{"resultType":"ticket","number":7}"#.parse().unwrap();
        Err(Outcome::Complete(ticket.into()))
    }
}

fn server() -> Server {
    Server::new("s", "0").with(Counter).tool(tool("queue", || async { Ticket }))
}

#[tokio::test]
async fn a_result_of_an_extension_is_resolved() {
    let client = Client::new("c", "0").mode(Mode::Modern).with(Tickets("com.example/tickets"));
    let connection = client.connect(server().in_process().unwrap()).await.unwrap();
    assert_eq!(connection.call_tool("queue", ()).await.unwrap().text(), "redeemed 7");
    let Ok(CallStart::Unresolved(ticket)) = connection.call("queue").start().await else {
        panic!("a ticket")
    };
    assert_eq!(ticket.result().get("number"), Some("7"));
    // Another client of the same connection has the extension too.
    let again = connection.client().connect(server().in_process().unwrap()).await.unwrap();
    assert_eq!(again.call_tool("queue", ()).await.unwrap().text(), "redeemed 7");
    // Who does not declare it gets no ticket.
    let plain =
        Client::new("c", "0").mode(Mode::Modern).connect(server().in_process().unwrap()).await.unwrap();
    let error = plain.call_tool("queue", ()).await.unwrap_err().to_string();
    assert!(error.contains("com.example/tickets"), "{error}");
}

#[tokio::test]
async fn what_two_extensions_have_is_refused_with_both_names() {
    for (second, reason) in [
        (
            "com.example/tickets",
            "an extension named `com.example/tickets` is already registered; add it once",
        ),
        (
            "com.example/other",
            "the result type `ticket` of `com.example/other` is one of the extension `com.example/tickets`; add one of them",
        ),
    ] {
        let client = Client::new("c", "0").with(Tickets("com.example/tickets")).with(Tickets(second));
        let error = client.connect(server().in_process().unwrap()).await.unwrap_err().to_string();
        assert_eq!(error, reason);
    }
}

/// A clock that the client is notified of, whose requests name it in the head.
struct Clock;

#[derive(serde::Deserialize, serde::Serialize)]
struct Wind {
    clock: String,
    turns: u32,
}

impl ProtocolExtension for Clock {
    fn name(&self) -> &str {
        "com.example/clock"
    }

    fn install(self, clock: Installation) -> Installation {
        clock.listens("clockTicks").named_by("clock/wind", "clock").method(method(
            "clock/wind",
            |cx: Cx, wind: Wind| async move {
                let params = json!({"turns": wind.turns, "later": {"unknown": true}});
                cx.server().tell(pintle::server::Notice::new(
                    "clockTicks",
                    "notifications/clock/tick",
                    params,
                ));
                Ok::<_, RpcError>(json!({ "wound": wind.turns }))
            },
        ))
    }
}

#[derive(serde::Deserialize)]
struct Tick {
    turns: u32,
}

struct Ticks {
    seen: tokio::sync::mpsc::Sender<u32>,
    named: bool,
}

impl ClientExtension for Ticks {
    fn name(&self) -> &str {
        "com.example/clock"
    }

    fn install(self, clock: ClientInstallation) -> ClientInstallation {
        let clock = clock.on_notification("notifications/clock/tick", move |tick: Report<Tick>| {
            let _ = self.seen.try_send(tick.turns);
        });
        if self.named { clock.named_by("clock/wind", "clock") } else { clock }
    }
}

#[tokio::test]
async fn a_notification_of_an_extension_has_a_handler_in_both_eras_with_layers_and_without() {
    for (mode, layered) in
        [(Mode::Legacy, false), (Mode::Legacy, true), (Mode::Modern, false), (Mode::Modern, true)]
    {
        let (seen, mut ticks) = tokio::sync::mpsc::channel(8);
        let mut client = Client::new("c", "0").mode(mode).with(Ticks { seen, named: false });
        if layered {
            client = client.layer(&pintle::client::around(|cx, next: pintle::client::Next| next.run(cx)));
        }
        let server = Server::new("s", "0").with(Clock);
        let connection = client.connect(server.in_process().unwrap()).await.unwrap();
        connection.subscribe_extension("clockTicks", true).await.unwrap();
        let wind = Wind { clock: "hall".to_owned(), turns: 3 };
        let _: serde_json::Value = connection.request("clock/wind", wind).await.unwrap();
        assert_eq!(ticks.recv().await, Some(3));
        connection.close().await;
    }
}

/// A server that requires `Mcp-Name` for a method of an extension gets it from a client that knows the member.
#[cfg(all(feature = "http-client", feature = "http-server"))]
#[tokio::test]
async fn a_request_of_an_extension_repeats_its_name_in_the_head() {
    let server = Server::new("s", "0").with(Clock);
    let serving = server.serve_http("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", serving.address());
    for named in [false, true] {
        let (seen, _ticks) = tokio::sync::mpsc::channel(8);
        let client = Client::new("c", "0").mode(Mode::Modern).with(Ticks { seen, named });
        let connection = client.connect(pintle::client::http::Http::new(&*url).unwrap()).await.unwrap();
        for clock in ["hall", "Küche"] {
            let wind = Wind { clock: clock.to_owned(), turns: 3 };
            let wound: pintle::Result<serde_json::Value> = connection.request("clock/wind", wind).await;
            match named {
                true => assert_eq!(wound.unwrap()["wound"], 3),
                false => assert!(wound.unwrap_err().to_string().contains("`Mcp-Name` header is missing")),
            }
        }
        connection.close().await;
    }
}

#[tokio::test]
async fn a_handler_that_is_taken_is_refused_with_the_name_of_the_extension() {
    let (seen, _ticks) = tokio::sync::mpsc::channel(8);
    let client = Client::new("c", "0")
        .on_notification("notifications/clock/tick", |_: Report<Tick>| {})
        .with(Ticks { seen, named: true });
    let refused = client.connect(server().in_process().unwrap()).await.unwrap_err().to_string();
    assert!(
        refused.contains("com.example/clock") && refused.contains("notifications/clock/tick"),
        "{refused}"
    );
    let protocol = Client::new("c", "0").on_notification("notifications/progress", |_: Report<Tick>| {});
    let refused = protocol.connect(server().in_process().unwrap()).await.unwrap_err().to_string();
    assert!(refused.contains("one of the protocol"), "{refused}");
}

/// An extension with a method that servers call in a session, and a layer that sees the calls of the client.
struct Wardrobe {
    sent: Arc<Mutex<Vec<String>>>,
}

#[derive(serde::Deserialize, serde::Serialize)]
struct Coat {
    number: u32,
}

impl ClientExtension for Wardrobe {
    fn name(&self) -> &str {
        "com.example/wardrobe"
    }

    fn install(self, wardrobe: ClientInstallation) -> ClientInstallation {
        let layer = around(move |cx: ClientCx, next: Next| {
            if cx.direction() == Direction::Out {
                self.sent.lock().unwrap().push(cx.method().to_owned());
            }
            next.run(cx)
        });
        wardrobe
            .method("wardrobe/fetch", |question: Question<Coat>| async move {
                Ok(json!({ "color": format!("of number {}", question.number) }))
            })
            .layer(&layer)
    }
}

#[tokio::test]
async fn an_extension_answers_a_method_of_servers_and_has_a_layer() {
    let server = Server::new("s", "0").tool(tool("leave", |cx: Cx| async move {
        let coat: serde_json::Value = cx.request("wardrobe/fetch", Coat { number: 7 }).await?;
        Ok::<_, ToolError>(coat["color"].as_str().unwrap_or_default().to_owned())
    }));
    let sent = Arc::<Mutex<Vec<String>>>::default();
    let client = Client::new("c", "0").mode(Mode::Legacy);
    let with = client.clone().with(Wardrobe { sent: sent.clone() });
    let connection = with.connect(server.in_process().unwrap()).await.unwrap();
    assert_eq!(connection.call_tool("leave", ()).await.unwrap().text(), "of number 7");
    assert!(sent.lock().unwrap().contains(&"tools/call".to_owned()), "{sent:?}");
    // Without the extension there is no such method.
    let connection = client.connect(server.in_process().unwrap()).await.unwrap();
    let refused = connection.call_tool("leave", ()).await.unwrap();
    assert!(refused.is_error == Some(true), "{}", refused.text());
    // A method that is taken is refused with the name of the extension.
    let taken = Client::new("c", "0")
        .method("wardrobe/fetch", |_: Question<Coat>| async { Ok(json!({})) })
        .with(Wardrobe { sent });
    let refused = taken.connect(server.in_process().unwrap()).await.unwrap_err().to_string();
    assert!(refused.contains("wardrobe/fetch"), "{refused}");
}
