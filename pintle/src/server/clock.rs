use pintle_proto::server::Outcome;

/// Returns the current time in milliseconds of the Unix epoch.
pub(crate) fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the time at which a call ends, if its outcome seals a state; 0 otherwise, because no other outcome needs it.
pub(crate) fn sealed_at(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::InputRequired | Outcome::Relayed(_) => now(),
        _ => 0,
    }
}
