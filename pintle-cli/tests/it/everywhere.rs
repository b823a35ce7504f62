//! Every verb over standard streams and over HTTP, in both eras: the results are those of the server in the same process.

use crate::{
    support::{HttpServing, Printed, typed, words},
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
    "call TARGET berth --decline",
    "call TARGET berth --answer boat=Tern --answer nights=2",
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
    let demo = HttpServing::demo();
    compare(std::slice::from_ref(&demo.url), &[]);
}

#[test]
fn through_a_bridge_on_standard_streams() {
    let program = env!("CARGO_BIN_EXE_pintle");
    for behind in ["stateless", "session"] {
        let bridge = ["--", program, "bridge", "--era", behind, "demo"];
        compare(&[], &bridge.map(str::to_owned));
    }
}

#[test]
fn through_a_bridge_over_http() {
    for behind in ["stateless", "session"] {
        let bridge = HttpServing::start(&["bridge", "--http", "127.0.0.1:0", "--era", behind, "demo"]);
        compare(std::slice::from_ref(&bridge.url), &[]);
    }
}

#[test]
fn through_two_bridges_and_a_program() {
    let program = env!("CARGO_BIN_EXE_pintle");
    for behind in ["stateless", "session"] {
        let inner =
            HttpServing::start(&["bridge", "--http", "127.0.0.1:0", "--era", behind, "--", program, "demo"]);
        let outer = ["--", program, "bridge", &inner.url];
        compare(&[], &outer.map(str::to_owned));
    }
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
                (there.code, without_own(&masked(&there.stdout))),
                (here.code, without_own(&masked(&here.stdout))),
                "{era:?} {line}: {}",
                there.stderr
            );
        }
    }
}

/// Masks the number of a berth, which a server that lives longer counts on, and the cursor of the next page: a bridge has its own.
fn without_own(text: &str) -> String {
    if let Some(rest) = text.strip_prefix("Berth ") {
        return rest.trim_start_matches(|letter: char| letter.is_ascii_digit()).to_owned();
    }
    const NAME: &str = "\"nextCursor\": \"";
    match text.split_once(NAME).and_then(|(before, rest)| Some((before, rest.split_once('"')?.1))) {
        Some((before, after)) => format!("{before}{NAME}…\"{after}"),
        None => text.to_owned(),
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
