use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::{Arc, atomic::Ordering},
};

use super::{Session, id::SessionId, owner::SessionOwner};

/// The sessions by id, and by owner.
///
/// At a limit, the owner that has most sessions gives way: first a session whose client has sent nothing since the handshake, then
/// the least recently used. So nobody is shut out by the sessions of others, however many they have initialized. Owners without a
/// principal are compared by network, have at most three quarters of all sessions, and never displace those that have one.
#[derive(Default)]
pub(in crate::server::http) struct Registry {
    sessions: HashMap<SessionId, Arc<Session>>,
    /// The uninitialized sessions with the time when they were queued, the oldest first: of principals, and of those without one.
    uninitialized: [VecDeque<(u64, SessionId)>; 2],
    owners: HashMap<SessionOwner, Owned>,
    /// The owners of one network, or a principal.
    networks: HashMap<SessionOwner, NetworkSessions>,
    /// The networks by number of sessions: of principals, and of those without one.
    ranked: [BTreeSet<(usize, SessionOwner)>; 2],
    /// The number of sessions without a principal.
    anonymous: usize,
    /// The number of queued sessions that were looked at.
    #[cfg(test)]
    looked: usize,
}

/// The sessions of one principal, or of one address.
#[derive(Default)]
struct Owned {
    live: usize,
    /// Those that were uninitialized when last looked at, the oldest first. Some may have been removed.
    fresh: VecDeque<QueuedSession>,
    /// The others, roughly the least recently used first.
    used: VecDeque<QueuedSession>,
}

#[derive(Clone, Copy)]
struct QueuedSession {
    id: SessionId,
    /// The time of its last use when it was queued.
    seen: u64,
}

/// The sessions of a network.
#[derive(Default)]
struct NetworkSessions {
    live: usize,
    /// The addresses by number of sessions.
    members: BTreeSet<(usize, SessionOwner)>,
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

/// The number of sessions in use that are considered for eviction.
const CANDIDATES: usize = 16;

/// The number of stale entries that a queue may have besides its live ones.
const STALE: usize = 64;

/// The number of addresses' limits that a network has.
const ADDRESSES: usize = 2;

/// The part of all sessions that may be uninitialized when there is no room: those above it displace each other. The others have
/// the time to initialize, also while there is no room.
const UNINITIALIZED: usize = 8;

impl Quota {
    /// Returns the limit of all without a principal.
    fn anonymous(&self) -> usize {
        self.total - self.total / 4
    }
}

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
        let owner = session.owner();
        let anonymous = owner.is_anonymous();
        let limit = if anonymous { quota.address } else { quota.principal };
        let full = self.sessions.len() >= quota.total || (anonymous && self.anonymous >= quota.anonymous());
        let mut evicted = None;
        if self.live(&owner) >= limit {
            evicted = Some(self.evict_of(&owner, false).ok_or(Refused::TooMany)?);
        } else if self.in_network(&owner) >= limit.saturating_mul(ADDRESSES) {
            evicted = Some(self.evict_near(&owner).ok_or(Refused::TooMany)?);
        } else if full {
            let queued = self.evict_uninitialized(anonymous, quota.total / UNINITIALIZED);
            evicted = Some(queued.or_else(|| self.evict_largest(&owner)).ok_or(Refused::Full)?);
        }
        self.note(&session, &owner, now);
        self.sessions.insert(session.id, session.clone());
        Ok(AddedSession { session, evicted })
    }

    pub(in crate::server::http) fn find(&self, id: SessionId) -> Option<&Arc<Session>> {
        self.sessions.get(&id)
    }

    pub(in crate::server::http) fn remove(&mut self, id: SessionId) -> Option<Arc<Session>> {
        let session = self.sessions.remove(&id)?;
        self.count(&session.owner(), false);
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
        gone.iter().for_each(|session| self.count(&session.owner(), false));
        gone
    }

    /// Removes and returns the uninitialized sessions that have been unused for `after`.
    pub(super) fn uninitialized(&mut self, after: u64, now: u64) -> Vec<Arc<Session>> {
        let mut gone = Vec::new();
        for kind in 0..self.uninitialized.len() {
            // Each one once: those in use are queued again.
            for _ in 0..self.uninitialized[kind].len() {
                let Some(&(queued, id)) = self.uninitialized[kind].front() else { break };
                if now.saturating_sub(queued) < after {
                    break;
                }
                self.uninitialized[kind].pop_front();
                let Some(session) = self.sessions.get(&id).filter(|session| !session.is_initialized()) else {
                    continue;
                };
                let used = now.saturating_sub(session.seen.load(Ordering::Relaxed)) < after;
                if used || Arc::strong_count(session) > 1 {
                    self.uninitialized[kind].push_back((now, id));
                } else {
                    gone.extend(self.remove(id));
                }
            }
        }
        gone
    }

    /// Removes the oldest uninitialized session, if there are more than these. Those without a principal go first, and alone if the
    /// newcomer has none.
    fn evict_uninitialized(&mut self, anonymous: bool, spared: usize) -> Option<Arc<Session>> {
        for kind in [1, 0].into_iter().take(if anonymous { 1 } else { 2 }) {
            while self.uninitialized[kind].len() > spared
                && let Some((_, id)) = self.uninitialized[kind].pop_front()
            {
                if self.sessions.get(&id).is_some_and(|session| !session.is_initialized()) {
                    return self.remove(id);
                }
            }
        }
        None
    }

    /// Removes a session of the network that has most, or of the newcomer's own network if no other has more.
    fn evict_largest(&mut self, newcomer: &SessionOwner) -> Option<Arc<Session>> {
        let [named, anonymous] = &self.ranked;
        let largest = match newcomer.is_anonymous() {
            true => anonymous.last(),
            false => anonymous.last().max(named.last()),
        };
        let largest = largest.filter(|(count, _)| *count > self.in_network(newcomer) + 1);
        match largest.and_then(|(_, network)| self.networks.get(network)?.members.last().cloned()) {
            Some((_, owner)) => self.evict_of(&owner, true),
            None => self.evict_near(newcomer),
        }
    }

    /// Removes a session of the address of the newcomer's network that has most, or an unused one of the newcomer's own.
    fn evict_near(&mut self, newcomer: &SessionOwner) -> Option<Arc<Session>> {
        let largest = self.networks.get(&newcomer.network())?.members.last().cloned();
        let own = self.live(newcomer) + 1;
        match largest.filter(|(count, _)| *count > own) {
            Some((_, owner)) => self.evict_of(&owner, true),
            None => self.evict_of(newcomer, false),
        }
    }

    /// Removes a session of an owner: an uninitialized one, or else the least recently used. One in use is removed only if there is
    /// no other, and `in_use` allows it.
    ///
    /// A session that was used since it was queued is queued again, so each use of a session costs one step at most.
    fn evict_of(&mut self, owner: &SessionOwner, in_use: bool) -> Option<Arc<Session>> {
        let owned = self.owners.get_mut(owner)?;
        let (mut busy, mut chosen) = (Vec::new(), None);
        #[cfg(test)]
        let mut looked = 0;
        while let Some(queued) = owned.fresh.pop_front() {
            #[cfg(test)]
            {
                looked += 1;
            }
            let Some(session) = self.sessions.get(&queued.id) else { continue };
            if session.is_initialized() {
                owned.used.push_back(queued);
            } else if Arc::strong_count(session) == 1 {
                chosen = Some(queued.id);
                break;
            } else {
                busy.push(queued);
                if busy.len() == CANDIDATES {
                    break;
                }
            }
        }
        let mut least: Option<(u64, SessionId)> = None;
        let mut first_busy = busy.first().map(|queued| queued.id);
        owned.fresh.extend(busy.drain(..));
        for _ in 0..owned.used.len() {
            if chosen.is_some() || busy.len() == CANDIDATES {
                break;
            }
            let Some(queued) = owned.used.pop_front() else { break };
            #[cfg(test)]
            {
                looked += 1;
            }
            let Some(session) = self.sessions.get(&queued.id) else { continue };
            let seen = session.seen.load(Ordering::Relaxed);
            let is_busy = Arc::strong_count(session) > 1;
            let requeued = QueuedSession { seen, ..queued };
            if is_busy {
                first_busy = first_busy.or(Some(queued.id));
                busy.push(requeued);
                continue;
            }
            owned.used.push_back(requeued);
            if least.is_none_or(|(other, _)| seen < other) {
                least = Some((seen, queued.id));
            }
            // Those behind it were used later.
            if seen == queued.seen {
                break;
            }
        }
        owned.used.extend(busy);
        #[cfg(test)]
        {
            self.looked += looked;
        }
        let chosen = chosen.or(least.map(|(_, id)| id)).or(first_busy.filter(|_| in_use));
        self.remove(chosen?)
    }

    fn note(&mut self, session: &Session, owner: &SessionOwner, now: u64) {
        let sessions = &self.sessions;
        let queued = QueuedSession { id: session.id, seen: session.seen.load(Ordering::Relaxed) };
        let owned = self.owners.entry(owner.clone()).or_default();
        let live = owned.live;
        let queue = if session.is_initialized() { &mut owned.used } else { &mut owned.fresh };
        compact(queue, live, |queued| sessions.contains_key(&queued.id));
        queue.push_back(queued);
        if !session.is_initialized() {
            let queue = &mut self.uninitialized[usize::from(owner.is_anonymous())];
            compact(queue, sessions.len(), |(_, id)| sessions.contains_key(id));
            queue.push_back((now, session.id));
        }
        self.count(owner, true);
    }

    /// Returns the number of sessions of an owner.
    fn live(&self, owner: &SessionOwner) -> usize {
        self.owners.get(owner).map_or(0, |owned| owned.live)
    }

    /// Returns the number of sessions of an owner's network.
    fn in_network(&self, owner: &SessionOwner) -> usize {
        self.networks.get(&owner.network()).map_or(0, |network| network.live)
    }

    /// Counts a session that was added or removed.
    fn count(&mut self, owner: &SessionOwner, added: bool) {
        let step = |count: usize| if added { count + 1 } else { count.saturating_sub(1) };
        let anonymous = owner.is_anonymous();
        let (key, live) = (owner.network(), self.live(owner));
        let network = self.networks.entry(key.clone()).or_default();
        rerank(&mut network.members, owner, live, step(live));
        let ranked = &mut self.ranked[usize::from(anonymous)];
        rerank(ranked, &key, network.live, step(network.live));
        network.live = step(network.live);
        if network.live == 0 {
            self.networks.remove(&key);
        }
        if anonymous {
            self.anonymous = step(self.anonymous);
        }
        match step(live) {
            0 => drop(self.owners.remove(owner)),
            live => self.owners.entry(owner.clone()).or_default().live = live,
        }
    }
}

/// Sets the count of an owner in a ranking.
fn rerank(ranked: &mut BTreeSet<(usize, SessionOwner)>, owner: &SessionOwner, before: usize, after: usize) {
    if before > 0 {
        ranked.remove(&(before, owner.clone()));
    }
    if after > 0 {
        ranked.insert((after, owner.clone()));
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
    use crate::{Server, server::access::peer_address::AddressKey};

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
        for n in 0..6 {
            let session = session(None, Some([192, 0, n, 1]));
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
        assert_eq!(registry.len(), 6, "the last quarter is for principals");
        assert!(registry.find(ids[0]).is_some());
        add(&mut registry, initialized(Some("ann"), None), 11).unwrap();
        assert_eq!(registry.len(), 7);
    }

    #[test]
    fn the_network_that_has_most_gives_way_and_no_principal_to_those_without_one() {
        let mut registry = Registry::default();
        // Two addresses of one network, and one of another.
        let many: Vec<_> = (0..4).map(|n| initialized(None, Some([192, 0, 2, n % 2]))).collect();
        let ids: Vec<_> = many.iter().map(|session| session.id).collect();
        for (n, session) in many.into_iter().enumerate() {
            add(&mut registry, session, n as u64).unwrap();
        }
        for n in [1, 2] {
            add(&mut registry, initialized(None, Some([203, 0, 113, n])), 4).unwrap();
        }
        let gone = add(&mut registry, initialized(None, Some([198, 51, 100, 1])), 5).unwrap();
        assert!(gone == Some(ids[1]), "the least recently used of an address of that network");
        let gone = add(&mut registry, initialized(None, Some([198, 51, 101, 1])), 6).unwrap();
        assert!(gone == Some(ids[0]));
        // All networks have two at most now: a third one of them is refused, or takes the place of its own.
        for name in ["ann", "bob"] {
            assert!(add(&mut registry, initialized(Some(name), None), 7).unwrap().is_none());
        }
        assert!(add(&mut registry, initialized(None, Some([203, 0, 113, 3])), 8) == Err(Refused::Full));
        let again = initialized(None, Some([198, 51, 100, 1]));
        assert!(add(&mut registry, again, 8).unwrap().is_some());
        let names =
            |registry: &Registry| registry.all().filter(|session| session.principal.is_some()).count();
        assert_eq!((registry.len(), names(&registry)), (8, 2));
        for name in ["eve", "joe"] {
            add(&mut registry, initialized(Some(name), None), 9).unwrap();
        }
        assert_eq!((registry.len(), names(&registry)), (8, 4));
        let last = add(&mut registry, initialized(Some("zoe"), None), 9);
        assert!(last == Err(Refused::Full), "nobody has more than one");
    }

    #[test]
    fn empty_handshakes_evict_no_initialized_session_of_their_owner_and_no_one_looks_through_all() {
        const HERE: Option<[u8; 4]> = Some([192, 0, 2, 1]);
        let quota = Quota { total: 100_000, principal: 1000, address: 1000 };
        let mut registry = Registry::default();
        let mut honest = Vec::new();
        for n in 0..500 {
            let session = initialized(None, HERE);
            honest.push(session.id);
            session.touch(n);
            registry.add(session, &quota, n).unwrap();
        }
        for n in 500..2500 {
            let flood = session(None, HERE);
            flood.touch(n);
            registry.add(flood, &quota, n).unwrap();
        }
        assert!(honest.iter().all(|id| registry.find(*id).is_some()));
        assert_eq!(registry.len(), 1000);
        assert!(registry.looked <= 4000, "{}", registry.looked);
        // All are used: that costs one look for each use, however many newcomers there are.
        let live: Vec<_> = registry.all().cloned().collect();
        live.iter().for_each(|session| {
            session.set_initialized();
            session.touch(3000);
        });
        drop(live);
        registry.looked = 0;
        for n in 0..500 {
            registry.add(initialized(None, HERE), &quota, 3001 + n).unwrap();
        }
        assert!(registry.looked <= 4000, "{}", registry.looked);
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
        assert!(registry.uninitialized[0].len() <= 2 * STALE, "{}", registry.uninitialized[0].len());
        let owned = &registry.owners[&SessionOwner::Principal("ann".into())];
        assert!(owned.fresh.len() + owned.used.len() <= 2 * STALE);
        for n in 0..1000_u64 {
            let session = session(Some(&n.to_string()), None);
            let id = session.id;
            add(&mut registry, session, n).unwrap();
            registry.remove(id);
        }
        assert_eq!((registry.owners.len(), registry.networks.len()), (1, 1));
        assert_eq!(registry.ranked.each_ref().map(BTreeSet::len), [1, 0]);
    }

    #[test]
    fn a_queue_is_compacted_once_most_of_it_is_stale() {
        let mut queue: VecDeque<usize> = (0..2 * 3 + STALE).collect();
        compact(&mut queue, 3, |number| *number < 3);
        assert_eq!(queue.len(), 2 * 3 + STALE);
        queue.push_back(1000);
        compact(&mut queue, 3, |number| *number < 3);
        assert_eq!(queue, [0, 1, 2]);
    }
}
