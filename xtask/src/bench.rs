//! `cargo xtask bench`: what a request costs a server, beside a bare one that does only what cannot be left out.

mod peers;

use std::process::{Command, Stdio};

use crate::cargo::{Cargo, Failure};
use crate::page;
use crate::workspace::root;

const REPEAT: &str = "cargo xtask bench";
/// The servers, and the programs of `bench` that are started for them. The others are compared with the first.
const SERVERS: &[(&str, &str)] = &[("limit", "limit"), ("pintle", "served")];

pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    if args == ["--peers"] {
        return peers::command();
    }
    let rounds = rounds(args)?;
    Cargo::new("build --quiet --release --package bench --bins").run()?;
    let built = root().join("target/release");
    let servers = SERVERS.iter().map(|(name, program)| format!("{name}={}", built.join(program).display()));
    let output = Command::new(built.join("load"))
        .arg(rounds)
        .args(servers)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Failure::new(format!("the load generator: {error}"), REPEAT))?;
    if !output.status.success() {
        return Err(Failure::new(format!("the load generator: {}", output.status), REPEAT));
    }
    let table = String::from_utf8_lossy(&output.stdout);
    println!("\n{table}");
    page::rewrite("bench/README.md", "servers", &table, REPEAT)
}

/// Five take about a minute.
fn rounds(args: &[String]) -> Result<&'static str, Failure> {
    match args {
        [] => Ok("25"),
        [quick] if quick == "--quick" => Ok("5"),
        _ => Err(Failure::new(format!("`{}` is not `--quick`", args.join(" ")), REPEAT)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_quick_is_understood() {
        let rounds = |args: &[&str]| {
            rounds(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
                .map_err(|failure| failure.what)
        };
        assert_eq!(rounds(&[]), Ok("25"));
        assert_eq!(rounds(&["--quick"]), Ok("5"));
        assert_eq!(rounds(&["--fast"]), Err("`--fast` is not `--quick`".to_owned()));
    }
}
