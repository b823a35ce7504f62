use pintle::{
    Connection,
    client::RequestBuilder,
    types::{method, schema::TaskParams},
};

use crate::TaskHandle;

/// Requests for tasks, as methods of a [`Connection`].
pub trait TaskRequests: sealed::Sealed {
    /// Returns a task of the server by its id, which a client may have kept over a restart. Its state is polled once.
    ///
    /// Handlers of the request answer the questions of the task, in place of those of the client, and its `on_progress` gets the status.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// # #[cfg(feature = "server")] {
    /// use pintle::{Client, Server, server::tool};
    /// use pintle_tasks::{TaskHandle, TaskPolling, TaskRequests as _, Tasks};
    ///
    /// let server = Server::new("demo", "1.0.0")
    ///     .with(Tasks::new())
    ///     .tool(tool("slow", || async { "done" }).task("required"));
    /// let client = || Client::new("demo", "1.0.0").with(TaskPolling::new());
    /// let connection = client().connect(server.in_process()?).await?;
    /// let id = TaskHandle::of(connection.call("slow").start().await?).expect("a task").id().to_owned();
    /// drop(connection);
    ///
    /// let connection = client().connect(server.in_process()?).await?;
    /// let task = connection.task(id).on_progress(|status| println!("{:?}", status.message)).await?;
    /// assert_eq!(task.result().await?.text(), "done");
    /// # }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The server has no such task, or none that this client may see; in a session, the revision may have no tasks.
    fn task(&self, id: impl Into<String>) -> RequestBuilder<'_, TaskHandle>;
}

impl TaskRequests for Connection {
    fn task(&self, id: impl Into<String>) -> RequestBuilder<'_, TaskHandle> {
        self.call_unresolved(method::TASKS_GET, TaskParams::new(id))
    }
}

mod sealed {
    #[expect(unnameable_types, reason = "nobody else can implement what they cannot name")]
    pub trait Sealed {}
    impl Sealed for pintle::Connection {}
}
