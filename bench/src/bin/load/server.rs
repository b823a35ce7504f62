use std::{
    fs,
    process::{Command, Stdio},
    time::Duration,
};

/// A server that can be started.
pub(crate) struct Program {
    pub(crate) name: String,
    path: String,
}

/// One that runs. It ends when this is dropped.
pub(crate) struct Running {
    pub(crate) child: tokio::process::Child,
    pub(crate) pid: u32,
}

impl Program {
    /// Reads `name=program`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (name, path) = text.split_once('=')?;
        Some(Self { name: name.to_owned(), path: path.to_owned() })
    }

    /// Starts it, on another core than ours if we have one of our own.
    pub(crate) fn start(&self, transport: &str, pinned: bool) -> Result<Running, String> {
        let mut command = if pinned {
            let mut command = tokio::process::Command::new("taskset");
            command.args(["-c", THEIRS, &self.path]);
            command
        } else {
            tokio::process::Command::new(&self.path)
        };
        command.arg(transport).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child =
            command.kill_on_drop(true).spawn().map_err(|error| format!("`{}`: {error}", self.path))?;
        let pid = child.id().ok_or("it ended at once")?;
        Ok(Running { child, pid })
    }
}

impl Running {
    /// CPU time of all its threads. Those that have ended are not in it.
    pub(crate) fn cpu(&self) -> Result<Duration, String> {
        let error = |error: std::io::Error| format!("CPU time is read from /proc, on Linux: {error}");
        let mut nanoseconds = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.pid)).map_err(error)? {
            let stat = fs::read_to_string(thread.map_err(error)?.path().join("schedstat")).map_err(error)?;
            nanoseconds += first_number(&stat).ok_or("schedstat has no number")?;
        }
        Ok(Duration::from_nanos(nanoseconds))
    }
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

const OURS: &str = "0";
const THEIRS: &str = "1";

/// Keeps this thread to one core, if the other one is there for the servers.
pub(crate) fn pin_self() -> bool {
    let works = |command: &mut Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    works(Command::new("taskset").args(["-c", THEIRS, "true"]))
        && works(Command::new("taskset").args(["-c", "-p", OURS, &std::process::id().to_string()]))
}
