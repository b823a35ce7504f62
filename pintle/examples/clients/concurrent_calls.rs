//! Two calls at the same time, each with its own answers to the server's questions.
//!
//! A host with several conversations shares one connection. A handler of the client would not know which conversation a question
//! belongs to; the handler of a call does.
//!
//! ```sh
//! cargo run --example concurrent_calls --features client,server
//! ```

#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use pintle::{
    Client, Server,
    client::Answer,
    server::{Args, Cx, ToolError, tool},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Trip {
    city: String,
}

#[derive(Deserialize, JsonSchema)]
struct Guests {
    count: u8,
}

/// Asks how many guests there are, in the middle of the call.
async fn book(cx: Cx, Args(trip): Args<Trip>) -> Result<String, ToolError> {
    cx.progress(1.0, 2.0).await;
    let guests = cx.elicit::<Guests>("guests", "For how many?").await?.accepted();
    Ok(match guests {
        Some(guests) => format!("{} for {}", trip.city, guests.count),
        None => format!("{} is not booked", trip.city),
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> pintle::Result<()> {
    let travel = Server::new("travel", "1.0.0").tool(tool("book", book).description("Book a hotel."));
    let client = Client::new("host", "0.1.0");
    // The name is the host's, so it can be trusted. Handlers, callbacks and the policy see it.
    let travel = client.connect_as("travel", travel.in_process()?).await?;

    // A handler of a call takes precedence over that of the client, and here also declares the capability.
    let ada = travel
        .call("book")
        .args(json!({ "city": "Bergen" }))
        .on_elicit(|question| async move {
            println!(
                "Ada is asked by {}: {}",
                question.connection.as_deref().unwrap_or("?"),
                question.message
            );
            Answer::accept(json!({ "count": 2 }))
        })
        .on_progress(|step| println!("Ada's call is at {}", step.progress));
    let ben = travel.call("book").args(json!({ "city": "Lerwick" })).on_elicit(|_| async { Answer::Decline });

    let (ada, ben) = tokio::join!(ada.send(), ben.send());
    println!("{}\n{}", ada?.text(), ben?.text());
    travel.close().await;
    Ok(())
}
