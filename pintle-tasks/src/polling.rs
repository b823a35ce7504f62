use std::time::Duration;

use pintle::{
    Error, Result,
    client::{ClientExtension, ClientInstallation, Connection, Unresolved},
    types::{
        RawObject, RawValue, method,
        schema::{TaskMetadata, TaskSupport},
    },
};
use serde_json::value::to_raw_value;

use super::{
    EXTENSION, RESULT_TYPE,
    handle::{Intervals, TaskHandle},
};

/// The tasks extension of a client: a call that the server makes a task returns its result, as any other call does.
///
/// The client polls, answers the questions of the task with its handlers, and reports the status as progress. Dropping the future of the
/// call cancels the task. [`Call::start`](pintle::client::Call::start) returns a [`TaskHandle`] instead.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// # #[cfg(feature = "server")] {
/// use std::time::Duration;
/// use pintle::{Client, Server, server::tool};
/// use pintle_tasks::{TaskPolling, Tasks};
///
/// let server = Server::new("demo", "1.0.0").with(Tasks::new()).tool(
///     tool("slow", || async {
///         tokio::time::sleep(Duration::from_millis(10)).await;
///         "done"
///     })
///     .task("optional"),
/// );
/// let connection = Client::new("demo", "1.0.0").with(TaskPolling::new()).connect(server.in_process()?).await?;
/// assert_eq!(connection.call_tool("slow", ()).await?.text(), "done");
/// # }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TaskPolling {
    intervals: Intervals,
}

impl TaskPolling {
    /// Creates the extension. Tasks are polled as often as the server recommends, between 10 times a second and once a minute.
    pub fn new() -> Self {
        Self { intervals: Intervals::default() }
    }

    /// Sets the limits of the interval between two polls, whatever the server recommends.
    #[must_use]
    pub fn intervals(mut self, min: Duration, max: Duration) -> Self {
        self.intervals = Intervals { min: min.min(max), max };
        self
    }
}

impl Default for TaskPolling {
    fn default() -> Self {
        Self::new()
    }
}

impl ClientExtension for TaskPolling {
    fn name(&self) -> &str {
        EXTENSION
    }

    fn install(self, installation: ClientInstallation) -> ClientInstallation {
        installation
            .result_type(RESULT_TYPE, [method::TOOLS_CALL], move |call| resolve(call, self.intervals))
            .in_sessions(prepare, |result| result.get("task").is_some() && result.get("content").is_none())
    }
}

async fn resolve(call: Unresolved, intervals: Intervals) -> Result<RawObject> {
    let task = TaskHandle::new(call, intervals)?;
    let guard = task.cancel_on_drop();
    let result = task.raw_result().await;
    // The task goes on if the client did not answer a question.
    if !matches!(result, Err(Error::Refused(_))) {
        guard.disarm();
    }
    result
}

/// Asks for a task in a session, if the server and the tool support it.
async fn prepare(connection: Connection, params: RawObject) -> Option<RawObject> {
    let tasks = connection.capabilities().tasks?;
    tasks.requests?.tools?.call?;
    let name: String = params.decode_member("name").ok().flatten()?;
    let tool = connection.find_tool(&name).await?;
    match tool.execution.as_ref()?.task_support.as_ref()? {
        TaskSupport::Optional | TaskSupport::Required => {}
        _ => return None,
    }
    let task: Box<RawValue> = to_raw_value(&TaskMetadata::new()).ok()?;
    Some(params.with("task", &task))
}
