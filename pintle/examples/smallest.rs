//! The smallest server: one tool over stdio.
//!
//! Configure your host to run `cargo run --example smallest`, or try it by hand: start it, paste the line below and press
//! return.
//!
//! ```json
//! {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"me","version":"1"}}}
//! ```

/// Add two integers.
#[pintle::tool]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> pintle::Result<()> {
    pintle::Server::new("adder", "1.0.0").tools(pintle::tools![add]).serve_stdio().await
}
