use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, atomic::Ordering},
};

use super::{Session, id::SessionId};
use crate::server::access::peer_address::AddressKey;

/// The sessions by id, and the number of sessions of each owner.
///
/// At the limit, a new session replaces one whose client has sent nothing since the handshake, or else one of the same owner.
/// Initialized sessions of other owners are never evicted, so that a flood of sessions does not displace them.
#[derive(Default)]
pub(in crate::server::http) struct Registry {
    sessions: HashMap<SessionId, Arc<Session>>,
    /// The uninitialized sessions with the time when they were queued, the oldest first.
    uninitialized: VecDeque<(u64, SessionId)>,
    principals: HashMap<Box<str>, Owned>,
    /// Those without a principal. All whose address is unknown have one owner.
    addresses: HashMap<Option<AddressKey>, Owned>,
}

/// The sessions of one principal, or of one address.
#[derive(Default)]
struct Owned {
    live: usize,
    /// Roughly the least recently used first. Some may have been removed.
    order: VecDeque<SessionId>,
}

/// The limits of sessions.
#[derive(Clone, Copy, Debug)]
pub(in crate::server::http) struct Quota {
    pub(in crate::server::http) total: usize,
    pub(in crate::server::http) principal: usize,
    pub(in crate::server::http) address: usize,
}

/// A session that was added.
pub(in crate::server::http) struct AddedSession {
    pub(in crate::server::http) session: Arc<Session>,
    /// The session that was evicted for it.
    pub(super) evicted: Option<Arc<Session>>,
}

/// The reason why a session was not added.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::server::http) enum Refused {
    /// The limit of sessions is reached.
    Full,
    /// The owner uses as many sessions as it may have.
    TooMany,
}

/// The number of sessions of one owner that are considered for eviction.
const CANDIDATES: usize = 16;

/// The number of stale entries that a queue may have besides its live ones.
const STALE: usize = 64;

impl Registry {
    pub(in crate::server::http) fn add(
        &mut self,
        session: Arc<Session>,
        quota: &Quota,
        now: u64,
    ) -> Result<AddedSession, Refused> {
        if let Some(there) = self.sessions.get(&session.id) {
            return Ok(AddedSession { session: there.clone(), evicted: None });
        }
        let limit = if session.principal.is_some() { quota.principal } else { quota.address };
        let mut evicted = None;
        if self.owned(&session).is_some_and(|owned| owned.live >= limit) {
            evicted = Some(self.evict_owned(&session).ok_or(Refused::TooMany)?);
        } else if self.sessions.len() >= quota.total {
            let gone = self.evict_uninitialized().or_else(|| self.evict_owned(&session));
            evicted = Some(gone.ok_or(Refused::Full)?);
        }
        self.note(&session, now);
        self.sessions.insert(session.id, session.clone());
        Ok(AddedSession { session, evicted })
    }

    pub(in crate::server::http) fn find(&self, id: SessionId) -> Option<&Arc<Session>> {
        self.sessions.get(&id)
    }

    pub(in crate::server::http) fn remove(&mut self, id: SessionId) -> Option<Arc<Session>> {
        let session = self.sessions.remove(&id)?;
        self.disown(&session);
        Some(session)
    }

    pub(in crate::server::http) fn len(&self) -> usize {
        self.sessions.len()
    }

    pub(in crate::server::http) fn all(&self) -> impl Iterator<Item = &Arc<Session>> {
        self.sessions.values()
    }

    /// Removes and returns the sessions for which the condition holds.
    pub(in crate::server::http) fn extract(
        &mut self,
        so: impl Fn(&Arc<Session>) -> bool,
    ) -> Vec<Arc<Session>> {
        let gone: Vec<_> = self.sessions.extract_if(|_, session| so(session)).map(|(_, gone)| gone).collect();
        gone.iter().for_each(|session| self.disown(session));
        gone
    }

    /// Removes and returns the uninitialized sessions that have been unused for `after`.
    pub(super) fn uninitialized(&mut self, after: u64, now: u64) -> Vec<Arc<Session>> {
        let mut gone = Vec::new();
        // Each one once: those in use are queued again.
        for _ in 0..self.uninitialized.len() {
            let Some(&(queued, id)) = self.uninitialized.front() else { break };
            if now.saturating_sub(queued) < after {
                break;
            }
            self.uninitialized.pop_front();
            let Some(session) = self.sessions.get(&id).filter(|session| !session.is_initialized()) else {
                continue;
            };
            let used = now.saturating_sub(session.seen.load(Ordering::Relaxed)) < after;
            if used || Arc::strong_count(session) > 1 {
                self.uninitialized.push_back((now, id));
            } else {
                gone.extend(self.remove(id));
            }
        }
        gone
    }

    /// Removes the oldest uninitialized session.
    fn evict_uninitialized(&mut self) -> Option<Arc<Session>> {
        while let Some((_, id)) = self.uninitialized.pop_front() {
            if self.sessions.get(&id).is_some_and(|session| !session.is_initialized()) {
                return self.remove(id);
            }
        }
        None
    }

    /// Removes an unused session of the owner of this one: preferably one that is uninitialized, then the least recently used.
    fn evict_owned(&mut self, newcomer: &Session) -> Option<Arc<Session>> {
        let mut order = std::mem::take(&mut self.owned(newcomer)?.order);
        let mut chosen: Option<(bool, u64, SessionId)> = None;
        let mut looked_at = 0;
        for _ in 0..order.len() {
            let Some(id) = order.pop_front() else { break };
            let Some(session) = self.sessions.get(&id) else { continue };
            // A session that stays is considered again only after all others.
            order.push_back(id);
            let rank = (session.is_initialized(), session.seen.load(Ordering::Relaxed), id);
            let in_use = Arc::strong_count(session) > 1;
            if !in_use && chosen.is_none_or(|(initialized, seen, _)| (rank.0, rank.1) < (initialized, seen)) {
                chosen = Some(rank);
            }
            looked_at += 1;
            if looked_at >= CANDIDATES {
                break;
            }
        }
        if let Some(owned) = self.owned(newcomer) {
            owned.order = order;
        }
        self.remove(chosen?.2)
    }

    fn note(&mut self, session: &Session, now: u64) {
        let sessions = &self.sessions;
        if !session.is_initialized() {
            compact(&mut self.uninitialized, sessions.len(), |(_, id)| sessions.contains_key(id));
            self.uninitialized.push_back((now, session.id));
        }
        let owned = match &session.principal {
            Some(principal) => match self.principals.get_mut(principal) {
                Some(owned) => owned,
                None => self.principals.entry(principal.clone()).or_default(),
            },
            None => self.addresses.entry(session.address).or_default(),
        };
        compact(&mut owned.order, owned.live, |id| sessions.contains_key(id));
        owned.live += 1;
        owned.order.push_back(session.id);
    }

    fn owned(&mut self, session: &Session) -> Option<&mut Owned> {
        match &session.principal {
            Some(principal) => self.principals.get_mut(principal),
            None => self.addresses.get_mut(&session.address),
        }
    }

    fn disown(&mut self, session: &Session) {
        let Some(owned) = self.owned(session) else { return };
        owned.live -= 1;
        if owned.live > 0 {
            return;
        }
        match &session.principal {
            Some(principal) => drop(self.principals.remove(principal)),
            None => drop(self.addresses.remove(&session.address)),
        }
    }
}

/// Drops the stale entries of a queue if there are many, so that the amortized cost per entry is small.
fn compact<T>(queue: &mut VecDeque<T>, live: usize, is_live: impl Fn(&T) -> bool) {
    if queue.len() > 2 * live + STALE {
        queue.retain(is_live);
    }
}

#[cfg(test)]
mod tests {
    use pintle_proto::server::Engine;

    use super::*;
    use crate::Server;

    const QUOTA: Quota = Quota { total: 8, principal: 4, address: 4 };

    fn session(principal: Option<&str>, address: Option<[u8; 4]>) -> Arc<Session> {
        let id = SessionId::random(None).unwrap();
        let session = Session::new(id, principal.map(Into::into), Server::new("s", "0"), Engine::new());
        Arc::new(session.at(address.map(|address| AddressKey::of(address.into()))))
    }

    fn initialized(principal: Option<&str>, address: Option<[u8; 4]>) -> Arc<Session> {
        let session = session(principal, address);
        session.set_initialized();
        session
    }

    /// The ids that are there, of those that were added.
    fn add(registry: &mut Registry, session: Arc<Session>, now: u64) -> Result<Option<SessionId>, Refused> {
        session.touch(now);
        registry.add(session, &QUOTA, now).map(|admitted| admitted.evicted.map(|gone| gone.id))
    }

    #[test]
    fn room_is_made_among_those_that_were_never_initialized_the_oldest_first() {
        let mut registry = Registry::default();
        let mut ids = Vec::new();
        for n in 0..8 {
            let session = session(None, Some([192, 0, 2, n]));
            ids.push(session.id);
            if n == 0 {
                session.set_initialized();
            }
            assert!(add(&mut registry, session, n.into()).unwrap().is_none());
        }
        for expected in &ids[1..4] {
            let other = initialized(None, Some([198, 51, 100, 1]));
            assert!(add(&mut registry, other, 10).unwrap() == Some(*expected));
        }
        assert_eq!(registry.len(), 8);
        assert!(registry.find(ids[0]).is_some());
    }

    #[test]
    fn nobody_makes_room_among_what_others_have_initialized() {
        let mut registry = Registry::default();
        for n in 0..8 {
            add(&mut registry, initialized(Some(if n < 4 { "ann" } else { "bob" }), None), n).unwrap();
        }
        for stranger in
            [initialized(Some("eve"), None), initialized(None, Some([6, 6, 6, 6])), initialized(None, None)]
        {
            assert!(add(&mut registry, stranger, 10) == Err(Refused::Full));
        }
        assert_eq!(registry.len(), 8);
    }

    #[test]
    fn who_has_as_many_as_one_may_have_loses_the_one_that_was_used_least_recently() {
        for (principal, address) in
            [(Some("ann"), Some([192, 0, 2, 1])), (None, Some([192, 0, 2, 1])), (None, None)]
        {
            let mut registry = Registry::default();
            let mine: Vec<_> = (0..4)
                .map(|n| {
                    let session = initialized(principal, address);
                    let id = session.id;
                    add(&mut registry, session, n).unwrap();
                    id
                })
                .collect();
            registry.find(mine[0]).unwrap().touch(9);
            let busy = registry.find(mine[1]).unwrap().clone();
            assert!(add(&mut registry, initialized(principal, address), 10).unwrap() == Some(mine[2]));
            assert!(add(&mut registry, initialized(principal, address), 11).unwrap() == Some(mine[3]));
            assert!(add(&mut registry, initialized(principal, address), 12).unwrap() == Some(mine[0]));
            assert!(registry.find(busy.id).is_some(), "it is in use");
            // If all are, there is nothing to take.
            let held: Vec<_> = registry.all().cloned().collect();
            assert!(add(&mut registry, initialized(principal, address), 13) == Err(Refused::TooMany));
            drop(held);
        }
    }

    #[test]
    fn whose_client_never_came_back_goes_soon_unless_it_is_in_use() {
        let mut registry = Registry::default();
        let [idle, used, held, open] = [0; 4].map(|_| session(None, None));
        let ids = [&idle, &used, &held, &open].map(|session| session.id);
        open.set_initialized();
        let holds = held.clone();
        for session in [idle, used, held, open] {
            add(&mut registry, session, 0).unwrap();
        }
        registry.find(ids[1]).unwrap().touch(50);
        let gone: Vec<_> = registry.uninitialized(60, 59).iter().map(|session| session.id).collect();
        assert!(gone.is_empty());
        let gone: Vec<_> = registry.uninitialized(60, 60).iter().map(|session| session.id).collect();
        assert!(gone == [ids[0]]);
        drop(holds);
        assert_eq!(registry.uninitialized(60, 120).len(), 2);
        assert_eq!(registry.len(), 1);
    }

    #[test]
    fn a_session_in_use_is_looked_at_once_however_short_its_life() {
        let mut registry = Registry::default();
        let held = session(None, None);
        let holds = held.clone();
        add(&mut registry, held, 0).unwrap();
        assert!(registry.uninitialized(0, 0).is_empty());
        drop(holds);
        assert_eq!(registry.uninitialized(0, 0).len(), 1);
    }

    #[test]
    fn sessions_that_come_and_go_leave_nothing() {
        let mut registry = Registry::default();
        let stays = session(Some("ann"), None);
        add(&mut registry, stays, 0).unwrap();
        for n in 0..10_000 {
            let session = session(Some("ann"), None);
            let id = session.id;
            add(&mut registry, session, n).unwrap();
            registry.remove(id);
        }
        assert!(registry.uninitialized.len() <= 2 * STALE, "{}", registry.uninitialized.len());
        assert!(registry.principals["ann"].order.len() <= 2 * STALE);
        for n in 0..1000_u64 {
            let session = session(Some(&n.to_string()), None);
            let id = session.id;
            add(&mut registry, session, n).unwrap();
            registry.remove(id);
        }
        assert_eq!(registry.principals.len(), 1);
    }
}
