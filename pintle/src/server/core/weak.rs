use std::{
    fmt,
    sync::{Arc, Weak},
};

use super::server::{Server, ServerInner};

/// A handle to a server that does not keep it alive, from [`Server::downgrade`].
///
/// A task in the background that lives as long as the server holds one of these:
///
/// ```
/// use pintle::Server;
///
/// let server = Server::new("demo", "1.0.0");
/// let weak = server.downgrade();
/// assert!(weak.upgrade().is_some());
/// drop(server);
/// assert!(weak.upgrade().is_none());
/// ```
#[derive(Clone)]
pub struct WeakServer(Weak<ServerInner>);

impl WeakServer {
    /// Returns the server, if it is still there.
    pub fn upgrade(&self) -> Option<Server> {
        self.0.upgrade().map(Server)
    }
}

impl fmt::Debug for WeakServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakServer")
    }
}

impl Server {
    /// Returns a handle that does not keep the server alive.
    pub fn downgrade(&self) -> WeakServer {
        WeakServer(Arc::downgrade(&self.0))
    }
}
