//! Scenarios that we do not support yet. They are in the table under their reason, and leave it when they pass.

/// How a scenario's name begins, and why it is not supported.
#[cfg(not(test))]
const GAPS: &[(&str, &str)] = &[];
#[cfg(test)]
const GAPS: &[(&str, &str)] = &[("later/", "it comes with the next one")];

/// Scenarios that do not pass through `pintle bridge`, nor through `pintle gateway`, in addition.
const BETWEEN_GAPS: &[(&str, &str)] = &[("tasks-status-notifications", "nothing is checked")];

/// Why a scenario is not supported, if it is not. `through` is what is between the suite and the server.
pub(super) fn reason(scenario: &str, through: Option<&str>) -> Option<&'static str> {
    let is_between = matches!(through, Some("bridge" | "gateway"));
    let between = if is_between { BETWEEN_GAPS } else { &[] };
    let mut all = GAPS.iter().chain(between);
    all.find(|(start, _)| scenario.starts_with(start)).map(|(_, reason)| *reason)
}

/// How the names begin that nothing stands behind, with the reasons.
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    GAPS.iter().copied()
}
