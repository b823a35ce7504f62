//! `cargo xtask conformance`: the official suite against our server and our client, in every mode and revision.

mod checks;
mod gaps;
mod install;
mod report;
mod runs;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use install::InstalledSuites;
use report::Report;
use runs::{Pick, RUNS, Role, Run, TIMED};

use crate::cargo::Failure;
use crate::fleet::Fleet;
use crate::process::Process;
use crate::workspace::{build_programs, program, root, shown, target};

/// More would make the suite's own clocks suffer on two cores.
const AT_ONCE: usize = 2;
/// One run of the suite takes seconds; one that hangs is a fault.
const TIMEOUT: Duration = Duration::from_secs(100);
const START: Duration = Duration::from_secs(10);
const PAGE: &str = "docs/conformance.md";
const FLEET: &str = "fleet";
const FILE: &str = "file";
/// The file whose tools `pintle serve` has.
const SERVED: &str = "fixtures/served/conformance.toml";

pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    let wanted = Wanted::read(args)?;
    let chosen: Vec<Run> = RUNS.iter().copied().filter(|run| wanted.takes(run)).collect();
    if chosen.is_empty() {
        let names: Vec<_> = RUNS.iter().map(Run::name).collect();
        return Err(wrong(format!("no run has that in its name; there are\n  {}", names.join("\n  "))));
    }
    let start = Instant::now();
    build_programs(&["conformance-server", "conformance-client", "pintle"])?;
    let place = target().join("conformance");
    let bench = SuiteRunner { suite: install::install(&place)?, place, wanted };
    let mut reports = bench.run_all(&chosen)?;
    if let Some(scenario) = &bench.wanted.scenario {
        reports.retain(|report| !report.scenarios.is_empty() || report.fault.is_some());
        if reports.is_empty() {
            let results = shown(&target().join("conformance/results"));
            return Err(wrong(format!("no run has the scenario `{scenario}`: see {results}")));
        }
    }

    print!("\n{}", report::table(&reports));
    println!(
        "after {:.0} s; the output of all programs is in {}",
        start.elapsed().as_secs_f64(),
        shown(&target().join("conformance/results"))
    );
    let faults = report::faults(&reports);
    for (fault, runs) in &faults {
        println!("{fault} (in {})", runs.join(", "));
    }
    if !faults.is_empty() {
        return Err(wrong(format!("{} faults; `{PAGE}` is left as it was", faults.len())));
    }
    if bench.wanted.is_whole() {
        fs::write(root().join(PAGE), report::page(&reports))
            .map_err(|error| wrong(format!("{PAGE}: {error}")))?;
    }
    Ok(())
}

/// The options of the command line.
#[derive(Debug, Default)]
struct Wanted {
    only: Vec<String>,
    scenario: Option<String>,
    /// Somebody else's programs: how good is the runner, how good are they?
    server: Option<PathBuf>,
    client: Option<PathBuf>,
    /// The part between the suite and the server: `bridge` or `gateway`, which are verbs of `pintle`, or `fleet`, a balancer in front of
    /// several processes. With `file` there is no other server: `pintle serve` has the tools of a file.
    through: Option<&'static str>,
}

impl Wanted {
    fn read(args: &[String]) -> Result<Self, Failure> {
        let mut wanted = Self::default();
        let mut args = args.iter();
        while let Some(flag) = args.next() {
            let value = args.next().ok_or_else(|| wrong(format!("`{flag}` needs a value")))?;
            match flag.as_str() {
                "--only" => wanted.only.push(value.clone()),
                "--scenario" => wanted.scenario = Some(value.clone()),
                "--server" => wanted.server = Some(absolute(value)?),
                "--client" => wanted.client = Some(absolute(value)?),
                "--through" if value == "bridge" => wanted.through = Some("bridge"),
                "--through" if value == "gateway" => wanted.through = Some("gateway"),
                "--through" if value == FLEET => wanted.through = Some(FLEET),
                "--through" if value == FILE => wanted.through = Some(FILE),
                "--through" => {
                    return Err(wrong(format!(
                        "`--through` is `bridge`, `gateway`, `{FLEET}` or `{FILE}`, not `{value}`"
                    )));
                }
                _ => return Err(wrong(format!("no such flag: `{flag}`"))),
            }
        }
        Ok(wanted)
    }

    /// Whether the figures are those that the page is about.
    fn is_whole(&self) -> bool {
        let Self { only, scenario, server, client, through } = self;
        only.is_empty() && scenario.is_none() && server.is_none() && client.is_none() && through.is_none()
    }

    fn takes(&self, run: &Run) -> bool {
        let alone = matches!(run.pick, Pick::Alone(_));
        let named = self.only.is_empty() || self.only.iter().any(|part| run.name().contains(part.as_str()));
        let behind = self.through.is_none() || run.role == Role::Server;
        named && behind && !(alone && self.scenario.is_some())
    }
}

/// Where the suite is, and where its results go.
#[derive(Debug)]
struct SuiteRunner {
    suite: InstalledSuites,
    place: PathBuf,
    wanted: Wanted,
}

impl SuiteRunner {
    /// A few at a time; the reports come in the order of the runs.
    fn run_all(&self, chosen: &[Run]) -> Result<Vec<Report>, Failure> {
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    while let Some(run) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let start = Instant::now();
                        let report = self.run(run);
                        println!("    {} after {:.1} s", run.name(), start.elapsed().as_secs_f64());
                        done.lock().expect("no run panics").push(report);
                    }
                });
            }
        });
        let mut reports: Vec<Report> =
            done.into_inner().expect("no run panics").into_iter().collect::<Result<_, _>>()?;
        reports.sort_by_key(|report| RUNS.iter().position(|run| run.name() == report.run.name()));
        Ok(reports)
    }

    fn run(&self, run: &Run) -> Result<Report, Failure> {
        let folder = self.place.join("results").join(run.name().replace('/', "_"));
        let fault = self.started(run, &folder).unwrap_or_else(|error| Some(error.to_string()));
        let scenarios = checks::read_all(&folder.join("checks"), run.role == Role::Client)?;
        let suffers = |name: &str| (run.suite, name) == TIMED && !matches!(run.pick, Pick::Alone(_));
        let scenarios: Vec<_> = scenarios.into_iter().filter(|one| !suffers(&one.name)).collect();
        let missing = self.wanted.scenario.is_none() && scenarios.len() != run.scenarios;
        let missing =
            missing.then(|| format!("{} scenarios ran, {} should have", scenarios.len(), run.scenarios));
        Ok(Report { run: *run, through: self.wanted.through, scenarios, fault: fault.or(missing) })
    }

    /// Runs the suite to its end and says what was wrong with that, if anything: its exit code says nothing.
    fn started(&self, run: &Run, folder: &Path) -> io::Result<Option<String>> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder.join("checks"))?;
        let mut command = self.suite.command(run.suite);
        command.arg(run.role.as_str()).args(run.args(self.wanted.scenario.as_deref()));
        command.arg("-o").arg(folder.join("checks")).current_dir(folder);
        let mut served = Vec::new();
        match run.role {
            Role::Client => drop(command.args(["--command", &self.client()])),
            Role::Server if self.wanted.through == Some(FLEET) => {
                let fleet = Fleet::start(&self.program(Role::Server), folder)?;
                command.args(["--url", fleet.url()]);
                served = fleet.into_processes();
            }
            Role::Server if self.wanted.through == Some(FILE) => {
                let mut pintle = Command::new(crate::workspace::program("pintle"));
                pintle.args(["serve", "--http", "127.0.0.1:0"]).arg(root().join(SERVED)).current_dir(folder);
                let (process, url) = Process::serve(&mut pintle, &folder.join("server.log"), START)?;
                served.push(process);
                command.args(["--url", &url]);
            }
            Role::Server => {
                let mut program = Command::new(self.program(Role::Server));
                program.env("PORT", "0").current_dir(folder);
                let (process, mut url) = Process::serve(&mut program, &folder.join("server.log"), START)?;
                served.push(process);
                if let Some(verb) = self.wanted.through {
                    let mut between = Command::new(crate::workspace::program("pintle"));
                    between.args([verb, "--http", "127.0.0.1:0"]).current_dir(folder);
                    if verb == "gateway" {
                        let file = folder.join("gateway.toml");
                        let text = format!("[targets.server]\nurl = \"{url}\"\nprefix = \"\"\n");
                        fs::write(&file, text)?;
                        between.arg(file);
                    } else {
                        between.arg(&url);
                    }
                    if run.uses_sessions(self.wanted.through) {
                        between.args(["--era", "session"]);
                    }
                    let log = folder.join(format!("{verb}.log"));
                    let (process, passed) = Process::serve(&mut between, &log, START)?;
                    served.push(process);
                    url = passed;
                }
                command.args(["--url", &url]);
            }
        }
        let ended = Process::start(&mut command, &folder.join("suite.log"))?.wait(TIMEOUT)?;
        if served.iter_mut().any(|server| !server.runs()) {
            return Ok(Some("the server ended before the suite did".to_owned()));
        }
        Ok(ended.is_none().then(|| format!("the suite did not end within {} s", TIMEOUT.as_secs())))
    }

    /// The suite puts the URL behind this and gives it to a shell. How the client ended is the last line on stderr,
    /// because the suite does not tell.
    fn client(&self) -> String {
        let client = self.program(Role::Client);
        format!("f() {{ '{}' \"$1\"; code=$?; echo \"exit $code\" >&2; return $code; }}; f", client.display())
    }

    fn program(&self, role: Role) -> PathBuf {
        let given = match role {
            Role::Server => &self.wanted.server,
            Role::Client => &self.wanted.client,
        };
        given.clone().unwrap_or_else(|| program(&format!("conformance-{}", role.as_str())))
    }
}

fn absolute(path: &str) -> Result<PathBuf, Failure> {
    fs::canonicalize(path).map_err(|error| wrong(format!("`{path}`: {error}")))
}

fn wrong(what: String) -> Failure {
    Failure::new(what, "cargo xtask conformance")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(line: &str) -> Result<Wanted, Failure> {
        Wanted::read(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn runs_are_chosen_by_a_part_of_their_name() {
        let wanted = wanted("--only server/2026 --only client/auth").unwrap();
        let names: Vec<_> = RUNS.iter().filter(|run| wanted.takes(run)).map(Run::name).collect();
        assert_eq!(names, ["server/2026-07-28/required", "server/2026-07-28", "client/auth"]);
    }

    #[test]
    fn through_something_only_servers_run_and_no_page_is_written() {
        for through in ["--through bridge", "--through gateway", "--through fleet", "--through file"] {
            let wanted = wanted(through).unwrap();
            assert!(RUNS.iter().filter(|run| wanted.takes(run)).all(|run| run.role == Role::Server));
            assert!(!wanted.is_whole());
        }
    }

    #[test]
    fn a_flag_that_nobody_knows_is_an_error() {
        assert!(wanted("--through walls").is_err());
        assert!(wanted("--every thing").is_err());
        assert!(wanted("--only").is_err());
    }
}
