//! Calls that become tasks at a server whose tasks the client does not know, because it is of another era. The relay waits for
//! their results.

use std::{sync::Arc, time::Duration};

use http::HeaderMap;
use pintle_types::{RawObject, RpcError, method, schema::TaskParams};
use tokio::{runtime::Handle, time::timeout};

use crate::{Connection, client::Forward};

/// The time to cancel a task that nobody waits for.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// A task that is cancelled on drop, unless it has ended.
pub(super) struct AwaitedTask {
    pub(super) connection: Connection,
    pub(super) id: String,
    /// The capabilities of the client that it runs for.
    capabilities: RawObject,
    pub(super) is_over: bool,
}

impl AwaitedTask {
    pub(super) fn new(connection: Connection, id: String, capabilities: RawObject) -> Self {
        Self { connection, id, capabilities, is_over: false }
    }

    /// Returns a request for the task, which asks nothing.
    pub(super) fn request(&self, method: &'static str) -> Option<Forward> {
        Some(Forward {
            method: method.into(),
            params: RawObject::from_serialize(&TaskParams::new(&*self.id)).ok()?,
            capabilities: self.capabilities.clone(),
            progress: false,
            log_level: None,
            headers: HeaderMap::new(),
            questions: Arc::new(|question| {
                Box::pin(async move { Err(RpcError::method_not_found(&question.method)) })
            }),
        })
    }
}

impl Drop for AwaitedTask {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let Some(request) = self.request(method::TASKS_CANCEL) else { return };
        if let Ok(runtime) = Handle::try_current() {
            let connection = self.connection.clone();
            drop(runtime.spawn(async move {
                if let Ok(Err(error)) = timeout(CANCEL_TIMEOUT, connection.forward(request, |_| {})).await {
                    tracing::debug!(%error, "a task that nobody waits for was not cancelled");
                }
            }));
        }
    }
}
