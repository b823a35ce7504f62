//! Extensions of a client: their result types are resolved before a caller sees them.

use pintle::{
    Client, Server,
    client::{CallStart, ClientExtension, ClientInstallation, Mode, Unresolved},
    server::{Cx, Installation, IntoToolResult, Outcome, ProtocolExtension, tool},
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
        counter.result_type(RESULT_TYPE).method("tickets/redeem", |cx: Cx, ticket: JsonObject| async move {
            assert_eq!(cx.extension("com.example/tickets"), Some(&json!({"color": "red"})));
            let text = format!("redeemed {}", ticket["number"]);
            Ok::<_, RpcError>(json!({"content": [{"type": "text", "text": text}]}))
        })
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
