//! `cargo xtask login`: our client and our server with an authorization server that is not ours.

use std::fs;
use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::cargo::Failure;
use crate::npm;
use crate::process::Process;
use crate::workspace::{build_programs, program, shown, target};

/// All cases take seconds, and one that hangs is given up after twenty.
const TIMEOUT: Duration = Duration::from_secs(200);
const START: Duration = Duration::from_secs(30);

/// `args` choose cases by a part of their name; without any it is all of them.
pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    build_programs(&["interop-login"])?;
    let repeat = [&["cargo xtask login".to_owned()], args].concat().join(" ");
    match run(args) {
        Ok(None) => Ok(()),
        Ok(Some(fault)) => Err(Failure::new(fault, repeat)),
        Err(error) => Err(Failure::new(error.to_string(), repeat)),
    }
}

/// Returns what was wrong, if anything.
fn run(args: &[String]) -> io::Result<Option<String>> {
    let place = target().join("interop/oidc");
    npm::install_programs("interop/oidc", &place)?;
    let start = Instant::now();
    let mut node = Command::new("node");
    let log = place.join("provider.log");
    let (mut provider, setup) = Process::serve(node.arg(place.join("provider.mjs")), &log, START)?;

    let output = place.join("login.log");
    let mut login = Command::new(program("interop-login"));
    let status = Process::start(login.arg(setup).args(args), &output)?.wait(TIMEOUT)?;
    print!("{}", fs::read_to_string(&output)?);
    println!("in {:.1} s; the provider's log is {}", start.elapsed().as_secs_f64(), shown(&log));
    Ok(match status {
        Some(_) if !provider.runs() => Some(format!("the provider ended; see {}", log.display())),
        Some(status) if status.success() => None,
        Some(_) => Some("a case failed".to_owned()),
        None => Some(format!("the cases did not end within {} s", TIMEOUT.as_secs())),
    })
}
