//! `cargo xtask rebuild`: what it costs to build the smallest server again after a change, how many crates it takes and how
//! large it is, beside the smallest of other SDKs.
//!
//! CPU time, not wall time: it depends less on what else the machine does. Three rounds in turn, the median counts. It
//! is no part of `cargo xtask test`, because it builds somebody else's SDKs.

use std::{fs, path::PathBuf, process::Command};

use crate::cargo::Failure;
use crate::page;
use crate::workspace::{pulled_in_by, root, target};

const REPEAT: &str = "cargo xtask rebuild";
const ROUNDS: usize = 3;

/// A server that adds two integers.
struct Smallest {
    name: &'static str,
    /// Lines under `[dependencies]`; `{root}` is this workspace.
    needs: &'static str,
    main: &'static str,
}

const SMALLEST: &[Smallest] = &[
    Smallest {
        name: "pintle",
        needs: "pintle = { path = \"{root}/pintle\" }\n\
                tokio = { version = \"1\", features = [\"macros\", \"rt\"] }\n",
        main: ADDER,
    },
    // Without the client and the validator that come by default.
    Smallest {
        name: "pintle-lean",
        needs: "pintle = { path = \"{root}/pintle\", default-features = false, features = [\"macros\", \"stdio\"] }\n\
                tokio = { version = \"1\", features = [\"macros\", \"rt\"] }\n",
        main: ADDER,
    },
    Smallest {
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
    Smallest {
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
    for server in SMALLEST {
        println!("building {} for the first time", server.name);
        server.write()?;
        server.build()?;
    }
    let mut spent = vec![Vec::with_capacity(ROUNDS); SMALLEST.len()];
    for round in 1..=ROUNDS {
        for (server, spent) in SMALLEST.iter().zip(&mut spent) {
            server.touch(round)?;
            let before = cpu_of_children()?;
            server.build()?;
            let seconds = cpu_of_children()? - before;
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
        let (crates, megabytes) = (server.crates()?, server.megabytes()?);
        let name = server.name;
        table.push_str(&format!(
            "| {name} | {seconds:.2} | {:.2} | {crates} | {megabytes:.1} |\n",
            seconds / theirs
        ));
    }
    println!("\n{table}");
    page::rewrite("bench/README.md", "rebuild", &table, REPEAT)
}

impl Smallest {
    fn folder(&self) -> PathBuf {
        target().join("rebuild").join(self.name)
    }

    fn write(&self) -> Result<(), Failure> {
        let needs = self.needs.replace("{root}", &root().display().to_string());
        // A workspace of its own, or cargo takes it for a lost member of ours.
        let manifest = format!(
            "[package]\nname = \"smallest-{}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n{needs}",
            self.name
        );
        let folder = self.folder();
        fs::create_dir_all(folder.join("src"))
            .and_then(|()| fs::write(folder.join("Cargo.toml"), manifest))
            .and_then(|()| fs::write(folder.join("src/main.rs"), self.main))
            .map_err(|error| Failure::new(format!("`{}`: {error}", folder.display()), REPEAT))
    }

    /// A change that every build notices, and that changes nothing.
    fn touch(&self, round: usize) -> Result<(), Failure> {
        let path = self.folder().join("src/main.rs");
        fs::write(&path, format!("{}// {round}\n", self.main))
            .map_err(|error| Failure::new(format!("`{}`: {error}", path.display()), REPEAT))
    }

    /// How many are built for it, on this system, itself not counted.
    fn crates(&self) -> Result<usize, Failure> {
        let manifest = self.folder().join("Cargo.toml");
        Ok(pulled_in_by(&format!("smallest-{}", self.name), &manifest)?.len() - 1)
    }

    /// The size of the program's file, symbols included.
    fn megabytes(&self) -> Result<f64, Failure> {
        let name = format!("release/smallest-{}{}", self.name, std::env::consts::EXE_SUFFIX);
        let path = target().join("rebuild/target").join(name);
        let size = fs::metadata(&path).map(|program| program.len() as f64 / 1e6);
        size.map_err(|error| Failure::new(format!("`{}`: {error}", path.display()), REPEAT))
    }

    fn build(&self) -> Result<(), Failure> {
        let status = Command::new("cargo")
            .args(["build", "--release", "--quiet"])
            .current_dir(self.folder())
            .env("CARGO_TARGET_DIR", target().join("rebuild/target"))
            .status()
            .map_err(|error| Failure::new(error.to_string(), REPEAT))?;
        if status.success() { Ok(()) } else { Err(Failure::new(format!("{}: {status}", self.name), REPEAT)) }
    }
}

/// Seconds of CPU that all children used that have ended, and theirs.
fn cpu_of_children() -> Result<f64, Failure> {
    let stat = fs::read_to_string("/proc/self/stat")
        .map_err(|error| Failure::new(format!("CPU time is read from /proc/self/stat: {error}"), REPEAT))?;
    spent_by_children(&stat).ok_or_else(|| Failure::new("/proc/self/stat has no such fields", REPEAT))
}

fn spent_by_children(stat: &str) -> Option<f64> {
    // The name is in parentheses and may hold anything; `cutime` and `cstime` are the 14th and 15th after it, in
    // hundredths of a second on every Linux.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(13);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / 100.0)
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
    fn the_time_of_children_is_read_past_any_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 200 0 0 11 12 1300 1400 20 0 1 0";
        assert_eq!(spent_by_children(stat), Some(27.0));
        assert_eq!(spent_by_children("7 (sh) S 1"), None);
    }

    #[test]
    fn one_odd_round_does_not_count() {
        assert_eq!(median(&mut [9.0, 1.0, 2.0]), 2.0);
    }
}
