//! Tests of a server: its functions alone, then the server as a client sees it, in every revision.
//!
//! Client and server run in one process, without a child process or a port. `cargo test --example
//! testing_your_server --features client` runs the tests; `cargo run --example testing_your_server --features client` serves.

use pintle::{
    Server,
    server::{Cx, ToolError},
};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Seat {
    /// Window or aisle?
    window: bool,
}

/// Book a flight.
#[pintle::tool(open_world = false)]
async fn book(
    cx: Cx,
    /// The city.
    #[arg(min_length = 3)]
    to: String,
) -> Result<String, ToolError> {
    let Some(seat) = cx.elicit::<Seat>("seat", "Where would you like to sit?").await?.accepted() else {
        return Err(ToolError::new("the user did not choose a seat"));
    };
    Ok(receipt(&to, &seat))
}

fn receipt(to: &str, seat: &Seat) -> String {
    format!("to {to}, {}", if seat.window { "at the window" } else { "on the aisle" })
}

/// Creates the server, for `main` and the tests.
fn server() -> Server {
    Server::new("flights", "1.0.0").tools(pintle::tools![book])
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> pintle::Result<()> {
    server().serve_stdio().await
}

#[cfg(test)]
mod tests {
    use pintle::client::Answer;
    use pintle_testing::{CatalogueSnapshot, TestClient};
    use serde_json::json;

    use super::*;

    /// Tests a function without the protocol.
    #[test]
    fn a_receipt_names_place_and_seat() {
        assert_eq!(receipt("Bergen", &Seat { window: true }), "to Bergen, at the window");
    }

    /// Finds registration errors.
    #[test]
    fn the_server_is_sound() {
        server().check().unwrap();
        assert!(server().lint().is_empty());
    }

    /// Answers input requests from a script, with and without a session.
    #[tokio::test]
    async fn a_seat_is_asked_for_and_booked() {
        let client = TestClient::new().form("Where would you", Answer::accept(json!({ "window": false })));
        client
            .both_eras(&server(), async |flights| {
                let call = flights.tool("book", json!({ "to": "Bergen" })).await;
                assert_eq!(call.text(), "to Bergen, on the aisle");
            })
            .await;
    }

    #[tokio::test]
    async fn nothing_is_booked_without_a_seat() {
        let client = TestClient::new().form("Where would you", Answer::Decline);
        client
            .both_eras(&server(), async |flights| {
                assert!(flights.tool("book", json!({ "to": "Bergen" })).await.is_error());
            })
            .await;
    }

    /// Tests an error text, which the model reads.
    #[tokio::test]
    async fn a_place_that_is_none_is_explained() {
        let flights = TestClient::new().connect(&server()).await;
        let call = flights.tool("book", json!({ "to": "B" })).await;
        assert!(call.is_error() && call.text().contains("`/to`"), "{call:?}");
        flights.finish().await;
    }

    /// Compares a snapshot of the catalogue. For more tools, keep it in a file with `assert_file`.
    #[tokio::test]
    async fn the_catalogue_is_this() {
        CatalogueSnapshot::of(&server()).await.assert_is(
            r#"
server flights 1.0.0

tool book
  | Book a flight.
  annotations: {"openWorldHint": false}
  inputSchema: {
    "properties": {"to": {"description": "The city.", "minLength": 3, "type": "string"}},
    "required": ["to"],
    "title": "book",
    "type": "object"
  }
"#,
        );
    }
}
