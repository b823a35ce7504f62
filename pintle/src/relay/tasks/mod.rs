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
pub(super) mod own;
pub(super) mod polled;
pub(super) mod session;

/// The limit of characters of the status of a task that is passed on.
const MAX_STATUS: usize = 2048;

/// Returns the status of a task behind, as far as it is passed on.
fn status_text(message: &str) -> String {
    message.chars().take(MAX_STATUS).collect()
}
