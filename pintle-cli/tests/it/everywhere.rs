//! Every verb over standard streams and over HTTP, in both eras: the results are those of the server in the same process.

use crate::{
    support::{HttpDemo, Printed, typed, words},
    transcripts::masked,
};

/// What is typed; `TARGET` stands for the server.
const LINES: &[&str] = &[
    "info TARGET",
    "info TARGET --json",
    "ls TARGET",
    "ls TARGET tools --json",
    "call TARGET tide port=bergen hour=4",
    "call TARGET tide port=bergen hour=4 --json",
    "call TARGET sail to=lerwick",
    "call TARGET signal",
    "call TARGET tide port=bergen hour=40 --no-check",
    "call TARGET berth",
    "call TARGET tide --help --json",
    "read TARGET harbour://notice",
    "read TARGET 'harbour://tides/{port}/{hour}' port=bergen hour=4 --json",
    "prompt TARGET passage to=bergen",
    "prompt TARGET passage --json to=bergen",
    "complete TARGET passage to=be",
    "complete TARGET 'harbour://tides/{port}/{hour}' port= --json",
    "lint TARGET --strict --json",
    "ping TARGET",
    "raw TARGET tools/list",
    "raw TARGET resources/read uri=harbour://notice --json",
];

#[test]
fn over_standard_streams() {
    let program = env!("CARGO_BIN_EXE_pintle").to_owned();
    compare(&[], &["--".to_owned(), program, "demo".to_owned()]);
}

#[test]
fn over_http() {
    let demo = HttpDemo::start();
    compare(std::slice::from_ref(&demo.url), &[]);
}

/// Runs each line with the demo server in the process, and with a target that has words of its own and words at the end.
fn compare(target: &[String], end: &[String]) {
    for era in ["stateless", "session"] {
        for line in LINES {
            let era = ["--era".to_owned(), era.to_owned()];
            let here = with(line, &["demo".to_owned()], &era);
            let there = with(line, target, &[&era, end].concat());
            assert!(!here.stdout.is_empty() || here.code == Some(7), "{line}: {here:?}");
            assert_eq!(
                (there.code, masked(&there.stdout)),
                (here.code, masked(&here.stdout)),
                "{era:?} {line}: {}",
                there.stderr
            );
        }
    }
}

fn with(line: &str, target: &[String], end: &[String]) -> Printed {
    let typed_words = words(line);
    let words: Vec<_> = typed_words
        .into_iter()
        .flat_map(|word| if word == "TARGET" { target.to_vec() } else { vec![word] })
        .chain(end.iter().cloned())
        .collect();
    typed(&words)
}
