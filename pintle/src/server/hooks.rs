use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use pintle_proto::Peer;

use crate::{
    Ended,
    server::{Caller, Server},
};

/// A connection, for those who keep count of them.
///
/// It is not a session: a stateless client needs none, and what a client can do it says with every request.
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
    /// A number that no other connection of this process has.
    pub id: u64,
    /// The caller, as far as it is authenticated.
    pub caller: Caller,
    /// The client that opened a session on the connection, if one did.
    pub session: Option<Arc<Peer>>,
}

impl Opened {
    /// On whose behalf calls are made, if that is known.
    pub fn principal(&self) -> Option<&str> {
        self.caller.name()
    }
}

/// The hooks that run when connections open and close.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    pub(crate) open: Vec<Arc<OnOpen>>,
    pub(crate) session: Vec<Arc<OnOpen>>,
    pub(crate) close: Vec<Arc<OnClose>>,
}

type OnOpen = dyn Fn(&Opened) + Send + Sync;
type OnClose = dyn Fn(&Opened, Option<&Ended>) + Send + Sync;

impl Server {
    /// Does something when a connection is opened. It must not block.
    #[must_use]
    pub fn on_open(self, hook: impl Fn(&Opened) + Send + Sync + 'static) -> Self {
        self.change(|state| state.hooks.open.push(Arc::new(hook)));
        self
    }

    /// Does something when a client opens a session, which only older ones do. It must not block.
    ///
    /// Told once for a connection: clients behind a gateway that share a pipe each make a handshake, and only the first is
    /// told of here. `cx.peer()` is the one whose handshake was the last before the call.
    #[must_use]
    pub fn on_session(self, hook: impl Fn(&Opened) + Send + Sync + 'static) -> Self {
        self.change(|state| state.hooks.session.push(Arc::new(hook)));
        self
    }

    /// Does something when a connection ends, however it ends: `None` if it failed, or was dropped. It must not block.
    #[must_use]
    pub fn on_close(self, hook: impl Fn(&Opened, Option<&Ended>) + Send + Sync + 'static) -> Self {
        self.change(|state| state.hooks.close.push(Arc::new(hook)));
        self
    }
}

/// A connection from its beginning to its end.
pub(crate) struct Visit {
    server: Server,
    opened: Opened,
    pub(crate) ended: Option<Ended>,
}

impl Visit {
    pub(crate) fn begin(server: Server, caller: Caller) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let opened = Opened { id: LAST.fetch_add(1, Ordering::Relaxed) + 1, caller, session: None };
        server.snapshot().hooks.open.iter().for_each(|hook| safely(|| hook(&opened)));
        Self { server, opened, ended: None }
    }

    /// Notes that there is a session, once.
    pub(crate) fn note_session(&mut self, peer: Option<&Arc<Peer>>) {
        if let (Some(peer), None) = (peer, &self.opened.session) {
            self.opened.session = Some(peer.clone());
            self.server.snapshot().hooks.session.iter().for_each(|hook| safely(|| hook(&self.opened)));
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.server
            .snapshot()
            .hooks
            .close
            .iter()
            .for_each(|hook| safely(|| hook(&self.opened, self.ended.as_ref())));
    }
}

/// A hook that panics harms nobody else.
fn safely(hook: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(hook)).is_err() {
        tracing::error!("a hook panicked");
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hooks")
    }
}
