use std::sync::Arc;

use pintle_proto::Peer;

use crate::{
    Ended,
    server::{Caller, Server},
};

/// A connection, for those who keep count of them.
///
/// It is not a session: a stateless client needs none, because it declares its capabilities with every request.
///
/// ```
/// use pintle::Server;
///
/// let server = Server::new("demo", "1.0.0")
///     .on_open(|opened| tracing::info!(id = opened.id, who = opened.principal(), "connected"))
///     .on_close(|opened, ended| tracing::info!(id = opened.id, ?ended, "gone"));
/// ```
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Opened {
    /// A number that no other connection of this process has. The session on the connection has it too:
    /// [`SessionHandle::id`](crate::server::SessionHandle::id).
    pub id: u64,
    /// The caller, as far as it is authenticated.
    pub caller: Caller,
    /// The client that opened a session on the connection, if one did.
    pub session: Option<Arc<Peer>>,
    /// The server of the connection.
    pub server: Server,
}

impl Opened {
    /// On whose behalf calls are made, if that is known.
    pub fn principal(&self) -> Option<&str> {
        self.caller.name()
    }
}

/// An event of a connection, for a [`Provider`](crate::server::Provider).
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub enum ConnectionEvent<'a> {
    /// A connection, or a session over HTTP, is opened. An error refuses it.
    Opened(&'a Opened),
    /// A client opens a session on the connection. An error refuses it.
    SessionOpened(&'a Opened),
    /// A request came that belongs to no connection: one over HTTP without a session. An error refuses it.
    Request(&'a Opened),
    /// The connection has ended; `None` if it failed or was dropped.
    Closed(&'a Opened, Option<&'a Ended>),
}

impl<'a> ConnectionEvent<'a> {
    /// Returns the connection.
    pub fn connection(&self) -> &'a Opened {
        match self {
            Self::Opened(opened)
            | Self::SessionOpened(opened)
            | Self::Request(opened)
            | Self::Closed(opened, _) => opened,
        }
    }
}
