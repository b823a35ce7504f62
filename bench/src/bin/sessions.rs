//! What an idle session over HTTP holds: `sessions [n]` opens as many and says how much the process grew, for each.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::time::Instant;

use http::Request;
use pintle::{Server, server::tool};
use tower_service::Service as _;

/// As a desktop client introduces itself.
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"sampling":{},"elicitation":{},"roots":{"listChanged":true}},"clientInfo":{"name":"some-client","title":"Some Client","version":"1.2.3"}}}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sessions: usize = std::env::args().nth(1).map_or(Ok(100_000), |n| n.parse())?;
    tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(open(sessions))
}

async fn open(sessions: usize) -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::new("bench", "0").tool(tool("greet", || async { "Hello!" }));
    let mut http = server.http()?.max_sessions(sessions);
    let (before, start) = (resident()?, Instant::now());
    for _ in 0..sessions {
        let request = Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(INITIALIZE.to_owned())?;
        http.call(request).await?;
    }
    let took = start.elapsed();
    let each = resident()?.saturating_sub(before) / sessions.max(1);
    println!("{} sessions: {each} bytes each, opened in {took:?}", http.sessions());
    Ok(())
}

/// Bytes of this process that are in memory. Linux only.
fn resident() -> Result<usize, Box<dyn std::error::Error>> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    Ok(pages.split(' ').nth(1).ok_or("no second field in statm")?.parse::<usize>()? * 4096)
}
