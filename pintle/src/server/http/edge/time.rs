//! Bounds on durations that callers may set freely.

use std::{future::Future, time::Duration};

use tokio::time::timeout;

/// The limit on configured durations: adding a longer one to an instant could overflow.
pub(in crate::server::http) const MAX_DURATION: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The time that aborted tasks have to end. Only a task that blocks its thread needs longer.
pub(in crate::server::http) const ABORT_GRACE: Duration = Duration::from_secs(1);

/// Waits for a future up to a time limit. Returns whether it completed.
pub(in crate::server::http) async fn within(limit: Duration, future: impl Future<Output = ()>) -> bool {
    timeout(limit.min(MAX_DURATION), future).await.is_ok()
}
