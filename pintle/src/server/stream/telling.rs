use std::{collections::HashMap, task::Context};

use pintle_proto::server::{Call, Engine, Listener, Ticket};

use super::{Connection, FULL};
use crate::server::{
    Notice,
    changes::{hearing, hub::News},
};

impl Connection {
    /// Tells whoever listens what has changed.
    pub(super) fn poll_changes(&mut self, cx: &mut Context<'_>) {
        let news = self.ear.take(cx);
        if !news.is_empty() {
            self.untold = true;
            self.noticed |= news.iter().any(|news| matches!(news, News::Notices));
            for listener in listeners(&mut self.listens, &mut self.engine) {
                hearing::note(listener, &news);
            }
        }
        while self.noticed && self.unwritten < FULL {
            match self.ear.take_notice() {
                Some(notice) => self.pass_on(&notice),
                None => self.noticed = false,
            }
        }
        if !self.untold {
            return;
        }
        self.withhold();
        // A slow reader is told when it has read; until then what it has missed is merged.
        for listener in listeners(&mut self.listens, &mut self.engine) {
            loop {
                if self.unwritten >= FULL {
                    return;
                }
                let Some(line) = listener.next_notice() else { break };
                self.unwritten += line.len();
                self.transport.send(line.into());
            }
        }
        self.untold = false;
    }

    /// What somebody does not see has not changed for them either.
    fn withhold(&mut self) {
        let state = self.server.state();
        let (principal, extensions) = (self.principal.as_deref(), self.context.extensions());
        for (call, listener) in self.listens.values_mut() {
            hearing::withhold(&state, listener, call.peer(), principal, extensions);
        }
        if let Some(peer) = self.engine.peer().cloned()
            && let Some(listener) = self.engine.listener()
        {
            hearing::withhold(&state, listener, &peer, principal, extensions);
        }
    }

    /// Says what an extension has to say to those who want to hear it.
    fn pass_on(&mut self, notice: &Notice) {
        let state = self.server.state();
        let principal = self.principal.as_deref();
        let listens = self.listens.values();
        let mut lines: Vec<_> = listens
            .filter_map(|(call, listener)| hearing::worded(&state, notice, listener, call.peer(), principal))
            .collect();
        if let Some(peer) = self.engine.peer().cloned()
            && let Some(listener) = self.engine.listener()
        {
            lines.extend(hearing::worded(&state, notice, listener, &peer, principal));
        }
        lines.into_iter().for_each(|line| self.send(line.into()));
    }
}

/// Everybody on this connection who hears of changes.
fn listeners<'a>(
    listens: &'a mut HashMap<Ticket, (Call, Listener)>,
    engine: &'a mut Engine,
) -> impl Iterator<Item = &'a mut Listener> {
    listens.values_mut().map(|(_, listener)| listener).chain(engine.listener())
}
