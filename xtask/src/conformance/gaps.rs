//! Scenarios that we do not support yet. They are in the table under their reason, and leave it when they pass.

/// How a scenario's name begins, and why it is not supported.
#[cfg(not(test))]
const GAPS: &[(&str, &str)] = &[];
#[cfg(test)]
const GAPS: &[(&str, &str)] = &[("later/", "it comes with the next one")];

/// Scenarios that do not pass through `pintle bridge` or `pintle gateway`, in addition.
const BRIDGE_GAPS: &[(&str, &str)] = &[
    ("tasks-status-notifications", "nothing is checked"),
    ("server-sse-polling", "the bridge does not pass on that a server ends its stream early"),
];

/// Why a scenario is not supported, if it is not. `through` is the verb of `pintle` between the suite and the server.
pub(super) fn reason(scenario: &str, through: Option<&str>) -> Option<&'static str> {
    let more = if through.is_some() { BRIDGE_GAPS } else { &[] };
    GAPS.iter().chain(more).find(|(start, _)| scenario.starts_with(start)).map(|(_, reason)| *reason)
}

/// How the names begin that nothing stands behind, with the reasons.
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    GAPS.iter().copied()
}
