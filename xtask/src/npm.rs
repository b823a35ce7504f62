//! Installing the packages of an npm lock file below `target`.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::process::Process;
use crate::workspace::root;

const FILES: [&str; 3] = ["package.json", "package-lock.json", ".npmrc"];
const TIMEOUT: Duration = Duration::from_secs(180);

/// Installs what the lock file in the folder `from` says into `place`, and puts the programs of that folder there too: Node
/// looks for packages beside the program that wants them.
pub(crate) fn install_programs(from: &str, place: &Path) -> io::Result<()> {
    install(from, place)?;
    for entry in fs::read_dir(root().join(from))? {
        let path = entry?.path();
        if let (Some("mjs"), Some(name)) = (path.extension().and_then(|end| end.to_str()), path.file_name()) {
            fs::copy(&path, place.join(name))?;
        }
    }
    Ok(())
}

/// Installs what the lock file in the folder `from` says into `place`, unless it is there.
pub(crate) fn install(from: &str, place: &Path) -> io::Result<()> {
    let lock = format!("{from}/package-lock.json");
    let from = root().join(from);
    let mark = place.join("installed");
    let wanted = fs::read(from.join("package-lock.json"))?;
    if fs::read(&mark).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    println!("    npm installs what {lock} says");
    fs::create_dir_all(place)?;
    for file in FILES {
        fs::copy(from.join(file), place.join(file))?;
    }
    let log = place.join("npm.log");
    let mut command = Command::new("npm");
    command.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(place);
    match Process::start(&mut command, &log)?.wait(TIMEOUT)? {
        Some(status) if status.success() => fs::write(&mark, wanted),
        Some(status) => Err(io::Error::other(format!("`npm ci`: {status}; see {}", log.display()))),
        None => Err(io::Error::other(format!("`npm ci` took too long; see {}", log.display()))),
    }
}
