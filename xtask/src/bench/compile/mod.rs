//! `cargo xtask bench --compile`: what a clean debug build of a small program costs, and a build after a change in its
//! `main.rs`, beside the same program with rmcp.
//!
//! CPU time of all processes of a build, not wall time: it depends less on what else the machine does. What is compared is built in one
//! run.

mod programs;

use std::fs;

use crate::cargo::Failure;
use crate::page;
use crate::program::{Place, Program};
use crate::workspace::target;

use programs::{JOBS, Job, THEIRS};

const REPEAT: &str = "cargo xtask bench --compile";
/// The most that a build after a change may cost, as a multiple of rmcp's.
const AGAIN: f64 = 1.0;

/// The CPU time of the two builds of a program, in seconds.
#[derive(Clone, Copy)]
struct Cost {
    crates: usize,
    clean: f64,
    again: f64,
}

pub(super) fn command() -> Result<(), Failure> {
    let theirs = THEIRS.iter().map(|program| Ok((program, cost(program)?))).collect::<Result<Vec<_>, _>>()?;
    let ours = JOBS.iter().map(|job| Ok((job, cost(&job.program)?))).collect::<Result<Vec<_>, _>>()?;
    let mut table = "| program | crates, rmcp | crates | clean, rmcp | clean | × | at most | after a change, rmcp | after a change | × | at most |\n\
                     |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
        .to_owned();
    let mut over = Vec::new();
    for (job, cost) in &ours {
        let theirs = theirs.iter().find(|(program, _)| program.name == job.beside);
        // Each job names a program that there is: see the tests.
        let Some((_, theirs)) = theirs else { continue };
        table.push_str(&row(job, *cost, *theirs));
        over.extend(too_much(job, *cost, *theirs));
    }
    println!("\n{table}");
    page::rewrite("bench/README.md", "compile", &table, REPEAT)?;
    if over.is_empty() { Ok(()) } else { Err(Failure::new(over.join("\n  "), REPEAT)) }
}

/// Builds a program from nothing, and again. What was built is removed: it is large, and never used.
fn cost(program: &Program) -> Result<Cost, Failure> {
    let folder = target().join("compile");
    let built = folder.join("target");
    let place = Place { folder: &folder, target: &built, repeat: REPEAT };
    let remove = || match fs::remove_dir_all(&built) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::new(format!("`{}`: {error}", built.display()), REPEAT))
        }
        _ => Ok(()),
    };
    remove()?;
    program.write(place)?;
    let crates = program.crates(place)?;
    let clean = program.build(place, &[])?;
    program.touch(place, 1)?;
    let again = program.build(place, &[])?;
    remove()?;
    println!("    {:<12}{clean:>8.1} s, after a change {again:.2} s", program.name);
    Ok(Cost { crates, clean, again })
}

fn row(job: &Job, ours: Cost, theirs: Cost) -> String {
    format!(
        "| {} | {} | {} | {:.1} | {:.1} | {:.2} | {} | {:.2} | {:.2} | {:.2} | {AGAIN} |\n",
        job.name,
        theirs.crates,
        ours.crates,
        theirs.clean,
        ours.clean,
        ours.clean / theirs.clean,
        job.limit,
        theirs.again,
        ours.again,
        ours.again / theirs.again
    )
}

/// Says which of its limits a program exceeds.
fn too_much(job: &Job, ours: Cost, theirs: Cost) -> Vec<String> {
    let builds = [
        ("a clean build", ours.clean, theirs.clean, job.limit),
        ("a build after a change", ours.again, theirs.again, AGAIN),
    ];
    let over = builds.into_iter().filter(|(_, ours, theirs, limit)| *ours > limit * theirs);
    over.map(|(build, ours, theirs, limit)| {
        format!(
            "{}: {build} takes {ours:.1} s of CPU, {:.2} times as much as rmcp's; the limit is {limit}",
            job.name,
            ours / theirs
        )
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_has_one_to_compare_with() {
        for job in JOBS {
            assert!(THEIRS.iter().any(|program| program.name == job.beside), "{}", job.name);
        }
    }

    #[test]
    fn each_limit_is_held() {
        let (job, theirs) = (&JOBS[0], Cost { crates: 9, clean: 10.0, again: 2.0 });
        let with = |clean, again| too_much(job, Cost { crates: 9, clean, again }, theirs);
        assert_eq!(with(13.0, 2.0), Vec::<String>::new());
        assert_eq!(
            with(13.5, 2.0),
            [
                "server on stdio, with macros: a clean build takes 13.5 s of CPU, 1.35 times as much as rmcp's; the limit is 1.3"
            ]
        );
        assert_eq!(with(13.5, 2.1).len(), 2);
    }
}
