//! A client that answers requests from servers: sampling, forms and roots.
//!
//! Registering a handler declares the capability, and servers request nothing else. The same handlers answer servers of
//! every revision.
//!
//! ```sh
//! cargo build --example notes
//! cargo run --example client_with_sampling --features child,client -- target/debug/examples/notes
//! ```

#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::env;

use pintle::{
    Client,
    client::Answer,
    transport::Child,
    types::schema::{ContentBlock, CreateMessageParams, CreateMessageResult},
};
use serde_json::json;

/// A placeholder for a call of your model.
async fn model(request: &CreateMessageParams) -> String {
    let detail = request.messages.iter().flat_map(|message| message.content.as_slice());
    let words: Vec<_> = detail.filter_map(ContentBlock::as_text).flat_map(str::split_whitespace).collect();
    format!("{} words, the last of them {}", words.len(), words.last().unwrap_or(&"none"))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let command = env::args().nth(1).ok_or("give the command of the `notes` example")?;
    let client = Client::new("demo", "0.1.0")
        .on_sample(|question| async move {
            // Show the user the request and the server that sent it.
            let server = question.server.as_ref().map_or("a server", |server| &server.name);
            println!("{server} wants to know: {}", question.system_prompt.as_deref().unwrap_or("something"));
            CreateMessageResult::new("a-model", ContentBlock::text(model(&question).await))
        })
        .on_elicit(|question| async move {
            // Show `question.message` and the fields of `question.requested_schema`, and offer to decline.
            println!("{}", question.message);
            Answer::accept(json!({ "overwrite": true }))
        })
        .roots([env::current_dir()?]);
    let server = client.connect(Child::spawn(command, [] as [&str; 0])?).await?;

    for text in ["Buy bread.", "Buy bread and butter."] {
        // The second time the note exists, and the server asks whether to overwrite it.
        let result = server.call_tool("save", json!({ "title": "shopping", "text": text })).await?;
        println!("{}", result.text());
    }
    // The server has no model: it asks the client's.
    let result = server.call_tool("digest", json!({ "title": "shopping" })).await?;
    println!("{}", result.text());
    server.close().await;
    Ok(())
}
