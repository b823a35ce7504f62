//! `cargo xtask test`: everything CI runs, one step after the other, until one fails.

use std::time::{Duration, Instant};

use crate::cargo::{Cargo, Failure};
use crate::workspace::root;
use crate::{budget, conformance, features, instructions, interop, login, tidy};

struct Step {
    name: &'static str,
    run: fn(&mut Tally) -> Result<(), Failure>,
}

/// Cheap and often wrong first.
const STEPS: &[Step] = &[
    Step { name: "format", run: |_| Cargo::new("fmt --all --check").run() },
    Step {
        name: "lints",
        // `incompatible_msrv` is among them and stands in for a build with the oldest toolchain.
        run: |_| Cargo::new("clippy --workspace --all-targets --all-features -- --deny warnings").run(),
    },
    // The tests start them, as programs.
    Step { name: "examples", run: |_| Cargo::new("build --workspace --all-features --examples").run() },
    Step {
        name: "unit and integration tests",
        run: |tally| count("test --workspace --all-features --tests --no-fail-fast", tally),
    },
    Step {
        name: "doc tests",
        run: |tally| count("test --workspace --all-features --doc --no-fail-fast", tally),
    },
    Step { name: "tidy", run: |_| tidy::command(&[]) },
    Step { name: "features", run: |_| features::command(&[]) },
    Step {
        name: "docs",
        run: |_| {
            Cargo::new("doc --workspace --no-deps --all-features").env("RUSTDOCFLAGS", "-D warnings").run()
        },
    },
    Step { name: "conformance", run: |_| conformance::command(&[]) },
    Step { name: "other SDKs", run: |_| interop::command(&[]) },
    Step { name: "authorization server", run: |_| login::command(&[]) },
    Step { name: "instructions", run: |_| instructions::command(&[]) },
    Step { name: "crate budget", run: |_| budget::command(&[]) },
    Step { name: "licences and advisories", run: |_| deny() },
];

pub(crate) fn command(_: &[String]) -> Result<(), Failure> {
    let mut tally = Tally::default();
    let mut times = Vec::new();
    for step in STEPS {
        println!("\n==> {}", step.name);
        let start = Instant::now();
        let result = (step.run)(&mut tally);
        let time = start.elapsed();
        println!("    {} after {}", if result.is_ok() { "ok" } else { "FAILED" }, seconds(time));
        result?;
        times.push((step.name, time));
    }
    println!();
    for (name, time) in &times {
        println!("{:>9}  {name}", seconds(*time));
    }
    println!("{:>9}  all steps", seconds(times.iter().map(|(_, time)| *time).sum()));
    if let Some(note) = spec_note() {
        println!("{note}");
    }
    println!("test result: ok. {tally}");
    Ok(())
}

/// How many tests ran, over all test binaries.
#[derive(Debug, Default, PartialEq)]
struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Tally {
    /// Reads libtest's `test result: ok. 3 passed; 0 failed; 1 ignored; …`; other lines say nothing.
    fn read(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix("test result: ") else { return };
        let rest = rest.split_once(". ").map_or(rest, |(_, counts)| counts);
        for part in rest.split("; ") {
            let Some((number, word)) = part.split_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match word {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed; {} failed; {} ignored", self.passed, self.failed, self.ignored)
    }
}

fn count(line: &str, tally: &mut Tally) -> Result<(), Failure> {
    Cargo::new(line).run_watched(|line| tally.read(line))
}

fn deny() -> Result<(), Failure> {
    if !Cargo::new("deny --version").works() {
        println!("    skipped: cargo-deny is not installed (`cargo install --locked cargo-deny`)");
        return Ok(());
    }
    Cargo::new("deny --log-level error check bans licenses sources").run()?;
    // The database of advisories is no package of a registry.
    if let Err(failure) = Cargo::new("deny fetch db").output() {
        let reason = failure.what.lines().find(|line| line.contains("failed")).unwrap_or("no reason given");
        println!("    skipped: the database of advisories cannot be fetched: {}", reason.trim());
        return Ok(());
    }
    Cargo::new("deny check advisories").run()
}

/// Tests that compare with the published specification pass without it; that should not go unseen.
fn spec_note() -> Option<String> {
    let given = std::env::var_os("PINTLE_SPEC_DIR").map(std::path::PathBuf::from);
    let dir = given.unwrap_or_else(|| root().join("../shared/spec"));
    (!dir.is_dir()).then(|| {
        "note: no specification folder; tests against the published schemas were skipped (set PINTLE_SPEC_DIR)"
            .to_owned()
    })
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_over_binaries() {
        let mut tally = Tally::default();
        tally.read("running 4 tests");
        tally.read(
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        );
        tally.read("test result: FAILED. 2 passed; 5 failed; 0 ignored; 0 measured; 0 filtered out");
        assert_eq!(tally, Tally { passed: 5, failed: 5, ignored: 1 });
        assert_eq!(tally.to_string(), "5 passed; 5 failed; 1 ignored");
    }
}
