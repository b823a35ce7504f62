//! Processes that are ended when their time is up, with all that they started.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// A process that does not outlive this value.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    /// Starts a command with its output in `log`.
    pub(crate) fn start(command: &mut Command, log: &Path) -> io::Result<Self> {
        let log = File::create(log)?;
        Self::start_apart(command, log.try_clone()?, log)
    }

    /// Starts a command whose answers are not to be mixed with its complaints.
    pub(crate) fn start_apart(command: &mut Command, answers: File, complaints: File) -> io::Result<Self> {
        command.stdin(Stdio::null()).stdout(answers).stderr(complaints);
        own_group(command);
        Ok(Self(command.spawn()?))
    }

    /// Starts a server and waits for the line with its address.
    pub(crate) fn serve(command: &mut Command, log: &Path, timeout: Duration) -> io::Result<(Self, String)> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(log)?);
        own_group(command);
        let mut process = Self(command.spawn()?);
        let stdout = process.0.stdout.take();
        let (found, line) = mpsc::sync_channel(1);
        thread::spawn(move || {
            let mut lines = stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines());
            // The receiver may have timed out.
            let _ = found.send(lines.next());
            // Read on, or the server's next line would find no reader.
            lines.for_each(drop);
        });
        match line.recv_timeout(timeout) {
            Ok(Some(Ok(line))) => Ok((process, line)),
            Ok(Some(Err(error))) => Err(error),
            Ok(None) => Err(io::Error::other("the server ended before it printed its address")),
            Err(_) => Err(io::Error::other("the server did not print its address in time")),
        }
    }

    /// Waits for the end; `None` if there was none in time.
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<Option<ExitStatus>> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(Some(status));
            }
            if start.elapsed() > timeout {
                return Ok(None);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Sends it what Ctrl-C does.
    pub(crate) fn interrupt(&self) -> io::Result<()> {
        Command::new("kill").args(["-INT", &self.0.id().to_string()]).status().map(drop)
    }

    /// Whether it still runs.
    pub(crate) fn runs(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.runs() {
            end_group(self.0.id());
            // It may have gone by itself meanwhile.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

#[cfg(unix)]
fn own_group(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    command.process_group(0);
}

#[cfg(not(unix))]
fn own_group(_: &mut Command) {}

/// The suite starts clients of its own, which would be left behind.
fn end_group(leader: u32) {
    if cfg!(unix) {
        let _ =
            Command::new("kill").args(["-KILL", "--", &format!("-{leader}")]).stderr(Stdio::null()).status();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_process_that_never_ends_is_given_up_and_ended() {
        let mut process = Process::start(&mut shell("sleep 600"), Path::new("/dev/null")).unwrap();
        assert_eq!(process.wait(Duration::from_millis(50)).unwrap(), None);
        let id = process.0.id();
        drop(process);
        let alive = Command::new("kill").args(["-0", &id.to_string()]).stderr(Stdio::null()).status();
        assert!(!alive.unwrap().success());
    }

    #[test]
    fn a_server_prints_its_address_or_is_an_error() {
        let serve =
            |script: &str| Process::serve(&mut shell(script), Path::new("/dev/null"), Duration::from_secs(5));
        let (mut process, line) = serve("echo http://here; sleep 600").unwrap();
        assert_eq!(line, "http://here");
        assert!(process.runs());
        let error = serve("exit 3").unwrap_err();
        assert_eq!(error.to_string(), "the server ended before it printed its address");
    }
}
