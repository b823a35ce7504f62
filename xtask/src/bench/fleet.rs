//! `cargo xtask bench --fleet`: what sharing state in a Redis costs, beside memory, and beside the event store of FastMCP.

use std::fs;
use std::io;
use std::process::Command;

use crate::cargo::{Cargo, Failure};
use crate::fleet::RedisProcess;
use crate::page;
use crate::pip;
use crate::workspace::{built, root, target};

const REPEAT: &str = "cargo xtask bench --fleet";

/// The row of FastMCP where it cannot be installed.
const EARLIER: &str =
    "| the same in FastMCP's event store, not measured in this run: a figure of another machine | 1,069 |\n";

/// Measures, and rewrites the tables in the page.
pub(super) fn command() -> Result<(), Failure> {
    Cargo::new("build --quiet --release --package bench --bin fleet").run()?;
    let failure = |what: String| Failure::new(what, REPEAT);
    let folder = target().join("bench").join("fleet");
    fs::create_dir_all(&folder).map_err(|error| failure(error.to_string()))?;
    let redis = RedisProcess::start(&folder).map_err(|error| failure(error.to_string()))?;
    let output = Command::new(built("release", "fleet")).arg(redis.url()).output();
    let output = output.map_err(|error| failure(error.to_string()))?;
    if !output.status.success() {
        return Err(failure(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let mut tables = String::from_utf8_lossy(&output.stdout).into_owned();
    match fastmcp(redis.url()) {
        Ok(events) => tables.push_str(&format!("| the same in FastMCP's event store | {events} |\n")),
        Err(error) => {
            eprintln!("FastMCP's event store could not be measured: {error}");
            tables.push_str(EARLIER);
        }
    }
    print!("{tables}");
    page::rewrite("bench/README.md", "fleet", &tables, REPEAT)
}

/// Returns the events that the event store of FastMCP logs per second.
fn fastmcp(redis: &str) -> io::Result<String> {
    let place = target().join("bench").join("peers").join("fastmcp-redis");
    pip::install(&["bench/peers/fastmcp/requirements.txt"], &place)?;
    let mut python = Command::new(place.join("venv/bin/python"));
    python.arg(root().join("bench/peers/fastmcp/events.py")).arg(redis).args(["20000", "64"]);
    let output = python.output()?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(io::Error::other(format!("`events.py`: {}", output.status))),
    }
}
