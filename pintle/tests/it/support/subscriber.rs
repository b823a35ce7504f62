use std::sync::LazyLock;

use tracing::{Dispatch, subscriber::DefaultGuard};

/// Sets the subscriber of this thread until the guard is dropped.
///
/// While a process has one dispatcher, tracing asks that of the thread that reaches an event first, and remembers its answer for all
/// threads: another test without a subscriber would turn the event off. A second dispatcher avoids that.
pub(crate) fn set_subscriber(subscriber: impl Into<Dispatch>) -> DefaultGuard {
    static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(tracing_subscriber::registry()));
    LazyLock::force(&SECOND);
    tracing::dispatcher::set_default(&subscriber.into())
}
