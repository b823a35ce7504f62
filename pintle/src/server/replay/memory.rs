use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use pintle_proto::server::Reply;
use tokio::sync::Notify;

use super::{Claim, Claimed, Guarded, ReplayGuard, UsedState};
use crate::server::clock::now;

/// A [`ReplayGuard`] in the memory of this process. The default of every server.
///
/// Replies are kept until their states expire, within limits: 8 MiB per principal and 64 MiB in total; anonymous callers share
/// one principal without a limit of its own. Above a limit the replies of the oldest states are dropped first, then the fact
/// that the states were used; from then on states that expire as early as those are refused, whether used or not. The
/// principal that uses the most memory is trimmed first.
///
/// After a restart nothing is known of earlier uses. This matters only if the [state keys](crate::Server::state_keys) are kept
/// across restarts.
///
/// ```
/// use pintle::{Server, server::MemoryReplayGuard};
///
/// let guard = MemoryReplayGuard::new().bytes(16 << 20).bytes_per_principal(1 << 20);
/// let server = Server::new("shop", "1.0.0").replay_guard(guard);
/// ```
pub struct MemoryReplayGuard {
    table: Mutex<StateTable>,
    bytes: usize,
    per_principal: usize,
    clock: fn() -> u64,
}

type StateId = [u8; 32];
type PrincipalKey = Option<Arc<str>>;
/// States by expiry, then by the number of the claim.
type Order = BTreeMap<(u64, u64), StateId>;

#[derive(Default)]
struct StateTable {
    states: HashMap<StateId, StateEntry>,
    /// The states without an active claim.
    idle: Order,
    shares: HashMap<PrincipalKey, Share>,
    /// The principals by the bytes that they use.
    largest: BTreeSet<(usize, PrincipalKey)>,
    bytes: usize,
    last: u64,
    /// Unknown states that expire by then may have been used, and are refused.
    floor: u64,
}

/// The usage of one principal.
#[derive(Default)]
struct Share {
    bytes: usize,
    /// The states with a reply or progress.
    full: Order,
    /// The states that were used and have neither.
    used: Order,
    /// The floor of this principal: see [`StateTable::floor`].
    floor: u64,
}

struct StateEntry {
    answers: [u8; 32],
    principal: PrincipalKey,
    expires: u64,
    /// The unique number of the claim.
    number: u64,
    phase: Phase,
}

enum Phase {
    Running(Arc<ActiveClaim>),
    Replied(Reply),
    Released(Vec<u8>),
    Used,
}

/// An active claim that others may wait for.
#[derive(Default)]
struct ActiveClaim {
    /// Set when the claim ends, with its reply if it has one.
    end: OnceLock<Option<Reply>>,
    ended: Notify,
}

/// The bytes that an entry is charged for besides its reply or progress.
const ENTRY: usize = 384;
/// The number of expired states that each claim removes at most. It has to be more than one for the table to shrink.
const FORGET: usize = 64;

impl MemoryReplayGuard {
    /// Creates an empty guard.
    pub fn new() -> Self {
        Self { table: Mutex::default(), bytes: 64 << 20, per_principal: 8 << 20, clock: now }
    }

    /// Sets the limit of bytes in total. The default is 64 MiB.
    #[must_use]
    pub fn bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }

    /// Sets the limit of bytes per principal. The default is 8 MiB.
    #[must_use]
    pub fn bytes_per_principal(self, bytes: usize) -> Self {
        Self { per_principal: bytes, ..self }
    }

    fn lock(&self) -> MutexGuard<'_, StateTable> {
        // Nothing that may panic is called while it is held.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims a state. Returns the active claim as an error if it has to be waited for.
    fn try_claim(&self, used: &UsedState) -> Result<Claimed, Arc<ActiveClaim>> {
        let now = (self.clock)();
        let mut table = self.lock();
        table.forget_expired(now);
        table.last += 1;
        let number = table.last;
        let Some(entry) = table.states.get_mut(&used.state) else {
            let share = table.shares.get(&used.principal).map_or(0, |share| share.floor);
            // An expired state may have been used and forgotten.
            if used.expires <= share.max(table.floor).max(now) {
                return Ok(Claimed::Used);
            }
            let entry = StateEntry {
                answers: used.answers,
                principal: used.principal.clone(),
                expires: used.expires,
                number,
                phase: Phase::Running(Arc::default()),
            };
            table.states.insert(used.state, entry);
            table.charge(&used.principal, 0, ENTRY);
            self.trim(&mut table, &used.principal, now);
            return Ok(Claimed::First(Claim::new(number, None)));
        };
        match &entry.phase {
            Phase::Used => Ok(Claimed::Used),
            Phase::Released(_) => {
                let place = (entry.expires, entry.number);
                let Phase::Released(progress) =
                    std::mem::replace(&mut entry.phase, Phase::Running(Arc::default()))
                else {
                    return Ok(Claimed::Used);
                };
                entry.answers = used.answers;
                entry.number = number;
                let principal = entry.principal.clone();
                table.unlist(&principal, place);
                table.charge(&principal, progress.len(), 0);
                Ok(Claimed::First(Claim::new(number, Some(progress))))
            }
            _ if entry.answers != used.answers => Ok(Claimed::OtherAnswers),
            Phase::Replied(reply) => Ok(Claimed::Replied(reply.clone())),
            Phase::Running(running) => Err(running.clone()),
        }
    }

    /// Ends the claim with that number.
    fn end(&self, state: &StateId, number: u64, reply: Option<Reply>, progress: Option<Vec<u8>>) {
        let now = (self.clock)();
        let running = {
            let mut table = self.lock();
            let Some(entry) = table.states.get_mut(state).filter(|entry| entry.number == number) else {
                return;
            };
            let phase = match (&reply, progress) {
                (Some(reply), _) => Phase::Replied(reply.clone()),
                (None, Some(progress)) => Phase::Released(progress),
                (None, None) => Phase::Used,
            };
            let forget = reply.is_none() && matches!(phase, Phase::Used);
            let held = phase.bytes();
            let Phase::Running(running) = std::mem::replace(&mut entry.phase, phase) else { return };
            let (principal, place) = (entry.principal.clone(), (entry.expires, entry.number));
            if forget {
                // Nothing was done, so the state can be used again.
                table.states.remove(state);
                table.charge(&principal, ENTRY, 0);
            } else {
                table.idle.insert(place, *state);
                table.charge(&principal, 0, held);
                if let Some(share) = table.shares.get_mut(&principal) {
                    share.full.insert(place, *state);
                }
                self.trim(&mut table, &principal, now);
            }
            running
        };
        let _ = running.end.set(reply);
        running.ended.notify_waiters();
    }

    /// Evicts entries until the limits are met, first those of this principal.
    fn trim(&self, table: &mut StateTable, principal: &PrincipalKey, now: u64) {
        let limit = if principal.is_some() { self.per_principal } else { self.bytes };
        while table.shares.get(principal).is_some_and(|share| share.bytes > limit)
            && table.evict(principal, now)
        {}
        while table.bytes > self.bytes {
            let Some((bytes, largest)) = table.largest.last().cloned() else { break };
            if bytes > ENTRY && table.evict(&largest, now) {
                continue;
            }
            // Nothing of the largest principal can be evicted: the oldest state of all is.
            let Some((&place, &state)) = table.idle.first_key_value() else { break };
            if place.0 > now {
                table.floor = table.floor.max(place.0);
            }
            table.forget(&state, place);
        }
    }
}

impl StateTable {
    /// Changes the bytes that a principal is charged for.
    fn charge(&mut self, principal: &PrincipalKey, less: usize, more: usize) {
        let share = self.shares.entry(principal.clone()).or_default();
        let before = share.bytes;
        share.bytes = (before + more).saturating_sub(less);
        self.bytes = (self.bytes + more).saturating_sub(less);
        let (after, floor) = (share.bytes, share.floor);
        self.largest.remove(&(before, principal.clone()));
        if after > 0 {
            self.largest.insert((after, principal.clone()));
        } else {
            // The share is removed, so its floor becomes that of all.
            self.floor = self.floor.max(floor);
            self.shares.remove(principal);
        }
    }

    /// Removes a state from the queues of eviction.
    fn unlist(&mut self, principal: &PrincipalKey, place: (u64, u64)) {
        self.idle.remove(&place);
        if let Some(share) = self.shares.get_mut(principal) {
            share.full.remove(&place);
            share.used.remove(&place);
        }
    }

    fn forget_expired(&mut self, now: u64) {
        for _ in 0..FORGET {
            let Some((&place, &state)) =
                self.idle.first_key_value().filter(|((expires, _), _)| *expires <= now)
            else {
                break;
            };
            self.forget(&state, place);
        }
    }

    fn forget(&mut self, state: &StateId, place: (u64, u64)) {
        self.idle.remove(&place);
        if let Some(entry) = self.states.remove(state) {
            self.unlist(&entry.principal, place);
            self.charge(&entry.principal, ENTRY + entry.phase.bytes(), 0);
        }
    }

    /// Evicts the reply or progress of the oldest state of a principal or, if there is none, the oldest used state. Returns
    /// `false` if there is nothing to evict.
    fn evict(&mut self, principal: &PrincipalKey, now: u64) -> bool {
        let Some(share) = self.shares.get_mut(principal) else { return false };
        if let Some((place, state)) = share.full.pop_first() {
            share.used.insert(place, state);
            let held = self.states.get_mut(&state).map_or(0, |entry| {
                let held = entry.phase.bytes();
                entry.phase = Phase::Used;
                held
            });
            self.charge(principal, held, 0);
            return true;
        }
        let Some((place, state)) = share.used.pop_first() else { return false };
        if place.0 > now {
            share.floor = share.floor.max(place.0);
        }
        self.forget(&state, place);
        true
    }
}

impl Phase {
    fn bytes(&self) -> usize {
        match self {
            Self::Replied(reply) => reply.body.len(),
            Self::Released(progress) => progress.len(),
            Self::Running(_) | Self::Used => 0,
        }
    }
}

impl ReplayGuard for MemoryReplayGuard {
    fn claim<'a>(&'a self, used: &'a UsedState) -> Guarded<'a, Claimed> {
        Box::pin(async move {
            loop {
                let running = match self.try_claim(used) {
                    Ok(claimed) => return Ok(claimed),
                    Err(running) => running,
                };
                // Created before looking, or a notification in between would be missed.
                let ended = running.ended.notified();
                if running.end.get().is_none() {
                    ended.await;
                }
                // Those that waited get the reply even if it is not kept.
                if let Some(Some(reply)) = running.end.get() {
                    return Ok(Claimed::Replied(reply.clone()));
                }
            }
        })
    }

    fn complete<'a>(&'a self, used: &'a UsedState, claim: &'a Claim, reply: Reply) -> Guarded<'a, ()> {
        self.end(&used.state, claim.fence, Some(reply), None);
        Box::pin(std::future::ready(Ok(())))
    }

    fn release(&self, used: &UsedState, claim: Claim, progress: Option<Vec<u8>>) {
        self.end(&used.state, claim.fence, None, progress);
    }
}

impl Default for MemoryReplayGuard {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryReplayGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.lock();
        f.debug_struct("MemoryReplayGuard")
            .field("states", &table.states.len())
            .field("bytes", &table.bytes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::atomic::{AtomicU64, Ordering},
        task::{Context, Poll, Waker},
    };

    use proptest::prelude::*;

    use super::*;

    fn used(state: u64, answers: u8, principal: Option<&str>, expires: u64) -> UsedState {
        let mut id = [0; 32];
        id[..8].copy_from_slice(&state.to_be_bytes());
        UsedState { state: id, answers: [answers; 32], principal: principal.map(Into::into), expires }
    }

    /// What a claim comes to; `None` if it waits.
    fn claim(guard: &MemoryReplayGuard, used: &UsedState) -> Option<Claimed> {
        match pin!(guard.claim(used)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(claimed) => Some(claimed.unwrap()),
            Poll::Pending => None,
        }
    }

    fn first(guard: &MemoryReplayGuard, used: &UsedState) -> Claim {
        match claim(guard, used) {
            Some(Claimed::First(claim)) => claim,
            other => panic!("{other:?}"),
        }
    }

    fn complete(guard: &MemoryReplayGuard, used: &UsedState, bytes: usize) {
        let claim = first(guard, used);
        drop(guard.complete(used, &claim, reply(bytes)));
    }

    fn reply(bytes: usize) -> Reply {
        Reply::new(false, "x".repeat(bytes))
    }

    /// All that is counted is there, and nothing else.
    fn check(guard: &MemoryReplayGuard) {
        let table = guard.lock();
        let bytes: usize = table.states.values().map(|entry| ENTRY + entry.phase.bytes()).sum();
        assert_eq!(table.bytes, bytes);
        assert_eq!(table.shares.values().map(|share| share.bytes).sum::<usize>(), bytes);
        assert_eq!(table.largest.len(), table.shares.len());
        let running = table.states.values().filter(|entry| matches!(entry.phase, Phase::Running(_))).count();
        assert_eq!(table.idle.len() + running, table.states.len());
        let listed: usize = table.shares.values().map(|share| share.full.len() + share.used.len()).sum();
        assert_eq!(listed, table.idle.len());
    }

    #[test]
    fn a_claim_is_held_answered_and_released() {
        let guard = MemoryReplayGuard { clock: || 0, ..MemoryReplayGuard::new() };
        let (one, other) = (used(1, 1, None, 10), used(1, 2, None, 10));
        let held = first(&guard, &one);
        assert_eq!(claim(&guard, &one), None, "it waits");
        assert_eq!(claim(&guard, &other), Some(Claimed::OtherAnswers));
        // Released with nothing done: as if it had not been used. Then with something.
        guard.release(&one, held.clone(), None);
        let held_again = first(&guard, &other);
        guard.release(&other, held, Some(vec![0]));
        assert_eq!(claim(&guard, &other), None, "an old claim ends nothing");
        guard.release(&other, held_again, Some(vec![7]));
        let last = first(&guard, &one);
        assert_eq!(last.progress, Some(vec![7]));
        drop(guard.complete(&one, &last, reply(3)));
        assert_eq!(claim(&guard, &one), Some(Claimed::Replied(reply(3))));
        assert_eq!(claim(&guard, &other), Some(Claimed::OtherAnswers));
        check(&guard);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_gets_the_reply_even_if_it_is_not_kept() {
        let guard = Arc::new(MemoryReplayGuard { clock: || 0, ..MemoryReplayGuard::new().bytes(1000) });
        let one = used(1, 1, Some("ann"), 10);
        let held = first(&guard, &one);
        let (waits, state) = (guard.clone(), one.clone());
        let waiting = tokio::spawn(async move { waits.claim(&state).await.unwrap() });
        tokio::task::yield_now().await;
        guard.complete(&one, &held, reply(5000)).await.unwrap();
        assert_eq!(waiting.await.unwrap(), Claimed::Replied(reply(5000)));
        assert_eq!(claim(&guard, &one), Some(Claimed::Used));
        check(&guard);
    }

    #[test]
    fn one_principal_fills_nobody_elses_share() {
        let guard = MemoryReplayGuard { clock: || 0, ..MemoryReplayGuard::new().bytes(100_000) }
            .bytes_per_principal(20_000);
        let bobs = used(1, 1, Some("bob"), 5);
        complete(&guard, &bobs, 1000);
        for (number, who) in (2..2000).zip([Some("eve"), Some("mallory"), None].into_iter().cycle()) {
            complete(&guard, &used(number, 1, who, 10 + number), 500);
            assert!(guard.lock().bytes <= 100_000);
        }
        assert_eq!(claim(&guard, &bobs), Some(Claimed::Replied(reply(1000))));
        assert!(guard.lock().shares[&Some("eve".into())].bytes <= 20_000);
        // What is not known any more is not used again; what is newer is.
        assert_eq!(claim(&guard, &used(2, 1, Some("eve"), 12)), Some(Claimed::Used));
        assert_eq!(claim(&guard, &used(9000, 1, Some("eve"), 12)), Some(Claimed::Used), "as old as those");
        first(&guard, &used(9001, 1, Some("eve"), 9001));
        first(&guard, &used(9002, 1, Some("bob"), 12));
        check(&guard);
    }

    #[test]
    fn many_who_have_one_each_lose_the_oldest() {
        let guard = MemoryReplayGuard { clock: || 0, ..MemoryReplayGuard::new().bytes(100 * ENTRY) };
        // Everything that one of them has is in use, so nothing can be taken from it.
        let busy: Vec<_> = (0..20).map(|number| used(number, 1, Some("busy"), 5)).collect();
        let held: Vec<_> = busy.iter().map(|state| first(&guard, state)).collect();
        for number in 100..1000 {
            let who = format!("user {}", 1000 - number);
            complete(&guard, &used(number, 1, Some(&who), 10 + number), 0);
            assert!(guard.lock().bytes <= 100 * ENTRY);
        }
        // Whatever is as new as what is still known can be used.
        first(&guard, &used(5000, 1, Some("new"), 10 + 999));
        assert_eq!(claim(&guard, &used(5001, 1, Some("new"), 10 + 100)), Some(Claimed::Used));
        assert_eq!(held.len(), 20);
        check(&guard);
    }

    #[test]
    fn what_has_expired_is_not_used_even_if_it_is_unknown() {
        let guard = MemoryReplayGuard { clock: || 10, ..MemoryReplayGuard::new() };
        assert_eq!(claim(&guard, &used(1, 1, None, 10)), Some(Claimed::Used));
        first(&guard, &used(1, 1, None, 11));
    }

    #[test]
    fn what_has_expired_is_forgotten() {
        static NOW: AtomicU64 = AtomicU64::new(0);
        let guard = MemoryReplayGuard { clock: || NOW.load(Ordering::SeqCst), ..MemoryReplayGuard::new() };
        for number in 0..1000 {
            complete(&guard, &used(number, 1, Some("ann"), 100), 10);
        }
        assert_eq!(guard.lock().states.len(), 1000);
        NOW.store(100, Ordering::SeqCst);
        for number in 0..20 {
            first(&guard, &used(2000 + number, 1, None, 200));
        }
        assert_eq!(guard.lock().states.len(), 20);
        check(&guard);
    }

    proptest! {
        /// A state that was completed is not run again, whatever is done with others and however little room there is.
        #[test]
        fn nothing_runs_twice(steps in prop::collection::vec((0_u64..12, 0_u8..3, 0_usize..3, 0_usize..900), 1..120)) {
            let guard = MemoryReplayGuard { clock: || 0, ..MemoryReplayGuard::new().bytes(4000) }.bytes_per_principal(2000);
            let mut completed = [false; 12];
            for (state, answers, end, bytes) in steps {
                let who = [None, Some("ann"), Some("bob")][usize::try_from(state % 3).unwrap()];
                let state_used = used(state, answers, who, 10 + state);
                let at = usize::try_from(state).unwrap();
                match claim(&guard, &state_used) {
                    Some(Claimed::First(held)) => {
                        prop_assert!(!completed[at]);
                        match end {
                            0 => guard.release(&state_used, held, None),
                            1 => guard.release(&state_used, held, Some(vec![0; bytes])),
                            _ => {
                                completed[at] = true;
                                drop(guard.complete(&state_used, &held, reply(bytes)));
                            }
                        }
                    }
                    Some(Claimed::Replied(_)) => prop_assert!(completed[at]),
                    other => prop_assert!(other.is_some(), "nobody runs"),
                }
                prop_assert!(guard.lock().bytes <= 4000);
                check(&guard);
            }
        }
    }
}
