//! The session of a connection, as its handles see it.

use std::{
    collections::VecDeque,
    num::NonZeroU64,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use pintle_proto::Peer;

use super::StreamConnection;
use crate::{
    server::{
        Server,
        changes::{ChangeInbox, OwnedPrincipal},
        core::sessions::{
            LiveSession, ReplySender, SessionEnding, SessionFacts, SessionRequest, handle::SessionError,
        },
        serving::Stop,
    },
    transport::TransportKind,
};

/// The state that the handles of a session share with its connection.
pub(crate) struct StreamSession {
    facts: SessionFacts,
    server: Server,
    principal: OnceLock<Box<str>>,
    transport: OnceLock<TransportKind>,
    /// Wakes the connection.
    inbox: Arc<ChangeInbox>,
    /// Closes the connection.
    stop: Arc<Stop>,
    state: Mutex<SessionState>,
    /// Whether there are commands.
    pending: AtomicBool,
}

#[derive(Default)]
struct SessionState {
    peer: Option<Arc<Peer>>,
    commands: VecDeque<SessionCommand>,
    /// The bytes of the messages among them.
    bytes: usize,
    ended: bool,
}

/// A request of a handle to its connection.
enum SessionCommand {
    Request(SessionRequest, ReplySender),
    Send(Bytes),
}

/// The limits of commands that wait, and of the bytes of their messages. A longer message is accepted if no other waits.
const CAPACITY: usize = 256;
const CAPACITY_BYTES: usize = 1 << 20;

impl SessionCommand {
    fn size(&self) -> usize {
        match self {
            Self::Request(request, _) => request.size(),
            Self::Send(line) => line.len(),
        }
    }
}

impl StreamSession {
    pub(super) fn new(server: Server, inbox: Arc<ChangeInbox>, stop: Arc<Stop>) -> Self {
        Self {
            facts: SessionFacts::new(),
            server,
            principal: OnceLock::new(),
            transport: OnceLock::new(),
            inbox,
            stop,
            state: Mutex::default(),
            pending: AtomicBool::new(false),
        }
    }

    /// Sets the principal, once.
    pub(super) fn set_principal(&self, principal: &str) {
        self.principal.get_or_init(|| principal.into());
    }

    /// Sets the kind of the transport, once.
    pub(super) fn set_transport(&self, kind: TransportKind) {
        self.transport.get_or_init(|| kind);
    }

    /// Notes that a handshake is done.
    fn open(&self, peer: Arc<Peer>) {
        self.lock().peer = Some(peer);
    }

    fn push(&self, command: SessionCommand) -> Result<(), SessionError> {
        let mut state = self.lock();
        if state.ended {
            return Err(SessionError::Ended);
        }
        let bytes = state.bytes + command.size();
        let is_full = bytes > CAPACITY_BYTES || state.commands.len() >= CAPACITY;
        if is_full && !state.commands.is_empty() {
            return Err(SessionError::Full);
        }
        state.bytes = bytes;
        state.commands.push_back(command);
        drop(state);
        self.pending.store(true, Ordering::Release);
        self.inbox.notify();
        Ok(())
    }

    fn take(&self) -> VecDeque<SessionCommand> {
        // Looking is cheaper than swapping, and there is nearly never a command.
        if !self.pending.load(Ordering::Relaxed) {
            return VecDeque::new();
        }
        self.pending.store(false, Ordering::Release);
        let mut state = self.lock();
        state.bytes = 0;
        std::mem::take(&mut state.commands)
    }

    /// Notes that the connection has ended. Pings that wait are dropped.
    pub(super) fn end(&self) {
        let commands = {
            let mut state = self.lock();
            state.ended = true;
            std::mem::take(&mut state.commands)
        };
        drop(commands);
        self.facts.values.close();
    }

    fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveSession for StreamSession {
    fn facts(&self) -> &SessionFacts {
        &self.facts
    }

    fn inbox(&self) -> &ChangeInbox {
        &self.inbox
    }

    fn transport(&self) -> TransportKind {
        self.transport.get().copied().unwrap_or(TransportKind::Other)
    }

    fn server(&self) -> &Server {
        &self.server
    }

    fn peer(&self) -> Option<Arc<Peer>> {
        self.lock().peer.clone()
    }

    fn principal(&self) -> Option<&str> {
        self.principal.get().map(|principal| &**principal)
    }

    fn is_over(&self) -> bool {
        self.lock().ended
    }

    fn request(&self, request: SessionRequest, reply: ReplySender) -> Result<(), SessionError> {
        self.push(SessionCommand::Request(request, reply))
    }

    fn send(&self, line: Bytes) -> Result<(), SessionError> {
        self.push(SessionCommand::Send(line))
    }

    fn close(self: Arc<Self>) -> SessionEnding {
        self.stop.ask(self.server.snapshot().settings.timeouts.disconnect);
        Box::pin(std::future::ready(Ok(())))
    }
}

impl StreamConnection {
    /// Lists the session among those of the server, once the handshake is done.
    pub(super) fn register_session(&self) {
        if let Some(peer) = self.engine.peer() {
            self.live.0.open(peer.clone());
            let number = self.live.0.facts.number;
            self.inbox.edit_owner(|owner| {
                owner.session = NonZeroU64::new(number);
                owner.principal = self.principal.clone().map(|name| Box::new(OwnedPrincipal::Named(name)));
            });
            let live: Arc<dyn LiveSession> = self.live.0.clone();
            self.server.session_registry().add(&live);
        }
    }

    /// Notes the client of the newest handshake: several clients may share a stream.
    pub(super) fn update_session(&self) {
        if let Some(peer) = self.engine.peer() {
            self.live.0.open(peer.clone());
        }
    }

    /// Does what the handles of the session ask for.
    pub(super) fn poll_handles(&mut self) {
        if self.is_full() {
            return;
        }
        for command in self.live.0.take() {
            match command {
                SessionCommand::Send(line) => self.send(line),
                SessionCommand::Request(request, reply) => {
                    // Requests that nobody waits for any more are withdrawn.
                    let ids = self.questions.given_up();
                    self.take_back(&ids);
                    if let Some((id, line)) = request.create(&mut self.engine) {
                        self.questions.add(id, None, reply);
                        self.send(line.into());
                    }
                }
            }
        }
    }
}

/// Ends the session with its connection.
pub(super) struct SessionEnd(pub(super) Arc<StreamSession>);

impl Drop for SessionEnd {
    fn drop(&mut self) {
        self.0.end();
        self.0.server.session_registry().remove(&*self.0);
    }
}
