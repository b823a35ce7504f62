//! `cargo xtask bench --bridge`: what a relayed call costs a bridge, beside other bridges and the server itself, and what the
//! sessions of its clients take.

mod cores;
mod cpu;
mod rows;
mod running;
mod sessions;

use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use cores::Cores;
use rows::{ROWS, Row, Sides};
use running::{Figures, Running};
use sessions::ClientStreams;

use crate::cargo::{Cargo, Failure};
use crate::dist;
use crate::npm;
use crate::page;
use crate::pip;
use crate::process::Process;
use crate::workspace::{built, root, target};

const REPEAT: &str = "cargo xtask bench --bridge";
const START: Duration = Duration::from_secs(60);
/// One row takes seconds; one that hangs is left out.
const TIMEOUT: Duration = Duration::from_secs(300);
/// The interval at which the CPU time of the processes of a bridge is read.
const LOOK: Duration = Duration::from_millis(20);
/// The variable that marks the processes of a bridge.
const MARK: &str = "PINTLE_BENCH_BRIDGE";
/// The goals: the CPU of a call from HTTP to HTTP beside that of the server itself, that of a peer beside ours, and the resident bytes with
/// all sessions.
const MAX_RATIO: f64 = 2.5;
const AHEAD: f64 = 10.0;
const MAX_RESIDENT: f64 = 40e6;
/// The sessions whose memory is measured: the era that the bridge uses behind it, whether their clients have a stream for what belongs to no
/// call, and what that means.
const SESSIONS: [(&str, ClientStreams, &str); 3] = [
    ("stateless", ClientStreams::None, "in front of a server without sessions, whose connection they share"),
    ("session", ClientStreams::None, "in front of a server with sessions, each with its own there over HTTP"),
    (
        "session",
        ClientStreams::Open,
        "the same, and each client has its event stream open, and so has the bridge behind it",
    ),
];
/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct BridgeRun {
    /// Calls of a sample, after some to warm up.
    calls: u32,
    warm_up: u32,
    /// The samples of a row of ours. The median counts.
    rounds: usize,
    /// The sessions whose memory is measured.
    sessions: usize,
    /// Whether the page is to say so.
    written: bool,
}

pub(super) const ALL: BridgeRun =
    BridgeRun { calls: 4_000, warm_up: 200, rounds: 15, sessions: 1_000, written: true };
/// Shows that every bridge works.
pub(super) const QUICK: BridgeRun =
    BridgeRun { calls: 50, warm_up: 10, rounds: 1, sessions: 20, written: false };

/// Measures all that can be installed, and rewrites the table in the page.
pub(super) fn command(run: BridgeRun) -> Result<(), Failure> {
    let failure = |error: io::Error| Failure::new(error.to_string(), REPEAT);
    Cargo::new("build --quiet --release --package bench --bin served").run()?;
    dist::build()?;
    let bench = BridgeBench::install(run).map_err(failure)?;
    let served = Cores::of_others(bench.cores).into_iter().chain([display(&built("release", "served"))]);
    let (_backend, address) =
        Process::serve(command_of(served).arg("http"), &bench.place.join("backend.log"), START)
            .map_err(failure)?;
    let url = format!("http://{}/mcp", address.trim());
    let direct = bench.start(&ROWS[0], &url).map_err(failure)?;
    let mut measured = Vec::new();
    for row in ROWS {
        match bench.measure(row, &url, &direct) {
            Ok(figures) => {
                println!("    {}, {}: {figures:?}", row.sides.as_str(), row.name);
                measured.push((row, figures));
            }
            Err(error) => println!("    {}, {} is left out: {error}", row.sides.as_str(), row.name),
        }
    }
    drop(direct);
    let mut table = table(&measured);
    table.push_str(&format!(
        "\nMemory of `pintle bridge` with {} sessions of clients, and a list and a call made in each:\n\n",
        run.sessions
    ));
    let mut missed = missed(&measured);
    for (era, streams, behind) in SESSIONS {
        let grown = bench.sessions(&url, era, streams).map_err(failure)?;
        if grown.resident > MAX_RESIDENT {
            missed.push(format!("{behind}: {:.1} MB", grown.resident / 1e6));
        }
        table.push_str(&format!(
            "- {behind}: {:.1} MB resident, {:.1} MB more than with one of them\n",
            grown.resident / 1e6,
            grown.added / 1e6,
        ));
    }
    print!("\n{table}");
    if !run.written {
        return Ok(());
    }
    missed.iter().for_each(|missed| println!("    a goal is missed: {missed}"));
    page::rewrite("bench/README.md", "bridges", &table, REPEAT)
}

/// The bridges that are installed.
struct BridgeBench {
    place: PathBuf,
    run: BridgeRun,
    cores: Option<Cores>,
}

impl BridgeBench {
    /// Installs what the lock files in `bench/peers/bridges` have. One that cannot be installed is left out.
    fn install(run: BridgeRun) -> io::Result<Self> {
        const FROM: &str = "bench/peers/bridges";
        let place = target().join("bench/bridges");
        fs::create_dir_all(&place)?;
        let [fastmcp, proxy] = ["fastmcp.txt", "mcp-proxy.txt"].map(|file| format!("{FROM}/{file}"));
        let installed = [
            npm::install(FROM, &place.join("ts")),
            pip::install(&[&fastmcp], &place.join("fastmcp")),
            pip::install(&[&proxy], &place.join("mcp-proxy")),
            fs::copy(root().join(FROM).join("fastmcp_proxy.py"), place.join("fastmcp/fastmcp_proxy.py"))
                .map(drop),
        ];
        for error in installed.into_iter().filter_map(Result::err) {
            println!("    not installed: {error}");
        }
        Ok(Self { place, run, cores: Cores::find() })
    }

    /// Returns the words of a command line.
    fn words(&self, row: &Row, url: &str, port: u16) -> Vec<String> {
        let replaced = |word: &str| {
            word.replace("URL", url)
                .replace("PORT", &port.to_string())
                .replace("SERVER", &display(&built("release", "served")))
                .replace("PINTLE", &display(&built("dist", "pintle")))
                .replace("FASTMCP", &display(&self.place.join("fastmcp/venv")))
                .replace("PROXY", &display(&self.place.join("mcp-proxy/venv")))
                .replace("TS", &display(&self.place.join("ts/node_modules")))
                .replace('\u{a0}', " ")
        };
        row.command.split(' ').map(replaced).collect()
    }

    /// Starts a bridge, or the server itself.
    fn start<'a>(&'a self, row: &Row, url: &str) -> io::Result<Running<'a>> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let words = Cores::of_measured(self.cores).into_iter().chain(self.words(row, url, port));
        let log = self.place.join("bridge.log");
        let mark = format!("{}-{port}", row.name.replace(' ', "-"));
        if row.sides == Sides::StdioToHttp {
            let options = ["--env".to_owned(), format!("{MARK}={mark}"), "--".to_owned()];
            return Ok(Running::new(self, None, options.into_iter().chain(words).collect(), &mark));
        }
        let mut command = command_of(words);
        command.env(MARK, &mark);
        if row.sides == Sides::None {
            let (server, address) = Process::serve(&mut command, &log, START)?;
            let target = vec![format!("http://{}/mcp", address.trim())];
            return Ok(Running::new(self, Some(server), target, &mark).with_server());
        }
        let bridge = Process::start(&mut command, &log)?;
        wait_for(port)?;
        Ok(Running::new(self, Some(bridge), vec![format!("http://127.0.0.1:{port}/mcp")], &mark))
    }

    /// Takes samples of a bridge and of the server itself, in turn. What others need is so much more that one of them is enough.
    fn measure(&self, row: &Row, url: &str, direct: &Running<'_>) -> io::Result<Figures> {
        let bridge = match row.sides {
            Sides::None => None,
            _ => Some(self.start(row, url)?),
        };
        let bridge = bridge.as_ref().unwrap_or(direct);
        bridge.warm_up()?;
        let rounds = if row.is_ours() { self.run.rounds } else { 1 };
        let samples = (0..rounds).map(|round| match round % 2 {
            0 => Ok((direct.sample()?, bridge.sample()?)),
            _ => bridge.sample().and_then(|sample| Ok((direct.sample()?, sample))),
        });
        let figures = Figures::of(&samples.collect::<io::Result<Vec<_>>>()?);
        // Two samples of the same server differ.
        Ok(if row.sides == Sides::None { Figures { ratio: 1.0, added: 0.0, ..figures } } else { figures })
    }

    /// Opens sessions at our bridge between HTTP and HTTP, which uses an era behind it, and returns what it has resident then.
    fn sessions(&self, url: &str, era: &str, streams: ClientStreams) -> io::Result<sessions::Grown> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let row = &ROWS[1];
        let words = self.words(row, url, port);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(["--era", era]);
        let bridge = Process::start(&mut command, &self.place.join("bridge.log"))?;
        wait_for(port)?;
        sessions::open(port, bridge.id(), self.run.sessions, streams)
    }

    /// Has `pintle bench` make calls, one at a time, in a session: not every bridge has the other era. Returns the median latency.
    fn bench(&self, calls: u32, target: &[String]) -> io::Result<f64> {
        let (report, log) = (self.place.join("report.json"), self.place.join("bench.log"));
        let _ = fs::remove_file(&report);
        let program = [display(&built("dist", "pintle"))];
        let mut bench = command_of(Cores::of_others(self.cores).into_iter().chain(program));
        bench.args([
            "bench",
            "--era",
            "session",
            "--concurrency",
            "1",
            "--count",
            &calls.to_string(),
            "--save",
        ]);
        bench.arg(&report);
        // A program is behind the words of the verb.
        match target {
            [url] => bench.args([url, "echo", "text=hello"]),
            program => bench.args(["echo", "text=hello"]).args(program),
        };
        match Process::start(&mut bench, &log)?.wait(TIMEOUT)? {
            Some(status) if status.success() => {}
            _ => return Err(io::Error::other(format!("the calls failed; see {}", log.display()))),
        }
        let text = fs::read_to_string(&report)?;
        median(&text).ok_or_else(|| io::Error::other("the report has no median"))
    }
}

fn display(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn command_of(words: impl IntoIterator<Item = String>) -> Command {
    let mut words = words.into_iter();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

/// Waits until something listens on a port.
fn wait_for(port: u16) -> io::Result<()> {
    let start = Instant::now();
    while let Err(error) = TcpStream::connect(("127.0.0.1", port)) {
        if start.elapsed() > START {
            return Err(error);
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// Reads the median latency in a report of `pintle bench`.
fn median(report: &str) -> Option<f64> {
    let (_, rest) = report.split_once("\"p50\":")?;
    rest.trim_start().split(|letter: char| letter != '.' && !letter.is_ascii_digit()).next()?.parse().ok()
}

/// Returns the goals of CPU time that are missed.
fn missed(measured: &[(&Row, Figures)]) -> Vec<String> {
    let ours = |sides: Sides| {
        let ours = measured.iter().find(|(row, _)| row.sides == sides && row.is_ours());
        ours.map(|(_, figures)| *figures)
    };
    let mut missed = Vec::new();
    if let Some(bridged) = ours(Sides::HttpToHttp).filter(|bridged| bridged.ratio > MAX_RATIO) {
        missed.push(format!("HTTP to HTTP: {:.2} × the server itself, not {MAX_RATIO}", bridged.ratio));
    }
    for (row, figures) in measured.iter().filter(|(row, _)| !row.is_ours()) {
        if let Some(ours) = ours(row.sides).filter(|ours| figures.cpu < AHEAD * ours.cpu) {
            let (sides, name, ahead) = (row.sides.as_str(), row.name, figures.cpu / ours.cpu);
            missed
                .push(format!("{sides}: {name} needs {ahead:.1} × as much as `pintle bridge`, not {AHEAD}"));
        }
    }
    missed
}

fn table(measured: &[(&Row, Figures)]) -> String {
    let mut text = String::from(
        "| sides | bridge | CPU µs per call | × the server itself | median latency ms | added ms |\n|---|---|---:|---:|---:|---:|\n",
    );
    for (row, Figures { cpu, ratio, latency, added }) in measured {
        let (sides, name) = (row.sides.as_str(), row.name);
        let ratio = if *ratio < 10.0 { format!("{ratio:.2}") } else { format!("{ratio:.0}") };
        text.push_str(&format!("| {sides} | {name} | {cpu:.0} | {ratio} | {latency:.2} | {added:.2} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(cpu: f64, ratio: f64) -> Figures {
        Figures { cpu, ratio, latency: 0.35, added: 0.25 }
    }

    #[test]
    fn rows_are_compared_with_the_server_itself() {
        let table = table(&[(&ROWS[1], figures(90.0, 2.254)), (&ROWS[2], figures(900.0, 22.5))]);
        assert!(
            table.ends_with(
                "| HTTP to HTTP | pintle bridge | 90 | 2.25 | 0.35 | 0.25 |\n| HTTP to HTTP | FastMCP proxy | 900 | 22 | 0.35 | 0.25 |\n"
            ),
            "{table}"
        );
    }

    #[test]
    fn a_missed_goal_is_reported() {
        let row = |at: usize, cpu, ratio| (&ROWS[at], figures(cpu, ratio));
        assert_eq!(missed(&[row(0, 40.0, 1.0), row(1, 90.0, 2.5), row(2, 1000.0, 25.0)]), [""; 0]);
        let notified = missed(&[row(0, 40.0, 1.0), row(1, 120.0, 3.0), row(2, 1000.0, 25.0)]);
        assert_eq!(notified[0], "HTTP to HTTP: 3.00 × the server itself, not 2.5");
        assert_eq!(notified[1], "HTTP to HTTP: FastMCP proxy needs 8.3 × as much as `pintle bridge`, not 10");
    }

    #[test]
    fn a_command_line_has_its_paths_and_no_word_too_many() {
        let bench = BridgeBench { place: "/place".into(), run: QUICK, cores: None };
        let gateway = ROWS.iter().find(|row| row.name == "supergateway").unwrap();
        let words = bench.words(gateway, "http://u/mcp", 7);
        assert_eq!(words[..2], ["node", "/place/ts/node_modules/supergateway/dist/index.js"]);
        assert!(words.last().unwrap().ends_with("served stdio"), "{words:?}");
        assert!(words.iter().any(|word| word == "7"), "{words:?}");
    }

    #[test]
    fn figures_are_read() {
        assert_eq!(median(r#"{"latency":{"min":1.0,"p50": 2.25,"p90":3}}"#), Some(2.25));
    }
}
