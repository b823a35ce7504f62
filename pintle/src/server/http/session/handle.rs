//! The session as its handles see it.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use pintle_proto::{Peer, server::Call};

use super::Session;
use crate::{
    Ended,
    server::{
        Server,
        changes::ChangeInbox,
        core::{
            driver::own_sink::OwnSink,
            sessions::{
                LiveSession, ReplySender, SavingCall, SessionEnding, SessionFacts, SessionRequest, TRANSIENT,
                handle::SessionError,
            },
        },
    },
    transport::TransportKind,
};

impl LiveSession for Session {
    fn facts(&self) -> &SessionFacts {
        self.kept.as_deref().map_or(&TRANSIENT, |kept| &kept.facts)
    }

    fn inbox(&self) -> &ChangeInbox {
        &self.inbox
    }

    fn transport(&self) -> TransportKind {
        TransportKind::Http
    }

    fn server(&self) -> &Server {
        &self.server
    }

    fn peer(&self) -> Option<Arc<Peer>> {
        Self::peer(self)
    }

    fn principal(&self) -> Option<&str> {
        self.principal.as_deref()
    }

    fn shared_id(&self) -> Option<String> {
        (!self.transient).then(|| self.id.to_string())
    }

    fn is_over(&self) -> bool {
        Self::is_over(self)
    }

    fn save_call<'a>(&'a self, call: &'a Call) -> Option<SavingCall<'a>> {
        let channel = self.recording(call)?;
        Some(Box::pin(async move { channel.save(call).await }))
    }

    fn has_push_stream(&self) -> bool {
        self.has_get_stream()
    }

    fn request(&self, request: SessionRequest, reply: ReplySender) -> Result<(), SessionError> {
        if !self.has_get_stream() {
            return Err(SessionError::NoStream);
        }
        // It would displace a message of a call.
        if self.is_push_queue_full() {
            return Err(SessionError::Full);
        }
        // Requests that nobody waits for any more are withdrawn.
        self.give_up().into_iter().for_each(|line| self.push(line.into()));
        let line = {
            let mut core = self.lock();
            let Some((id, line)) = request.create(&mut core.engine).filter(|_| !core.ended) else {
                return Err(SessionError::Ended);
            };
            core.busy().questions.add(id, None, reply);
            line
        };
        self.push(line.into());
        Ok(())
    }

    fn send(&self, line: Bytes) -> Result<(), SessionError> {
        self.try_push(line)
    }

    fn close(self: Arc<Self>) -> SessionEnding {
        Box::pin(async move {
            let Some(shared) = self.kept.as_ref().and_then(|kept| kept.shared.upgrade()) else {
                return Err(SessionError::Ended);
            };
            let ended = shared.end(&self, Ended::Stopped).await;
            ended.map_err(|error| SessionError::Store { reason: error.to_string() })
        })
    }
}

impl Session {
    /// Returns the sink of a call.
    pub(super) fn sink(self: &Arc<Self>) -> OwnSink {
        if self.transient {
            return OwnSink::default();
        }
        let session: Weak<Self> = Arc::downgrade(self);
        OwnSink::in_session(session)
    }

    /// Sends a `ping` whose answer is only noted as a use of the session. Does nothing if the client has no GET stream, or does not
    /// read it.
    pub(super) fn send_keepalive(&self) {
        if !self.has_get_stream() || self.is_push_queue_full() {
            return;
        }
        let ping = self.lock().engine.keepalive();
        ping.into_iter().for_each(|line| self.push(line.into()));
    }

    /// Returns whether the client has an open stream and has sent nothing for this long.
    pub(super) fn is_silent(&self, now: u64, silence: Duration) -> bool {
        let seen = self.seen.load(std::sync::atomic::Ordering::Relaxed);
        u128::from(now.saturating_sub(seen)) >= silence.as_millis() && self.has_get_stream()
    }
}
