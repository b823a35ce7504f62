//! tower-mcp's client of the comparison: `tower-client http <url> <calls> <in flight> [session]`, or
//! `tower-client stdio <calls> <in flight> [session] <server>…`.

#[path = "../../../../src/drive.rs"]
mod drive;

use std::sync::Arc;

use tower_mcp::{
    BoxError,
    client::{HttpClientTransport, McpClient, StdioClientTransport},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let job = drive::Job::read(std::env::args().skip(1))?;
    let client = if let Some(url) = job.url() {
        McpClient::connect(HttpClientTransport::new(url)).await?
    } else {
        let (program, arguments) = job.program();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        McpClient::connect(StdioClientTransport::spawn(program, &arguments).await?).await?
    };
    if job.session() {
        client.initialize("bench", "1.0.0").await?;
    } else {
        client.discover("bench", "1.0.0").await?;
    }
    let client = Arc::new(client);
    let echo = move |text: &'static str| {
        let client = client.clone();
        async move { client.call_tool_text("echo", serde_json::json!({ "text": text })).await }
    };
    println!("{}", job.run(echo).await?);
    Ok(())
}
