//! `cargo xtask openapi`: thousands of real OpenAPI documents as tools, and some of them beside FastMCP.

mod documents;
mod peers;
mod report;
mod survey;

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use crate::cargo::{Cargo, Failure};
use crate::page;
use crate::workspace::{built, shown, target};
use documents::Document;
use survey::{Maker, Surveyed};

const REPEAT: &str = "cargo xtask openapi";

pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    let only = match args {
        [] => None,
        [flag, text] if flag == "--only" => Some(text.as_str()),
        _ => return Err(wrong(format!("`{}` is not `--only TEXT`", args.join(" ")))),
    };
    let failed = |error: io::Error| wrong(error.to_string());
    Cargo::new("build --quiet --release --package bench --package pintle-cli --bin openapi --bin pintle")
        .run()?;
    let documents: Vec<Document> = documents::all().map_err(failed)?;
    let documents: Vec<Document> =
        documents.into_iter().filter(|one| only.is_none_or(|text| one.name.contains(text))).collect();
    let place = target().join("openapi-survey");
    fs::create_dir_all(&place).map_err(failed)?;
    let start = Instant::now();
    let ours = Maker { name: "ours", words: vec![built("release", "openapi").display().to_string()] };
    let surveyed = all(&ours, &documents.iter().collect::<Vec<_>>(), &place).map_err(failed)?;
    println!("\n{}", report::summary(&surveyed, start.elapsed()));
    let faults = report::faults(&surveyed);
    faults.iter().for_each(|fault| println!("{fault}"));
    let picks: Vec<&Document> = documents.iter().filter(|one| one.is_pick).collect();
    let table = match peers::fastmcp() {
        Ok(fastmcp) => report::table(&surveyed, &all(&fastmcp, &picks, &place).map_err(failed)?),
        Err(error) => {
            println!("FastMCP is left out: {error}");
            report::table(&surveyed, &[])
        }
    };
    print!("\n{table}");
    println!("the output of all programs is in {}", shown(&place));
    match faults.len() {
        0 if only.is_none() => {
            page::rewrite("docs/openapi.md", "documents", &report::page(&surveyed, &table), REPEAT)
        }
        0 => Ok(()),
        count => Err(wrong(format!("{count} faults"))),
    }
}

/// Takes documents one after the other, on each core.
fn all<'a>(maker: &Maker, documents: &[&'a Document], place: &Path) -> io::Result<Vec<Surveyed<'a>>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(documents.len()));
    let take = || -> io::Result<()> {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(document) = documents.get(at) else { return Ok(()) };
            let surveyed = survey::take(maker, document, place)?;
            done.lock().expect("nobody panics").push((at, surveyed));
        }
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(take)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("nobody panics"))
    })?;
    let mut done = done.into_inner().expect("nobody panics");
    done.sort_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, surveyed)| surveyed).collect())
}

fn wrong(what: String) -> Failure {
    Failure::new(what, REPEAT)
}
