//! `cargo xtask bench --serve`: what tools from a file and from an OpenAPI document cost, beside bare processes and FastMCP.

mod spoken;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use spoken::{Spent, SpokenServer, cpu_of_children};

use crate::cargo::{Cargo, Failure};
use crate::rebuild::median;
use crate::workspace::{built, root, target};
use crate::{npm, page, pip};

const REPEAT: &str = "cargo xtask bench --serve";
/// Each round has all of them in turn; a ratio is the median of those of the rounds.
const ROUNDS: usize = 3;
/// The tools of a file.
const TOOLS: usize = 100;
/// The calls of a command, and of a worker.
const COMMANDS: usize = 200;
const CALLS: usize = 1_000;
const DOCUMENT: &str = "node_modules/@octokit/openapi/generated/api.github.com.json";

/// Measures, and rewrites the table in the page.
pub(super) fn command() -> Result<(), Failure> {
    Cargo::new("build --quiet --release --package bench --package pintle-cli --bin openapi --bin pintle")
        .run()?;
    let failure = |error: io::Error| Failure::new(error.to_string(), REPEAT);
    let bench = ServeBench::ready().map_err(failure)?;
    let rows = bench.measure().map_err(failure)?;
    let table = table(&rows);
    print!("{table}");
    page::rewrite("bench/README.md", "serve", &table, REPEAT)
}

/// The programs that are compared.
struct ServeBench {
    place: PathBuf,
    document: PathBuf,
    python: PathBuf,
}

/// CPU milliseconds of a round: what is compared with, and ours.
type Round = (f64, f64);

/// A line of the table.
struct Row {
    name: &'static str,
    beside: &'static str,
    rounds: Vec<Round>,
    /// The ratio that is wanted at most.
    goal: Option<f64>,
}

impl ServeBench {
    fn ready() -> io::Result<Self> {
        let fastmcp = target().join("bench/peers/fastmcp-redis");
        pip::install(&["bench/peers/fastmcp/requirements.txt"], &fastmcp)?;
        let documents = target().join("openapi");
        npm::install("fixtures/openapi", &documents)?;
        let place = target().join("bench/serve");
        fs::create_dir_all(&place)?;
        let many = (0..TOOLS).map(|number| {
            format!(
                "[tools.tool_{number}]\ndescription = \"Returns the text.\"\ncommand = [\"echo\", \"{{text}}\", \"{{count}}\"]\n\
                 arguments = {{ text = \"string\", count = \"integer = 1\" }}\n"
            )
        });
        fs::write(place.join("many.toml"), many.collect::<String>())?;
        fs::copy(root().join("docs/workers/tools.py"), place.join("tools.py"))?;
        let file = "[tools.run]\ndescription = \"Returns the text.\"\ncommand = [\"echo\", \"{text}\"]\n\
                    arguments = { text = \"string\" }\n\
                    [workers.python]\ncommand = [\"python3\", \"tools.py\"]\n\
                    [tools.echo]\ndescription = \"Returns the text.\"\nworker = \"python\"\n\
                    arguments = { text = \"string\" }\n";
        fs::write(place.join("tools.toml"), file)?;
        Ok(Self { place, document: documents.join(DOCUMENT), python: fastmcp.join("venv/bin/python") })
    }

    fn pintle(&self, words: &[&str], path: &Path) -> Command {
        let mut command = Command::new(built("release", "pintle"));
        command.arg("serve").args(words).arg(path);
        command
    }

    fn fastmcp(&self, script: &str) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(root().join("bench/peers/fastmcp").join(script));
        command
    }

    fn measure(&self) -> io::Result<Vec<Row>> {
        let row = |name, beside, goal| Row { name, beside, rounds: Vec::with_capacity(ROUNDS), goal };
        let mut rows = [
            row("start to the first list, 100 tools of a file", "100 tools of FastMCP", None),
            row("a call of a command, all processes", "starting the program", None),
            row("a call of a worker in Python, our process", "the same tool in FastMCP", Some(0.1)),
            row("a call of a worker in Python, all processes", "the same tool in FastMCP", Some(1.0)),
            row("GitHub's document to the first list", "FastMCP", None),
        ];
        for _ in 0..ROUNDS {
            let ours = listed(&mut self.pintle(&[], &self.place.join("many.toml")))?;
            let theirs = listed(self.fastmcp("tools.py").arg(TOOLS.to_string()))?;
            rows[0].rounds.push((theirs.all, ours.all));
            let file = self.place.join("tools.toml");
            let ours = called(&mut self.pintle(&[], &file), "run", COMMANDS)?;
            rows[1].rounds.push((bare(COMMANDS)?, ours.all));
            let ours = called(&mut self.pintle(&[], &file), "echo", CALLS)?;
            let theirs = called(self.fastmcp("tools.py").arg("0"), "echo", CALLS)?;
            rows[2].rounds.push((theirs.all, ours.own));
            rows[3].rounds.push((theirs.all, ours.all));
            let ours = listed(&mut self.pintle(&["--openapi"], &self.document))?;
            let report = self.place.join("report");
            let theirs = listed(self.fastmcp("from_openapi.py").arg(&self.document).arg(report))?;
            rows[4].rounds.push((theirs.all, ours.all));
        }
        Ok(rows.into())
    }
}

/// Starts a server, and asks it for its tools.
fn listed(command: &mut Command) -> io::Result<Spent> {
    let mut server = SpokenServer::start(command)?;
    server.ask("tools/list", &json!({}))?;
    server.end()
}

/// Calls a tool of a server that has called it before, some times, and returns what each call took.
fn called(command: &mut Command, tool: &str, times: usize) -> io::Result<Spent> {
    let call = json!({ "name": tool, "arguments": { "text": "hello" } });
    let mut run = |times: usize| -> io::Result<Spent> {
        let mut server = SpokenServer::start(&mut *command)?;
        for _ in 0..times {
            let answer = server.ask("tools/call", &call)?;
            if answer["isError"] == Value::Bool(true) || !answer.to_string().contains("hello") {
                return Err(io::Error::other(format!("the call failed: {answer}")));
            }
        }
        server.end()
    };
    // What starting takes is no part of a call.
    let (few, many) = (run(1)?, run(times + 1)?);
    let each = |few: f64, many: f64| (many - few) / times as f64;
    Ok(Spent { own: each(few.own, many.own), all: each(few.all, many.all) })
}

/// Returns what starting the program of the command takes, without any server.
fn bare(times: usize) -> io::Result<f64> {
    let before = cpu_of_children()?;
    for _ in 0..times {
        Command::new("echo").arg("hello").stdin(Stdio::null()).output()?;
    }
    Ok((cpu_of_children()? - before) / times as f64)
}

fn table(rows: &[Row]) -> String {
    let mut text =
        "| ours | CPU ms | beside | CPU ms | × | goal |\n|---|---:|---|---:|---:|---|\n".to_owned();
    for Row { name, beside, rounds, goal } in rows {
        let of = |value: fn(&Round) -> f64| median(&mut rounds.iter().map(value).collect::<Vec<_>>());
        let ratio = of(|(theirs, ours)| ours / theirs);
        let goal = goal
            .map_or_else(String::new, |goal| format!("≤ {goal} {}", if ratio <= goal { "✓" } else { "✗" }));
        let (theirs, ours) = (of(|round| round.0), of(|round| round.1));
        text += &format!("| {name} | {ours:.3} | {beside} | {theirs:.3} | {ratio:.3} | {goal} |\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_the_median_of_the_rounds() {
        let rounds = vec![(10.0, 1.0), (20.0, 1.0), (30.0, 6.0)];
        let table = table(&[Row { name: "a", beside: "b", rounds, goal: Some(0.1) }]);
        assert!(table.ends_with("| a | 1.000 | b | 20.000 | 0.100 | ≤ 0.1 ✓ |\n"), "{table}");
    }
}
