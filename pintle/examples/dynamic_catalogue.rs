//! A catalogue that changes while the server runs: a tool that adds tools.
//!
//! Clients that asked to be told hear of the change once, however much was added. A [`Server`] is a handle: clones are
//! the same server, and anything may be added or taken away through any of them, from any task.

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
    // An error is a value: here, that the server can do this already. `?` tells the model.
    cx.server().add_tool(greet_in(language))?;
    Ok(format!("there is a tool `{}` now", language.tool_name()))
}

/// Forget a language.
#[pintle::tool(idempotent, open_world = false)]
async fn forget(cx: Cx, language: Language) -> &'static str {
    // Calls of that tool that run already come to their end.
    if cx.server().remove_tool(language.tool_name()) { "forgotten" } else { "never learnt" }
}

#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// Whom to greet.
    name: String,
}

/// A tool that is made while the server runs: without an attribute, because its name is known only then.
fn greet_in(language: Language) -> ToolRoute {
    let greet = move |Args(Greet { name })| async move { format!("{}, {name}!", language.hello()) };
    tool(language.tool_name(), greet).description("Greet somebody.").read_only()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> pintle::Result<()> {
    // A server that starts with nothing at all and grows says `.grows()`, so that clients know to look again.
    Server::new("polyglot", "1.0.0").tools(pintle::tools![learn, forget]).serve_stdio().await
}
