//! Scenarios that we do not support yet. They are in the table under their reason, and leave it when they pass.

/// How a scenario's name begins, and why it is not supported.
#[cfg(not(test))]
const GAPS: &[(&str, &str)] = &[];
#[cfg(test)]
const GAPS: &[(&str, &str)] = &[("later/", "it comes with the next one")];

/// Scenarios that do not pass through `pintle bridge`, nor through `pintle gateway`, in addition.
const BRIDGE_GAPS: &[(&str, &str)] = &[
    ("tasks-status-notifications", "nothing is checked"),
    ("server-sse-polling", "the bridge does not pass on that a server ends its stream early"),
];

/// Scenarios that do not pass with several processes behind a balancer, in addition.
const FLEET_GAPS: &[(&str, &str)] = &[
    ("tasks-dispatch-and-envelope", OWN_TASKS),
    ("tasks-lifecycle", OWN_TASKS),
    ("tasks-mrtr-", OWN_TASKS),
    ("tasks-request-", OWN_TASKS),
    ("tasks-wire-fields", OWN_TASKS),
];
const OWN_TASKS: &str = "a task is known only to the process that runs it";

/// Scenarios that do not pass through `pintle gateway`, in addition to those of the bridge.
const GATEWAY_GAPS: &[(&str, &str)] = &[
    ("tasks-capability-negotiation", NO_EXTENSIONS),
    ("tasks-dispatch-and-envelope", NO_EXTENSIONS),
    ("tasks-lifecycle", NO_EXTENSIONS),
    ("tasks-mrtr-composition", NO_EXTENSIONS),
    ("tasks-mrtr-input", NO_EXTENSIONS),
    ("tasks-request-headers", NO_EXTENSIONS),
    ("tasks-request-state-removal", NO_EXTENSIONS),
    ("tasks-wire-fields", NO_EXTENSIONS),
];
const NO_EXTENSIONS: &str =
    "a gateway forwards no requests of extensions: the tasks of all principals would be those of one client";

/// Why a scenario is not supported, if it is not. `through` is what is between the suite and the server.
pub(super) fn reason(scenario: &str, through: Option<&str>) -> Option<&'static str> {
    let more = match through {
        None => &[],
        Some("fleet") => FLEET_GAPS,
        Some(_) => BRIDGE_GAPS,
    };
    let of_gateway = if through == Some("gateway") { GATEWAY_GAPS } else { &[] };
    let mut all = GAPS.iter().chain(more).chain(of_gateway);
    all.find(|(start, _)| scenario.starts_with(start)).map(|(_, reason)| *reason)
}

/// How the names begin that nothing stands behind, with the reasons.
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    GAPS.iter().copied()
}
