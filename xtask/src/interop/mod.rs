//! `cargo xtask interop`: our client with the servers of other SDKs, our server with their clients, our bridge between the two.

mod cells;
mod install;
mod judge;
mod reasons;
mod report;
mod rows;
pub(crate) mod verbs;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use install::InstalledSdks;
use judge::Judged;
use rows::{Peer, Row, TheirRole, Transport};

use crate::cargo::Failure;
use crate::process::Process;
use crate::workspace::{self, build_programs, root, shown, target};

/// Each has two or three processes, and this is about two cores' worth of them.
const AT_ONCE: usize = 3;
/// A row takes seconds, and a cell that hangs is given up after ten.
const TIMEOUT: Duration = Duration::from_secs(100);
const START: Duration = Duration::from_secs(30);
const PAGE: &str = "docs/interop.md";

pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    let only = read(args)?;
    let rows: Vec<Row> = rows::all().filter(|row| takes(&only, row)).collect();
    if rows.is_empty() {
        let names: Vec<_> = rows::all().map(|row| row.name()).collect();
        return Err(wrong(format!("no row has that in its name; there are\n  {}", names.join("\n  "))));
    }
    let start = Instant::now();
    build_programs(&["interop-server", "interop-client", "pintle"])?;
    let peers: Vec<Peer> =
        Peer::ALL.into_iter().filter(|peer| rows.iter().any(|row| row.needs(*peer))).collect();
    let place = target().join("interop");
    let bench = RowRunner { peers: install::install(&place, &peers)?, place };
    let ran = Instant::now();
    let judged = bench.run_all(&rows);

    print!("\n{}", report::table(&judged));
    println!(
        "{} rows in {:.0} s, after {:.0} s of building; the output of all programs is in {}",
        judged.len(),
        ran.elapsed().as_secs_f64(),
        (ran - start).as_secs_f64(),
        shown(&target().join("interop/results"))
    );
    let faults = report::faults(&judged);
    for fault in &faults {
        println!("{fault}");
    }
    if !faults.is_empty() {
        return Err(wrong(format!("{} faults; `{PAGE}` is left as it was", faults.len())));
    }
    if only.is_empty() {
        fs::write(root().join(PAGE), report::page(&judged))
            .map_err(|error| wrong(format!("{PAGE}: {error}")))?;
    }
    Ok(())
}

fn read(args: &[String]) -> Result<Vec<String>, Failure> {
    let mut only = Vec::new();
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        match (flag.as_str(), args.next()) {
            ("--only", Some(value)) => only.push(value.clone()),
            ("--only", None) => return Err(wrong("`--only` needs a value".to_owned())),
            _ => return Err(wrong(format!("no such flag: `{flag}`"))),
        }
    }
    Ok(only)
}

fn takes(only: &[String], row: &Row) -> bool {
    only.is_empty() || only.iter().any(|part| row.name().contains(part.as_str()))
}

/// Where the programs are, and where their words go.
#[derive(Debug)]
struct RowRunner {
    peers: InstalledSdks,
    place: PathBuf,
}

impl RowRunner {
    /// A few at a time; they come back in the order of the rows.
    fn run_all(&self, rows: &[Row]) -> Vec<Judged> {
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(row) = rows.get(at) else { return };
                        let start = Instant::now();
                        let judged = self.run(row);
                        println!("    {} after {:.1} s", row.name(), start.elapsed().as_secs_f64());
                        done.lock().expect("no row panics").push((at, judged));
                    }
                });
            }
        });
        let mut judged = done.into_inner().expect("no row panics");
        judged.sort_by_key(|(at, _)| *at);
        judged.into_iter().map(|(_, judged)| judged).collect()
    }

    fn run(&self, row: &Row) -> Judged {
        let folder = self.place.join("results").join(row.name().replace('/', "_"));
        let (output, fault) = match self.talk(row, &folder) {
            Ok((output, fault)) => (output, fault),
            Err(error) => (String::new(), Some(error.to_string())),
        };
        judge::judge(*row, &output, fault)
    }

    /// Has the two talk, and returns what the client output and what was wrong with the processes, if anything.
    fn talk(&self, row: &Row, folder: &Path) -> io::Result<(String, Option<String>)> {
        fs::create_dir_all(folder)?;
        let mut server = self.server(row);
        server.push(row.transport.as_str().to_owned());
        let mut client = self.client(row);
        client.push(row.era.as_str().to_owned());
        let mut served = Vec::new();
        let mut serve = |words: &[String], log: &str| -> io::Result<String> {
            let (process, url) = Process::serve(&mut program(words), &folder.join(log), START)?;
            served.push(process);
            Ok(url)
        };
        let target = match row.transport {
            Transport::Stdio => server,
            Transport::Http => vec![serve(&server, "server.log")?],
        };
        match row.role {
            TheirRole::Server | TheirRole::Client => client.extend(target),
            TheirRole::Both => {
                let mut bridge = vec![ours("pintle")];
                bridge.extend(["bridge", "--http", "127.0.0.1:0"].map(str::to_owned));
                bridge.extend((row.transport == Transport::Stdio).then(|| "--".to_owned()));
                bridge.extend(target);
                client.push(serve(&bridge, "bridge.log")?);
            }
        }
        let answers = folder.join("client.jsonl");
        let log = File::create(folder.join("client.log"))?;
        let mut process = Process::start_apart(&mut program(&client), File::create(&answers)?, log)?;
        let fault = match process.wait(TIMEOUT)? {
            Some(status) if status.success() => None,
            Some(status) => Some(format!("the client ended with {status}")),
            None => Some(format!("the client did not end within {} s", TIMEOUT.as_secs())),
        };
        let gone = served.iter_mut().any(|server| !server.runs());
        let gone = gone.then(|| "the server ended before the client did".to_owned());
        Ok((fs::read_to_string(answers)?, fault.or(gone)))
    }

    fn server(&self, row: &Row) -> Vec<String> {
        match row.role {
            TheirRole::Server => self.peers.server(row.peer),
            TheirRole::Client => vec![ours("interop-server")],
            TheirRole::Both => self.peers.server(Peer::BRIDGED),
        }
    }

    fn client(&self, row: &Row) -> Vec<String> {
        match row.role {
            TheirRole::Server => vec![ours("interop-client")],
            TheirRole::Client | TheirRole::Both => self.peers.client(row.peer),
        }
    }
}

fn ours(name: &str) -> String {
    workspace::program(name).display().to_string()
}

fn program(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

fn wrong(what: String) -> Failure {
    Failure::new(what, "cargo xtask interop")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(line: &str) -> Result<Vec<String>, Failure> {
        read(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn rows_are_chosen_by_a_part_of_their_name() {
        let only = only("--only ts2/http --only rmcp/stdio/auto/client").unwrap();
        let names: Vec<_> = rows::all().filter(|row| takes(&only, row)).map(|row| row.name()).collect();
        assert_eq!(names.len(), 10);
        assert_eq!(names[0], "ts2/http/session/server");
        assert_eq!(names[6], "rmcp/stdio/auto/client");
    }

    #[test]
    fn a_flag_that_nobody_knows_is_an_error() {
        assert!(only("--every thing").is_err());
        assert!(only("--only").is_err());
    }
}
