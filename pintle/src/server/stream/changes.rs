//! The change notifications of a connection.

use std::task::Context;

use pintle_proto::server::{Call, Listener};

use super::{FULL, StreamConnection};
use crate::server::{Notice, changes::Recipient};

/// A subscription of the stateless era.
pub(super) struct OpenSubscription {
    pub(super) call: Call,
    pub(super) listener: Listener,
}

impl StreamConnection {
    /// Sends the notifications of changes to those that want them.
    pub(super) fn poll_changes(&mut self, cx: &mut Context<'_>) {
        if let Some(taken) = self.inbox.take(cx) {
            self.changed = true;
            self.noticed |= taken.has_notices;
            self.each_recipient(|recipient| recipient.listener.merge(&taken.changes));
        }
        while self.noticed && self.unwritten < FULL {
            match self.inbox.take_notice() {
                Some(notice) => self.send_notice(&notice),
                None => self.noticed = false,
            }
        }
        if !self.changed {
            return;
        }
        self.each_recipient(|recipient| recipient.withhold());
        // A slow reader is notified when it has read; until then its changes are merged.
        let listeners = self.listens.values_mut().map(|open| &mut open.listener);
        for listener in listeners.chain(self.engine.listener()) {
            loop {
                if self.unwritten >= FULL {
                    return;
                }
                let Some(line) = listener.next_notice() else { break };
                self.unwritten += line.len();
                self.transport.send(line.into());
            }
        }
        self.changed = false;
    }

    /// Sends a notification of an extension to those that want it.
    fn send_notice(&mut self, notice: &Notice) {
        let mut lines = Vec::new();
        self.each_recipient(|recipient| lines.extend(recipient.extension_notification(notice)));
        lines.into_iter().for_each(|line| self.send(line.into()));
    }

    /// Visits the subscriptions of the connection, and its session.
    fn each_recipient(&mut self, mut visit: impl FnMut(&mut Recipient<'_>)) {
        let snapshot = &*self.server.snapshot();
        let (principal, extensions) = (self.principal.as_deref(), self.context.extensions());
        for OpenSubscription { call, listener } in self.listens.values_mut() {
            visit(&mut Recipient { snapshot, listener, peer: call.peer(), principal, extensions });
        }
        if let Some(peer) = &self.engine.peer().cloned()
            && let Some(listener) = self.engine.listener()
        {
            visit(&mut Recipient { snapshot, listener, peer, principal, extensions });
        }
    }
}
