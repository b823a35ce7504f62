//! `cargo xtask instructions`: what the hot paths cost, counted by callgrind.
//!
//! Instructions do not depend on what else the machine does. Each case runs with two counts; the difference is what one
//! pass costs, without start-up.

use std::{collections::BTreeMap, process::Command};

use crate::cargo::{Cargo, Failure};
use crate::page;
use crate::workspace::root;

const REPEAT: &str = "cargo xtask instructions";
/// A case, and one that it may cost no more than, give or take one in a hundred.
const NO_MORE: &[(&str, &str)] = &[("call typed", "call typed, read by hand")];

pub(crate) fn command(_: &[String]) -> Result<(), Failure> {
    if !Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Err(Failure::new("counting needs valgrind; install Debian's package `valgrind`", REPEAT));
    }
    Cargo::new("build --quiet --release --package bench --bin instructions").run()?;
    let mut counted = BTreeMap::new();
    let mut table = String::from("| path | instructions |\n|---|---:|\n");
    for case in run(&[])?.lines() {
        let (few, many) = match case {
            large if large.contains("MiB") => (2, 6),
            large if large.contains("KiB") => (20, 120),
            _ => (100, 1100),
        };
        let each = (count(case, many)? - count(case, few)?) / (many - few);
        println!("{case:<32}{each:>10}");
        table.push_str(&format!("| {case} | {} |\n", grouped(each)));
        counted.insert(case.to_owned(), each);
    }
    page::rewrite("bench/README.md", "instructions", &table, REPEAT)?;
    match excess(&counted).first() {
        Some(excess) => Err(Failure::new(excess.clone(), REPEAT)),
        None => Ok(()),
    }
}

fn excess(counted: &BTreeMap<String, u64>) -> Vec<String> {
    let of = |case: &str| counted.get(case).copied();
    let judged = NO_MORE.iter().map(|(case, bound)| match (of(case), of(bound)) {
        (Some(cost), Some(most)) if cost <= most + most / 100 => None,
        (Some(cost), Some(most)) => Some(format!("`{case}` costs {cost}, and `{bound}` only {most}")),
        _ => Some(format!("`{case}` or `{bound}` is not counted any more: mend the row of `NO_MORE`")),
    });
    judged.flatten().collect()
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

    #[test]
    fn what_should_cost_nothing_is_noticed_if_it_does() {
        let counted = |case: u64, bound: u64| {
            NO_MORE
                .iter()
                .flat_map(|(one, other)| [((*one).to_owned(), case), ((*other).to_owned(), bound)])
                .collect()
        };
        assert!(excess(&counted(101, 100)).is_empty());
        assert_eq!(
            excess(&counted(102, 100)),
            ["`call typed` costs 102, and `call typed, read by hand` only 100"]
        );
        assert_eq!(excess(&BTreeMap::new()).len(), NO_MORE.len());
    }
}
