use serde_json::{Value, json};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Level {
    Note,
    Warning,
    Error,
}

impl Level {
    /// The name, which is that of SARIF too.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Something that could be better.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) rule: &'static str,
    pub(super) level: Level,
    /// The entry: `tool tide`.
    pub(super) subject: String,
    pub(super) message: String,
}

/// Formats findings as SARIF, for code scanning.
pub(super) fn sarif(findings: &[Finding]) -> Value {
    let mut rules: Vec<_> = findings.iter().map(|finding| finding.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    let rules: Vec<_> = rules.into_iter().map(|rule| json!({ "id": rule })).collect();
    let results = findings.iter().map(|finding| {
        json!({
            "ruleId": finding.rule,
            "level": finding.level.name(),
            "message": { "text": format!("{}: {}", finding.subject, finding.message) },
            "locations": [{ "logicalLocations": [{ "fullyQualifiedName": finding.subject }] }],
        })
    });
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "pintle lint", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "results": results.collect::<Vec<_>>(),
        }],
    })
}
