//! A server on stdio that is spoken to one message after the other, and its CPU time.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// CPU milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spent {
    /// Those of the server itself.
    pub(super) own: f64,
    /// Those of the processes that it has started, too.
    pub(super) all: f64,
}

/// A server in a session.
pub(super) struct SpokenServer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    asked: u64,
}

impl SpokenServer {
    /// Starts a server, and a session with it.
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the server has no pipes"));
        };
        let mut server = Self { child, input, output: BufReader::new(output), asked: 0 };
        let client = json!({ "name": "bench", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        server.ask("initialize", &params)?;
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(server)
    }

    /// Sends a request, and returns its result.
    pub(super) fn ask(&mut self, method: &str, params: &Value) -> io::Result<Value> {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err(io::Error::other(format!("the server ended before it answered `{method}`")));
            }
            let mut message: Value = serde_json::from_str(&line)?;
            match message["result"].take() {
                result if message["id"] == id && !result.is_null() => return Ok(result),
                _ if message["id"] == id => return Err(io::Error::other(line)),
                // A notification.
                _ => {}
            }
        }
    }

    /// Ends the session, and returns what all of it took. A worker still runs then, and nobody waits for it.
    pub(super) fn end(mut self) -> io::Result<Spent> {
        let id = self.child.id();
        let (own, ended) = times(&fs::read_to_string(format!("/proc/{id}/stat"))?).ok_or_else(unreadable)?;
        let mut running = 0.0;
        for entry in fs::read_dir("/proc")? {
            // It may have ended meanwhile.
            let Ok(stat) = fs::read_to_string(entry?.path().join("stat")) else { continue };
            if parent(&stat) == Some(id) {
                running += times(&stat).map_or(0.0, |(own, ended)| own + ended);
            }
        }
        drop(self.input);
        self.child.wait()?;
        Ok(Spent { own, all: own + ended + running })
    }

    fn send(&mut self, message: &Value) -> io::Result<()> {
        self.input.write_all(format!("{message}\n").as_bytes())?;
        self.input.flush()
    }
}

/// Returns the CPU milliseconds of all processes that this one has waited for.
pub(super) fn cpu_of_children() -> io::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    times(&stat).map(|(_, children)| children).ok_or_else(unreadable)
}

fn unreadable() -> io::Error {
    io::Error::other("`/proc/…/stat` cannot be read")
}

/// Reads the number of the parent of a process.
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Reads the CPU milliseconds of a process, and of those that it has waited for.
fn times(stat: &str) -> Option<(f64, f64)> {
    // The name of the process may have spaces; it is in parentheses.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    // Always 100 a second on Linux.
    let milliseconds = |at: usize| fields.get(at)?.parse::<f64>().ok().map(|ticks| ticks * 10.0);
    Some((milliseconds(11)? + milliseconds(12)?, milliseconds(13)? + milliseconds(14)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_behind_the_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 1 2 3 4 11 12 130 20 20 0 1 0 5 6 7";
        assert_eq!(times(stat), Some((230.0, 1_500.0)));
        assert_eq!(parent(stat), Some(1));
        assert_eq!(times("7 (a"), None);
    }
}
