//! `cargo xtask verbs`: the verbs of the `pintle` command with the demo, the fixture of the conformance suite, and the servers of other
//! SDKs.

mod lines;
mod run;
mod server;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use server::{Server, VerbRow};

use super::install::install;
use super::rows::Peer;
use crate::cargo::Failure;
use crate::workspace::{build_programs, shown, target};

/// Each row has two processes at a time.
const AT_ONCE: usize = 3;

/// `args` choose rows by a part of their name: `--only ts2/http`.
pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    let repeat = [&["cargo xtask verbs".to_owned()], args].concat().join(" ");
    let wrong = |what: String| Failure::new(what, &*repeat);
    let only = super::read(args).map_err(|failure| wrong(failure.what))?;
    let is_chosen = |row: &VerbRow| only.is_empty() || only.iter().any(|part| row.name().contains(&**part));
    let rows: Vec<VerbRow> = VerbRow::all().filter(is_chosen).collect();
    if rows.is_empty() {
        let names: Vec<_> = VerbRow::all().map(|row| row.name()).collect();
        return Err(wrong(format!("no row has that in its name; there are\n  {}", names.join("\n  "))));
    }
    build_programs(&["pintle", "conformance-server"])?;
    let has = |peer: &Peer| rows.iter().any(|row| row.server == Server::Peer(*peer));
    let peers: Vec<Peer> = Peer::ALL.into_iter().filter(has).collect();
    let peers = install(&target().join("interop"), &peers)?;
    let place = target().join("interop/verbs");

    let start = Instant::now();
    let (next, faults) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let start = Instant::now();
                    let folder = place.join(row.name().replace('/', "_"));
                    let (typed, wrong) = run::row(row, &peers, &folder);
                    let (name, seconds) = (row.name(), start.elapsed().as_secs_f64());
                    println!("    {name:<24} {} of {typed} lines after {seconds:.1} s", typed - wrong.len());
                    faults.lock().expect("no row panics").extend(wrong);
                }
            });
        }
    });
    let faults = faults.into_inner().expect("no row panics");
    for fault in &faults {
        println!("\n{fault}");
    }
    println!(
        "{} rows in {:.0} s; the output of servers is in {}",
        rows.len(),
        start.elapsed().as_secs_f64(),
        shown(&place)
    );
    match faults.len() {
        0 => Ok(()),
        count => Err(wrong(format!("{count} command lines did not do what they should"))),
    }
}
