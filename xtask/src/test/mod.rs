//! `cargo xtask test`: everything CI runs, one step after the other, until one fails.

mod plan;
mod steps;
mod tally;
mod tools;

use std::time::{Duration, Instant};

use crate::cargo::Failure;
use plan::{Plan, Scope};
use steps::{RunReport, STEPS};

const USAGE: &str = "cargo xtask test [--quick | --all] [--plan]";

/// Runs the steps that `args` ask for. With `--plan`, prints them instead.
pub(crate) fn command(args: &[String]) -> Result<(), Failure> {
    let (scope, dry) = parse(args).map_err(|what| Failure::new(what, USAGE))?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let plan = Plan::new(STEPS, scope, &|program| tools::runs(program, &path))?;
    if dry {
        plan.steps.iter().for_each(|step| println!("{}", step.name));
        plan.skipped.iter().for_each(|line| println!("skipped: {line}"));
        return Ok(());
    }
    run(plan)
}

fn run(plan: Plan<'_>) -> Result<(), Failure> {
    let mut report = RunReport { skipped: plan.skipped, used: plan.used, ..RunReport::default() };
    let mut times = Vec::new();
    for step in plan.steps {
        println!("\n==> {}", step.name);
        let start = Instant::now();
        let result = (step.run)(&mut report);
        let time = start.elapsed();
        println!("    {} after {}", if result.is_ok() { "ok" } else { "FAILED" }, seconds(time));
        result?;
        times.push((step.name, time));
    }
    println!();
    for (name, time) in &times {
        println!("{:>9}  {name}", seconds(*time));
    }
    println!("{:>9}  all steps", seconds(times.iter().map(|(_, time)| *time).sum()));
    for line in &report.skipped {
        println!("skipped: {line}");
    }
    println!("test result: ok. {}", report.tally);
    Ok(())
}

/// Reads the scope, and whether only the plan is asked for.
fn parse(args: &[String]) -> Result<(Scope, bool), String> {
    let (mut scope, mut dry) = (Scope::Installed, false);
    for arg in args {
        match (arg.as_str(), scope) {
            ("--plan", _) => dry = true,
            ("--quick", Scope::Installed) => scope = Scope::Quick,
            ("--all", Scope::Installed) => scope = Scope::All,
            ("--quick" | "--all", _) => return Err("`--quick` and `--all` exclude each other".to_owned()),
            _ => return Err(format!("no such option: `{arg}`")),
        }
    }
    Ok((scope, dry))
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<(Scope, bool), String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_choose_the_scope() {
        assert_eq!(parsed(""), Ok((Scope::Installed, false)));
        assert_eq!(parsed("--quick"), Ok((Scope::Quick, false)));
        assert_eq!(parsed("--plan --all"), Ok((Scope::All, true)));
        assert_eq!(parsed("--quick --all").unwrap_err(), "`--quick` and `--all` exclude each other");
        assert_eq!(parsed("--fast").unwrap_err(), "no such option: `--fast`");
    }
}
