//! In which ways the suite is run.

/// Which version of the suite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Suite {
    Old,
    New,
}

impl Suite {
    pub(super) fn version(self) -> &'static str {
        match self {
            Self::Old => "0.1.16",
            Self::New => "0.2.0-alpha.12",
        }
    }

    /// The name in `fixtures/suite/package.json`.
    pub(super) fn package(self) -> &'static str {
        match self {
            Self::Old => "conformance-0.1",
            Self::New => "conformance-0.2",
        }
    }
}

/// The side that is tested.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Role {
    Server,
    Client,
}

impl Role {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }
}

/// Which scenarios, in which revision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pick {
    /// A suite, each scenario in the revision that the suite thinks best.
    Suite(&'static str),
    /// Of all scenarios those that a revision has.
    Revision(&'static str),
    /// The scenarios that a revision requires, as they were when the revision came out.
    Required(&'static str),
    /// One scenario whose clock would suffer among others.
    Alone(&'static str),
}

/// One run of the suite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) role: Role,
    pub(super) suite: Suite,
    pub(super) pick: Pick,
    /// How many scenarios that is: one that is missing has not passed.
    pub(super) scenarios: usize,
}

/// Measures milliseconds in a way that only this version of the suite has, so it runs alone.
pub(super) const TIMED: (Suite, &str) = (Suite::Old, "sse-retry");

use Pick::{Alone, Required, Revision, Suite as Named};
use Role::{Client, Server};
use Suite::{New, Old};

/// The longest first, so that the end is not a wait for one.
#[rustfmt::skip]
pub(super) const RUNS: &[Run] = &[
    Run { role: Server, suite: New, pick: Named("all"), scenarios: 65 },
    Run { role: Server, suite: New, pick: Required("2026-07-28"), scenarios: 50 },
    Run { role: Server, suite: New, pick: Revision("2026-07-28"), scenarios: 40 },
    Run { role: Server, suite: New, pick: Named("draft"), scenarios: 19 },
    Run { role: Server, suite: New, pick: Named("active"), scenarios: 31 },
    Run { role: Server, suite: New, pick: Required("2025-11-25"), scenarios: 33 },
    Run { role: Server, suite: New, pick: Revision("2025-11-25"), scenarios: 33 },
    Run { role: Server, suite: New, pick: Revision("2025-06-18"), scenarios: 27 },
    Run { role: Server, suite: New, pick: Revision("2025-03-26"), scenarios: 1 },
    Run { role: Server, suite: Old, pick: Named("all"), scenarios: 32 },
    Run { role: Server, suite: Old, pick: Named("active"), scenarios: 30 },
    Run { role: Client, suite: New, pick: Named("all"), scenarios: 48 },
    Run { role: Client, suite: New, pick: Required("2026-07-28"), scenarios: 39 },
    Run { role: Client, suite: New, pick: Revision("2026-07-28"), scenarios: 33 },
    Run { role: Client, suite: New, pick: Named("draft"), scenarios: 17 },
    Run { role: Client, suite: New, pick: Required("2025-11-25"), scenarios: 25 },
    Run { role: Client, suite: New, pick: Revision("2025-11-25"), scenarios: 19 },
    Run { role: Client, suite: New, pick: Revision("2025-06-18"), scenarios: 5 },
    Run { role: Client, suite: New, pick: Revision("2025-03-26"), scenarios: 2 },
    Run { role: Client, suite: New, pick: Named("auth"), scenarios: 14 },
    Run { role: Client, suite: New, pick: Named("extensions"), scenarios: 6 },
    Run { role: Client, suite: New, pick: Named("backcompat"), scenarios: 2 },
    Run { role: Client, suite: Old, pick: Named("all"), scenarios: 25 },
    Run { role: Client, suite: Old, pick: Alone("sse-retry"), scenarios: 1 },
];

impl Run {
    /// For people, and for `--only`: `server/2026-07-28/required`, `client/0.1/all`.
    pub(super) fn name(&self) -> String {
        let role = self.role.as_str();
        let old = if self.suite == Old { "0.1/" } else { "" };
        match self.pick {
            Named(suite) => format!("{role}/{old}{suite}"),
            Revision(revision) => format!("{role}/{old}{revision}"),
            Required(revision) => format!("{role}/{old}{revision}/required"),
            Alone(scenario) => format!("{role}/{old}{scenario}"),
        }
    }

    /// Whether what is between the suite and the server is told to use the server's sessions. The bridge is, where all scenarios are of a
    /// revision with sessions; a gateway chooses for itself.
    pub(super) fn uses_sessions(&self, through: Option<&str>) -> bool {
        let is_old = match self.pick {
            Revision(revision) | Required(revision) => revision != "2026-07-28",
            Named(_) | Alone(_) => self.suite == Old,
        };
        is_old && through == Some("bridge")
    }

    /// Arguments of the suite's command, for one scenario or for all.
    pub(super) fn args(&self, scenario: Option<&str>) -> Vec<String> {
        let words: Vec<&str> = match (self.pick, scenario) {
            (Named(_) | Alone(_), Some(scenario)) => vec!["--scenario", scenario],
            (Revision(revision) | Required(revision), Some(scenario)) => {
                vec!["--scenario", scenario, "--spec-version", revision, "--force"]
            }
            (Named(suite), None) => vec!["--suite", suite],
            (Revision(revision), None) => vec!["--suite", "all", "--spec-version", revision],
            (Required(revision), None) => vec!["--requirements", revision],
            (Alone(scenario), None) => vec!["--scenario", scenario],
        };
        words.into_iter().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_a_name_of_its_own() {
        let mut names: Vec<_> = RUNS.iter().map(Run::name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), RUNS.len());
        assert_eq!(RUNS[1].name(), "server/2026-07-28/required");
    }

    #[test]
    fn a_bridge_uses_sessions_where_all_scenarios_have_them() {
        let with_sessions = |run: &&Run| run.role == Server && run.uses_sessions(Some("bridge"));
        let names: Vec<_> = RUNS.iter().filter(with_sessions).map(Run::name).collect();
        let expected =
            ["2025-11-25/required", "2025-11-25", "2025-06-18", "2025-03-26", "0.1/all", "0.1/active"];
        assert_eq!(names, expected.map(|name| format!("server/{name}")));
        assert!(!RUNS.iter().any(|run| run.uses_sessions(Some("gateway")) || run.uses_sessions(None)));
    }

    #[test]
    fn a_single_scenario_keeps_the_revision() {
        assert_eq!(RUNS[1].args(None), ["--requirements", "2026-07-28"]);
        let words = ["--scenario", "ping", "--spec-version", "2026-07-28", "--force"];
        assert_eq!(RUNS[1].args(Some("ping")), words);
    }
}
