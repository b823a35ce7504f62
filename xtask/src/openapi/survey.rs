//! A server of one document, and the findings of `pintle lint` about it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::documents::Document;
use crate::process::Process;
use crate::workspace::built;

/// The limit of one document, which is far more than any of them takes.
const TIMEOUT: Duration = Duration::from_secs(300);
/// The rules of `pintle lint` about names and schemas. A host that finds such a fault refuses the tool, or all of them.
const RULES: &[&str] = &["duplicate-name", "name", "schema", "schema-portability", "schema-type"];

/// The reasons of clients for a list of more than 64 MiB, and for a page of more than 16 MiB.
const TOO_LONG: [&str; 2] = ["`tools/list` has more than", "the answer has more than"];

/// A program that makes a server of a document: it takes the path of the document, and that of its report.
#[derive(Debug)]
pub(super) struct Maker {
    pub(super) name: &'static str,
    pub(super) words: Vec<String>,
}

/// A document, and what became of it.
#[derive(Debug)]
pub(super) struct Surveyed<'a> {
    pub(super) document: &'a Document,
    /// The last words of the server if there is no report: it has refused the document, or has panicked.
    pub(super) outcome: Result<Outcome, String>,
}

/// The tools of a document, and what they took.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) tools: u64,
    /// Whether a client can list them, and so whether they were checked.
    pub(super) is_listed: bool,
    /// How many operations are no tools, by their reasons.
    pub(super) left_out: BTreeMap<String, u64>,
    pub(super) peak_kb: u64,
    pub(super) cpu_ms: u64,
    /// The findings about names and schemas.
    pub(super) findings: Vec<String>,
    /// How many tools these are about.
    pub(super) refused: u64,
}

/// Serves a document to `pintle lint`.
pub(super) fn take<'a>(maker: &Maker, document: &'a Document, place: &Path) -> io::Result<Surveyed<'a>> {
    let file = |end: &str| place.join(format!("{}.{}.{end}", document.name.replace('/', "_"), maker.name));
    let (report, found, log) = (file("report"), file("lint"), file("log"));
    // One of an earlier run.
    let _ = fs::remove_file(&report);
    let mut lint = Command::new(built("release", "pintle"));
    lint.args(["lint", "--json", "--verbose", "--timeout", "250s", "--"])
        .args(&maker.words)
        .arg(&document.path)
        .arg(&report);
    let mut process = Process::start_apart(&mut lint, File::create(&found)?, File::create(&log)?)?;
    let has_ended = process.wait(TIMEOUT)?.is_some();
    drop(process);
    let read = |path: &Path| -> Option<Value> { serde_json::from_str(&fs::read_to_string(path).ok()?).ok() };
    let log_text = || fs::read_to_string(&log).unwrap_or_default();
    let outcome = match (read(&report), read(&found)) {
        (Some(report), Some(found)) => Ok(Outcome::of(&report, &found)),
        (Some(report), None) if TOO_LONG.iter().any(|reason| log_text().contains(reason)) => {
            Ok(Outcome { is_listed: false, ..Outcome::of(&report, &Value::Null) })
        }
        _ if !has_ended => Err(format!("nothing within {} s", TIMEOUT.as_secs())),
        _ => {
            let log = log_text();
            let last = log.lines().rev().find(|line| line.contains("rror")).or(log.lines().last());
            Err(last.unwrap_or("no output").trim().to_owned())
        }
    };
    Ok(Surveyed { document, outcome })
}

impl Outcome {
    fn of(report: &Value, found: &Value) -> Self {
        let number = |name: &str| report[name].as_u64().unwrap_or_default();
        let left_out = report["left_out"].as_object().into_iter().flatten();
        let findings = found["findings"].as_array().into_iter().flatten();
        let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
        let findings: Vec<&Value> = findings
            .filter(|finding| RULES.contains(&finding["rule"].as_str().unwrap_or_default()))
            .collect();
        let subjects: BTreeSet<String> = findings.iter().map(|finding| text(finding, "subject")).collect();
        Self {
            tools: number("tools"),
            is_listed: true,
            left_out: left_out
                .map(|(reason, count)| (reason.clone(), count.as_u64().unwrap_or_default()))
                .collect(),
            peak_kb: number("peak_kb"),
            cpu_ms: number("cpu_ms"),
            findings: findings
                .iter()
                .map(|finding| {
                    let [subject, message, rule] =
                        ["subject", "message", "rule"].map(|name| text(finding, name));
                    format!("{subject}: {message} [{rule}]")
                })
                .collect(),
            refused: subjects.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_faults_of_names_and_schemas_count() {
        let report = json!({"tools": 3, "left_out": {"why": 2}, "peak_kb": 7, "cpu_ms": 9});
        let finding = |rule: &str, subject: &str| json!({"rule": rule, "subject": subject, "message": "m"});
        let found = json!({"findings": [finding("schema", "tool a"), finding("name", "tool a"), finding("large-tool", "tool b")]});
        let outcome = Outcome::of(&report, &found);
        assert_eq!((outcome.tools, outcome.refused, outcome.findings.len()), (3, 1, 2));
        assert_eq!(outcome.findings[0], "tool a: m [schema]");
        assert_eq!(outcome.left_out["why"], 2);
    }
}
