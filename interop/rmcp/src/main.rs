//! The matrix's server and client, by rmcp: `rmcp-peer server stdio|http`, or
//! `rmcp-peer client session|stateless|auto URL|PROGRAM…`.

mod client;
mod server;

use serde::de::DeserializeOwned;
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["server", "stdio"] => server::stdio().await,
        ["server", "http"] => server::http().await,
        ["client", era, place @ ..] => client::ask(era, place).await,
        _ => panic!("server stdio|http, or client session|stateless|auto URL|PROGRAM…"),
    }
}

/// A value of rmcp's from JSON: most of its types have no constructor that says more.
fn made<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{value}: {error}"))
}
