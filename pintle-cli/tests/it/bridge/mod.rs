//! `pintle bridge` as a process, between clients of this process and servers.

#[cfg(target_os = "linux")]
pub(crate) mod chaos;
#[cfg(unix)]
mod ending;
mod exposure;
mod login;
mod matrix;
mod matrix_server;
#[cfg(target_os = "linux")]
mod open_files;
mod principals;
#[cfg(target_os = "linux")]
pub(crate) mod programs;
#[cfg(target_os = "linux")]
mod sessions;

use std::sync::{Arc, Mutex, PoisonError};

use pintle::transport::{Child, ChildCommand, Stderr};

use crate::support::machine::Machine;

/// A bridge on standard streams, as a host starts it: without a terminal. What it prints to standard error is collected.
struct HostedBridge {
    command: ChildCommand,
    stderr: Arc<Mutex<Vec<String>>>,
}

impl HostedBridge {
    fn new(machine: &Machine, words: &[&str]) -> Self {
        let stderr = Arc::<Mutex<Vec<String>>>::default();
        let lines = stderr.clone();
        let command = Child::command(env!("CARGO_BIN_EXE_pintle"))
            .arg("bridge")
            .args(words)
            .env("HOME", machine.path("home"))
            .env("USERPROFILE", machine.path("home"))
            .env("LOCALAPPDATA", machine.path("home"))
            .stderr(Stderr::lines(move |line| {
                lines.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
            }));
        Self { command, stderr }
    }

    fn env(mut self, name: &str, value: &str) -> Self {
        self.command = self.command.env(name, value);
        self
    }

    fn spawn(&self) -> Child {
        self.command.clone().spawn().unwrap()
    }

    fn stderr(&self) -> String {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }
}
