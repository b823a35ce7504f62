//! The command in a pseudo-terminal.

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    process::{Command, Stdio},
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

/// Runs a command whose standard output and standard error are a terminal, and returns what arrived there.
pub(crate) fn run_in_terminal(command: &mut Command, columns: u16) -> (Option<i32>, String) {
    run_with(command, columns, None)
}

/// Runs a command in a terminal where this is typed, before the command reads it.
pub(crate) fn type_in_terminal(command: &mut Command, columns: u16, typed: &str) -> (Option<i32>, String) {
    run_with(command, columns, Some(typed))
}

fn run_with(command: &mut Command, columns: u16, typed: Option<&str>) -> (Option<i32>, String) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let path = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let side = OpenOptions::new().read(true).write(true).open(path).unwrap();
    command.stdin(Stdio::null()).stdout(side.try_clone().unwrap()).stderr(side.try_clone().unwrap());
    let mut terminal = File::from(terminal);
    if let Some(typed) = typed {
        command.stdin(side);
        terminal.write_all(typed.as_bytes()).unwrap();
    } else {
        drop(side);
    }
    let mut process = command.spawn().unwrap();
    // Its copies of the terminal are closed, so that reading ends with the process.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    // On Linux, a terminal without another side fails to read.
    while let Ok(count @ 1..) = terminal.read(&mut chunk) {
        bytes.extend_from_slice(&chunk[..count]);
    }
    let status = process.wait().unwrap();
    (status.code(), String::from_utf8(bytes).unwrap().replace("\r\n", "\n"))
}
