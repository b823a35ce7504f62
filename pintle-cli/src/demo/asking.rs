//! Tools with input requests: a form, a page, sampling and roots.

use pintle::{
    Server,
    server::{Cx, State, ToolError, tool},
    types::schema::{ContentBlock, CreateMessageParams, Role, SamplingMessage},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Harbour;

#[derive(Deserialize, JsonSchema)]
struct Stay {
    /// The name of the boat.
    boat: String,
    /// How many nights.
    #[schemars(range(min = 1, max = 14))]
    nights: u8,
}

pub(super) fn add(server: Server) -> Server {
    server
        .tool(tool("berth", berth).description("Reserves a berth.").destructive(false).asks::<Stay>())
        .tool(tool("customs", customs).description("Clears customs.").destructive(false))
}

async fn berth(cx: Cx, State(harbour): State<Harbour>) -> Result<String, ToolError> {
    harbour.begin_asking();
    // Without a session, everything but `once` runs again after the question.
    let number = cx.once("reserve", async { harbour.reserve() }).await?;
    let asked = cx.elicit::<Stay>("stay", "Who comes, and for how long?").await?;
    let Some(stay) = asked.accepted() else { return Ok("The berth stays free.".to_owned()) };
    Ok(format!("Berth {number} for the {}, {} nights.", stay.boat, stay.nights))
}

async fn customs(cx: Cx) -> Result<String, ToolError> {
    let (agreed, written, places) = tokio::join!(
        cx.elicit_url("duty", "Please pay the duty.", "https://example.com/duty/7"),
        cx.sample("goods", request("Describe a hold of salted cod in five words.")),
        cx.roots(),
    );
    let written = written?.content.into_vec();
    let goods: String = written.iter().filter_map(ContentBlock::as_text).collect();
    let duty = if agreed? { "the page is open" } else { "not paid" };
    Ok(format!("Goods: {goods} Places: {}. Duty: {duty}.", places?.len()))
}

fn request(text: &str) -> CreateMessageParams {
    CreateMessageParams::new(vec![SamplingMessage::new(Role::User, ContentBlock::text(text))], 40)
}
