//! The command as a person types it.

use std::process::{Command, Output, Stdio};

pub(crate) fn pintle() -> Command {
    Command::new(env!("CARGO_BIN_EXE_pintle"))
}

fn typed(words: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = pintle().args(words).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[test]
fn help_says_what_there_is() {
    let (code, told, complained) = typed(&["help"]);
    assert_eq!((code, complained.as_str()), (Some(0), ""));
    for command in ["pintle demo", "pintle help", "pintle version"] {
        assert!(told.contains(command), "{told}");
    }
}

#[test]
fn a_mistake_is_one_line_that_says_what_to_do() {
    let (code, told, complained) = typed(&["dmeo"]);
    assert_eq!((code, told.as_str()), (Some(2), ""));
    assert_eq!(complained, "pintle: no such command: `dmeo`; did you mean `pintle demo`?\n");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let mut tour = pintle().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(tour.stdout.take());
    let ended = tour.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(0), b"".as_slice()));
}
