//! The message log: every message of a client in a file, without secrets.
//!
//! `cargo run --example message_log --features client -- messages.jsonl` writes one line of JSON for each message, and prints what it wrote.
//! `Server::message_log` does the same for a server, on every transport.

#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use pintle::{
    Client, Server,
    client::Answer,
    message_log::{MessageFile, MessageLog, Redactor},
    server::{Cx, ToolError, tool},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
struct Pin {
    pin: String,
}

async fn pay(cx: Cx) -> Result<&'static str, ToolError> {
    let pin = cx.elicit::<Pin>("pin", "Your PIN?").await?.accepted();
    Ok(if pin.is_some_and(|answer| answer.pin == "4711") { "paid" } else { "not paid" })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "messages.jsonl".to_owned());
    // Created with mode 0600. A thread writes it, so a slow disk delays nobody.
    let file = MessageFile::open(&path)?;
    // Answers of the user, states and tokens are redacted by default; arguments and other members are if you say so.
    let log = MessageLog::to_file(&file).redactor(Redactor::new().member("iban"));

    let server = Server::new("bank", "1.0.0").tool(tool("pay", pay));
    let client = Client::new("demo", "0.1.0")
        .on_elicit(|_| async { Answer::accept(json!({"pin": "4711"})) })
        .message_log(log);
    let connection = client.connect(server.in_process()?).await?;
    let paid = connection.call_tool("pay", json!({"to": "Ada", "iban": "DE02120300000000202051"})).await?;
    println!("{}", paid.text());
    connection.close().await;

    // What is written before the program ends.
    file.flush().await;
    for line in std::fs::read_to_string(&path)?.lines() {
        let record: Value = serde_json::from_str(line)?;
        let direction = record["direction"].as_str().unwrap_or_default();
        println!("{direction}: {}", record["message"]["method"].as_str().unwrap_or("response"));
    }
    Ok(())
}
