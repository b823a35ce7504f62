use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::lines::{Line, lines, watched};
use super::server::{VerbRow, ours};
use crate::interop::install::InstalledSdks;
use crate::interop::rows::Transport;
use crate::process::Process;

const START: Duration = Duration::from_secs(30);
/// A line takes a second or two.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Types all lines at a server. Returns their number, and the command line and output of each that did not do what it should.
pub(super) fn row(row: &VerbRow, peers: &InstalledSdks, folder: &Path) -> (usize, Vec<String>) {
    // The last line is of `watch`.
    let typed = lines(row.server).count() + 1;
    match Session::start(row, peers, folder) {
        Ok(session) => {
            let mut faults: Vec<_> = lines(row.server).filter_map(|line| session.check(&line)).collect();
            faults.extend(session.check_watch());
            (typed, faults)
        }
        Err(error) => (typed, vec![format!("{}: the server cannot be started: {error}", row.name())]),
    }
}

/// A server, and the folder of the commands.
struct Session<'a> {
    row: &'a VerbRow,
    folder: &'a Path,
    /// Where the server is, over HTTP.
    url: Option<String>,
    /// The words that start it, on standard streams.
    program: Vec<String>,
    _served: Option<Process>,
}

/// The output of a command, and its exit code.
struct Printed {
    code: Option<i32>,
    text: String,
}

impl<'a> Session<'a> {
    fn start(row: &'a VerbRow, peers: &InstalledSdks, folder: &'a Path) -> io::Result<Self> {
        // What an earlier run stored there.
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder)?;
        let (mut url, mut program, mut served) = (None, Vec::new(), None);
        match row.transport {
            Transport::Stdio => program = row.server.on_stdio(peers),
            Transport::Http => {
                let mut command = row.server.on_http(peers);
                let (process, line) = Process::serve(&mut command, &folder.join("server.log"), START)?;
                (url, served) = (Some(line), Some(process));
            }
        }
        Ok(Self { row, folder, url, program, _served: served })
    }

    /// Returns the words of a command line.
    fn words(&self, verb: &str, words: &[&str]) -> Vec<String> {
        let target = self.url.iter().map(String::as_str);
        let program = (!self.program.is_empty()).then_some("--").into_iter();
        let program = program.chain(self.program.iter().map(String::as_str));
        let words = verb.split(' ').chain(target).chain(words.iter().copied());
        words.chain(["--era", self.row.era.as_str()]).chain(program).map(str::to_owned).collect()
    }

    fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new(ours("pintle"));
        // Neither what the user has configured nor what other rows have stored.
        command.args(words).current_dir(self.folder).env("HOME", self.folder).env("NO_COLOR", "1");
        command.env("PINTLE_STATE_DIR", self.folder.join("state"));
        command.env("PINTLE_CACHE_DIR", self.folder.join("cache")).env_remove("XDG_CONFIG_HOME");
        command
    }

    /// Starts a command with its output in a file.
    fn spawn(&self, words: &[String], file: &str) -> io::Result<Process> {
        let file = File::create(self.folder.join(file))?;
        Process::start_apart(&mut self.command(words), file.try_clone()?, file)
    }

    fn end(&self, mut process: Process, file: &str) -> io::Result<Printed> {
        let status = process.wait(TIMEOUT)?;
        let text = fs::read(self.folder.join(file))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(Printed { code: status.and_then(|status| status.code()), text })
    }

    fn check(&self, line: &Line) -> Option<String> {
        let words = self.words(line.verb, line.words);
        let printed = self.spawn(&words, "output").and_then(|process| self.end(process, "output"));
        self.judge(&words, printed, line.code, line.prints)
    }

    /// Watches a server that a call changes. Where each command has a server of its own, it is only watched, and interrupted.
    fn check_watch(&self) -> Option<String> {
        let watched = watched(self.row.server);
        let is_shared = self.row.is_shared();
        let (code, prints) = if is_shared { (0, watched.prints) } else { (130, "watching") };
        let words = self.words("watch", &[watched.words, &["--count", "1"]].concat());
        let printed = self.spawn(&words, "watched").and_then(|process| {
            self.wait_for("watched", "watching")?;
            match is_shared {
                true => {
                    let call = self.words("call", watched.call);
                    drop(self.end(self.spawn(&call, "output")?, "output")?);
                }
                false => process.interrupt()?,
            }
            self.end(process, "watched")
        });
        self.judge(&words, printed, code, prints)
    }

    /// Waits until a file has a text, or for as long as a line may take.
    fn wait_for(&self, file: &str, text: &str) -> io::Result<()> {
        let start = Instant::now();
        while !fs::read_to_string(self.folder.join(file))?.contains(text) && start.elapsed() < TIMEOUT {
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn judge(
        &self,
        words: &[String],
        printed: io::Result<Printed>,
        code: i32,
        prints: &str,
    ) -> Option<String> {
        let printed = match printed {
            Ok(printed) if printed.code == Some(code) && printed.text.contains(prints) => return None,
            Ok(printed) => printed,
            Err(error) => Printed { code: None, text: error.to_string() },
        };
        let ended = printed.code.map_or("no exit code".to_owned(), |code| format!("exit code {code}"));
        Some(format!(
            "{}: pintle {}\n  {ended}, expected {code} and `{}`; it printed\n{}",
            self.row.name(),
            words.join(" "),
            prints.trim_end(),
            printed.text
        ))
    }
}
