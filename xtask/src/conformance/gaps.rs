//! Scenarios that we do not support yet. They are in the table under their reason, and leave it when they pass.

/// How a scenario's name begins, and why it is not supported.
#[cfg(not(test))]
const GAPS: &[(&str, &str)] = &[];
#[cfg(test)]
const GAPS: &[(&str, &str)] = &[("later/", "it comes with the next one")];

/// Scenarios that do not pass through `pintle bridge`, nor through `pintle gateway`, in addition.
const BETWEEN_GAPS: &[(&str, &str)] = &[("tasks-status-notifications", "nothing is checked")];

/// Scenarios that need what no file can have.
const FILE_GAPS: &[(&str, &str)] = &[
    ("completion-complete", "a file completes nothing"),
    ("input-required-result-basic-list-roots", "a worker asks for no roots"),
    ("input-required-result-basic-sampling", "a worker asks no model"),
    ("input-required-result-capability-check", "a worker asks no model"),
    ("input-required-result-multiple-input-requests", "a worker asks no model"),
    ("input-required-result-non-tool-request", "a prompt of a file asks nothing"),
    ("prompts-get-embedded-resource", "a prompt of a file is a text"),
    ("prompts-get-with-image", "a prompt of a file is a text"),
    ("server-sse-polling", "a tool of a file does not close its stream"),
    ("server-stateless", "a worker asks no model, and changes no list"),
    ("tasks-lifecycle", "a tool of a file fails with no JSON-RPC error"),
    ("tasks-mrtr", "a worker asks one question at a time"),
    ("tasks-required-task-error", "no tool of a file is a task only"),
    ("tools-call-sampling", "a worker asks no model"),
];

/// Why a scenario is not supported, if it is not. `through` is what is between the suite and the server.
pub(super) fn reason(scenario: &str, through: Option<&str>) -> Option<&'static str> {
    let is_between = matches!(through, Some("bridge" | "gateway"));
    let between = match through {
        Some("file") => FILE_GAPS,
        _ if is_between => BETWEEN_GAPS,
        _ => &[],
    };
    let mut all = GAPS.iter().chain(between);
    all.find(|(start, _)| scenario.starts_with(start)).map(|(_, reason)| *reason)
}

/// How the names begin that nothing stands behind, with the reasons.
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    GAPS.iter().copied()
}
