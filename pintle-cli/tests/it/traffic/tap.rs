//! `pintle tap` between a host and a program.

use std::{
    io::{Read as _, Write as _},
    process::Stdio,
};

use super::{fresh_file, methods};
use crate::support::{Printed, machine::Machine, pintle, run, typed};

#[test]
#[cfg(unix)]
fn streams_and_the_exit_code_are_passed_on() {
    let path = fresh_file("tap-bytes.jsonl");
    // Every byte, lines of every length up to 64 KiB, and none at the end.
    let mut sent: Vec<u8> = (0..200_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    sent.extend_from_slice(&[b'x'; 70_000]);
    let mut tap = pintle()
        .args([
            "tap",
            "-o",
            path.to_str().unwrap(),
            "--",
            "sh",
            "-c",
            "cat; printf tail; printf 'a\\377' >&2; exit 7",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = tap.stdin.take().unwrap();
    let bytes = sent.clone();
    // Dropped at its end: the program reads until then.
    let writing = std::thread::spawn(move || input.write_all(&bytes).unwrap());
    let ended = tap.wait_with_output().unwrap();
    writing.join().unwrap();
    sent.extend_from_slice(b"tail");
    assert_eq!(ended.status.code(), Some(7));
    assert!(ended.stdout == sent, "{} bytes of {}", ended.stdout.len(), sent.len());
    assert_eq!(ended.stderr, b"a\xff");
    // What is not JSON is not shown.
    let recorded = std::fs::read_to_string(&path).unwrap();
    assert!(recorded.contains("<redacted: ") && !recorded.contains("tail"), "{recorded}");
    std::fs::remove_file(&path).unwrap();
}

/// Nobody reads standard error, where the messages are printed to.
#[test]
#[cfg(unix)]
fn a_recording_that_nobody_reads_delays_nothing() {
    let mut tap = pintle()
        .args(["tap", "--json", "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let unread = tap.stderr.take();
    // More than the pipe and the queue of the recording take, in both directions.
    let message = format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{{\"a\":\"{}\"}}}}\n",
        "a".repeat(1 << 20)
    );
    let sent = message.repeat(12);
    let mut input = tap.stdin.take().unwrap();
    let bytes = sent.clone();
    let writing = std::thread::spawn(move || input.write_all(bytes.as_bytes()).unwrap());
    let mut received = String::new();
    tap.stdout.take().unwrap().read_to_string(&mut received).unwrap();
    writing.join().unwrap();
    assert!(received == sent, "{} bytes of {}", received.len(), sent.len());
    assert_eq!(tap.wait().unwrap().code(), Some(0));
    drop(unread);
}

/// The host reads slowly: the program waits, and nothing piles up between the two.
#[test]
#[cfg(unix)]
fn a_slow_host_makes_the_program_wait() {
    const LINES: usize = 8192;
    let (path, written) = (fresh_file("tap-slow.jsonl"), fresh_file("tap-slow-written"));
    let line = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{}\"}}\n", "x".repeat(990));
    let script = format!(
        "line='{}'; i=0; while [ $i -lt {LINES} ]; do echo \"$line\"; i=$((i + 1)); done; echo > {}",
        line.trim_end(),
        written.display()
    );
    let mut tap = pintle()
        .args(["tap", "-o", path.to_str().unwrap(), "--", "sh", "-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = tap.stdout.take().unwrap();
    // Two pipes and the chunks between them hold less than the rest of it.
    let mut received = vec![0; 1 << 20];
    output.read_exact(&mut received).unwrap();
    assert!(!written.exists(), "the program has written 8 MiB that nobody has read");
    output.read_to_end(&mut received).unwrap();
    assert!(received == line.repeat(LINES).as_bytes(), "{} bytes", received.len());
    assert_eq!(tap.wait().unwrap().code(), Some(0));
    assert!(written.exists());
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(&written).unwrap();
}

#[test]
fn a_client_finds_the_same_server() {
    let program = env!("CARGO_BIN_EXE_pintle");
    let path = fresh_file("tap.jsonl");
    let file = path.to_str().unwrap();
    let call = ["call", "berth", "--answer", "boat=Tern", "--answer", "nights=3", "--era"];
    for (era, opening) in [("stateless", "→ server/discover"), ("session", "→ initialize")] {
        let with = |end: &[&str]| typed(&[&call[..], &[era, "--"], end].concat());
        let direct = with(&[program, "demo"]);
        let tapped = with(&[program, "tap", "-o", file, "--", program, "demo"]);
        assert_eq!(direct.code, Some(0));
        assert_eq!(tapped, direct);
        let recorded = methods(&path);
        assert_eq!(recorded[0], opening);
        assert_eq!(recorded.last().map(String::as_str), Some("← result"), "{recorded:?}");
        assert_eq!(era == "session", recorded.contains(&"← elicitation/create".to_owned()), "{recorded:?}");
        // Nor are answers.
        assert!(!std::fs::read_to_string(&path).unwrap().contains("Tern\""));
        std::fs::remove_file(&path).unwrap();
    }
    // Without a file they are on standard error, beside that of the program.
    let shown = typed(&["ping", "-v", "--", program, "tap", "--", program, "demo"]);
    assert!(
        shown.stderr.lines().any(|line| line.starts_with("stderr: ") && line.contains(" ← result ")),
        "{shown:?}"
    );
}

#[test]
#[cfg(unix)]
fn a_configured_program_is_started_as_its_entry_says() {
    let machine = Machine::new("tap-name");
    let script = "printf '%s %s %s' \"$1\" \"$GREETING\" \"${PWD##*/}\"";
    let entry = serde_json::json!({
        "command": "sh", "args": ["-c", script, "sh", "one word"], "env": {"GREETING": "hello"}, "cwd": machine.path("home"),
    });
    machine
        .write("home/.cursor/mcp.json", &serde_json::json!({"mcpServers": {"greeter": entry}}).to_string());
    let printed = machine.typed(&["tap", "greeter"]);
    assert_eq!((printed.code, printed.stdout.as_str()), (Some(0), "one word hello home"), "{printed:?}");
    // A server of a host, in place of its own command.
    let demo = serde_json::json!({"command": env!("CARGO_BIN_EXE_pintle"), "args": ["demo"]});
    machine.write("home/.cursor/mcp.json", &serde_json::json!({"mcpServers": {"harbour": demo}}).to_string());
    let called =
        ["call", "tide", "port=bergen", "hour=4", "--", env!("CARGO_BIN_EXE_pintle"), "tap", "harbour"];
    let printed = run(machine.command().args(called));
    assert_eq!(printed.stdout, "{\"metres\":0.6,\"rising\":true}\n", "{printed:?}");
}

/// Starts a tap of a shell script, waits for a line of it, and sends a signal.
#[cfg(unix)]
fn signalled(script: &str, signal: rustix::process::Signal) -> Printed {
    let mut tap = pintle()
        .args(["tap", "--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 6];
    tap.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    assert_eq!(&ready, b"ready\n");
    rustix::process::kill_process(rustix::process::Pid::from_child(&tap), signal).unwrap();
    // Its input stays open meanwhile.
    let input = tap.stdin.take();
    let ended = tap.wait_with_output().unwrap();
    drop(input);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Printed { code: ended.status.code(), stdout: text(ended.stdout), stderr: text(ended.stderr) }
}

#[test]
#[cfg(unix)]
fn signals_are_passed_on() {
    use rustix::process::Signal;

    let waits = |signal: &str| {
        format!("trap 'echo got {signal}; exit 9' {signal}; exec 3<&0; cat <&3 & echo ready; wait")
    };
    for (signal, name) in
        [(Signal::TERM, "TERM"), (Signal::INT, "INT"), (Signal::HUP, "HUP"), (Signal::USR1, "USR1")]
    {
        let ended = signalled(&waits(name), signal);
        assert_eq!((ended.code, ended.stdout), (Some(9), format!("got {name}\n")), "{}", ended.stderr);
    }
    // A program that ignores it is killed.
    let ended = signalled("trap '' TERM; echo ready; exec cat", Signal::TERM);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(137), ""));
    // One that was killed is one for the host too.
    assert_eq!(typed(&["tap", "--", "sh", "-c", "kill -KILL $$"]).code, Some(137));
}
