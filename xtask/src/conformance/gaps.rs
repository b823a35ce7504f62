//! Scenarios that we do not support yet. They are in the table under their reason, and leave it when they pass.

/// How a scenario's name begins, and why it is not supported.
#[cfg(not(test))]
const GAPS: &[(&str, &str)] = &[];
#[cfg(test)]
const GAPS: &[(&str, &str)] = &[("later/", "it comes with the next one")];

/// Why a scenario is not supported, if it is not.
pub(super) fn reason(scenario: &str) -> Option<&'static str> {
    GAPS.iter().find(|(start, _)| scenario.starts_with(start)).map(|(_, reason)| *reason)
}

/// How the names begin that nothing stands behind, with the reasons.
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    GAPS.iter().copied()
}
