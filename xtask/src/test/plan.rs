//! The steps that a run consists of, and those that are left out and why.

use super::steps::Step;
use super::tools::Tool;
use crate::cargo::Failure;

/// How much is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scope {
    /// The steps of the inner loop, which need nothing but Rust and a C compiler.
    Quick,
    /// Every step whose tools are installed.
    Installed,
    /// Every step. A tool that is missing is a failure.
    All,
}

/// The steps to run, in order, and a line for each reason to leave others out.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) steps: Vec<&'a Step>,
    pub(super) skipped: Vec<String>,
    /// The tools that tests run against, as far as they are installed.
    pub(super) used: Vec<Tool>,
}

impl<'a> Plan<'a> {
    /// Chooses from `steps`; `runs` says whether a program can be run.
    pub(super) fn new(steps: &'a [Step], scope: Scope, runs: &dyn Fn(&str) -> bool) -> Result<Self, Failure> {
        let (chosen, left): (Vec<&Step>, Vec<&Step>) =
            steps.iter().partition(|step| scope != Scope::Quick || step.quick);
        let mut plan = Self { steps: chosen, skipped: Vec::new(), used: Vec::new() };
        if !left.is_empty() {
            plan.skipped.push(format!("{}: not part of `--quick`", names(&left)));
        }
        let used = plan.steps.iter().filter(|_| scope != Scope::Quick).flat_map(|step| step.uses).copied();
        let (here, absent): (Vec<Tool>, Vec<Tool>) = used.partition(|tool| tool.is_here(runs));
        plan.used = here;
        let mut missing = if scope == Scope::All { absent.clone() } else { Vec::new() };
        for tool in plan.steps.iter().flat_map(|step| step.needs) {
            if !missing.contains(tool) && !tool.is_here(runs) {
                missing.push(*tool);
            }
        }
        if scope == Scope::All && !missing.is_empty() {
            let tools: Vec<&str> = missing.iter().map(|tool| tool.about()).collect();
            let what = format!("`--all` needs what is not installed: {}", tools.join(", "));
            return Err(Failure::new(what, "cargo xtask test --all"));
        }
        let (skipped, steps): (Vec<&Step>, Vec<&Step>) =
            plan.steps.into_iter().partition(|step| step.needs.iter().any(|tool| missing.contains(tool)));
        for tool in missing {
            let without: Vec<&Step> =
                skipped.iter().copied().filter(|step| step.needs.contains(&tool)).collect();
            plan.skipped.push(format!("{}: {} is not installed", names(&without), tool.about()));
        }
        for tool in absent {
            let without: Vec<&Step> =
                steps.iter().copied().filter(|step| step.uses.contains(&tool)).collect();
            let about = tool.about();
            plan.skipped.push(format!("{}, those with it: {about} is not installed", names(&without)));
        }
        Ok(Self { steps, ..plan })
    }
}

fn names(steps: &[&Step]) -> String {
    steps.iter().map(|step| step.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::steps::STEPS;
    use super::*;

    const NEEDY: [&str; 10] = [
        "conformance",
        "conformance through a bridge",
        "conformance through a gateway",
        "conformance through a fleet",
        "conformance of a served file",
        "other SDKs",
        "verbs of the command",
        "authorization server",
        "instructions",
        "licences and advisories",
    ];

    fn chosen(plan: &Plan<'_>) -> Vec<&'static str> {
        plan.steps.iter().map(|step| step.name).collect()
    }

    #[test]
    fn with_every_tool_nothing_is_skipped() {
        for scope in [Scope::Installed, Scope::All] {
            let plan = Plan::new(STEPS, scope, &|_| true).unwrap();
            assert_eq!((plan.steps.len(), plan.skipped.len()), (STEPS.len(), 0));
            assert_eq!(plan.used, [Tool::Zsh, Tool::Fish, Tool::Redis, Tool::Haproxy, Tool::Node]);
        }
    }

    #[test]
    fn without_tools_the_rest_runs_and_the_reasons_are_listed() {
        let plan = Plan::new(STEPS, Scope::Installed, &|_| false).unwrap();
        assert!(NEEDY.iter().all(|name| !chosen(&plan).contains(name)), "{plan:?}");
        assert_eq!(plan.steps.len() + NEEDY.len(), STEPS.len());
        assert_eq!(
            plan.skipped,
            [
                "conformance, conformance through a bridge, conformance through a gateway, conformance through a fleet, conformance of a served file, other SDKs, verbs of the command, authorization server: Node 20 or newer with npm is not installed",
                "conformance through a fleet: redis-server is not installed",
                "conformance through a fleet: haproxy is not installed",
                "conformance of a served file, other SDKs, verbs of the command: Python 3.11 or newer is not installed",
                "instructions: valgrind is not installed",
                "licences and advisories: cargo-deny (`cargo install --locked cargo-deny`) is not installed",
                "unit and integration tests, those with it: zsh is not installed",
                "unit and integration tests, those with it: fish is not installed",
                "unit and integration tests, those with it: redis-server is not installed",
                "unit and integration tests, those with it: haproxy is not installed",
                "unit and integration tests, those with it: Node 20 or newer with npm is not installed",
            ]
        );
    }

    #[test]
    fn one_tool_that_is_missing_leaves_out_only_its_steps() {
        let plan = Plan::new(STEPS, Scope::Installed, &|program| program != "python3").unwrap();
        assert_eq!(plan.steps.len() + 3, STEPS.len());
        let python = ["conformance of a served file", "other SDKs", "verbs of the command"];
        assert!(python.iter().all(|name| !chosen(&plan).contains(name)));
    }

    #[test]
    fn all_of_it_fails_before_the_first_step() {
        let failure = Plan::new(STEPS, Scope::All, &|program| program != "valgrind").unwrap_err();
        assert_eq!(failure.what, "`--all` needs what is not installed: valgrind");
        let failure = Plan::new(STEPS, Scope::All, &|program| program != "zsh").unwrap_err();
        assert_eq!(failure.what, "`--all` needs what is not installed: zsh");
    }

    #[test]
    fn the_quick_steps_need_no_tool() {
        let plan = Plan::new(STEPS, Scope::Quick, &|_| false).unwrap();
        assert!(plan.steps.iter().all(|step| step.needs.is_empty()));
        assert!(chosen(&plan).contains(&"unit and integration tests"));
        assert_eq!(plan.skipped.len(), 1, "{:?}", plan.skipped);
        assert!(plan.skipped[0].ends_with(": not part of `--quick`"));
    }
}
