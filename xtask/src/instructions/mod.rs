//! `cargo xtask instructions`: what the hot paths cost, counted by callgrind and held against a baseline.
//!
//! Instructions do not depend on what else the machine does. Each case runs with two counts; the difference is what one
//! pass costs, without start-up.

mod baseline;
mod profile;

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, thread};

use crate::cargo::{Cargo, Failure};
use crate::page;
use crate::workspace::{built, root, target};
use baseline::Baseline;
use profile::Profile;

const REPEAT: &str = "cargo xtask instructions";
const BLESS: &str = "cargo xtask instructions --bless";
const BASELINE: &str = "bench/baseline.txt";
/// A case, and one that it may cost no more than, give or take one in a hundred.
const NO_MORE: &[(&str, &str)] = &[
    ("call typed", "call typed, read by hand"),
    ("poll of a task, session", "call session, 1 tool"),
    ("poll of a task, stateless", "call, tasks declared, stateless"),
];
/// How often a case that seems to have grown is counted. Wake-ups between threads come in other numbers each time, and
/// hash tables have another shape: the cheapest count is the one with the least of that.
const TRIES: usize = 3;
/// Copies by vectors and not by `rep movsb`, of which callgrind counts each byte as an instruction. Whether a buffer
/// that grows has to move depends on the heap's layout, and from which size on bytes are moved so on the processor.
const COPIES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-ERMS,-FSRM");

pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    let words: Vec<_> = args.iter().map(String::as_str).collect();
    let (bless, only) = match words[..] {
        [] => (false, None),
        ["--bless"] => (true, None),
        ["--only", only] => (false, Some(only)),
        ["--bless", "--only", only] | ["--only", only, "--bless"] => (true, Some(only)),
        _ => {
            let message = format!("`{}` is neither `--bless` nor `--only TEXT`", args.join(" "));
            return Err(Failure::new(message, BLESS));
        }
    };
    if bless {
        return count_all(None, only);
    }
    if let Some(reason) = compare(only)? {
        println!("skipped: {reason}");
    }
    Ok(())
}

/// Compares with the baseline. Returns the reason if that means nothing here.
pub(crate) fn check() -> Result<Option<String>, Failure> {
    compare(None)
}

/// Compares the cases with a text in their names with the baseline, or all.
fn compare(only: Option<&str>) -> Result<Option<String>, Failure> {
    let baseline = read()?;
    let reason = baseline.incomparable(&machine()?);
    if reason.is_none() {
        count_all(Some(&baseline), only)?;
    }
    Ok(reason)
}

/// Counts the cases with a text in their names, or all, and compares with `before`, or makes a new baseline.
fn count_all(before: Option<&Baseline>, only: Option<&str>) -> Result<(), Failure> {
    if !Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Err(Failure::new("counting needs valgrind; install Debian's package `valgrind`", REPEAT));
    }
    Cargo::new("build --quiet --release --package bench --bin instructions").run()?;
    let mut now = Baseline { machine: machine()?, ..Baseline::default() };
    let none = Baseline::default();
    // Those that are not counted are as they were.
    let known = if only.is_some() { Some(read()?) } else { None };
    if let (None, Some(reason)) = (before, known.as_ref().and_then(|known| known.incomparable(&now.machine)))
    {
        return Err(Failure::new(reason, BLESS));
    }
    let listed = run(&[])?;
    let cases: Vec<_> = listed.lines().collect();
    let is_chosen = |case: &str| only.is_none_or(|only| case.contains(only));
    let chosen: Vec<_> = cases.iter().copied().filter(|case| is_chosen(case)).collect();
    let mut counted = count_each(&chosen, before.unwrap_or(&none))?.into_iter();
    for case in cases {
        now.cases.extend(match is_chosen(case) {
            true => counted.next(),
            false => known.as_ref().and_then(|known| known.case(case)),
        });
    }
    let mut wrong = now.excess(NO_MORE);
    if let Some(before) = before {
        wrong.extend(now.grown(before));
    }
    if !wrong.is_empty() {
        return Err(Failure::new(wrong.join("\n"), REPEAT));
    }
    if before.is_none() {
        page::rewrite("bench/README.md", "instructions", &now.table(), BLESS)?;
        write(&now)?;
    }
    Ok(())
}

/// Counts several cases at the same time. The profiles are in the order of the cases.
fn count_each(cases: &[&str], before: &Baseline) -> Result<Vec<(String, Profile)>, Failure> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut counted = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(index) else { return Ok(counted) };
            let profile = measured(case, before)?;
            println!("{case:<50}{:>10}", profile.total());
            counted.push((index, ((*case).to_owned(), profile)));
        }
    };
    let mut counted = thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        let done = workers.into_iter().map(|worker| {
            worker.join().unwrap_or_else(|_| Err(Failure::new("a count was interrupted", REPEAT)))
        });
        done.collect::<Result<Vec<Vec<_>>, _>>()
    })?
    .into_iter()
    .flatten()
    .collect::<Vec<_>>();
    counted.sort_by_key(|(index, _)| *index);
    Ok(counted.into_iter().map(|(_, case)| case).collect())
}

/// Counts again what has grown, in case it was chance.
fn measured(case: &str, before: &Baseline) -> Result<Profile, Failure> {
    let (few, many) = match case {
        large if large.contains("MiB") => (2, 6),
        large if large.contains("KiB") => (20, 120),
        _ => (100, 1100),
    };
    let mut best: Option<Profile> = None;
    for _ in 0..TRIES {
        let profile = count(case, many)?.less(&count(case, few)?).per(many - few).folded();
        if best.as_ref().is_none_or(|best| profile.total() < best.total()) {
            best = Some(profile);
        }
        if best.as_ref().is_some_and(|best| !before.is_passed(case, best)) {
            break;
        }
    }
    best.ok_or_else(|| Failure::new(format!("`{case}` was not counted"), REPEAT))
}

fn binary() -> Command {
    Command::new(built("release", "instructions"))
}

fn run(args: &[&str]) -> Result<String, Failure> {
    let output = binary().args(args).output().map_err(|error| Failure::new(error.to_string(), REPEAT))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn count(case: &str, times: u64) -> Result<Profile, Failure> {
    let failure = |error: std::io::Error| Failure::new(format!("callgrind, for `{case}`: {error}"), REPEAT);
    let name: String = case.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let file = target().join(format!("callgrind.{name}.out"));
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--compress-pos=no"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(binary().get_program())
        .args([case, &times.to_string()])
        .env(COPIES.0, COPIES.1)
        .output()
        .map_err(failure)?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::new(format!("callgrind, for `{case}`: {message}"), REPEAT));
    }
    let profile = Profile::read(&String::from_utf8_lossy(&fs::read(&file).map_err(failure)?));
    fs::remove_file(&file).map_err(failure)?;
    Ok(profile)
}

/// The compiler and libc of this machine: `rustc 1.95.0 (…), glibc 2.36`.
fn machine() -> Result<String, Failure> {
    let rustc = first_line("rustc", "--version");
    let rustc = rustc.ok_or_else(|| Failure::new("`rustc --version` cannot be run", REPEAT))?;
    let libc = first_line("getconf", "GNU_LIBC_VERSION").unwrap_or_else(|| "unknown libc".to_owned());
    Ok(format!("{rustc}, {libc}"))
}

fn first_line(program: &str, arg: &str) -> Option<String> {
    let output = Command::new(program).arg(arg).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).lines().next()?.trim().to_owned())
}

fn read() -> Result<Baseline, Failure> {
    let text = fs::read_to_string(root().join(BASELINE));
    let text = text.map_err(|error| Failure::new(format!("`{BASELINE}`: {error}"), BLESS))?;
    Baseline::read(&text).map_err(|wrong| Failure::new(format!("`{BASELINE}`: {wrong}"), BLESS))
}

fn write(baseline: &Baseline) -> Result<(), Failure> {
    let written = fs::write(root().join(BASELINE), baseline.to_string());
    written.map_err(|error| Failure::new(format!("`{BASELINE}`: {error}"), BLESS))
}
