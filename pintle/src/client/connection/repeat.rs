//! Requests that are sent again after they were lost, or refused by an overloaded server.

use std::time::Duration;

use pintle_types::{ErrorCode, RawObject, RpcError, method};

use super::{Connection, exchange::Missing};
use crate::{
    Ended,
    client::{state::CallFailure, tools::Hints},
};

/// The first delay; it doubles with each retry.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// The maximum delay.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Returns the delay before a retry.
pub(in crate::client) fn delay(retries: u32) -> Duration {
    FIRST_WAIT.saturating_mul(2u32.saturating_pow(retries.min(16))).min(MAX_WAIT)
}

/// Returns the delay before a retry of a request that an overloaded server has refused: that of the server, if it states one. `None` if
/// the error is another one, or the server wants a longer delay than a caller waits for.
pub(in crate::client) fn overload_delay(error: &RpcError, retries: u32) -> Option<Duration> {
    if error.code != ErrorCode::OVERLOADED {
        return None;
    }
    let stated = error.retry_after_ms().map(Duration::from_millis);
    Some(stated.unwrap_or_else(|| delay(retries))).filter(|wait| *wait <= MAX_WAIT)
}

impl Connection {
    /// Whether a request without an outcome may be sent again: it was lost, the connection is usable, and repeating it has no
    /// further effect.
    pub(in crate::client) async fn may_repeat(
        &self,
        missing: &Missing,
        method: &str,
        params: &RawObject,
    ) -> bool {
        if !is_lost(missing) || self.shared().ended.borrow().is_some() {
            return false;
        }
        match Repetition::of(method) {
            Repetition::Safe => true,
            Repetition::SafeIfIdempotent => {
                let name: String = params.decode_member("name").ok().flatten().unwrap_or_default();
                let (tool, _) = self.look_up(&name).await;
                tool.is_some_and(|tool| Hints::of(&tool).idempotent)
            }
            Repetition::Unsafe => false,
        }
    }
}

/// Whether repeating a request has no further effect.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "there is no fourth answer")]
pub enum Repetition {
    /// Repeating has no further effect.
    Safe,
    /// Repeating has no further effect if the hints of the tool that it calls declare it.
    SafeIfIdempotent,
    /// Repeating may have a further effect.
    Unsafe,
}

impl Repetition {
    /// Returns that of a request with this method.
    pub fn of(method: &str) -> Self {
        match method {
            method::TOOLS_CALL => Self::SafeIfIdempotent,
            method::RESOURCES_READ | method::PROMPTS_GET | method::COMPLETION_COMPLETE => Self::Safe,
            method::TASKS_GET => Self::Safe,
            method::TOOLS_LIST
            | method::RESOURCES_LIST
            | method::RESOURCES_TEMPLATES_LIST
            | method::PROMPTS_LIST => Self::Safe,
            _ => Self::Unsafe,
        }
    }
}

/// Whether a request failed on its way, and not because of what it asks for.
fn is_lost(missing: &Missing) -> bool {
    match missing {
        Missing::Failed(CallFailure::Closed(ended)) => !matches!(ended, Ended::Stopped),
        Missing::Failed(CallFailure::Failed(failed)) => {
            failed.error.is_none() && failed.status.is_none_or(|status| !(300..500).contains(&status))
        }
        _ => false,
    }
}
