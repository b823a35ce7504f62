//! A client that starts a server, lists its tools, and calls one of them.
//!
//! ```sh
//! cargo run --example client --features child,client -- uvx mcp-server-time
//! cargo run --example client --features child,client -- uvx mcp-server-time -- get_current_time '{"timezone": "Europe/Oslo"}'
//! ```

#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::env;

use pintle::{Client, Error, transport::Child};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let mut parts = arguments.split(|argument| argument == "--");
    let Some([program, rest @ ..]) = parts.next() else {
        return Err("give the command of a server".into());
    };

    // `connect` negotiates the protocol revision; nothing below depends on it.
    let server = Client::new("demo", "0.1.0").connect(Child::spawn(program, rest)?).await?;
    let name = server.server_info().map_or_else(|| program.clone(), |info| info.name.clone());
    println!("{name} speaks {}", server.revision());

    for tool in server.tools().await? {
        println!("  {}: {}", tool.name, tool.description.unwrap_or_default());
    }

    if let Some([tool, arguments @ ..]) = parts.next() {
        let arguments: Value = serde_json::from_str(arguments.first().map_or("{}", |text| text))?;
        let call = server.call(tool).args(arguments).on_progress(|step| println!("  ... {}", step.progress));
        match call.send().await {
            // The tool ran. The model reads whether it succeeded.
            Ok(result) => {
                println!("{}", if result.is_error == Some(true) { "it failed:" } else { "it says:" });
                println!("  {}", result.text());
            }
            // The call failed. The variant of the error tells who is at fault.
            Err(Error::Rpc(error)) => println!("the server refused: {error}"),
            Err(error) => println!("{error}"),
        }
    }
    server.close().await;
    Ok(())
}
