//! `pintle trace`.

use serde_json::Value;

use super::{fresh_file, methods};
use crate::support::{HttpServing, Printed, pintle, run, typed};

/// Traces a call of the demo, over a transport. `end` is a program.
fn trace(options: &[&str], target: Option<&str>, era: &str, end: &[&str]) -> Printed {
    let mut words = vec!["trace"];
    words.extend(options);
    words.extend(target);
    words.extend(["--", "call", "tide", "port=bergen", "hour=4", "--era", era]);
    words.extend(end);
    typed(&words)
}

#[test]
fn every_message_is_a_line_on_standard_error() {
    let program = env!("CARGO_BIN_EXE_pintle");
    let demo = HttpServing::demo();
    let targets: [(Option<&str>, &[&str]); 3] =
        [(Some("demo"), &[]), (None, &["--", program, "demo"]), (Some(&demo.url), &[])];
    for (target, end) in targets {
        for (era, opening) in [("stateless", "server/discover 1 "), ("session", "initialize 1 ")] {
            let traced = trace(&[], target, era, end);
            assert_eq!(
                (traced.code, traced.stdout.as_str()),
                (Some(0), "{\"metres\":0.6,\"rising\":true}\n")
            );
            let is_http = target.is_some_and(|target| target != "demo");
            let (out, back) = match is_http {
                true => (format!("POST {} #1 ", demo.url), "200 #"),
                false => (String::new(), ""),
            };
            let lines: Vec<_> = traced.stderr.lines().filter(|line| !line.starts_with("    ")).collect();
            // After the time.
            let first = &lines[0][13..];
            assert!(first.starts_with(&format!("→ {out}{opening}")), "{first}");
            let last = lines.iter().rev().find(|line| line.contains("structuredContent")).unwrap();
            assert!(last[13..].starts_with(&format!("← {back}")), "{last}");
            assert!(last.contains("result "), "{last}");
            assert_eq!(traced.stderr.contains("\n    content-type: application/json\n"), is_http);
            assert!(lines.iter().any(|line| line.contains("tools/call ") && line.contains("\"hour\":4")));
        }
    }
}

#[test]
fn with_json_they_are_lines_of_json() {
    let traced = trace(&["--json"], Some("demo"), "stateless", &[]);
    assert_eq!(traced.stdout, "{\"metres\":0.6,\"rising\":true}\n");
    let lines: Vec<Value> = traced.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["message"]["method"], "server/discover");
    for (at, line) in lines.iter().enumerate() {
        assert_eq!(line["number"], at + 1);
        assert_eq!((&line["side"], &line["transport"]), (&"client".into(), &"memory".into()));
    }
    // The options after `--` are those of the verb.
    let inner = typed(&["trace", "demo", "--", "call", "tdie", "--json"]);
    let error = inner.stderr.lines().last().unwrap();
    assert_eq!(serde_json::from_str::<Value>(error).unwrap()["error"]["kind"], "usage");
    assert_eq!((inner.code, inner.stdout.as_str()), (Some(1), ""));
}

#[test]
fn a_file_is_for_its_owner_and_is_appended_to() {
    let path = fresh_file("trace.jsonl");
    let file = path.to_str().unwrap();
    let traced = trace(&["-o", file], Some("demo"), "stateless", &[]);
    assert_eq!((traced.code, traced.stderr.as_str()), (Some(0), ""));
    let expected = ["→ server/discover", "← result", "→ tools/list", "← result", "→ tools/call", "← result"];
    assert_eq!(methods(&path), expected);
    trace(&["-o", file], Some("demo"), "stateless", &[]);
    let text = std::fs::read_to_string(&path).unwrap();
    let header =
        format!("{{\"recording\":{{\"version\":1,\"by\":\"pintle {}\"}}}}", env!("CARGO_PKG_VERSION"));
    assert!(text.starts_with(&header), "{text}");
    assert_eq!(text.lines().filter(|line| *line == header).count(), 2);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let refused = trace(&["-o", file], Some("demo"), "stateless", &[]);
        assert_eq!(refused.code, Some(1));
        assert!(refused.stderr.contains("is open to other users"), "{}", refused.stderr);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
    std::fs::remove_file(&path).unwrap();

    // Another file is left as it is.
    std::fs::write(&path, "notes\n").unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let refused = trace(&["-o", file], Some("demo"), "stateless", &[]);
    assert!(refused.stderr.contains("is not a recording: choose another path"), "{}", refused.stderr);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "notes\n");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn secrets_are_redacted() {
    let demo = HttpServing::demo();
    let url = format!("{}?key=s3cret1", demo.url);
    let path = fresh_file("secrets.jsonl");
    for destination in [&[][..], &["-o", path.to_str().unwrap()]] {
        let mut command = pintle();
        command.args(["trace", "--redact-arguments", &url]).args(destination).args(["--", "call", "post"]);
        command.args([
            "text=s3cret2",
            "--header",
            "X-Api-Key: s3cret3",
            "--token-env",
            "TOKEN",
            "--era",
            "session",
        ]);
        let traced = run(command.env("TOKEN", "s3cret4"));
        assert_eq!(traced.code, Some(0), "{traced:?}");
        let recorded = match destination.is_empty() {
            true => traced.stderr,
            false => std::fs::read_to_string(&path).unwrap(),
        };
        assert!(!recorded.contains("s3cret"), "{recorded}");
        for shown in ["/mcp?<redacted>", "<redacted:", "mcp-session-id", "x-api-key", "authorization"] {
            assert!(recorded.contains(shown), "{shown}: {recorded}");
        }
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
#[cfg(unix)]
fn an_interrupted_verb_leaves_its_recording() {
    use std::{
        io::{BufRead as _, BufReader},
        process::Stdio,
    };

    let path = fresh_file("interrupted.jsonl");
    let mut process = pintle()
        .args(["trace", "demo", "-o", path.to_str().unwrap(), "--", "watch", "harbour://notice"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(process.stderr.take().unwrap()).lines();
    assert!(stderr.any(|line| line.unwrap().starts_with("watching")));
    rustix::process::kill_process(rustix::process::Pid::from_child(&process), rustix::process::Signal::INT)
        .unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(130));
    assert!(methods(&path).contains(&"→ subscriptions/listen".to_owned()), "{:?}", methods(&path));
    std::fs::remove_file(&path).unwrap();
}
