use std::{
    fmt,
    sync::{Arc, Weak},
};

use super::{Server, ServerInner};

/// A server that may be gone.
#[derive(Clone)]
pub(crate) struct WeakServer(Weak<ServerInner>);

impl WeakServer {
    /// Returns the server, if it is still there.
    pub(crate) fn upgrade(&self) -> Option<Server> {
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
    pub(crate) fn downgrade(&self) -> WeakServer {
        WeakServer(Arc::downgrade(&self.0))
    }
}
