//! `cargo xtask bench --command`: the size of the `pintle` command, and what one of its calls costs beside one of curl.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::cargo::Failure;
use crate::dist;
use crate::page;
use crate::process::Process;
use crate::workspace::{built, target};

const REPEAT: &str = "cargo xtask bench --command";
/// The limit of the stripped program.
const MAX_BYTES: u64 = 15_000_000;
/// The goal of `pintle ls` beside one call of curl.
const GOAL: f64 = 3.0;
/// Each round has a number of processes of each: the system counts in hundredths of a second.
const ROUNDS: usize = 10;
const PROCESSES: usize = 20;
const START: Duration = Duration::from_secs(30);

/// A list of tools without a session.
const REQUEST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"curl","version":"8"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const HEADERS: [&str; 4] = [
    "content-type: application/json",
    "accept: application/json, text/event-stream",
    "mcp-protocol-version: 2026-07-28",
    "mcp-method: tools/list",
];

/// Measures, and rewrites the table in the page. Fails if the program is too large.
pub(super) fn command() -> Result<(), Failure> {
    dist::build()?;
    let failure = |error: io::Error| Failure::new(error.to_string(), REPEAT);
    let program = built("dist", "pintle");
    let bytes = fs::metadata(&program).map_err(failure)?.len();
    let cpu = measure(&program).map_err(failure)?;
    let table = table(bytes, &cpu);
    print!("{table}");
    if bytes > MAX_BYTES {
        return Err(Failure::new(format!("`pintle` has {bytes} bytes, at most {MAX_BYTES}"), REPEAT));
    }
    page::rewrite("bench/README.md", "command", &table, REPEAT)
}

/// The CPU time of all processes of a kind, in seconds.
#[derive(Debug, Default)]
struct CpuSeconds {
    curl: f64,
    ls: f64,
    ping: f64,
}

fn measure(program: &Path) -> io::Result<CpuSeconds> {
    let mut demo = Command::new(program);
    demo.args(["demo", "--http", "127.0.0.1:0"]);
    let (_server, url) = Process::serve(&mut demo, &target().join("bench-command.log"), START)?;
    let url = url.trim();
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--fail", "--data", REQUEST, url]);
    curl.args(HEADERS.iter().flat_map(|header| ["--header", header]));
    let own = |verb: &str| {
        let mut command = Command::new(program);
        command.args([verb, url]).env("PINTLE_CACHE_DIR", target().join("bench-command"));
        command
    };
    let (mut ls, mut ping) = (own("ls"), own("ping"));
    let mut cpu = CpuSeconds::default();
    // In turns, so that other load affects all of them.
    for _ in 0..ROUNDS {
        cpu.curl += cpu_of(&mut curl)?;
        cpu.ls += cpu_of(&mut ls)?;
        cpu.ping += cpu_of(&mut ping)?;
    }
    Ok(cpu)
}

/// Runs a command some times, and returns the CPU time of its processes.
fn cpu_of(command: &mut Command) -> io::Result<f64> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let before = cpu_of_children(&fs::read_to_string("/proc/self/stat")?);
    for _ in 0..PROCESSES {
        let status = command.status()?;
        if !status.success() {
            return Err(io::Error::other(format!("`{}`: {status}", command.get_program().display())));
        }
    }
    let after = cpu_of_children(&fs::read_to_string("/proc/self/stat")?);
    match (before, after) {
        (Some(before), Some(after)) => Ok(after - before),
        _ => Err(io::Error::other("`/proc/self/stat` cannot be read")),
    }
}

/// Reads the CPU time of the processes that have ended, in seconds, from `/proc/self/stat`.
fn cpu_of_children(stat: &str) -> Option<f64> {
    // The name of the process may have spaces; it is in parentheses.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
    // Always 100 a second on Linux.
    Some((ticks(13)? + ticks(14)?) / 100.0)
}

fn table(bytes: u64, cpu: &CpuSeconds) -> String {
    let count = (ROUNDS * PROCESSES) as f64;
    let row = |name: &str, seconds: f64, goal: &str| {
        format!("| {name} | {:.1} | {:.2} | {goal} |\n", seconds / count * 1000.0, seconds / cpu.curl)
    };
    [
        format!(
            "The stripped program has {:.1} MB; the limit is {} MB.\n\n",
            bytes as f64 / 1e6,
            MAX_BYTES / 1_000_000
        ),
        "| one process | CPU ms | × curl | goal |\n|---|---:|---:|---:|\n".to_owned(),
        row("`curl`, one `tools/list`", cpu.curl, ""),
        row("`pintle ping URL`", cpu.ping, ""),
        row("`pintle ls URL`", cpu.ls, &format!("≤ {GOAL}")),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_children_is_read_behind_the_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 1 2 3 4 11 12 130 20 20 0 1 0 5 6 7";
        assert_eq!(cpu_of_children(stat), Some(1.5));
        assert_eq!(cpu_of_children("7 (a"), None);
    }

    #[test]
    fn a_table_has_the_ratio_to_curl() {
        let table = table(12_340_000, &CpuSeconds { curl: 1.0, ls: 2.5, ping: 2.0 });
        assert!(table.starts_with("The stripped program has 12.3 MB; the limit is 15 MB.\n"), "{table}");
        assert!(table.ends_with("| `pintle ls URL` | 12.5 | 2.50 | ≤ 3 |\n"), "{table}");
    }
}
