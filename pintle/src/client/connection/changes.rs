use std::sync::Arc;

use super::Connection;
use crate::client::state::{Event, EventQueue};

/// The events of a connection, from [`Connection::changes`].
///
/// Unread changes are merged: ten changes of the list of tools are one event.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// # #[cfg(feature = "server")] {
/// use pintle::{Client, Server, client::{Change, Event}, server::tool};
///
/// let server = Server::new("growing", "1.0.0").may_change();
/// let connection = Client::new("demo", "0.1.0").connect(server.in_process()?).await?;
/// let mut changes = connection.changes().await?;
/// server.add_tool(tool("one", || async { 1 }))?;
/// server.add_tool(tool("two", || async { 2 }))?;
/// assert_eq!(changes.next().await, Some(Event::Changed(Change::Tools)));
/// assert_eq!(connection.tools().await?.len(), 2);
/// # }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Changes {
    queue: Arc<EventQueue>,
    /// Keeps the connection open.
    _connection: Connection,
}

impl Changes {
    pub(in crate::client) fn new(queue: Arc<EventQueue>, connection: Connection) -> Self {
        Self { queue, _connection: connection }
    }

    /// Returns the next event; `None` when the connection has ended.
    pub async fn next(&mut self) -> Option<Event> {
        self.queue.next().await
    }
}
