//! `cargo xtask instructions`: what the hot paths cost, counted by callgrind.
//!
//! Instructions do not depend on what else the machine does. Each case runs with two counts; the difference is what one
//! pass costs, without start-up.

use std::process::Command;

use crate::cargo::{Cargo, Failure};
use crate::page;
use crate::workspace::root;

const REPEAT: &str = "cargo xtask instructions";

pub(crate) fn command(_: &[String]) -> Result<(), Failure> {
    if !Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Err(Failure::new("counting needs valgrind; install Debian's package `valgrind`", REPEAT));
    }
    Cargo::new("build --quiet --release --package bench --bin instructions").run()?;
    let mut table = String::from("| path | instructions |\n|---|---:|\n");
    for case in run(&[])?.lines() {
        let (few, many) = if case.contains("MiB") { (2, 6) } else { (100, 1100) };
        let each = (count(case, many)? - count(case, few)?) / (many - few);
        println!("{case:<32}{each:>10}");
        table.push_str(&format!("| {case} | {} |\n", grouped(each)));
    }
    page::rewrite("bench/README.md", "instructions", &table, REPEAT)
}

fn binary() -> Command {
    Command::new(root().join("target/release/instructions"))
}

fn run(args: &[&str]) -> Result<String, Failure> {
    let output = binary().args(args).output().map_err(|error| Failure::new(error.to_string(), REPEAT))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn count(case: &str, times: u64) -> Result<u64, Failure> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(binary().get_program())
        .args([case, &times.to_string()])
        .output()
        .map_err(|error| Failure::new(error.to_string(), REPEAT))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    collected.ok_or_else(|| Failure::new(format!("callgrind counted nothing for `{case}`: {said}"), REPEAT))
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let parts: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(
            ["0", "999", "1,000", "12,345,678"],
            [0, 999, 1000, 12_345_678].map(grouped).each_ref().map(|s| &**s)
        );
    }
}
