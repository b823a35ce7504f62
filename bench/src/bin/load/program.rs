//! Programs that are started, watched and ended: servers, and clients of other SDKs.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::cores::Cores;

/// A program that can be started.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) words: Vec<String>,
    pub(crate) cores: Option<Cores>,
}

/// One that runs. It ends when this is dropped, or when its time is up.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) child: Child,
    /// Dropped with this, and then nobody is watching any more.
    _watched: mpsc::SyncSender<()>,
}

impl Program {
    /// Reads `name=program and its arguments`.
    pub(crate) fn parse(text: &str, cores: Option<Cores>) -> Option<Self> {
        let (name, command) = text.split_once('=')?;
        let words: Vec<_> = command.split_whitespace().map(str::to_owned).collect();
        (!words.is_empty()).then(|| Self { name: name.to_owned(), words, cores })
    }

    /// Starts it on the other core, for no longer than `timeout`.
    pub(crate) fn start(&self, arguments: &[&str], timeout: Duration) -> Result<Running, String> {
        let start = || self.start_here(arguments, timeout);
        self.cores.map_or_else(start, |cores| cores.over_there(start))
    }

    /// Starts it on our core.
    pub(crate) fn start_here(&self, arguments: &[&str], timeout: Duration) -> Result<Running, String> {
        let (program, words) = self.words.split_first().ok_or("it has no program")?;
        let mut command = Command::new(program);
        command.args(words).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| format!("`{program}`: {error}"))?;
        let (watched, left) = mpsc::sync_channel(1);
        let id = child.id();
        // A blocked read of ours ends when the process does.
        thread::spawn(move || {
            if left.recv_timeout(timeout) == Err(mpsc::RecvTimeoutError::Timeout) {
                let _ = Command::new("kill").args(["-KILL", &id.to_string()]).stderr(Stdio::null()).status();
            }
        });
        Ok(Running { child, _watched: watched })
    }

    /// Starts it as an HTTP server; where it is.
    pub(crate) fn serve_http(&self, more: &[&str], timeout: Duration) -> Result<(Running, String), String> {
        let mut running = self.start(&[&["http"], more].concat(), timeout)?;
        let stdout = running.child.stdout.take().ok_or("it has no output")?;
        let mut line = String::new();
        let mut stdout = BufReader::new(stdout);
        stdout.read_line(&mut line).map_err(|error| error.to_string())?;
        // What else it prints has to go somewhere, or it would wait.
        thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
        let address = line.trim();
        match address.is_empty() {
            true => Err("it exited before it printed its address".to_owned()),
            false => Ok((running, address.to_owned())),
        }
    }
}

impl Running {
    /// CPU time of all its threads, when they have come to rest. Those that have ended are not in it.
    pub(crate) fn cpu(&self) -> Result<Duration, String> {
        // The time since the last tick of a running thread is not included: up to four milliseconds.
        for _ in 0..20 {
            if !self.threads("stat")?.iter().any(|stat| runs(stat)) {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        let spent = self.threads("schedstat")?.iter().map(|stat| number(stat, 0)).sum::<Option<u64>>();
        Ok(Duration::from_nanos(spent.ok_or("schedstat has no number")?))
    }

    /// Returns the contents of this file for each thread.
    fn threads(&self, file: &str) -> Result<Vec<String>, String> {
        let error = |error: std::io::Error| format!("CPU time is read from /proc, on Linux: {error}");
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id())).map_err(error)?;
        // One may end meanwhile.
        Ok(threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join(file)).ok()).collect())
    }

    /// Bytes of it that are in memory.
    pub(crate) fn resident(&self) -> Result<u64, String> {
        let pages = fs::read_to_string(format!("/proc/{}/statm", self.child.id()))
            .map_err(|error| format!("memory is read from /proc, on Linux: {error}"))?;
        Ok(number(&pages, 1).ok_or("statm has no second number")? * 4096)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a line of `stat` is that of a thread that runs: its name is in brackets, and may hold anything.
fn runs(stat: &str) -> bool {
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('R'))
}

fn number(text: &str, nth: usize) -> Option<u64> {
    text.split_whitespace().nth(nth)?.parse().ok()
}

/// CPU time of this thread.
#[cfg(target_os = "linux")]
pub(crate) fn own_cpu() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), spent.tv_nsec.unsigned_abs() as u32)
}

/// CPU time of this thread: not known here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn own_cpu() -> Duration {
    Duration::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_a_name_and_arguments() {
        let program = Program::parse("typescript=node server.mjs", None).unwrap();
        assert_eq!(
            (program.name.as_str(), program.words.join("|").as_str()),
            ("typescript", "node|server.mjs")
        );
        assert!(Program::parse("limit", None).is_none());
        assert!(Program::parse("limit= ", None).is_none());
    }

    #[test]
    fn a_thread_runs_or_not_whatever_its_name_is() {
        assert!(runs("12 (a (b) S) R 1 2 3"));
        assert!(!runs("12 (node R) S 1 2 3"));
    }

    #[test]
    fn a_program_that_says_nothing_is_ended_when_its_time_is_up() {
        let program = Program::parse("sleepy=sleep 600", None).unwrap();
        let mut running = program.start_here(&[], Duration::from_millis(20)).unwrap();
        assert!(!running.child.wait().unwrap().success());
    }
}
