//! `cargo xtask bench`: what a request costs a server, beside a bare one that does only what cannot be left out, and beside
//! the servers and clients of other SDKs.

mod bridge;
mod command;
mod compile;
mod fleet;
mod gateway;
mod peers;
mod serve;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use peers::BenchPeer;

use crate::cargo::{Cargo, Failure};
use crate::page;
use crate::workspace::{built, root, shown, target};

const REPEAT: &str = "cargo xtask bench";
/// The servers, and the programs that are started for them. The others are compared with the first.
const SERVERS: &[(&str, &str)] = &[("limit", "limit"), ("pintle", "served")];

/// How much is measured.
#[derive(Debug)]
struct BenchRun {
    peers: &'static [&'static str],
    options: &'static [&'static str],
    /// Every figure goes to this file below `bench` in the target folder.
    data: &'static str,
    /// Whether the page is to say so.
    written: bool,
}

const ALL: BenchRun = BenchRun {
    peers: peers::ALL,
    options: &["15", "--seconds", "560", "--plots", "bench/plots"],
    data: "figures.jsonl",
    written: true,
};
const QUICK: BenchRun = BenchRun {
    peers: &["rmcp"],
    options: &["5", "--seconds", "85", "--quick"],
    data: "quick.jsonl",
    written: false,
};

pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    if args == ["--peers"] {
        return peers::command();
    }
    if let ["--bridge", quick @ ..] = &*args.iter().map(String::as_str).collect::<Vec<_>>()
        && matches!(quick, [] | ["--quick"])
    {
        return bridge::command(if quick.is_empty() { bridge::ALL } else { bridge::QUICK });
    }
    if args == ["--fleet"] {
        return fleet::command();
    }
    if args == ["--gateway"] {
        return gateway::command();
    }
    if args == ["--serve"] {
        return serve::command();
    }
    if args == ["--command"] {
        return command::command();
    }
    if args == ["--compile"] {
        return compile::command();
    }
    let run = run(args)?;
    let start = Instant::now();
    Cargo::new("build --quiet --release --package bench --bins").run()?;
    let peers = peers::ready(run.peers);
    println!("    built and installed after {} s", start.elapsed().as_secs());
    let start = Instant::now();
    let tables = measure(run, &peers)?;
    println!("\n{tables}\n    measured in {} s", start.elapsed().as_secs());
    if run.written { page::rewrite("bench/README.md", "servers", &tables, REPEAT) } else { Ok(()) }
}

fn run(args: &[String]) -> Result<&'static BenchRun, Failure> {
    match args {
        [] => Ok(&ALL),
        [quick] if quick == "--quick" => Ok(&QUICK),
        _ => Err(Failure::new(
            format!(
                "`{}` is not `--quick`, `--peers`, `--bridge`, `--gateway`, `--fleet`, `--serve`, `--command` or `--compile`",
                args.join(" ")
            ),
            REPEAT,
        )),
    }
}

/// Has the load generator measure all of them; its tables.
fn measure(run: &BenchRun, peers: &[BenchPeer]) -> Result<String, Failure> {
    let failure = |what: String| Failure::new(format!("the load generator: {what}"), REPEAT);
    let pair = |name: &str, program: &Path| format!("{name}={}", shown(program));
    let mut load = Command::new(built("release", "load"));
    load.args(run.options).arg("--data").arg(target().join("bench").join(run.data)).current_dir(root());
    load.args(SERVERS.iter().map(|(name, program)| pair(name, &built("release", program))));
    load.arg("--client").arg(pair("pintle", &built("release", "client")));
    for BenchPeer { name, server, client } in peers {
        load.arg(pair(name, server));
        if let Some(client) = client {
            load.arg("--client").arg(pair(name, client));
        }
    }
    let output = load.stderr(Stdio::inherit()).output().map_err(|error| failure(error.to_string()))?;
    let tables = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(format!("{tables}{}", left_out(run, peers)));
    }
    println!("{tables}");
    Err(failure(output.status.to_string()))
}

/// The servers that should have been measured and could not be.
fn left_out(run: &BenchRun, peers: &[BenchPeer]) -> String {
    let has = |name: &str| peers.iter().any(|peer| peer.name == name);
    let names: Vec<_> = run.peers.iter().copied().filter(|name| !has(name)).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("\nLeft out, because they could not be built or installed: {}.\n", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_or_what_is_quick() {
        let written = |args: &[&str]| {
            run(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
                .map(|run| run.written)
                .map_err(|failure| failure.what)
        };
        assert_eq!(written(&[]), Ok(true));
        assert_eq!(written(&["--quick"]), Ok(false));
        assert_eq!(
            written(&["--fast"]),
            Err("`--fast` is not `--quick`, `--peers`, `--bridge`, `--gateway`, `--fleet`, `--serve`, `--command` or `--compile`"
                .to_owned())
        );
    }

    #[test]
    fn who_is_left_out_is_named() {
        assert_eq!(
            left_out(&QUICK, &[]),
            "\nLeft out, because they could not be built or installed: rmcp.\n"
        );
        let rmcp = BenchPeer { name: "rmcp", server: "server".into(), client: None };
        assert_eq!(left_out(&QUICK, &[rmcp]), "");
    }
}
