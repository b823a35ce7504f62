//! The servers and clients of other SDKs, as the lock files in `bench/peers` and `interop` have them, below
//! `target/bench/peers`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cargo::{Cargo, Failure};
use crate::npm;
use crate::pip;
use crate::workspace::{root, shown, target};

/// Programs of one SDK, ready to be started as Pintle's are: see `bench/peers/README.md`.
#[derive(Debug)]
pub(super) struct BenchPeer {
    /// As it is called in the figures.
    pub(super) name: &'static str,
    pub(super) server: PathBuf,
    /// Only those in Rust are measured as clients too.
    pub(super) client: Option<PathBuf>,
}

/// All that there are, the fastest to build first.
pub(super) const ALL: &[&str] = &["python", "typescript", "rmcp", "tower-mcp"];

/// The folder that they are built and installed in.
fn place() -> PathBuf {
    target().join("bench/peers")
}

/// Builds and installs what is missing of these. One that is not to be had is told of and left out: the others are still
/// worth comparing with.
pub(super) fn ready(names: &[&'static str]) -> Vec<BenchPeer> {
    let made = names.iter().filter_map(|name| match peer(name) {
        Ok(peer) => Some(peer),
        Err(error) => {
            println!("    {name} is left out: {error}");
            None
        }
    });
    made.collect()
}

/// `cargo xtask bench --peers`: makes all of them ready, and says where they are.
pub(super) fn command() -> Result<(), Failure> {
    let peers = ready(ALL);
    for BenchPeer { name, server, client } in &peers {
        let client = client.as_deref().map_or(String::new(), |client| format!(", {}", shown(client)));
        println!("    {name:<11} {}{client}", shown(server));
    }
    if peers.len() == ALL.len() {
        return Ok(());
    }
    let missing = format!("{} of {} peers", ALL.len() - peers.len(), ALL.len());
    Err(Failure::new(format!("{missing} could not be made ready"), "cargo xtask bench --peers"))
}

fn peer(name: &'static str) -> Result<BenchPeer, String> {
    match name {
        "rmcp" => rust(name, "rmcp"),
        "tower-mcp" => rust(name, "tower"),
        "typescript" => script(name, "ts", |place| npm::install("interop/ts", place)),
        "python" => script(name, "py", |place| {
            pip::install(&["interop/py/requirements.txt", "bench/peers/py/requirements.txt"], place)
        }),
        _ => Err("there is no such peer".to_owned()),
    }
}

/// Both share a folder for what they have in common.
fn rust(name: &'static str, folder: &str) -> Result<BenchPeer, String> {
    let manifest = format!("--manifest-path bench/peers/{folder}/Cargo.toml");
    let build = Cargo::new(&format!("build --quiet --release --locked {manifest}"));
    build.arg("--target-dir").arg(place()).run().map_err(|failure| failure.what)?;
    let built = |role: &str| place().join(format!("release/{folder}-{role}{}", std::env::consts::EXE_SUFFIX));
    Ok(BenchPeer { name, server: built("server"), client: Some(built("client")) })
}

/// Copies a script beside its packages, where its interpreter looks for them.
fn script(
    name: &'static str,
    folder: &str,
    install: impl Fn(&Path) -> std::io::Result<()>,
) -> Result<BenchPeer, String> {
    let (from, place) = (root().join("bench/peers").join(folder), place().join(folder));
    let installed = install(&place).and_then(|()| {
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            fs::copy(entry.path(), place.join(entry.file_name()))?;
        }
        Ok(())
    });
    installed.map_err(|error| error.to_string())?;
    Ok(BenchPeer { name, server: place.join("server"), client: None })
}
