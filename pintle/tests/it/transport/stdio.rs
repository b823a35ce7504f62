use std::{
    fs,
    io::{self, BufRead, BufReader, Seek, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::Stdio as Streams,
    sync::{Arc, Mutex},
};

use pintle::transport::Stderr;
use rustix::fs::{OFlags, fcntl_getfl};

use crate::support::{
    child_servers,
    transport_calls::{recv, send},
};

#[tokio::test]
async fn stray_output_goes_to_standard_error_and_never_on_the_wire() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let log = lines.clone();
    let stderr = Stderr::lines(move |line| log.lock().unwrap().push(line.to_owned()));
    let mut child = child_servers::command("echo").stderr(stderr).spawn().unwrap();
    while recv(&mut child).await.unwrap() != "ready" {}
    for n in ["1", "2"] {
        send(&mut child, n).await;
        // And a second `Stdio` is refused.
        assert_eq!(recv(&mut child).await.unwrap(), format!("{n} AlreadyExists"));
    }
    let exit = child.shutdown().await;
    assert_eq!(exit.to_string(), "exited with status 0");
    let stray = lines.lock().unwrap().concat();
    assert_eq!(stray.matches("stray line").count(), 2, "{stray}");
    assert_eq!(stray.matches("stray child").count(), 2, "{stray}");
}

/// What a server answers to `1` and the end of its input, when its streams are these.
fn answers(mut output: impl BufRead) -> Vec<String> {
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    text.lines().skip_while(|line| *line != "ready").skip(1).map(Into::into).collect()
}

#[test]
fn a_host_may_give_sockets() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let output = OwnedFd::from(theirs.try_clone().unwrap());
    let mut command = child_servers::std_command("echo");
    let mut child =
        command.stdin(OwnedFd::from(theirs)).stdout(output).stderr(Streams::null()).spawn().unwrap();
    drop(command);
    (&ours).write_all(b"1\n").unwrap();
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(answers(BufReader::new(ours)), ["1 AlreadyExists"]);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_host_may_give_files() {
    let path = |name| std::env::temp_dir().join(format!("pintle-{name}-{}", std::process::id()));
    let (input, output) = (path("input"), path("output"));
    fs::write(&input, "1\n2\n").unwrap();
    let mut written =
        fs::File::options().create(true).truncate(true).read(true).write(true).open(&output).unwrap();
    let mut command = child_servers::std_command("echo");
    command.stdin(fs::File::open(&input).unwrap()).stdout(written.try_clone().unwrap());
    command.stderr(Streams::null());
    assert!(command.status().unwrap().success());
    written.rewind().unwrap();
    assert_eq!(answers(BufReader::new(written)), ["1 AlreadyExists", "2 AlreadyExists"]);
    fs::remove_file(input).unwrap();
    fs::remove_file(output).unwrap();
}

/// Whether an open file blocks is the same for all who hold it, and who is killed puts nothing back.
#[cfg(target_os = "linux")]
#[test]
fn pipes_that_others_share_block_also_after_a_signal() {
    let (output, theirs) = io::pipe().unwrap();
    let (input, mut ours) = io::pipe().unwrap();
    let shared: [OwnedFd; 2] = [input.try_clone().unwrap().into(), theirs.try_clone().unwrap().into()];
    let blocks = || shared.iter().all(|file| !fcntl_getfl(file).unwrap().contains(OFlags::NONBLOCK));
    let mut command = child_servers::std_command("echo");
    let mut child = command.stdin(input).stdout(theirs).stderr(Streams::null()).spawn().unwrap();
    drop(command);
    ours.write_all(b"1\n").unwrap();
    let mut lines = BufReader::new(output).lines();
    assert!(lines.by_ref().any(|line| line.unwrap() == "1 AlreadyExists"));
    assert!(blocks(), "while it runs");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(blocks(), "after it was killed");
}

#[test]
fn standard_error_on_the_same_pipe_is_silenced_and_the_pipes_are_left_as_they_were() {
    let (output, theirs) = io::pipe().unwrap();
    let (input, mut ours) = io::pipe().unwrap();
    let shared = input.try_clone().unwrap();
    let mut command = child_servers::std_command("echo");
    command.stdin(input).stdout(theirs.try_clone().unwrap()).stderr(theirs);
    let mut child = command.spawn().unwrap();
    drop(command);
    ours.write_all(b"1\n").unwrap();
    drop(ours);
    assert_eq!(answers(BufReader::new(output)), ["1 AlreadyExists"]);
    assert!(child.wait().unwrap().success());
    // What is shared with others blocks again.
    assert!(!fcntl_getfl(shared).unwrap().contains(OFlags::NONBLOCK));
}
