//! The example runs and does what it says.

use std::{env, fs, path::PathBuf, process::Command};

/// The program of the example. Cargo builds it beside the tests, unless only one of them was asked for.
fn program() -> PathBuf {
    let tests = env::current_exe().unwrap();
    let built = tests.ancestors().nth(2).unwrap().join("examples").join("host");
    let built = built.with_extension(env::consts::EXE_EXTENSION);
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples").join("host.rs");
    let changed = |path: &PathBuf| fs::metadata(path).and_then(|file| file.modified());
    let stale = changed(&source).unwrap() > changed(&built).unwrap_or(std::time::UNIX_EPOCH);
    assert!(!stale, "run `cargo build --package pintle-host --examples` first");
    built
}

#[test]
fn a_host_starts_three_servers_and_offers_their_tools() {
    let output = Command::new(program()).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for line in [
        "clock is open, 2026-07-28",
        "missing is closed, to be opened again: the connection failed: no such program: `/no/such/program`",
        "  clock__now: The time.",
        "  dice__roll: A number from 1 to 6.",
        "  notes__list: The notes.",
        "the model calls clock__now: noon",
        "the model calls clock__nwo: the group has no tool `clock__nwo`: did you mean `clock__now`?",
        "the next request has 3 messages",
    ] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
}
