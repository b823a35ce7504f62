//! Tools from definitions: a server whose tools are described by data, and changed all at once while it runs.
//!
//! `ToolRoute::of` takes a definition as it is on the wire, and a handler over the arguments as they came. `reload` replaces
//! some tools in one step: clients see the old list or the new one, and are notified once.

use pintle::{
    Server,
    server::{Arguments, CatalogueEdits, Cx, ToolError, ToolRoute},
    types::schema::Tool,
};

/// What a program would read from a file or a database.
const DEFINITIONS: &str = r#"[
    {
        "name": "lamp",
        "description": "Switch a lamp.",
        "inputSchema": {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]},
        "annotations": {"readOnlyHint": false, "destructiveHint": false, "idempotentHint": true},
        "com.example/room": "kitchen"
    },
    {
        "name": "blinds",
        "description": "Move the blinds.",
        "inputSchema": {"type": "object", "properties": {"percent": {"type": "integer", "minimum": 0, "maximum": 100}}}
    }
]"#;

/// Makes a tool of a definition. The arguments were validated against its schema.
fn device(tool: Tool) -> ToolRoute {
    let name = tool.name.clone();
    let act = move |Arguments(arguments)| {
        let done = format!("{name}: {}", arguments.as_str());
        async move { done }
    };
    ToolRoute::of(tool, act).prefix("home_")
}

/// Replace the blinds by curtains.
#[pintle::tool]
async fn reload(cx: Cx) -> Result<&'static str, ToolError> {
    let curtains: Tool = serde_json::from_str(
        r#"{"name": "curtains", "description": "Draw the curtains.", "inputSchema": {"type": "object"}}"#,
    )?;
    cx.server().apply(CatalogueEdits::new().remove_tool("home_blinds").put(device(curtains)))?;
    Ok("done")
}

/// Add up all numbers below a limit, the slow way: it is not `async`, so it runs on a thread of its own.
#[pintle::tool(read_only, strict)]
fn add_up(cx: Cx, below: u64) -> u64 {
    (0..below).take_while(|_| !cx.is_cancelled()).sum()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let devices: Vec<Tool> = serde_json::from_str(DEFINITIONS)?;
    let server = Server::new("home", "1.0.0")
        .tools(devices.into_iter().map(device))
        .tools(pintle::tools![reload, add_up]);
    Ok(server.serve_stdio().await?)
}
