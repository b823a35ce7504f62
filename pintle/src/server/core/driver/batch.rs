use std::collections::HashSet;

use pintle_proto::server::{Call, Inbound, Ticket};

/// Returns the messages of a batch in order, with `Err` for each call that the same batch cancels: it must not start, or the
/// batch would wait for its response.
pub(crate) fn without_cancelled(batch: Vec<Inbound>) -> impl Iterator<Item = Result<Inbound, Call>> {
    let cancelled = |inbound: &Inbound| match inbound {
        Inbound::Cancel(ticket) => Some(*ticket),
        _ => None,
    };
    let cancelled: HashSet<Ticket> = batch.iter().filter_map(cancelled).collect();
    batch.into_iter().map(move |inbound| match inbound {
        Inbound::Call(call) if call.ticket().is_some_and(|ticket| cancelled.contains(&ticket)) => Err(call),
        other => Ok(other),
    })
}
