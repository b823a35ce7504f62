use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use pintle_proto::Peer;
use pintle_types::RpcError;

#[cfg(feature = "http-server")]
use super::{sessions::next_number, snapshot::Snapshot};
use crate::{
    Ended,
    server::{Caller, ConnectionEvent, Opened, Server},
};

/// The hooks that run when connections open and close.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    pub(crate) open: Vec<OpenHook>,
    pub(crate) session: Vec<Arc<OnOpen>>,
    pub(crate) close: Vec<Arc<OnClose>>,
}

/// A hook of [`Server::on_open`].
#[derive(Clone)]
pub(crate) struct OpenHook {
    run: Arc<OnOpen>,
    /// Whether it may refuse.
    decides: bool,
}

type OnOpen = dyn Fn(&Opened) -> Result<(), RpcError> + Send + Sync;
type OnClose = dyn Fn(&Opened, Option<&Ended>) + Send + Sync;

impl Server {
    /// Adds a hook that runs when a connection, or a session over HTTP, is opened. It must not block.
    ///
    /// A hook that returns `Err` refuses the connection: it is closed after the response to the first request, which is the error; a
    /// probe (`server/discover`) gets the error before. So does one with a `Result` that panics; a hook without a result refuses
    /// none.
    ///
    /// A request over HTTP that belongs to no session, as in the stateless era, belongs to no connection either. A hook with a
    /// `Result` runs for each such request and refuses it, and each has an `id` of its own; hooks without a result are for
    /// counting, and neither they nor [`on_close`](Self::on_close) run. When another process continues a
    /// session of a session store, its hooks run as for a new session, and an error is answered with 403.
    ///
    /// ```
    /// use pintle::{Server, server::Opened, types::RpcError};
    ///
    /// let server = Server::new("vault", "1.0.0").on_open(|opened: &Opened| match opened.principal() {
    ///     Some(_) => Ok(()),
    ///     None => Err(RpcError::invalid_request("log in first")),
    /// });
    /// ```
    #[must_use]
    pub fn on_open<R: HookResult>(self, hook: impl Fn(&Opened) -> R + Send + Sync + 'static) -> Self {
        let run = Arc::new(move |opened: &Opened| R::run(|| hook(opened)));
        self.change(|state| state.hooks.open.push(OpenHook { run, decides: R::DECIDES }));
        self
    }

    /// Adds a hook that runs when a client opens a session, as clients of the session era do. It must not block.
    ///
    /// A hook that returns `Err` refuses the session: `initialize` is answered with the error.
    ///
    /// It runs once for a connection: clients behind a gateway that share a pipe each make a handshake, and the hook runs
    /// for the first. [`layer`](Self::layer) sees all. `cx.peer()` is the client whose handshake was the last before the call.
    #[must_use]
    pub fn on_session<R: HookResult>(self, hook: impl Fn(&Opened) -> R + Send + Sync + 'static) -> Self {
        self.change(|state| state.hooks.session.push(Arc::new(move |opened| R::run(|| hook(opened)))));
        self
    }

    /// Does something when a connection ends, however it ends: `None` if it failed, or was dropped. It must not block.
    #[must_use]
    pub fn on_close(self, hook: impl Fn(&Opened, Option<&Ended>) + Send + Sync + 'static) -> Self {
        self.change(|state| state.hooks.close.push(Arc::new(hook)));
        self
    }
}

/// The result of a hook: `()`, or a `Result` whose error refuses the connection or session.
pub trait HookResult: sealed::HookSealed + Sized {
    /// Whether it may refuse.
    #[doc(hidden)]
    const DECIDES: bool;

    #[doc(hidden)]
    fn run(hook: impl FnOnce() -> Self) -> Result<(), RpcError>;
}

impl sealed::HookSealed for () {}

impl HookResult for () {
    const DECIDES: bool = false;

    fn run(hook: impl FnOnce()) -> Result<(), RpcError> {
        safely(hook);
        Ok(())
    }
}

impl sealed::HookSealed for Result<(), RpcError> {}

impl HookResult for Result<(), RpcError> {
    const DECIDES: bool = true;

    fn run(hook: impl FnOnce() -> Self) -> Self {
        catch_unwind(AssertUnwindSafe(hook)).unwrap_or_else(|_| {
            tracing::error!("a hook panicked");
            Err(RpcError::internal("the server cannot open the connection: see its log"))
        })
    }
}

mod sealed {
    #[expect(unnameable_types, reason = "nobody else can implement what they cannot name")]
    pub trait HookSealed {}
}

impl Hooks {
    /// Returns whether an event runs no hooks.
    #[cfg(feature = "http-server")]
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.session.is_empty() && self.close.is_empty()
    }

    /// Runs the hooks of an event until one refuses.
    pub(crate) fn run(&self, event: ConnectionEvent<'_>) -> Result<(), RpcError> {
        match event {
            ConnectionEvent::Opened(opened) => run(self.open.iter().map(|hook| &hook.run), opened),
            ConnectionEvent::SessionOpened(opened) => run(self.session.iter(), opened),
            // Hooks without a result count connections.
            ConnectionEvent::Request(opened) => {
                run(self.open.iter().filter(|hook| hook.decides).map(|hook| &hook.run), opened)
            }
            ConnectionEvent::Closed(opened, ended) => {
                self.close.iter().for_each(|hook| safely(|| hook(opened, ended)));
                Ok(())
            }
        }
    }
}

/// Runs the hooks of a server for an event, and has its providers handle it.
fn run_all(event: ConnectionEvent<'_>) -> Result<(), RpcError> {
    let snapshot = event.connection().server.snapshot();
    snapshot.hooks.run(event)?;
    snapshot.providers.connection_event(event)
}

/// Returns the error of a hook that refuses a request that belongs to no connection. Only hooks that may refuse are run.
#[cfg(feature = "http-server")]
pub(crate) fn refuse_request(
    snapshot: &Snapshot,
    server: &Server,
    caller: impl FnOnce() -> Caller,
) -> Option<RpcError> {
    if !snapshot.hooks.open.iter().any(|hook| hook.decides) && snapshot.providers.is_empty() {
        return None;
    }
    let opened = Opened { id: next_number(), caller: caller(), session: None, server: server.clone() };
    run_all(ConnectionEvent::Request(&opened)).err()
}

/// A connection from its beginning to its end.
pub(crate) struct Visit {
    opened: Opened,
    pub(crate) ended: Option<Ended>,
    /// The error of the hook that refuses the connection.
    refused: Option<RpcError>,
}

impl Visit {
    /// Runs the hooks for a connection. `id` is also the number of the session that is opened on it.
    pub(crate) fn begin(server: Server, caller: Caller, id: u64) -> Self {
        let opened = Opened { id, caller, session: None, server };
        let refused = run_all(ConnectionEvent::Opened(&opened)).err();
        Self { opened, ended: None, refused }
    }

    /// Returns the error of the hook that refuses the connection, if one does.
    pub(crate) fn refused(&self) -> Option<&RpcError> {
        self.refused.as_ref()
    }

    /// Notes that there is a session, once. Returns the error of a hook that refuses it; then there is none.
    pub(crate) fn note_session(&mut self, peer: Option<&Arc<Peer>>) -> Result<(), RpcError> {
        let (Some(peer), None) = (peer, &self.opened.session) else { return Ok(()) };
        self.opened.session = Some(peer.clone());
        let done = run_all(ConnectionEvent::SessionOpened(&self.opened));
        if done.is_err() {
            self.opened.session = None;
        }
        done
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let _ = run_all(ConnectionEvent::Closed(&self.opened, self.ended.as_ref()));
    }
}

/// Runs hooks until one refuses.
fn run<'a>(mut hooks: impl Iterator<Item = &'a Arc<OnOpen>>, opened: &Opened) -> Result<(), RpcError> {
    hooks.try_for_each(|hook| hook(opened))
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
