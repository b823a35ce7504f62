//! A call of a tool with a typed argument: read by the handler itself, by the SDK, and with a schema that asks for
//! more than the type.

use pintle::{
    Server,
    server::{Cx, tool},
};

use crate::{
    protocol::{Case, session_call},
    server::calls,
};

/// All of them.
pub const CASES: &[Case] = &[
    Case { name: "call typed, read by hand", run: |n| calls(n, &by_hand(), 1, &session_call("hello")) },
    Case {
        name: "call typed",
        run: |n| {
            calls(n, &Server::new("bench", "1.0.0").tools(pintle::tools![plain]), 1, &session_call("hello"))
        },
    },
    Case {
        name: "call typed, checked",
        run: |n| {
            calls(n, &Server::new("bench", "1.0.0").tools(pintle::tools![bounded]), 1, &session_call("hello"))
        },
    },
];

#[derive(serde::Deserialize)]
struct Echo {
    text: String,
}

/// A tool without a schema: nothing is known of its arguments, so nothing can be checked.
fn by_hand() -> Server {
    let echo = |cx: Cx| async move {
        let arguments = cx.params().get("arguments").unwrap_or("{}");
        serde_json::from_str(arguments).map(|Echo { text }| text)
    };
    Server::new("bench", "1.0.0").tool(tool("echo", echo))
}

/// A tool whose schema expresses no more than its type.
#[pintle::tool(name = "echo")]
async fn plain(text: String) -> String {
    text
}

/// A tool whose schema expresses more than its type.
#[pintle::tool(name = "echo")]
async fn bounded(#[arg(max_length = 1000)] text: String) -> String {
    text
}
