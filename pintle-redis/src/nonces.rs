//! Values that are used once: a key for each, until it expires.

use std::time::Duration;

use pintle::server::{NonceFuture, NonceStore};

use crate::{Redis, connection::known_until};

/// The time for which a use is known after its expiry.
const MARGIN: Duration = Duration::from_secs(120);

impl NonceStore for Redis {
    fn first_use<'a>(&'a self, nonce: &'a [u8; 32], expires: u64) -> NonceFuture<'a> {
        Box::pin(async move {
            let connection = &self.0.connection;
            let (key, until) =
                (connection.keys.nonce(nonce), known_until(expires.saturating_mul(1000), MARGIN));
            let mut commands = redis::pipe();
            commands.cmd("SET").arg(&key).arg("").arg("NX").arg("PXAT").arg(until);
            // One that expired long ago is not kept: it may have been used and forgotten.
            commands.cmd("EXISTS").arg(&key);
            let (done, is_kept): (Option<String>, bool) = connection.run_all(&commands).await?;
            Ok(done.is_some() && is_kept)
        })
    }
}
