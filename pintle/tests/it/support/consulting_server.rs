//! A server that asks the user and the model of its client, as tasks where the client runs them.

use std::time::Duration;

use pintle::{
    Server,
    server::{Cx, ToolError, tool},
    types::schema::{ContentBlock, CreateMessageParams, Role, SamplingMessage},
};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

pub(crate) fn thought() -> CreateMessageParams {
    CreateMessageParams::new(vec![SamplingMessage::new(Role::User, ContentBlock::text("Think."))], 10)
}

async fn consult(cx: Cx) -> Result<String, ToolError> {
    cx.ask_as_tasks(Duration::from_secs(60));
    let name = cx.elicit::<Name>("name", "Who?").await?.accepted().ok_or("declined")?.name;
    let thought = cx.sample("thought", thought()).await?.text();
    Ok(format!("{name}: {thought}"))
}

/// Returns a server with the tool `consult`.
pub(crate) fn server() -> Server {
    Server::new("s", "0").tool(tool("consult", consult))
}
