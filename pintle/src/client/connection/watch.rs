use pintle_types::method::{ListPrompts, ListResourceTemplates, ListResources, ListTools};

use super::{Changes, Connection, lists::List, request::RequestBuilder};
use crate::{Result, client::state::Event};

/// The states of a list: the current one, and another one after each change. From [`Connection::watch_tools`] and its kin.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// # #[cfg(feature = "server")] {
/// use pintle::{Client, Server, server::tool};
///
/// let server = Server::new("growing", "1.0.0").may_change();
/// let connection = Client::new("demo", "0.1.0").connect(server.in_process()?).await?;
/// let mut states = connection.watch_tools().await?;
/// assert!(states.next().await?.is_some_and(|tools| tools.is_empty()));
/// server.add_tool(tool("one", || async { 1 }))?;
/// assert!(states.next().await?.is_some_and(|tools| tools[0].name == "one"));
/// # }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ListStates<L: List> {
    connection: Connection,
    changes: Changes,
    /// Whether the list has to be fetched.
    stale: bool,
    list: std::marker::PhantomData<fn() -> L>,
}

impl<L: List> ListStates<L> {
    async fn new(connection: &Connection) -> Result<Self> {
        // Before the list is fetched, so that no change is missed.
        let changes = connection.changes().await?;
        Ok(Self { connection: connection.clone(), changes, stale: true, list: std::marker::PhantomData })
    }

    /// Returns the next state: at first the current one, then one after each change; `None` when the connection has ended. Changes
    /// that happen in the meantime are merged. A server that does not report changes has one state.
    ///
    /// # Errors
    ///
    /// The list could not be fetched. Another call tries again.
    pub async fn next(&mut self) -> Result<Option<Vec<L::Item>>> {
        while !self.stale {
            match self.changes.next().await {
                Some(Event::Changed(change)) => self.stale = change == L::CHANGE,
                Some(Event::Reopened | Event::Missed(_)) => self.stale = true,
                Some(_) => {}
                None => return Ok(None),
            }
        }
        let items = RequestBuilder::all::<L>(&self.connection).await?;
        self.stale = false;
        Ok(Some(items))
    }
}

impl Connection {
    /// Returns the states of the list of tools, which is fetched again after each change.
    ///
    /// # Errors
    ///
    /// As [`changes`](Self::changes).
    pub async fn watch_tools(&self) -> Result<ListStates<ListTools>> {
        ListStates::new(self).await
    }

    /// Returns the states of the list of resources, which is fetched again after each change.
    ///
    /// # Errors
    ///
    /// As [`changes`](Self::changes).
    pub async fn watch_resources(&self) -> Result<ListStates<ListResources>> {
        ListStates::new(self).await
    }

    /// Returns the states of the list of resource templates, which is fetched again after each change.
    ///
    /// # Errors
    ///
    /// As [`changes`](Self::changes).
    pub async fn watch_resource_templates(&self) -> Result<ListStates<ListResourceTemplates>> {
        ListStates::new(self).await
    }

    /// Returns the states of the list of prompts, which is fetched again after each change.
    ///
    /// # Errors
    ///
    /// As [`changes`](Self::changes).
    pub async fn watch_prompts(&self) -> Result<ListStates<ListPrompts>> {
        ListStates::new(self).await
    }
}
