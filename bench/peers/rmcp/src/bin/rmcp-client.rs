//! rmcp's client of the comparison: `rmcp-client http <url> <calls> <in flight> [session]`, or
//! `rmcp-client stdio <calls> <in flight> [session] <server>…`.

#[path = "../../../../src/drive.rs"]
mod drive;

use rmcp::{
    model::{CallToolRequestParams, ProtocolVersion},
    service::{ClientLifecycleMode, ClientServiceExt},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Map, Value};
use tokio::process::Command;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let job = drive::Job::read(std::env::args().skip(1))?;
    let lifecycle = if job.session() {
        ClientLifecycleMode::Initialize
    } else {
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
    };
    let server = if let Some(url) = job.url() {
        ().serve_with_lifecycle(StreamableHttpClientTransport::from_uri(url), lifecycle).await?
    } else {
        let (program, arguments) = job.program();
        let mut command = Command::new(program);
        command.args(arguments);
        ().serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle).await?
    };
    let peer = server.peer().clone();
    let echo = move |text: &'static str| {
        let peer = peer.clone();
        async move {
            let arguments = Map::from_iter([("text".to_owned(), Value::from(text))]);
            let result = peer.call_tool(CallToolRequestParams::new("echo").with_arguments(arguments)).await?;
            let text = result.content.into_iter().next().and_then(|block| block.as_text().cloned());
            Ok::<_, rmcp::ServiceError>(text.map(|text| text.text).unwrap_or_default())
        }
    };
    println!("{}", job.run(echo).await?);
    Ok(())
}
