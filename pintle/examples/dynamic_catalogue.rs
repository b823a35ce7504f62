//! A catalogue that changes at run time: a tool that adds tools.
//!
//! Subscribed clients receive one notification for any number of changes. A [`Server`] is a handle: its clones are the same
//! server, and entries can be added or removed through any of them, from any task.

use pintle::{
    Server,
    server::{Args, Cx, ToolError, ToolRoute, tool},
};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Language {
    Norwegian,
    Swahili,
    Welsh,
}

impl Language {
    fn tool_name(self) -> &'static str {
        match self {
            Self::Norwegian => "greet_in_norwegian",
            Self::Swahili => "greet_in_swahili",
            Self::Welsh => "greet_in_welsh",
        }
    }

    fn hello(self) -> &'static str {
        match self {
            Self::Norwegian => "Hei",
            Self::Swahili => "Jambo",
            Self::Welsh => "Helo",
        }
    }
}

/// Learn to greet in another language.
#[pintle::tool(destructive = false, open_world = false)]
async fn learn(cx: Cx, language: Language) -> Result<String, ToolError> {
    // Fails if the tool exists already. `?` returns the error to the model.
    cx.server().add_tool(greet_in(language))?;
    Ok(format!("there is a tool `{}` now", language.tool_name()))
}

/// Forget a language.
#[pintle::tool(idempotent, open_world = false)]
async fn forget(cx: Cx, language: Language) -> &'static str {
    // Running calls of that tool complete.
    if cx.server().remove_tool(language.tool_name()) { "forgotten" } else { "never learnt" }
}

#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// Whom to greet.
    name: String,
}

/// Creates a tool without an attribute, because its name is known only at run time.
fn greet_in(language: Language) -> ToolRoute {
    let greet = move |Args(Greet { name })| async move { format!("{}, {name}!", language.hello()) };
    tool(language.tool_name(), greet).description("Greet somebody.").read_only()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> pintle::Result<()> {
    // A server that starts without any entry needs `.may_change()`, so that clients expect changes.
    Server::new("polyglot", "1.0.0").tools(pintle::tools![learn, forget]).serve_stdio().await
}
