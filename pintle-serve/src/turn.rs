use std::time::Duration;

use pintle::server::ToolError;
use tokio::time::timeout;

/// The time that a call waits for others.
pub(crate) const QUEUE: Duration = Duration::from_secs(60);

/// Waits for a turn, which others have for their calls of `what`.
pub(crate) async fn turn<T>(
    what: &str,
    acquired: impl Future<Output = Result<T, ToolError>>,
) -> Result<T, ToolError> {
    timeout(QUEUE, acquired).await.unwrap_or_else(|_| {
        Err(ToolError::new(format!("other calls of {what} have run for {QUEUE:?}: call again later")))
    })
}
