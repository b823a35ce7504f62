//! A host of three servers: it starts them as its configuration file says, offers their tools to a model, and runs what it calls.
//!
//! ```sh
//! cargo run --package pintle-host --example host                # three servers of its own
//! cargo run --package pintle-host --example host -- .mcp.json   # yours
//! ```

#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::env;

use pintle::{Client, Server, server::tool};
use pintle_host::{
    Group,
    config::ConfigFile,
    model::{ModelApi, ModelTools},
};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let servers = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", name] => return Ok(server(name).serve_stdio().await?),
        [file] => ConfigFile::read(file)?,
        _ => ConfigFile::parse("example.json", &example()?)?,
    };

    let group = Group::open(&Client::new("host", "0.1.0"), &servers).await?;
    for (name, state) in group.members() {
        println!("{name} is {state}");
    }

    let tools = group.tools().await;
    for tool in tools.iter() {
        println!("  {}: {}", tool.name, tool.description.as_deref().unwrap_or_default());
    }

    // One turn with a model. Here it is one that always does the same; yours is at the other end of an HTTP request.
    let tools = ModelTools::new(ModelApi::Anthropic, tools.iter());
    let mut messages = vec![json!({"role": "user", "content": "What time is it?"})];
    let response = model(&json!({"model": "..", "tools": tools.to_json(), "messages": messages}));
    messages.push(json!({"role": "assistant", "content": response["content"]}));
    let mut results = Vec::new();
    for call in tools.calls(&response) {
        let result = group.run(&call).await;
        println!("the model calls {}: {}", call.name, result.text());
        results.push((call, result));
    }
    messages.extend(tools.results(&results));
    println!("the next request has {} messages", messages.len());

    group.close().await;
    Ok(())
}

/// A model that calls the first tool, and one that does not exist.
fn model(request: &Value) -> Value {
    let name = &request["tools"][0]["name"];
    let call = |id: &str, name: &Value| json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    json!({"content": [call("1", name), call("2", &json!("clock__nwo"))]})
}

/// Three servers that are this program, and one that does not exist: the others are not affected.
fn example() -> Result<String, std::io::Error> {
    let program = env::current_exe()?;
    let entry = |name: &str| json!({"command": program, "args": ["serve", name]});
    let servers = json!({
        "clock": entry("clock"),
        "dice": entry("dice"),
        "notes": entry("notes"),
        "missing": {"command": "/no/such/program"},
    });
    Ok(json!({"mcpServers": servers}).to_string())
}

fn server(name: &str) -> Server {
    let server = Server::new(name, "1.0.0");
    match name {
        "clock" => server.tool(tool("now", || async { "noon" }).description("The time.")),
        "dice" => server.tool(tool("roll", || async { 4 }).description("A number from 1 to 6.")),
        _ => server.tool(tool("list", || async { "buy bread" }).description("The notes.")),
    }
}
