//! Targets and settings that change while clients use them.

mod auth;
mod connections;
mod offers;
mod rates;
mod secrets;
mod settings;

use pintle::Connection;

/// The limit of rounds in which a client waits for a change by calling and listing.
const MAX_ROUNDS: usize = 100_000;

/// Calls a tool and lists the tools until a call or the list is as expected. No call may fail and no list be empty. Returns the texts of the calls.
async fn used_until(
    client: &Connection,
    tool: &str,
    until: impl Fn(&str, &[pintle::types::schema::Tool]) -> bool,
) -> Vec<String> {
    let mut texts = Vec::new();
    for _ in 0..MAX_ROUNDS {
        let text = client.call_tool(tool, ()).await.unwrap().text();
        let tools = client.tools().await.unwrap();
        assert!(tools.iter().any(|listed| listed.name == tool), "{tools:?}");
        let is_over = until(&text, &tools);
        texts.push(text);
        if is_over {
            return texts;
        }
    }
    panic!("nothing has changed in {MAX_ROUNDS} rounds: {:?}", texts.last());
}
