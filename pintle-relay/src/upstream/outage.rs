use std::{io, sync::Mutex, time::Duration};

use pintle::{Error, Result, types::RpcError};
use tokio::time::Instant;

use super::{failure::too_long, pool::RETRY_AFTER_MS};
use crate::lock::lock;

/// The time for which the last lists are returned while the server behind is down.
const GRACE: Duration = Duration::from_secs(300);

/// Whether the server behind cannot be reached, and since when.
#[derive(Default)]
pub(super) struct Outage(Mutex<Option<Down>>);

struct Down {
    since: Instant,
    attempts: u32,
    /// The error of the last attempt.
    error: Option<RpcError>,
}

impl Down {
    fn begin() -> Self {
        Self { since: Instant::now(), attempts: 0, error: None }
    }
}

impl Outage {
    /// Whether the server is down for so long that its last lists are not returned any more.
    pub(super) fn is_long(&self) -> bool {
        lock(&self.0).get_or_insert_with(Down::begin).since.elapsed() >= GRACE
    }

    /// Returns the error of the last attempt to connect.
    pub(super) fn last(&self) -> Option<RpcError> {
        lock(&self.0).as_ref()?.error.clone()
    }

    /// Records that the server has answered.
    pub(super) fn end(&self) {
        *lock(&self.0) = None;
    }

    /// Records whether a connection could be opened to a server of this name. Returns the error for the client if not.
    pub(super) fn record<T>(&self, opened: Result<T>, backend: impl Fn() -> String) -> Result<T, RpcError> {
        let mut down = lock(&self.0);
        match opened {
            Ok(link) => {
                *down = None;
                Ok(link)
            }
            // The connector has no more of them: the server is not down.
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::ResourceBusy => {
                Err(RpcError::overloaded(error.to_string(), RETRY_AFTER_MS))
            }
            Err(Error::Failed(failed)) if failed.is_local => {
                Err(RpcError::overloaded(failed.message, RETRY_AFTER_MS))
            }
            Err(Error::Failed(failed)) if failed.is_too_long => Err(too_long(&backend())),
            Err(error) => {
                let down = down.get_or_insert_with(Down::begin);
                down.attempts += 1;
                let (since, attempts) = (down.since.elapsed().as_secs(), down.attempts);
                let error = RpcError::internal(format!(
                    "`{}`, the server behind this one, has been down for {since} s, and {attempts} attempts to connect failed: \
                     {error}; call again later",
                    backend()
                ));
                down.error = Some(error.clone());
                Err(error)
            }
        }
    }
}
