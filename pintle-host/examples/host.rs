//! A host of three servers: it starts them as its configuration file says, and offers their tools under one roof.
//!
//! ```sh
//! cargo run --package pintle-host --example host                # three servers of its own
//! cargo run --package pintle-host --example host -- .mcp.json   # yours
//! ```

#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::env;

use pintle::{Client, Server, server::tool};
use pintle_host::{Group, MemberState, config::ConfigFile};
use serde_json::json;

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
        match state {
            MemberState::Open(connection) => println!("{name} speaks {}", connection.revision()),
            MemberState::Closed { reason, .. } => println!("{name} is not there: {reason}"),
            _ => {}
        }
    }

    let tools = group.tools().await;
    for tool in tools.iter() {
        println!("  {}: {}", tool.name, tool.description.as_deref().unwrap_or_default());
    }
    group.close().await;
    Ok(())
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
