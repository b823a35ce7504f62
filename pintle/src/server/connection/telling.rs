use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    task::Context,
};

use pintle_proto::{
    Peer,
    server::{Call, Engine, Listener, Ticket},
};
use pintle_types::RawObject;

use super::{Connection, FULL};
use crate::server::{Entry, Notice, Scope, ears::News};

impl Connection {
    /// Tells whoever listens what has changed.
    pub(super) fn poll_changes(&mut self, cx: &mut Context<'_>) {
        let news = self.ear.take(cx);
        if !news.is_empty() {
            self.untold = true;
            self.noticed |= news.iter().any(|news| matches!(news, News::Notices));
            for listener in listeners(&mut self.listens, &mut self.engine) {
                for news in &news {
                    match news {
                        News::Notices => {}
                        News::One(change) => drop(listener.note(change)),
                        News::EveryResource => listener.note_all(),
                    }
                }
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
        if state.filters.is_empty() {
            return;
        }
        let (principal, extensions) = (self.principal.as_deref(), &*self.extensions);
        let hides = |peer: &Peer, uri: &str| {
            let scope = Scope { peer, principal, extensions };
            let sees = |entry: Entry<'_>| state.filters.iter().all(|filter| filter(&scope, entry));
            // A filter that panics hides: nothing of the author's may end the connection.
            catch_unwind(AssertUnwindSafe(|| !state.catalogue.judge(uri, sees))).unwrap_or(true)
        };
        for (call, listener) in self.listens.values_mut() {
            listener.withhold(|uri| hides(call.peer(), uri));
        }
        if let Some(peer) = self.engine.peer().cloned()
            && let Some(listener) = self.engine.listener()
        {
            listener.withhold(|uri| hides(&peer, uri));
        }
    }

    /// Says what an extension has to say to those who want to hear it.
    fn pass_on(&mut self, notice: &Notice) {
        let params = RawObject::from_serialize(&notice.params).ok();
        let mut lines = Vec::new();
        for (_, listener) in self.listens.values() {
            if notice.is_for(listener.grants(&notice.member)) {
                lines.push(listener.tell(&notice.method, params.as_ref()));
            }
        }
        let state = self.server.state();
        let declared = self.engine.peer().is_some_and(|peer| {
            let mut extensions = state.service.extensions().iter();
            extensions.any(|known| known.listens.contains(&notice.member) && known.is_declared(peer))
        });
        if declared && let Some(listener) = self.engine.listener() {
            lines.push(listener.tell(&notice.method, params.as_ref()));
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
