//! Running cargo, and saying how to run the same thing by hand.

use std::ffi::OsStr;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::workspace::root;

/// Why a command stopped, and the line to type to see it again.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) what: String,
    pub(crate) repeat: String,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>, repeat: impl Into<String>) -> Self {
        Self { what: what.into(), repeat: repeat.into() }
    }
}

/// One cargo command, run from the workspace root with the toolchain that runs us.
#[derive(Debug)]
pub(crate) struct Cargo {
    args: Vec<String>,
    env: Vec<(&'static str, String)>,
}

impl Cargo {
    /// A command from the words after `cargo`; no word may hold a space.
    pub(crate) fn new(line: &str) -> Self {
        Self { args: line.split_whitespace().map(str::to_owned).collect(), env: Vec::new() }
    }

    /// Adds one word, which may hold spaces.
    pub(crate) fn arg(mut self, word: impl AsRef<OsStr>) -> Self {
        self.args.push(word.as_ref().to_string_lossy().into_owned());
        self
    }

    pub(crate) fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    /// Runs with our own stdout and stderr.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let status = self.command().status().map_err(|error| self.failure(&error.to_string()))?;
        if status.success() { Ok(()) } else { Err(self.failure(&status.to_string())) }
    }

    /// Runs and hands every line of stdout to `look` after printing it.
    pub(crate) fn run_watched(&self, mut look: impl FnMut(&str)) -> Result<(), Failure> {
        let mut child = self
            .command()
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| self.failure(&error.to_string()))?;
        if let Some(stdout) = child.stdout.take() {
            for line in BufReader::new(stdout).split(b'\n') {
                let line = line.map_err(|error| self.failure(&error.to_string()))?;
                let line = String::from_utf8_lossy(&line);
                println!("{line}");
                look(&line);
            }
        }
        let status = child.wait().map_err(|error| self.failure(&error.to_string()))?;
        if status.success() { Ok(()) } else { Err(self.failure(&status.to_string())) }
    }

    /// Runs and returns stdout; stderr is shown only with a failure.
    pub(crate) fn output(&self) -> Result<String, Failure> {
        let output = self.command().output().map_err(|error| self.failure(&error.to_string()))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(self.failure(String::from_utf8_lossy(&output.stderr).trim()))
    }

    /// Whether the command can be run at all; prints nothing.
    pub(crate) fn works(&self) -> bool {
        self.command().output().is_ok_and(|output| output.status.success())
    }

    fn command(&self) -> Command {
        let mut command = Command::new("cargo");
        command.args(&self.args).current_dir(root()).stdin(Stdio::null());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    fn failure(&self, why: &str) -> Failure {
        Failure::new(format!("`{self}`: {why}"), self.to_string())
    }
}

impl fmt::Display for Cargo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.env {
            write!(f, "{name}='{value}' ")?;
        }
        write!(f, "cargo {}", self.args.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_what_a_shell_would_take() {
        let cargo = Cargo::new("doc --workspace").env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(cargo.to_string(), "RUSTDOCFLAGS='-D warnings' cargo doc --workspace");
    }

    #[test]
    fn a_failing_command_says_how_to_repeat_it() {
        let failure = Cargo::new("no-such-command-here").output().unwrap_err();
        assert_eq!(failure.repeat, "cargo no-such-command-here");
    }
}
