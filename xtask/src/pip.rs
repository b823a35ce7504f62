//! Installing Python packages from requirements files below `target`.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::process::Process;
use crate::workspace::root;

const TIMEOUT: Duration = Duration::from_secs(300);

/// Installs what these files say, every file by its hash, into `venv` in `place`, unless it is there.
pub(crate) fn install(requirements: &[&str], place: &Path) -> io::Result<()> {
    let mark = place.join("installed");
    let wanted =
        requirements.iter().map(|file| fs::read(root().join(file))).collect::<io::Result<Vec<_>>>()?;
    let wanted = wanted.concat();
    if fs::read(&mark).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    println!("    pip installs what {} says", requirements.join(" and "));
    fs::create_dir_all(place)?;
    let venv = place.join("venv");
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv), &place.join("venv.log"))?;
    let mut pip = Command::new(venv.join("bin/python"));
    pip.args(["-m", "pip", "install", "--require-hashes", "--only-binary", ":all:"]);
    for file in requirements {
        pip.arg("-r").arg(root().join(file));
    }
    run(&mut pip, &place.join("pip.log"))?;
    fs::write(&mark, wanted)
}

fn run(command: &mut Command, log: &Path) -> io::Result<()> {
    let what = command.get_program().to_string_lossy().into_owned();
    match Process::start(command, log)?.wait(TIMEOUT)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(io::Error::other(format!("`{what}`: {status}; see {}", log.display()))),
        None => Err(io::Error::other(format!("`{what}` took too long; see {}", log.display()))),
    }
}
