//! The other SDKs as their lock files in `interop` have them, installed below `target/interop`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::rows::Peer;
use super::wrong;
use crate::cargo::{Cargo, Failure};
use crate::npm;
use crate::process::Process;
use crate::workspace::root;

const PATIENCE: Duration = Duration::from_secs(180);

/// The programs of the other SDKs, ready to run.
#[derive(Debug)]
pub(super) struct Installed {
    place: PathBuf,
}

/// Installs what these peers need, unless it is there.
pub(super) fn install(place: &Path, peers: &[Peer]) -> Result<Installed, Failure> {
    let has = |wanted: &[Peer]| peers.iter().any(|peer| wanted.contains(peer));
    let failed = |error: io::Error| wrong(error.to_string());
    if has(&[Peer::Ts2, Peer::Ts1]) {
        npm::install_programs("interop/ts", &place.join("ts")).map_err(failed)?;
    }
    if has(&[Peer::Py2]) {
        python(&place.join("py")).map_err(failed)?;
    }
    if has(&[Peer::Rmcp]) {
        let manifest = "--manifest-path interop/rmcp/Cargo.toml";
        Cargo::new(&format!("build --locked {manifest} --target-dir target/interop/rmcp")).run()?;
    }
    Ok(Installed { place: place.to_owned() })
}

impl Installed {
    /// The words that start a peer's server; its transport comes last.
    pub(super) fn server(&self, peer: Peer) -> Vec<String> {
        self.program(peer, "server")
    }

    /// The words that start a peer's client; the era and the server come last.
    pub(super) fn client(&self, peer: Peer) -> Vec<String> {
        self.program(peer, "client")
    }

    fn program(&self, peer: Peer, role: &str) -> Vec<String> {
        let below = |path: &str| self.place.join(path).display().to_string();
        match peer {
            Peer::Ts2 => vec!["node".to_owned(), below(&format!("ts/v2-{role}.mjs"))],
            Peer::Ts1 => vec!["node".to_owned(), below(&format!("ts/v1-{role}.mjs"))],
            Peer::Py2 => {
                let script = root().join("interop/py").join(format!("{role}.py"));
                vec![below("py/venv/bin/python"), script.display().to_string()]
            }
            Peer::Rmcp => vec![below("rmcp/debug/rmcp-peer"), role.to_owned()],
        }
    }
}

fn python(place: &Path) -> io::Result<()> {
    let requirements = root().join("interop/py/requirements.txt");
    let mark = place.join("installed");
    let wanted = fs::read(&requirements)?;
    if fs::read(&mark).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    println!("    pip installs what interop/py/requirements.txt says");
    fs::create_dir_all(place)?;
    let venv = place.join("venv");
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv), &place.join("venv.log"))?;
    let mut pip = Command::new(venv.join("bin/python"));
    pip.args(["-m", "pip", "install", "--require-hashes", "--only-binary", ":all:", "-r"]).arg(&requirements);
    run(&mut pip, &place.join("pip.log"))?;
    fs::write(&mark, wanted)
}

fn run(command: &mut Command, log: &Path) -> io::Result<()> {
    let what = command.get_program().to_string_lossy().into_owned();
    match Process::start(command, log)?.wait(PATIENCE)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(io::Error::other(format!("`{what}`: {status}; see {}", log.display()))),
        None => Err(io::Error::other(format!("`{what}` took too long; see {}", log.display()))),
    }
}
