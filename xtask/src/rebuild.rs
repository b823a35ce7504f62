//! `cargo xtask rebuild`: what it costs to build the smallest server again after a change, how many crates it takes and how
//! large it is, beside the smallest of other SDKs.
//!
//! CPU time, not wall time: it depends less on what else the machine does. Three rounds in turn, the median counts. It
//! is no part of `cargo xtask test`, because it builds somebody else's SDKs.

use crate::cargo::Failure;
use crate::page;
use crate::program::{Place, Program};
use crate::workspace::target;

const REPEAT: &str = "cargo xtask rebuild";
const ROUNDS: usize = 3;

/// Servers that add two integers.
const SMALLEST: &[Program] = &[
    Program {
        name: "pintle",
        needs: "pintle = { path = \"{root}/pintle\" }\n\
                tokio = { version = \"1\", features = [\"macros\", \"rt\"] }\n",
        main: ADDER,
    },
    // Without the validator, which is one of the default features.
    Program {
        name: "pintle-lean",
        needs: "pintle = { path = \"{root}/pintle\", default-features = false, features = [\"macros\", \"stdio\"] }\n\
                tokio = { version = \"1\", features = [\"macros\", \"rt\"] }\n",
        main: ADDER,
    },
    Program {
        name: "rmcp",
        needs: "rmcp = { version = \"=3.8.0\", features = [\"server\", \"macros\", \"schemars\", \"transport-io\"] }\n\
                tokio = { version = \"1\", features = [\"macros\", \"rt\", \"io-std\"] }\n\
                serde = { version = \"1\", features = [\"derive\"] }\n\
                schemars = \"1\"\n",
        main: r#"use rmcp::{ServerHandler, ServiceExt, handler::server::wrapper::Parameters, schemars, tool, tool_handler, tool_router};

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Add { a: i64, b: i64 }

#[derive(Clone)]
struct Adder;

#[tool_router]
impl Adder {
    #[tool(description = "Add two integers.")]
    async fn add(&self, Parameters(Add { a, b }): Parameters<Add>) -> String { (a + b).to_string() }
}

#[tool_handler]
impl ServerHandler for Adder {}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Adder.serve((tokio::io::stdin(), tokio::io::stdout())).await?.waiting().await?;
    Ok(())
}
"#,
    },
    Program {
        name: "tower-mcp",
        needs: "tower-mcp = { version = \"=0.25.0\", features = [\"protocol-2026-07-28\"] }\n\
                tokio = { version = \"1\", features = [\"macros\", \"rt\"] }\n\
                serde = { version = \"1\", features = [\"derive\"] }\n\
                schemars = \"1\"\n",
        main: r#"use tower_mcp::{BoxError, CallToolResult, McpRouter, StdioTransport, ToolBuilder};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add { a: i64, b: i64 }

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let add = ToolBuilder::new("add")
        .description("Add two integers.")
        .handler(|Add { a, b }: Add| async move { Ok(CallToolResult::text((a + b).to_string())) })
        .build();
    StdioTransport::new(McpRouter::new().server_info("adder", "1.0.0").tool(add)).run().await?;
    Ok(())
}
"#,
    },
];

const ADDER: &str = r#"/// Add two integers.
#[pintle::tool]
async fn add(a: i64, b: i64) -> i64 { a + b }

#[tokio::main(flavor = "current_thread")]
async fn main() -> pintle::Result<()> {
    pintle::Server::new("adder", "1.0.0").tools(pintle::tools![add]).serve_stdio().await
}
"#;

/// The SDK that the others are compared with.
const YARDSTICK: &str = "rmcp";

pub(crate) fn command(_: &[String]) -> Result<(), Failure> {
    let folder = target().join("rebuild");
    let place = Place { folder: &folder, target: &folder.join("target"), repeat: REPEAT };
    for server in SMALLEST {
        println!("building {} for the first time", server.name);
        server.write(place)?;
        server.build(place, &["--release"])?;
    }
    let mut spent = vec![Vec::with_capacity(ROUNDS); SMALLEST.len()];
    for round in 1..=ROUNDS {
        for (server, spent) in SMALLEST.iter().zip(&mut spent) {
            server.touch(place, round)?;
            let seconds = server.build(place, &["--release"])?;
            println!("round {round}: {:<8}{seconds:>6.2} s", server.name);
            spent.push(seconds);
        }
    }
    let medians: Vec<f64> = spent.iter_mut().map(|spent| median(spent)).collect();
    let theirs = SMALLEST.iter().zip(&medians).find(|(server, _)| server.name == YARDSTICK);
    let theirs = theirs.map_or(f64::NAN, |(_, seconds)| *seconds);
    let mut table = format!(
        "| smallest server on stdio | CPU seconds | × {YARDSTICK} | crates | size, MB |\n|---|---:|---:|---:|---:|\n"
    );
    for (server, seconds) in SMALLEST.iter().zip(&medians) {
        let (crates, megabytes) = (server.crates(place)?, server.megabytes(place)?);
        let name = server.name;
        table.push_str(&format!(
            "| {name} | {seconds:.2} | {:.2} | {crates} | {megabytes:.1} |\n",
            seconds / theirs
        ));
    }
    println!("\n{table}");
    page::rewrite("bench/README.md", "rebuild", &table, REPEAT)
}

/// Returns the middle one of some values, or NaN if there are none.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_odd_round_does_not_count() {
        assert_eq!(median(&mut [9.0, 1.0, 2.0]), 2.0);
    }
}
