//! Asks a server for everything that the matrix has: `interop-client session|stateless|auto URL|PROGRAM…`.
//! Prints a line of JSON for each cell.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "whoever starts it reads that")]

use std::{env, process::ExitCode, time::Duration};

use interop::client::{CELLS, Cell, connect};
use pintle::client::Mode;
use serde_json::json;

/// The timeout of a cell.
const TIMEOUT: Duration = Duration::from_secs(10);

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let mode = match args.first().map(String::as_str) {
        Some("session") => Mode::Legacy,
        Some("stateless") => Mode::Modern,
        Some("auto") => Mode::Auto,
        _ => {
            eprintln!("usage: interop-client session|stateless|auto URL|PROGRAM…");
            return ExitCode::from(2);
        }
    };
    let server = match connect(mode, &args[1..]).await {
        Ok(server) => server,
        Err(error) => {
            println!("{}", json!({"cell": "open", "error": error.to_string()}));
            return ExitCode::SUCCESS;
        }
    };
    println!("{}", json!({"cell": "open", "ok": server.revision().as_str()}));
    for Cell { name, ask } in CELLS {
        let line = match tokio::time::timeout(TIMEOUT, ask(&server)).await {
            Ok(Ok(result)) => json!({"cell": name, "ok": result}),
            Ok(Err(error)) => json!({"cell": name, "error": error.to_string()}),
            Err(_) => json!({"cell": name, "error": format!("nothing within {TIMEOUT:?}")}),
        };
        println!("{line}");
    }
    server.close().await;
    ExitCode::SUCCESS
}
