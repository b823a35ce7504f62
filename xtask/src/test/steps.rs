//! Everything that CI runs, step by step.

use super::tally::Tally;
use super::tools::Tool;
use crate::cargo::{Cargo, Failure};
use crate::workspace::{WITH_DEV_DEPENDENCIES, root, target};
use crate::{api, budget, conformance, features, instructions, interop, login, npm, tidy};

/// One part of the run.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) name: &'static str,
    /// Whether it is part of the inner loop.
    pub(super) quick: bool,
    pub(super) needs: &'static [Tool],
    /// The tools that some of its tests run against: without them they pass unseen.
    pub(super) uses: &'static [Tool],
    pub(super) run: fn(&mut RunReport) -> Result<(), Failure>,
}

/// The findings of a run besides failures.
#[derive(Debug, Default)]
pub(super) struct RunReport {
    pub(super) tally: Tally,
    /// Lines that say what was not checked and why.
    pub(super) skipped: Vec<String>,
    /// The tools that tests run against, as far as they are installed.
    pub(super) used: Vec<Tool>,
}

/// Cheap and often wrong first.
pub(super) const STEPS: &[Step] = &[
    Step {
        name: "format",
        quick: true,
        needs: &[],
        uses: &[],
        run: |_| Cargo::new("fmt --all --check").run(),
    },
    Step { name: "tidy", quick: true, needs: &[], uses: &[], run: |_| tidy::command(&[]) },
    Step {
        name: "lints",
        quick: true,
        needs: &[],
        uses: &[],
        // `incompatible_msrv` is among them and stands in for a build with the oldest toolchain.
        run: |_| Cargo::new("clippy --workspace --all-targets --all-features -- --deny warnings").run(),
    },
    Step {
        name: "examples",
        quick: true,
        needs: &[],
        uses: &[],
        // The tests start them, as programs.
        run: |_| Cargo::new("build --workspace --all-features --examples").run(),
    },
    Step {
        name: "unit and integration tests",
        quick: true,
        needs: &[],
        uses: &[Tool::Zsh, Tool::Fish, Tool::Redis, Tool::Haproxy, Tool::Node],
        run: tests,
    },
    Step {
        name: "doc tests",
        quick: false,
        needs: &[],
        uses: &[],
        run: |report| count("test --workspace --all-features --doc --no-fail-fast", report),
    },
    Step {
        name: "model checks of wakers",
        quick: false,
        needs: &[],
        uses: &[],
        run: |report| count("test --release --manifest-path loom/Cargo.toml", report),
    },
    Step { name: "features", quick: false, needs: &[], uses: &[], run: |_| features::command(&[]) },
    Step {
        name: "docs",
        quick: false,
        needs: &[],
        uses: &[],
        run: |_| {
            // Every program but `pintle`, whose page would be that of the library.
            let all = format!("--workspace --lib --bin [!p]* {WITH_DEV_DEPENDENCIES} --all-features");
            Cargo::new(&format!("doc --no-deps {all}")).env("RUSTDOCFLAGS", "-D warnings").run()
        },
    },
    Step {
        name: "public API",
        quick: false,
        needs: &[],
        uses: &[],
        run: |report| {
            report.skipped.extend(api::check()?);
            Ok(())
        },
    },
    Step {
        name: "conformance",
        quick: false,
        needs: &[Tool::Node],
        uses: &[],
        run: |_| conformance::command(&[]),
    },
    Step {
        name: "conformance through a bridge",
        quick: false,
        needs: &[Tool::Node],
        uses: &[],
        // One version of the suite: the bridge is the same for the other.
        run: |_| conformance::command(&["--through", "bridge", "--only", "server/all"].map(str::to_owned)),
    },
    Step {
        name: "conformance through a gateway",
        quick: false,
        needs: &[Tool::Node],
        uses: &[],
        run: |_| conformance::command(&["--through", "gateway", "--only", "server/all"].map(str::to_owned)),
    },
    Step {
        name: "conformance through a fleet",
        quick: false,
        needs: &[Tool::Node, Tool::Redis, Tool::Haproxy],
        uses: &[],
        // One version of the suite: the processes are the same for the other.
        run: |_| conformance::command(&["--through", "fleet", "--only", "server/all"].map(str::to_owned)),
    },
    Step {
        name: "conformance of a served file",
        quick: false,
        needs: &[Tool::Node, Tool::Python],
        uses: &[],
        run: |_| conformance::command(&["--through", "file", "--only", "server/all"].map(str::to_owned)),
    },
    Step {
        name: "other SDKs",
        quick: false,
        needs: &[Tool::Node, Tool::Python],
        uses: &[],
        run: |_| interop::command(&[]),
    },
    Step {
        name: "verbs of the command",
        quick: false,
        needs: &[Tool::Node, Tool::Python],
        uses: &[],
        run: |_| interop::verbs::command(&[]),
    },
    Step {
        name: "authorization server",
        quick: false,
        needs: &[Tool::Node],
        uses: &[],
        run: |_| login::command(&[]),
    },
    Step {
        name: "instructions",
        quick: false,
        needs: &[Tool::Valgrind],
        uses: &[],
        run: |report| {
            report.skipped.extend(instructions::check()?);
            Ok(())
        },
    },
    Step { name: "crate budget", quick: false, needs: &[], uses: &[], run: |_| budget::command(&[]) },
    Step { name: "licences and advisories", quick: false, needs: &[Tool::CargoDeny], uses: &[], run: deny },
];

fn tests(report: &mut RunReport) -> Result<(), Failure> {
    let given = std::env::var_os("PINTLE_SPEC_DIR").map(std::path::PathBuf::from);
    if !given.unwrap_or_else(|| root().join("../shared/spec")).is_dir() {
        // Those tests pass without it.
        let what = "tests against the published schemas: no specification folder (set PINTLE_SPEC_DIR)";
        report.skipped.push(what.to_owned());
    }
    let mut tests = Cargo::new("test --workspace --all-features --tests --no-fail-fast");
    // Here and not in a run of their own: alone, their package would be built with other features, and all that is below it.
    if [Tool::Redis, Tool::Haproxy].iter().all(|tool| report.used.contains(tool)) {
        tests = tests.env("PINTLE_REQUIRE_REDIS", "1");
    }
    if report.used.contains(&Tool::Node) {
        let documents = target().join("openapi");
        npm::install("fixtures/openapi", &documents)
            .map_err(|error| Failure::new(error.to_string(), "cargo xtask test"))?;
        let packages = documents.join("node_modules").display().to_string();
        tests = tests.env("PINTLE_OPENAPI_PACKAGES", packages);
    }
    tests.run_watched(|line| report.tally.read(line))
}

fn count(line: &str, report: &mut RunReport) -> Result<(), Failure> {
    Cargo::new(line).run_watched(|line| report.tally.read(line))
}

fn deny(report: &mut RunReport) -> Result<(), Failure> {
    Cargo::new("deny --log-level error check bans licenses sources").run()?;
    // The database of advisories is no package of a registry.
    if let Err(failure) = Cargo::new("deny fetch db").output() {
        let reason = failure.what.lines().find(|line| line.contains("failed")).unwrap_or("no reason given");
        report.skipped.push(format!("advisories: the database cannot be fetched: {}", reason.trim()));
        return Ok(());
    }
    Cargo::new("deny check advisories").run()
}
