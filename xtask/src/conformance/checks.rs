//! The findings of one scenario, read from the checks themselves: the suite's own verdict overlooks warnings, scenarios in
//! which nothing was checked, and how a client ended.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::cargo::Failure;

/// One scenario of one run.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Scenario {
    pub(super) name: String,
    pub(super) successes: usize,
    /// Errors and warnings, a line each.
    pub(super) faults: Vec<String>,
    /// How the client ended; a server does not end.
    pub(super) exit: Option<i32>,
}

/// Scenarios in which a client may end with an error, since the server it met is not to be trusted.
const MAY_FAIL: &[&str] = &[
    "auth/iss-normalized",
    "auth/iss-supported-missing",
    "auth/iss-unexpected",
    "auth/iss-wrong-issuer",
    "auth/metadata-issuer-mismatch",
    "auth/resource-mismatch",
    "auth/scope-retry-limit",
    "http-invalid-tool-headers",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-frontmatter",
    "sep-2640-client-verify-size",
];

/// The suite has these by name only: they check nothing, whoever is asked.
const STUBS: &[&str] = &["tasks-status-notifications"];

/// With this code the client says that it does not know the scenario.
const UNKNOWN: i32 = 2;

impl Scenario {
    /// Reads `checks.json`. `client` is what the client left on stderr, whose last line says how it ended.
    pub(super) fn read(name: &str, checks: &str, client: Option<&str>) -> Result<Self, String> {
        let checks: Vec<Value> = serde_json::from_str(checks).map_err(|error| error.to_string())?;
        let mut scenario = Self { name: name.to_owned(), ..Self::default() };
        for check in &checks {
            match check["status"].as_str() {
                Some("SUCCESS") => scenario.successes += 1,
                Some("INFO" | "SKIPPED") => {}
                _ => scenario.faults.push(fault(check)),
            }
        }
        if scenario.successes == 0 && scenario.faults.is_empty() && !STUBS.contains(&name) {
            scenario.faults.push("nothing was checked".to_owned());
        }
        if let Some(output) = client {
            scenario.exit =
                output.lines().next_back().and_then(|line| line.strip_prefix("exit ")?.parse().ok());
            match scenario.exit {
                Some(0) => {}
                Some(code) if code != UNKNOWN && MAY_FAIL.contains(&name) => {}
                Some(code) => {
                    scenario.faults.push(format!("the client ended with {code}: {}", words(output)))
                }
                None => scenario.faults.push(format!("the client was ended: {}", words(output))),
            }
        }
        Ok(scenario)
    }

    pub(super) fn passed(&self) -> bool {
        self.faults.is_empty()
    }
}

fn fault(check: &Value) -> String {
    let text = |name: &str| check[name].as_str().unwrap_or_default();
    let status = check["status"].as_str().unwrap_or("NO STATUS");
    let output = if check["errorMessage"].is_string() { text("errorMessage") } else { text("description") };
    let mut line = format!("{status} {}: {output}", text("id"));
    if !check["details"].is_null() {
        line.push_str(&format!(" {}", shortened(&check["details"].to_string(), 600)));
    }
    line
}

/// The last words of a client, but for how it ended.
fn words(output: &str) -> String {
    let lines: Vec<_> = output.lines().filter(|line| !line.starts_with("exit ")).collect();
    shortened(lines.last().unwrap_or(&"without a word"), 300)
}

fn shortened(text: &str, limit: usize) -> String {
    let short: String = text.chars().take(limit).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

/// All scenarios below the folder that a run wrote its results to, by name.
pub(super) fn read_all(results: &Path, client: bool) -> Result<Vec<Scenario>, Failure> {
    let mut scenarios = Vec::new();
    collect(results, "", client, &mut scenarios).map_err(|error| {
        Failure::new(format!("{}: {error}", results.display()), "cargo xtask conformance")
    })?;
    scenarios.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(scenarios)
}

fn collect(folder: &Path, above: &str, client: bool, found: &mut Vec<Scenario>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
    for entry in entries {
        let entry = entry.map_err(|error| error.to_string())?.path();
        let Some(file) = entry.file_name().and_then(|name| name.to_str()).filter(|_| entry.is_dir()) else {
            continue;
        };
        let path = format!("{above}{file}");
        let checks = entry.join("checks.json");
        if !checks.is_file() {
            collect(&entry, &format!("{path}/"), client, found)?;
            continue;
        }
        let text = fs::read_to_string(&checks).map_err(|error| error.to_string())?;
        let output = fs::read(entry.join("stderr.txt")).unwrap_or_default();
        let output = String::from_utf8_lossy(&output);
        let name = scenario_of(&path, client);
        found.push(
            Scenario::read(name, &text, client.then_some(&*output))
                .map_err(|why| format!("{path}: {why}"))?,
        );
    }
    Ok(())
}

/// `server-ping-2026-01-02T03-04-05-678Z` is about `ping`; of a client, `ping-2026-…` is.
fn scenario_of(folder: &str, client: bool) -> &str {
    let name = folder.len().checked_sub("-2026-01-02T03-04-05-678Z".len()).and_then(|end| folder.get(..end));
    let name = name.unwrap_or(folder);
    if client { name } else { name.strip_prefix("server-").unwrap_or(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str, checks: &str) -> Scenario {
        Scenario::read(name, checks, None).unwrap()
    }

    fn client(name: &str, output: &str) -> Scenario {
        Scenario::read(name, r#"[{"id":"a","status":"SUCCESS"}]"#, Some(output)).unwrap()
    }

    #[test]
    fn one_success_and_nothing_wrong_is_a_pass() {
        let checks =
            r#"[{"id":"a","status":"SUCCESS"},{"id":"b","status":"INFO"},{"id":"c","status":"SKIPPED"}]"#;
        let scenario = server("ping", checks);
        assert!(scenario.passed());
        assert_eq!(scenario.successes, 1);
    }

    #[test]
    fn a_failure_says_what_and_why() {
        let checks = r#"[{"id":"a","status":"SUCCESS"},{"id":"ping-response","status":"FAILURE","description":"d","errorMessage":"no answer","details":{"status":500}}]"#;
        assert_eq!(server("ping", checks).faults, [r#"FAILURE ping-response: no answer {"status":500}"#]);
    }

    #[test]
    fn a_warning_is_no_pass() {
        let checks = r#"[{"id":"a","status":"SUCCESS"},{"id":"b","status":"WARNING","description":"should be sorted"}]"#;
        assert_eq!(server("tools-list", checks).faults, ["WARNING b: should be sorted"]);
    }

    #[test]
    fn a_status_that_nobody_knows_is_no_pass() {
        let checks = r#"[{"id":"a","status":"SUCCESS"},{"id":"b","status":"FLAKY"},{"id":"c"}]"#;
        assert_eq!(server("ping", checks).faults, ["FLAKY b: ", "NO STATUS c: "]);
    }

    #[test]
    fn a_scenario_in_which_nothing_was_checked_is_no_pass() {
        for checks in ["[]", r#"[{"id":"a","status":"INFO"}]"#, r#"[{"id":"a","status":"SKIPPED"}]"#] {
            assert_eq!(server("initialize", checks).faults, ["nothing was checked"]);
        }
        assert!(server("tasks-status-notifications", r#"[{"id":"a","status":"SKIPPED"}]"#).passed());
    }

    #[test]
    fn what_is_no_list_of_checks_is_an_error() {
        assert!(Scenario::read("ping", "{}", None).is_err());
        assert!(Scenario::read("ping", "", None).is_err());
    }

    #[test]
    fn a_client_has_to_end_well() {
        assert!(client("tools_call", "some words\nexit 0\n").passed());
        assert_eq!(client("tools_call", "refused\nexit 1\n").faults, ["the client ended with 1: refused"]);
        assert_eq!(client("tools_call", "").faults, ["the client was ended: without a word"]);
        assert_eq!(client("tools_call", "waiting\n").faults, ["the client was ended: waiting"]);
    }

    #[test]
    fn a_client_may_end_with_an_error_where_that_is_the_point() {
        assert!(client("auth/resource-mismatch", "exit 1\n").passed());
        assert!(!client("auth/resource-mismatch", "no such scenario\nexit 2\n").passed());
    }

    #[test]
    fn folders_are_named_for_scenarios() {
        assert_eq!(scenario_of("server-tools-list-2026-11-15T05-46-58-197Z", false), "tools-list");
        assert_eq!(
            scenario_of("server-server-initialize-2026-11-15T05-46-58-197Z", false),
            "server-initialize"
        );
        assert_eq!(scenario_of("auth/basic-cimd-2026-11-15T05-46-58-197Z", true), "auth/basic-cimd");
    }
}
