//! `pintle replay` of what was recorded.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
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
fn a_recording_of_both_eras_answers_each_in_its_own() {
    let program = env!("CARGO_BIN_EXE_pintle");
    let demo = HttpServing::demo();
    let path = fresh_file("replay-mixed.jsonl");
    let file = path.to_str().unwrap();
    let eras = ["stateless", "session"];
    let lines =
        ["info --json", "ls", "call sail to=lerwick -v", "call berth --answer boat=Tern --answer nights=3"];
    // One after the other, into one file: over stdio and over HTTP.
    let mut recorded = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        for era in eras {
            let mut traced = vec!["trace", "-o", file, "--"];
            let line_words = words(line);
            traced.push(&line_words[0]);
            let is_http = at % 2 == 0;
            traced.extend(is_http.then_some(demo.url.as_str()));
            traced.extend(line_words[1..].iter().map(String::as_str));
            traced.extend(["--era", era]);
            traced.extend(["--", program, "demo"].into_iter().filter(|_| !is_http));
            recorded.push((*line, era, printed(&typed(&traced))));
        }
    }
    let replay = HttpReplay::start(&path, &[]);
    for (line, era, recorded) in &recorded {
        assert_eq!(recorded.0, Some(0), "{era} {line}: {recorded:?}");
        let over_http = with(line, Some(&replay.1), era, &[]);
        assert_eq!(&printed(&over_http), recorded, "{era} {line}: {over_http:?}");
        let over_stdio = with(line, None, era, &["--", program, "replay", file]);
        assert_eq!(&printed(&over_stdio), recorded, "{era} {line}: {over_stdio:?}");
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn web_pages_and_other_hosts_get_nothing_of_a_recording() {
    let path = fresh_file("replay-hosts.jsonl");
    let file = path.to_str().unwrap();
    assert_eq!(typed(&["trace", "demo", "-o", file, "--", "ping", "--era", "session"]).code, Some(0));
    /// Posts a request with these headers, and returns the status line.
    fn status(replay: &HttpReplay, headers: &str) -> String {
        let address = replay.1.strip_prefix("http://").unwrap().split('/').next().unwrap();
        let mut connection = TcpStream::connect(address).unwrap();
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let headers = headers.replace("OWN", address);
        write!(
            connection,
            "POST /mcp HTTP/1.1\r\n{headers}connection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut response = String::new();
        connection.read_to_string(&mut response).unwrap();
        response.lines().next().unwrap_or_default().to_owned()
    }
    let replay = HttpReplay::start(&path, &[]);
    for (headers, expected) in [
        ("host: OWN\r\n", "HTTP/1.1 200 OK"),
        ("host: OWN\r\norigin: http://OWN\r\n", "HTTP/1.1 200 OK"),
        ("host: OWN\r\norigin: https://attacker.example\r\n", "HTTP/1.1 403 Forbidden"),
        ("host: OWN\r\norigin: null\r\n", "HTTP/1.1 403 Forbidden"),
        // A name of the attacker that leads to this machine.
        ("host: attacker.example\r\n", "HTTP/1.1 403 Forbidden"),
    ] {
        assert_eq!(status(&replay, headers), expected, "{headers}");
    }
    let replay = HttpReplay::start(&path, &["--allow-host", "replay.example"]);
    assert_eq!(status(&replay, "host: replay.example\r\n"), "HTTP/1.1 200 OK");
    assert_eq!(status(&replay, "host: OWN\r\n"), "HTTP/1.1 403 Forbidden");
    std::fs::remove_file(&path).unwrap();
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
    assert!(again.stderr.contains("1 time, and not more often"), "{again:?}");
    std::fs::remove_file(&path).unwrap();
}
