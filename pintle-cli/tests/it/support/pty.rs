//! The command in a pseudo-terminal.

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    process::{Child, Command, Stdio},
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
    let (mut terminal, side) = open(columns);
    command.stdin(Stdio::null()).stdout(side.try_clone().unwrap()).stderr(side.try_clone().unwrap());
    if let Some(typed) = typed {
        command.stdin(side);
        terminal.write_all(typed.as_bytes()).unwrap();
    } else {
        drop(side);
    }
    let mut process = command.spawn().unwrap();
    // Its copies of the terminal are closed, so that reading ends with the process.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let shown = read_to_end(terminal);
    (process.wait().unwrap().code(), shown)
}

/// Runs the command with a terminal as its standard streams, at which pieces are typed one after the other, each when
/// its text was shown.
pub(crate) fn answer_in_terminal(
    words: &[&str],
    columns: u16,
    pieces: &[(&str, &str)],
) -> (Option<i32>, String) {
    let mut command = super::pintle();
    command.args(words).env("NO_COLOR", "1");
    converse(&command, columns, pieces)
}

/// Runs a command with a terminal as its standard streams. Each piece is typed when its text was shown after that of the piece before.
pub(crate) fn converse(own: &Command, columns: u16, pieces: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut session = TerminalSession::start(own, columns);
    for (expected, typed) in pieces {
        session.expect(expected);
        session.type_text(typed);
    }
    session.finish()
}

/// A command at a terminal of its own.
pub(crate) struct TerminalSession {
    terminal: File,
    process: Child,
    shown: Vec<u8>,
    /// How much of it was expected.
    seen: usize,
}

impl TerminalSession {
    /// Starts a command in a session of its own, so that Ctrl-C reaches it.
    pub(crate) fn start(own: &Command, columns: u16) -> Self {
        let (terminal, side) = open(columns);
        // `timeout` is not in that session: it would send the signals of the terminal to the command a second time.
        let mut command = Command::new("timeout");
        command
            .args(["--kill-after=1", "60"])
            .args(["setsid", "--ctty", "--wait"])
            .arg(own.get_program())
            .args(own.get_args());
        for (name, value) in own.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.stdin(side.try_clone().unwrap()).stdout(side.try_clone().unwrap()).stderr(side);
        let process = command.spawn().unwrap();
        Self { terminal, process, shown: Vec::new(), seen: 0 }
    }

    /// Waits until a text is shown, after the one that was expected before.
    pub(crate) fn expect(&mut self, expected: &str) {
        let mut chunk = [0; 4096];
        loop {
            let mut new = self.shown[self.seen..].windows(expected.len().max(1));
            if expected.is_empty() {
                return;
            }
            if let Some(at) = new.position(|window| window == expected.as_bytes()) {
                self.seen += at + expected.len();
                return;
            }
            match self.terminal.read(&mut chunk) {
                Ok(count @ 1..) => self.shown.extend_from_slice(&chunk[..count]),
                _ => {
                    let (before, after) = self.shown.split_at(self.seen);
                    let text = String::from_utf8_lossy;
                    panic!("{expected:?} is not in {:?}, after {:?}", text(after), text(before));
                }
            }
        }
    }

    pub(crate) fn type_text(&mut self, typed: &str) {
        self.terminal.write_all(typed.as_bytes()).unwrap();
    }

    /// Waits for the end. Returns the exit code, and all that was shown.
    pub(crate) fn finish(mut self) -> (Option<i32>, String) {
        let rest = read_to_end(self.terminal);
        let shown = String::from_utf8(self.shown).unwrap().replace("\r\n", "\n") + &rest;
        (self.process.wait().unwrap().code(), shown)
    }
}

fn open(columns: u16) -> (File, File) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let path = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let side = OpenOptions::new().read(true).write(true).open(path).unwrap();
    (File::from(terminal), side)
}

fn read_to_end(mut terminal: File) -> String {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    // On Linux, a terminal without another side fails to read.
    while let Ok(count @ 1..) = terminal.read(&mut chunk) {
        bytes.extend_from_slice(&chunk[..count]);
    }
    String::from_utf8(bytes).unwrap().replace("\r\n", "\n")
}
