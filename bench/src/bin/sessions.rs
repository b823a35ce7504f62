//! The memory use of an idle session over HTTP: `sessions [n] [differing]` opens as many and says how much the process grew, for
//! each. With the second word no two clients say the same of themselves.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::time::Instant;

use bench::wire::Era;
use http::Request;
use pintle::{Server, server::tool};
use tower_service::Service as _;

/// As a desktop client introduces itself.
fn initialize(version: usize) -> String {
    let revision = Era::Session.revision();
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{"sampling":{{}},"elicitation":{{}},"roots":{{"listChanged":true}}}},"clientInfo":{{"name":"some-client","title":"Some Client","version":"1.2.{version:06}"}}}}}}"#
    )
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sessions: usize = std::env::args().nth(1).map_or(Ok(100_000), |n| n.parse())?;
    let differing = std::env::args().nth(2).is_some_and(|word| word == "differing");
    tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(open(sessions, differing))
}

async fn open(sessions: usize, differing: bool) -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::new("bench", "0").tool(tool("greet", || async { "Hello!" }));
    let mut http = server.http()?.max_sessions(sessions).max_sessions_per_address(sessions);
    let (before, start) = (resident()?, Instant::now());
    for n in 0..sessions {
        let request = Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(initialize(if differing { n } else { 0 }))?;
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
