//! A gateway: several servers as one, whatever their revisions. Each has a name, which is the prefix of its tools and prompts.
//!
//! ```sh
//! cargo build --examples
//! cargo run --example gateway --features child,client -- adder=target/debug/examples/smallest notes=target/debug/examples/notes
//! ```

use std::env;

use pintle::{
    Client, Server,
    server::{Prefix, tool},
    transport::Child,
};
use pintle_relay::Relay;

/// Connects to a program: again for each client that needs a connection of its own, and after the program has ended.
async fn relay(program: String) -> pintle::Result<Relay> {
    let start = move || std::future::ready(Child::command(&program).spawn());
    Relay::connect(Client::new("gateway", "1.0.0"), start).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut names, mut gateway) = (Vec::new(), Server::new("gateway", "1.0.0"));
    for word in env::args().skip(1) {
        let (name, program) = word.split_once('=').ok_or("usage: gateway NAME=PROGRAM...")?;
        // Resources too: two servers may have the same URIs.
        gateway = gateway.mount(Prefix::new(name).uris(), relay(program.to_owned()).await?);
        names.push(name.to_owned());
    }
    // What the gateway offers itself is beside that.
    let names = names.join(", ");
    let servers = tool("servers", move || std::future::ready(names.clone()));
    gateway
        .tool(servers.description("Lists the servers behind the gateway.").read_only())
        .serve_stdio()
        .await?;
    Ok(())
}
