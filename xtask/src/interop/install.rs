//! The other SDKs as their lock files in `interop` have them, installed below `target/interop`.

use std::io;
use std::path::{Path, PathBuf};

use super::rows::Peer;
use super::wrong;
use crate::cargo::{Cargo, Failure};
use crate::npm;
use crate::pip;
use crate::workspace::root;

/// The programs of the other SDKs, ready to run.
#[derive(Debug)]
pub(super) struct InstalledSdks {
    place: PathBuf,
}

/// Installs what these peers need, unless it is there.
pub(super) fn install(place: &Path, peers: &[Peer]) -> Result<InstalledSdks, Failure> {
    let has = |wanted: &[Peer]| peers.iter().any(|peer| wanted.contains(peer));
    let failed = |error: io::Error| wrong(error.to_string());
    if has(&[Peer::Ts2, Peer::Ts1]) {
        npm::install_programs("interop/ts", &place.join("ts")).map_err(failed)?;
    }
    if has(&[Peer::Py2]) {
        pip::install(&["interop/py/requirements.txt"], &place.join("py")).map_err(failed)?;
    }
    if has(&[Peer::Rmcp]) {
        let manifest = "--manifest-path interop/rmcp/Cargo.toml";
        Cargo::new(&format!("build --locked {manifest}"))
            .arg("--target-dir")
            .arg(place.join("rmcp"))
            .run()?;
    }
    Ok(InstalledSdks { place: place.to_owned() })
}

impl InstalledSdks {
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
