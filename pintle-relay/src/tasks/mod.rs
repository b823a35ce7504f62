//! Tasks of the server behind a relay, for clients of the other era.
//!
//! | client | tasks of the server behind | a call |
//! |---|---|---|
//! | of the extension | of a session | is made as a task there, and then is a task of the relay |
//! | of a session | of the extension | is a task of the relay at once, if the client requests one |
//! | without tasks | any | waits for the task there |
//!
//! A task of the relay runs the relayed call. Its questions, its status and its end are those of the task behind, which is cancelled
//! with it. Tasks of the same era are passed on, and nothing is kept for them.

pub(super) mod awaited;
pub(super) mod session;

use std::time::Duration;

use pintle::{Connection, proto::TaskKind, types::method::tasks_extension};

/// The `resultType` of a call that became a task, as JSON.
pub(super) const RESULT_TYPE: &str = "\"task\"";

/// The limits of the interval between two polls, and the interval if the server recommends none.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
const MAX_INTERVAL: Duration = Duration::from_secs(60);
const USUAL_INTERVAL: Duration = Duration::from_secs(1);

/// The limit of characters of the status of a task that is passed on.
const MAX_STATUS: usize = 2048;

/// Returns whether a server has tasks of the extension.
pub(super) fn has_extension(connection: &Connection) -> bool {
    let extensions = connection.capabilities().extensions;
    connection.facts().tasks == TaskKind::Extension
        && extensions.is_some_and(|names| names.contains_key(tasks_extension::NAME))
}

/// Returns the interval between two polls that a server recommends, within limits.
pub(super) fn interval(millis: Option<i64>) -> Duration {
    let recommended = millis.and_then(|millis| u64::try_from(millis).ok()).map(Duration::from_millis);
    recommended.unwrap_or(USUAL_INTERVAL).clamp(MIN_INTERVAL, MAX_INTERVAL)
}

/// Returns the status of a task behind, as far as it is passed on.
pub(super) fn status_text(message: &str) -> String {
    message.chars().take(MAX_STATUS).collect()
}
