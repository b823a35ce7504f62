use std::time::Duration;

use tokio::time::sleep;

/// The delay before a request that was lost is sent again. It doubles with each attempt.
const FIRST_DELAY: Duration = Duration::from_millis(50);
/// The limit of attempts to send a request that is safe to repeat.
const MAX_ATTEMPTS: u32 = 4;

/// The attempts to send one request that is safe to repeat.
#[derive(Debug)]
pub(crate) struct Attempts {
    left: u32,
    delay: Duration,
}

impl Default for Attempts {
    fn default() -> Self {
        Self { left: MAX_ATTEMPTS - 1, delay: FIRST_DELAY }
    }
}

impl Attempts {
    /// Waits before another attempt. Returns `false` if there is none left.
    pub(crate) async fn wait(&mut self) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        sleep(self.delay).await;
        self.left = left;
        self.delay *= 2;
        true
    }
}
