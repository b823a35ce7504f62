//! The four pairings of a client and a server behind, each of one of two eras. Each is a type with one function, and none calls another.
//!
//! The client engine raises what it receives, the server engine lowers it; in between, payloads are raw. `Connection::forward` is a request
//! without cache and without rounds: input requests of a stateless server are its result, and those of a session go to an unparsed handler of
//! that request. The state of a stateless server is sealed into ours and only that server claims it (`RelayedRound`). A call of a stateless
//! client to a server with sessions is parked (`calls/parked.rs`): the future of the call waits in a bounded table, charged to its caller, and
//! our state, which we claim, holds its id.

mod both_sessions;
mod both_stateless;
mod polled_task;
mod session_to_stateless;
mod stateless_to_session;

use pintle::{
    client::Hints,
    forward::{Downstream, Repetition},
    server::{Cx, Outcome},
};

use self::{
    both_sessions::BothSessions, both_stateless::BothStateless, session_to_stateless::SessionToStateless,
    stateless_to_session::StatelessToSession,
};
use super::{
    calls::attempts::Attempts, own_tasks::RequestedTask, relay::Relay, request::RelayedRequest,
    upstream::failure::Failure,
};

impl Relay {
    /// Forwards a call to the server behind, and returns its outcome. Dropping the future cancels the call there.
    ///
    /// The method and the params are those of the call. Progress and log messages of the server are sent to the client, and its
    /// questions are asked.
    pub fn forward(&self, cx: Cx) -> impl Future<Output = Outcome> + Send + use<> {
        let relay = self.clone();
        async move { forward(&relay, &cx).await }
    }
}

/// Forwards a call, and returns its outcome. If its connection is lost and it is safe to repeat, it is sent again.
pub(super) async fn forward(relay: &Relay, cx: &Cx) -> Outcome {
    let mut attempts = Attempts::default();
    loop {
        match attempt(relay.request(cx)).await {
            Ok(outcome) => return outcome,
            Err(Failure::Lost(error)) => {
                if !may_repeat(relay, cx) || !attempts.wait().await {
                    return Outcome::Failed(error);
                }
            }
            Err(Failure::Error(error)) => return Outcome::Failed(error),
        }
    }
}

async fn attempt(request: RelayedRequest<'_>) -> Result<Outcome, Failure> {
    let RelayedRequest { relay, cx } = request;
    let behind = relay.inner.upstream.primary();
    let sharing = relay.options.links.sharing;
    match (cx.facts().keeps_session, relay.inner.upstream.has_session_for(cx, sharing)) {
        (true, false) => {
            let task = RequestedTask::of(cx, &behind);
            drop(behind);
            SessionToStateless { request, task }.forward().await
        }
        (true, true) => BothSessions(request).forward().await,
        (false, false) => BothStateless(request).forward().await,
        (false, true) => {
            let follows_tasks = relay.follows_tasks(cx, &behind);
            drop(behind);
            // Boxed, because its future is the largest: there would be room for it in that of every call.
            Box::pin(StatelessToSession { request, follows_tasks }.forward()).await
        }
    }
}

/// Whether a call may be sent again, although the server may have received it.
fn may_repeat(relay: &Relay, cx: &Cx) -> bool {
    if !relay.inner.upstream.can_reopen() || Downstream::of(cx).has_returned() {
        return false;
    }
    match Repetition::of(cx.method()) {
        Repetition::Safe => true,
        Repetition::SafeIfIdempotent => {
            let name: Option<String> = cx.params().decode_member("name").ok().flatten();
            let tool = name.and_then(|name| {
                let of_client = relay.inner.upstream.last_catalogue(&cx.scope(), relay.options.links.sharing);
                let of_client = of_client.and_then(|catalogue| catalogue.tool(&name));
                of_client.or_else(|| relay.inner.known.tool(&name))
            });
            tool.is_some_and(|tool| Hints::of(&tool).idempotent)
        }
        Repetition::Unsafe => false,
    }
}
