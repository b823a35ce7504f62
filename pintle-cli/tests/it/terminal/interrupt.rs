//! Ctrl-C during a call.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    path::PathBuf,
    process::{Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::pintle;

/// Makes a folder with a named pipe, and a script that serves the demo. The server and a process of its own hold the pipe open while
/// they live.
pub(crate) fn demo_with_fifo(test: &str) -> (PathBuf, PathBuf, String) {
    let folder = std::env::temp_dir().join(format!("pintle-cli-{test}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let fifo = folder.join("alive");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let script = format!(
        "exec 3> '{}'; cat <&3 > /dev/null 2>&1 & '{}' demo",
        fifo.display(),
        env!("CARGO_BIN_EXE_pintle")
    );
    (folder, fifo, script)
}

#[test]
fn it_cancels_the_call_and_leaves_no_process() {
    let (folder, fifo, script) = demo_with_fifo("interrupt");
    let mut command = pintle();
    command.args(["call", "anchor", "-v", "--", "sh", "-c", &script]);
    let mut process =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut alive = fs::File::open(&fifo).unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("the anchor holds")));
    kill_process(Pid::from_child(&process), Signal::INT).unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(130));
    // Ends when all of them are gone.
    assert_eq!(alive.read_to_end(&mut Vec::new()).unwrap(), 0);
    fs::remove_dir_all(&folder).unwrap();
}

/// At a terminal, the progress bar is shown meanwhile.
#[test]
#[cfg(target_os = "linux")]
fn it_does_so_at_a_terminal() {
    let (folder, fifo, script) = demo_with_fifo("terminal");
    let alive =
        std::thread::spawn(move || fs::File::open(&fifo).unwrap().read_to_end(&mut Vec::new()).unwrap());
    let words = ["call", "anchor", "--", "sh", "-c", &script];
    let (code, shown) = crate::support::pty::answer_in_terminal(&words, 40, &[("the anchor holds", "\u{3}")]);
    assert_eq!(code, Some(130), "{shown}");
    // Ends when all of them are gone.
    assert_eq!(alive.join().unwrap(), 0);
    fs::remove_dir_all(&folder).unwrap();
}
