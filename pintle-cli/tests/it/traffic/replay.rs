//! `pintle replay` of what was recorded.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Stdio},
};

use super::fresh_file;
use crate::{
    support::{HttpServing, Printed, pintle, typed, words},
    transcripts::masked,
};

/// What is recorded and replayed.
const LINES: &[&str] = &[
    "info --json",
    "ls",
    "call tide port=bergen hour=4 --json",
    "call sail to=lerwick -v",
    "call signal --json",
    "call berth --answer boat=Tern --answer nights=3",
    "call tide port=bergen hour=40 --no-check",
    "read harbour://notice",
    "prompt passage to=bergen",
    "complete passage to=be",
    "ping",
];

/// The recording over HTTP, in a process that ends with this value.
struct HttpReplay(Child, String);

impl HttpReplay {
    fn start(path: &Path, options: &[&str]) -> Self {
        let mut command = pintle();
        command.arg("replay").arg(path).args(["--http", "127.0.0.1:0"]).args(options);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self(process, url.trim().to_owned())
    }
}

impl Drop for HttpReplay {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Runs a line with a target and a program.
fn with(line: &str, target: Option<&str>, era: &str, end: &[&str]) -> Printed {
    let mut words = words(line);
    words.splice(1..1, target.map(str::to_owned));
    words.extend(["--era", era].map(str::to_owned));
    words.extend(end.iter().map(|word| (*word).to_owned()));
    typed(&words)
}

/// What a line printed, without what differs each time.
fn printed(printed: &Printed) -> (Option<i32>, String, Vec<String>) {
    let shown = |line: &&str| !["target: ", "stderr: ", "try: "].iter().any(|start| line.contains(start));
    let stderr = printed.stderr.lines().filter(shown).map(str::to_owned).collect();
    (printed.code, masked(&printed.stdout), stderr)
}

#[test]
fn a_recording_answers_as_the_server_did() {
    let program = env!("CARGO_BIN_EXE_pintle");
    let demo = HttpServing::demo();
    for era in ["stateless", "session"] {
        let path = fresh_file(&format!("replay-{era}.jsonl"));
        let file = path.to_str().unwrap();
        for is_http in [false, true] {
            let _ = std::fs::remove_file(&path);
            let mut recorded = Vec::new();
            for line in LINES {
                let mut traced = vec!["trace", "-o", file, "--"];
                let line_words = words(line);
                traced.push(&line_words[0]);
                traced.extend(is_http.then_some(demo.url.as_str()));
                traced.extend(line_words[1..].iter().map(String::as_str));
                traced.extend(["--era", era]);
                traced.extend(["--", program, "demo"].into_iter().filter(|_| !is_http));
                recorded.push(printed(&typed(&traced)));
            }
            let replay = HttpReplay::start(&path, &[]);
            for (line, recorded) in LINES.iter().zip(&recorded) {
                let over_stdio = with(line, None, era, &["--", program, "replay", file]);
                assert_eq!(&printed(&over_stdio), recorded, "{era} {line}: {over_stdio:?}");
                let over_http = with(line, Some(&replay.1), era, &[]);
                assert_eq!(&printed(&over_http), recorded, "{era} {line}: {over_http:?}");
            }
        }
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn what_the_recording_lacks_is_an_error_that_names_it() {
    let program = env!("CARGO_BIN_EXE_pintle");
    let path = fresh_file("lacks.jsonl");
    let file = path.to_str().unwrap();
    let call = "call tide port=bergen hour=4";
    typed(&["trace", "demo", "-o", file, "--", "call", "tide", "port=bergen", "hour=4"]);
    let end = ["--", program, "replay", file];
    for (line, code, message) in [
        (
            "call tide port=bergen hour=5",
            2,
            "the recording has `tools/call` with other params only: `{\"name\":\"tide\",\"arguments\":{\"port\":\"bergen\",\"hour\":4}}`",
        ),
        ("read harbour://notice", 2, "the recording has no `resources/read`: record it with `pintle trace`"),
    ] {
        let replay = HttpReplay::start(&path, &[]);
        for replayed in [with(line, None, "stateless", &end), with(line, Some(&replay.1), "stateless", &[])] {
            assert_eq!(replayed.code, Some(code), "{replayed:?}");
            assert!(replayed.stderr.contains(message), "{replayed:?}");
        }
    }
    // Another era.
    let other = with(call, None, "session", &end);
    assert_eq!(other.code, Some(2), "{other:?}");
    assert!(other.stderr.contains("the recording has no `initialize`"), "{other:?}");

    // Its last answer is repeated, unless that is refused.
    let replay = HttpReplay::start(&path, &[]);
    for _ in 0..3 {
        assert_eq!(with(call, Some(&replay.1), "stateless", &[]).code, Some(0));
    }
    let replay = HttpReplay::start(&path, &["--strict"]);
    assert_eq!(with(call, Some(&replay.1), "stateless", &[]).code, Some(0));
    let again = with(call, Some(&replay.1), "stateless", &[]);
    assert!(again.stderr.contains("1 times, and not more often"), "{again:?}");
    std::fs::remove_file(&path).unwrap();
}
