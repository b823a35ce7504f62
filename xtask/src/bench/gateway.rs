//! `cargo xtask bench --gateway`: what a gateway with rules costs, beside a plain relay.

use std::process::Command;

use crate::cargo::{Cargo, Failure};
use crate::page;
use crate::workspace::built;

const REPEAT: &str = "cargo xtask bench --gateway";

/// Measures, and rewrites the table in the page.
pub(super) fn command() -> Result<(), Failure> {
    Cargo::new("build --quiet --release --package bench --bin gateway").run()?;
    let failure = |what: String| Failure::new(what, REPEAT);
    let output = Command::new(built("release", "gateway")).output();
    let output = output.map_err(|error| failure(error.to_string()))?;
    if !output.status.success() {
        return Err(failure(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let table = String::from_utf8_lossy(&output.stdout);
    print!("{table}");
    for (row, ratio, goal) in missed(&table) {
        println!("    {row}: {ratio}, and the goal is {goal}");
    }
    page::rewrite("bench/README.md", "gateway", &table, REPEAT)
}

/// Returns the rows whose ratio is above their goal.
fn missed(table: &str) -> Vec<(&str, f64, f64)> {
    let rows = table.lines().filter_map(|line| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let (row, _, ratio) = (cells.next()?, cells.next()?, cells.next()?.parse().ok()?);
        let goal = cells.next()?.strip_prefix("≤ ")?.parse().ok()?;
        Some((row, ratio, goal))
    });
    rows.filter(|(_, ratio, goal)| ratio > goal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_goal_is_reported() {
        let table = "| what | CPU | × | goal |\n|---|---:|---:|---:|\n| relay | 10 | 1 | |\n| gateway | 14 | 1.40 | ≤ 1.3 |\n| list | 9 | 1.10 | ≤ 1.3 |\n";
        assert_eq!(missed(table), [("gateway", 1.4, 1.3)]);
    }
}
