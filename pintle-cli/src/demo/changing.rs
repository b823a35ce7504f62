//! Tools that change the catalogue and a resource.

use pintle::{
    Server,
    server::{Args, Cx, State, ToolError, tool},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Harbour, resources::NOTICE};

#[derive(Deserialize, JsonSchema)]
struct Notice {
    /// The text of the notice.
    text: String,
}

pub(super) fn add(server: Server) -> Server {
    server.tool(tool("post", post).description("Posts a notice.").idempotent()).tool(
        tool("season", season).description("Opens the season: there will be a regatta.").destructive(false),
    )
}

async fn post(cx: Cx, State(harbour): State<Harbour>, Args(Notice { text }): Args<Notice>) -> &'static str {
    harbour.post(text);
    cx.server().resource_updated(NOTICE);
    "Posted."
}

async fn season(cx: Cx) -> Result<&'static str, ToolError> {
    // The tool exists already if the season was opened before.
    cx.server().remove_tool("regatta");
    cx.server()
        .add_tool(tool("regatta", || async { "The Tern wins." }).description("Who wins the regatta."))?;
    Ok("The season is open.")
}
