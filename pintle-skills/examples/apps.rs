//! A server with an app: an HTML page that hosts show with the results of a tool. Other clients get a text.
//!
//! ```sh
//! cargo run --package pintle-skills --example apps
//! ```

use std::time::{SystemTime, UNIX_EPOCH};

use pintle::{
    Server,
    server::{Cx, tool},
    types::schema::{CallToolResult, ContentBlock},
};
use pintle_skills::apps::{self, App, Apps};
use serde_json::json;

/// Good enough for a game.
fn eyes() -> u32 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.subsec_micros() % 6 + 1)
}

/// The data of the page is in the structured content, and the text is for the model, or for a client that shows no pages.
async fn roll(cx: Cx) -> CallToolResult {
    let eyes = eyes();
    let text = match apps::client_renders(&cx) {
        true => format!("The user sees the dice: {eyes}."),
        false => format!("The dice shows {eyes}: {}", "●".repeat(eyes as usize)),
    };
    let mut result = CallToolResult::new(vec![ContentBlock::text(text)]);
    result.structured_content = Some(json!({ "eyes": eyes }));
    result
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> pintle::Result<()> {
    // The page loads nothing, so no origin is allowed.
    let dice = App::new("ui://dice/table", "dice", include_str!("app.html"))
        .title("Dice")
        .border(true)
        .tool(tool("roll", roll).description("Rolls a dice, and shows it to the user."))
        .app_tool(tool("roll_again", roll).description("Rolls the dice again."));
    let server = Server::new("dice", "1.0.0").with(Apps::new().app(dice));
    server.serve_stdio().await?;
    Ok(())
}
