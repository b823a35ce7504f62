//! How to test a server: its functions by themselves, then the server as a client sees it, in every revision.
//!
//! Nothing is started and no port is opened: client and server are two ends of one process. `cargo test --example
//! testing_your_server` runs the tests; `cargo run --example testing_your_server` serves.

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
async fn book(cx: Cx, #[arg(min_length = 3)] to: String) -> Result<String, ToolError> {
    let Some(seat) = cx.elicit::<Seat>("seat", "Where would you like to sit?").await?.accepted() else {
        return Err(ToolError::new("the user did not choose a seat"));
    };
    Ok(receipt(&to, &seat))
}

fn receipt(to: &str, seat: &Seat) -> String {
    format!("to {to}, {}", if seat.window { "at the window" } else { "on the aisle" })
}

/// The server, apart from how it is served: tests and `main` use the same.
fn server() -> Server {
    Server::new("flights", "1.0.0").tools(pintle::tools![book])
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> pintle::Result<()> {
    server().serve_stdio().await
}

#[cfg(test)]
mod tests {
    use pintle::{
        Client,
        client::{Answer, Mode},
    };
    use serde_json::json;

    use super::*;

    /// What needs no protocol is tested without.
    #[test]
    fn a_receipt_names_place_and_seat() {
        assert_eq!(receipt("Bergen", &Seat { window: true }), "to Bergen, at the window");
    }

    /// What is wrong with a server is found before anybody connects.
    #[test]
    fn the_server_is_sound() {
        assert!(server().check().is_ok());
        assert!(server().lint().is_empty());
    }

    /// Once with a session, once without: the same words for both.
    #[tokio::test]
    async fn a_seat_is_asked_for_and_booked() {
        let client =
            Client::new("test", "0").on_elicit(|_| async { Answer::accept(json!({ "window": false })) });
        for mode in [Mode::Legacy, Mode::Modern] {
            let client = client.clone().mode(mode);
            let flights = client.connect(server().in_process().unwrap()).await.unwrap();
            let result = flights.call_tool("book", json!({ "to": "Bergen" })).await.unwrap();
            assert_eq!(result.content[0].as_text(), Some("to Bergen, on the aisle"));
        }
    }

    /// The model reads this and tries again, so it is worth a test.
    #[tokio::test]
    async fn a_place_that_is_none_is_explained() {
        let flights = Client::new("test", "0").connect(server().in_process().unwrap()).await.unwrap();
        let result = flights.call_tool("book", json!({ "to": "B" })).await.unwrap();
        assert_eq!(result.is_error, Some(true));
        assert!(result.content[0].as_text().unwrap().contains("`/to`"), "{result:?}");
    }
}
