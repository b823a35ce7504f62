//! `cargo xtask bench --bridge`: what a relayed call costs a bridge, beside other bridges and the server itself, and what the
//! sessions of its clients take.

mod cpu;
mod sessions;

use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use cpu::MarkedCpu;
use sessions::ClientStreams;

use crate::cargo::{Cargo, Failure};
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
    /// Calls of a row, after some to warm up.
    calls: u32,
    warm_up: u32,
    /// The sessions whose memory is measured.
    sessions: usize,
    /// Whether the page is to say so.
    written: bool,
}

pub(super) const ALL: BridgeRun = BridgeRun { calls: 2_000, warm_up: 200, sessions: 1_000, written: true };
/// Shows that every bridge works.
pub(super) const QUICK: BridgeRun = BridgeRun { calls: 50, warm_up: 10, sessions: 20, written: false };

/// The two sides of a bridge.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sides {
    /// No bridge: the server over HTTP.
    None,
    HttpToHttp,
    /// A program, served over HTTP.
    HttpToStdio,
    /// A server over HTTP, as a program.
    StdioToHttp,
}

impl Sides {
    fn as_str(self) -> &'static str {
        match self {
            Self::None => "the server itself, over HTTP",
            Self::HttpToHttp => "HTTP to HTTP",
            Self::HttpToStdio => "HTTP to a program",
            Self::StdioToHttp => "stdio to HTTP",
        }
    }
}

/// A bridge in one of its directions, and its command line: `URL`, `PORT`, `SERVER`, `TS` and `PY` are replaced.
#[derive(Debug)]
struct Row {
    sides: Sides,
    name: &'static str,
    command: &'static str,
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row { sides: Sides::None, name: "pintle", command: "SERVER http" },
    Row { sides: Sides::HttpToHttp, name: "pintle bridge", command: "PINTLE bridge --http 127.0.0.1:PORT URL" },
    Row { sides: Sides::HttpToHttp, name: "FastMCP proxy", command: "FASTMCP/bin/python FASTMCP/../fastmcp_proxy.py URL PORT" },
    Row { sides: Sides::HttpToStdio, name: "pintle bridge", command: "PINTLE bridge --http 127.0.0.1:PORT -- SERVER stdio" },
    Row { sides: Sides::HttpToStdio, name: "supergateway", command: "node TS/supergateway/dist/index.js --outputTransport streamableHttp --stateful --port PORT --streamableHttpPath /mcp --logLevel none --stdio SERVER\u{a0}stdio" },
    Row { sides: Sides::HttpToStdio, name: "mcp-proxy", command: "PROXY/bin/mcp-proxy --port PORT --host 127.0.0.1 -- SERVER stdio" },
    Row { sides: Sides::StdioToHttp, name: "pintle bridge", command: "PINTLE bridge URL" },
    Row { sides: Sides::StdioToHttp, name: "mcp-remote", command: "node TS/mcp-remote/dist/proxy.js URL --allow-http --transport http-only --silent" },
    Row { sides: Sides::StdioToHttp, name: "mcp-proxy", command: "PROXY/bin/mcp-proxy --transport streamablehttp URL" },
    Row { sides: Sides::StdioToHttp, name: "supergateway", command: "node TS/supergateway/dist/index.js --streamableHttp URL --outputTransport stdio --logLevel none" },
];

/// Measures all that can be installed, and rewrites the table in the page.
pub(super) fn command(run: BridgeRun) -> Result<(), Failure> {
    let failure = |error: io::Error| Failure::new(error.to_string(), REPEAT);
    Cargo::new("build --quiet --release --package bench --bin served").run()?;
    Cargo::new("build --quiet --profile dist --package pintle-cli --bin pintle").run()?;
    let bench = BridgeBench::install(run).map_err(failure)?;
    let mut served = Command::new(built("release", "served"));
    let (_backend, address) =
        Process::serve(served.arg("http"), &bench.place.join("backend.log"), START).map_err(failure)?;
    let url = format!("http://{}/mcp", address.trim());
    let mut measured = Vec::new();
    for row in ROWS {
        match bench.measure(row, &url) {
            Ok(figures) => {
                println!("    {}, {}: {figures:?}", row.sides.as_str(), row.name);
                measured.push((row, figures));
            }
            Err(error) => println!("    {}, {} is left out: {error}", row.sides.as_str(), row.name),
        }
    }
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

/// The figures of a row.
#[derive(Clone, Copy, Debug)]
struct Figures {
    /// CPU time of the bridge for one call, in microseconds.
    cpu: f64,
    /// The median of the latency, in milliseconds, with one call at a time.
    latency: f64,
}

/// The bridges that are installed.
struct BridgeBench {
    place: PathBuf,
    run: BridgeRun,
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
        Ok(Self { place, run })
    }

    /// Returns the words of a command line.
    fn words(&self, row: &Row, url: &str, port: u16) -> Vec<String> {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let replaced = |word: &str| {
            word.replace("URL", url)
                .replace("PORT", &port.to_string())
                .replace("SERVER", &path(&built("release", "served")))
                .replace("PINTLE", &path(&built("dist", "pintle")))
                .replace("FASTMCP", &path(&self.place.join("fastmcp/venv")))
                .replace("PROXY", &path(&self.place.join("mcp-proxy/venv")))
                .replace("TS", &path(&self.place.join("ts/node_modules")))
                .replace('\u{a0}', " ")
        };
        row.command.split(' ').map(replaced).collect()
    }

    fn measure(&self, row: &Row, url: &str) -> io::Result<Figures> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let words = self.words(row, url, port);
        let log = self.place.join("bridge.log");
        let mark = format!("{}-{port}", row.name.replace(' ', "-"));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env(MARK, &mark);
        let (_bridge, target) = match row.sides {
            Sides::StdioToHttp => {
                let variable = format!("{MARK}={mark}");
                let options = ["--env".to_owned(), variable, "--".to_owned()];
                (None, [options.to_vec(), words].concat())
            }
            Sides::None => {
                let (server, address) = Process::serve(&mut command, &log, START)?;
                (Some(server), vec![format!("http://{}/mcp", address.trim())])
            }
            Sides::HttpToHttp | Sides::HttpToStdio => {
                let bridge = Process::start(&mut command, &log)?;
                wait_for(port)?;
                (Some(bridge), vec![format!("http://127.0.0.1:{port}/mcp")])
            }
        };
        let cpu = MarkedCpu::watch(&mark, row.sides != Sides::None);
        // The first run warms a bridge up that goes on running. What it costs to connect, and to start one that does not, is in the others.
        let mut spent = [0.0; 3];
        let mut latency = 0.0;
        let BridgeRun { calls: counted, warm_up, .. } = self.run;
        for (calls, spent) in [warm_up, warm_up, warm_up + counted].into_iter().zip(&mut spent) {
            let before = cpu.total();
            latency = self.bench(calls, &target)?;
            thread::sleep(2 * LOOK);
            *spent = cpu.total() - before;
        }
        let [_, before, all] = spent;
        Ok(Figures { cpu: (all - before) / f64::from(counted) * 1e6, latency })
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
        let mut bench = Command::new(built("dist", "pintle"));
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
    let cpu_of = |sides: Sides| {
        let ours = measured.iter().find(|(row, _)| row.sides == sides && row.name.starts_with("pintle"));
        ours.map(|(_, figures)| figures.cpu)
    };
    let mut missed = Vec::new();
    if let (Some(direct), Some(bridged)) = (cpu_of(Sides::None), cpu_of(Sides::HttpToHttp))
        && bridged > MAX_RATIO * direct
    {
        missed.push(format!("HTTP to HTTP: {:.1} × the server itself, not {MAX_RATIO}", bridged / direct));
    }
    for (row, figures) in measured.iter().filter(|(row, _)| !row.name.starts_with("pintle")) {
        if let Some(ours) = cpu_of(row.sides).filter(|ours| figures.cpu < AHEAD * ours) {
            let (sides, name, ahead) = (row.sides.as_str(), row.name, figures.cpu / ours);
            missed
                .push(format!("{sides}: {name} needs {ahead:.1} × as much as `pintle bridge`, not {AHEAD}"));
        }
    }
    missed
}

fn table(measured: &[(&Row, Figures)]) -> String {
    let direct = measured.iter().find(|(row, _)| row.sides == Sides::None).map(|(_, figures)| *figures);
    let mut text = String::from(
        "| sides | bridge | CPU µs per call | × the server itself | median latency ms | added ms |\n|---|---|---:|---:|---:|---:|\n",
    );
    for (row, Figures { cpu, latency }) in measured {
        let (ratio, added) = match direct {
            Some(direct) => (format!("{:.1}", cpu / direct.cpu), format!("{:.2}", latency - direct.latency)),
            None => Default::default(),
        };
        let (sides, name) = (row.sides.as_str(), row.name);
        text.push_str(&format!("| {sides} | {name} | {cpu:.0} | {ratio} | {latency:.2} | {added} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_compared_with_the_server_itself() {
        let figures = |cpu, latency| Figures { cpu, latency };
        let table = table(&[(&ROWS[0], figures(40.0, 0.1)), (&ROWS[1], figures(90.0, 0.35))]);
        assert!(table.ends_with("| HTTP to HTTP | pintle bridge | 90 | 2.2 | 0.35 | 0.25 |\n"), "{table}");
    }

    #[test]
    fn a_missed_goal_is_told() {
        let row = |at: usize, cpu| (&ROWS[at], Figures { cpu, latency: 1.0 });
        assert_eq!(missed(&[row(0, 40.0), row(1, 90.0), row(2, 1000.0)]), [""; 0]);
        let told = missed(&[row(0, 40.0), row(1, 120.0), row(2, 1000.0)]);
        assert_eq!(told[0], "HTTP to HTTP: 3.0 × the server itself, not 2.5");
        assert_eq!(told[1], "HTTP to HTTP: FastMCP proxy needs 8.3 × as much as `pintle bridge`, not 10");
    }

    #[test]
    fn a_command_line_has_its_paths_and_no_word_too_many() {
        let bench = BridgeBench { place: "/place".into(), run: QUICK };
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
