//! The table: on the terminal, and in `docs/conformance.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::checks::Scenario;
use super::gaps;
use super::runs::{Run, Suite};

/// The results of one run.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) run: Run,
    /// The verb of `pintle` through which the suite talked to the server.
    pub(super) through: Option<&'static str>,
    pub(super) scenarios: Vec<Scenario>,
    /// An error of the run as a whole.
    pub(super) fault: Option<String>,
}

impl Report {
    fn supported(&self) -> impl Iterator<Item = &Scenario> {
        self.scenarios.iter().filter(|scenario| self.gap(scenario).is_none())
    }

    fn unsupported(&self) -> impl Iterator<Item = &Scenario> {
        self.scenarios.iter().filter(|scenario| self.gap(scenario).is_some())
    }

    fn gap(&self, scenario: &Scenario) -> Option<&'static str> {
        gaps::reason(&scenario.name, self.through)
    }

    fn passed(&self) -> usize {
        self.supported().filter(|scenario| scenario.passed()).count()
    }

    fn checks(&self) -> usize {
        self.supported().map(|scenario| scenario.successes).sum()
    }

    /// Everything that is not as it should be, a line each. A gap that is none any more is one of them.
    fn faults(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.fault.iter().cloned().collect();
        for scenario in self.supported() {
            lines.extend(scenario.faults.iter().map(|fault| format!("{}: {fault}", scenario.name)));
        }
        for scenario in self.unsupported().filter(|scenario| scenario.passed() && scenario.successes > 0) {
            let name = &scenario.name;
            lines.push(format!("{name}: passes; narrow its row in xtask/src/conformance/gaps.rs"));
        }
        lines
    }
}

/// Every fault once, and the runs that have it.
pub(super) fn faults(reports: &[Report]) -> BTreeMap<String, Vec<String>> {
    let mut faults: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for report in reports {
        for fault in report.faults() {
            let runs = faults.entry(fault).or_default();
            // Several checks of a scenario may say the same.
            if runs.last() != Some(&report.run.name()) {
                runs.push(report.run.name());
            }
        }
    }
    faults
}

/// One row for each run.
pub(super) fn table(reports: &[Report]) -> String {
    let mut text = String::from(
        "| run | suite | scenarios | passed | failed | not supported | checks |\n|---|---|---:|---:|---:|---:|---:|\n",
    );
    for report in reports {
        let (supported, passed) = (report.supported().count(), report.passed());
        let _ = writeln!(
            text,
            "| {} | {} | {} | {passed} | {} | {} | {} |",
            report.run.name(),
            report.run.suite.version(),
            report.scenarios.len(),
            supported - passed,
            report.unsupported().count(),
            report.checks()
        );
    }
    text
}

/// The page for people.
pub(super) fn page(reports: &[Report]) -> String {
    let mut text = format!(
        "# Conformance\n\n\
         Results of the official conformance suite, versions {} and {}. `cargo xtask conformance` runs it and\n\
         writes this page.\n\n\
         The suite itself ignores warnings, scenarios without any check, and clients that exit with an error. Here a scenario\n\
         passes only if none of its checks failed or warned, at least one succeeded, and the client exited with 0 unless the\n\
         suite expects an error.\n\n",
        Suite::Old.version(),
        Suite::New.version()
    );
    text.push_str(&table(reports));
    failing(reports, &mut text);
    if gaps::all().next().is_some() {
        text.push_str("\nNot supported:\n\n");
    }
    for (start, reason) in gaps::all() {
        let names = reports.iter().flat_map(Report::unsupported).map(|scenario| scenario.name.as_str());
        let names: BTreeSet<_> = names.filter(|name| name.starts_with(start)).collect();
        let names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(text, "- {reason}: {}", names.join(", "));
    }
    text
}

fn failing(reports: &[Report], text: &mut String) {
    let scenarios = reports.iter().flat_map(|report| {
        let failing = report.supported().filter(|scenario| !scenario.passed());
        failing.map(|scenario| format!("`{}` in `{}`", scenario.name, report.run.name()))
    });
    let scenarios: Vec<_> = scenarios.collect();
    if !scenarios.is_empty() {
        let _ = writeln!(text, "\nFailing: {}.", scenarios.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use super::super::runs::RUNS;
    use super::*;

    fn report(scenarios: &[(&str, &str)]) -> Report {
        let scenarios =
            scenarios.iter().map(|(name, checks)| Scenario::read(name, checks, None).unwrap()).collect();
        Report { through: None, run: RUNS[1], scenarios, fault: None }
    }

    const GOOD: &str = r#"[{"id":"a","status":"SUCCESS"}]"#;
    const BAD: &str = r#"[{"id":"a","status":"FAILURE","errorMessage":"no"}]"#;

    #[test]
    fn a_row_counts_what_passed_what_failed_and_what_is_not_supported() {
        let text = table(&[report(&[("ping", GOOD), ("tools-list", BAD), ("later/x", BAD)])]);
        let row = text.lines().last().unwrap();
        assert_eq!(row, "| server/2026-07-28/required | 0.2.0-alpha.12 | 3 | 1 | 1 | 1 | 1 |");
    }

    #[test]
    fn what_is_not_supported_is_no_fault_until_it_passes() {
        assert!(report(&[("later/x", BAD)]).faults().is_empty());
        assert_eq!(report(&[("ping", BAD)]).faults(), ["ping: FAILURE a: no"]);
        assert_eq!(
            report(&[("later/x", GOOD)]).faults(),
            ["later/x: passes; narrow its row in xtask/src/conformance/gaps.rs"]
        );
    }

    #[test]
    fn a_fault_of_several_runs_is_said_once() {
        let other = Report { through: None, run: RUNS[2], ..report(&[("ping", BAD)]) };
        let found = faults(&[report(&[("ping", BAD)]), other]);
        let runs = ["server/2026-07-28/required", "server/2026-07-28"].map(str::to_owned).to_vec();
        assert_eq!(found, BTreeMap::from([("ping: FAILURE a: no".to_owned(), runs)]));
    }

    #[test]
    fn the_page_names_what_fails_and_what_is_not_supported() {
        let text = page(&[report(&[("tools-list", BAD), ("later/x", BAD)])]);
        assert!(text.contains("Failing: `tools-list` in `server/2026-07-28/required`."), "{text}");
        assert!(text.contains("it comes with the next one: `later/x`"), "{text}");
    }
}
