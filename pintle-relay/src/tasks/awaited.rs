//! Calls that become tasks at a server whose tasks the client does not know, because it is of another era. The relay waits for
//! their results.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
    time::Duration,
};

use pintle::{
    Connection, Result,
    forward::ForwardRequest,
    types::{RawObject, method, schema::TaskParams},
};
use tokio::{runtime::Handle, time::timeout};

use super::RESULT_TYPE;

/// The time to cancel a task that nobody waits for.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// The time in which a server says that a call, which nobody waits for any more, has become a task. Then the call is cancelled.
const CREATION_TIMEOUT: Duration = Duration::from_secs(2);

/// A task that is cancelled on drop, unless it has ended.
pub(crate) struct AwaitedTask {
    pub(crate) connection: Connection,
    pub(crate) id: String,
    /// The capabilities of the client that it runs for.
    capabilities: RawObject,
    pub(crate) is_over: bool,
}

impl AwaitedTask {
    pub(crate) fn new(connection: Connection, id: String, capabilities: RawObject) -> Self {
        Self { connection, id, capabilities, is_over: false }
    }

    /// Returns a request for the task, which asks nothing.
    pub(crate) fn request(&self, method: &'static str) -> Option<ForwardRequest> {
        let params = RawObject::from_serialize(&TaskParams::new(&*self.id)).ok()?;
        let mut request = ForwardRequest::new(method, params);
        request.capabilities = self.capabilities.clone();
        Some(request)
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
                    tracing::debug!(%error, "an abandoned task was not cancelled");
                }
            }));
        }
    }
}

/// Cancels a call that the server may be making a task at the moment: waits for the task, since only its id can cancel it. `is_created` is
/// whether the call itself has come to know the task, which is then cancelled with it. The lease of the connection is kept meanwhile.
pub(crate) fn cancel_created(
    mut call: Pin<Box<dyn Future<Output = Result<RawObject>> + Send>>,
    is_created: impl Fn() -> bool + Send + Sync + 'static,
    (connection, lease): (Connection, impl Send + 'static),
    capabilities: RawObject,
) {
    let Ok(runtime) = Handle::try_current() else { return };
    drop(runtime.spawn(async move {
        let created = poll_fn(|context| match call.as_mut().poll(context) {
            Poll::Pending if is_created() => Poll::Ready(None),
            polled => polled.map(Result::ok),
        });
        if let Ok(Some(result)) = timeout(CREATION_TIMEOUT, created).await
            && result.get("resultType") == Some(RESULT_TYPE)
            && let Ok(Some(id)) = result.decode_member("taskId")
        {
            drop(AwaitedTask::new(connection, id, capabilities));
        }
        drop(lease);
    }));
}
