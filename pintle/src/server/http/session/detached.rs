//! Calls that continue after their client has disconnected: a closed connection cancels nothing in a session.

use std::{
    collections::HashMap,
    future::Future,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pintle_types::RpcError;
use tokio::{runtime::Handle, time::timeout};

use super::{Session, id::SessionId, owner::SessionOwner};
use crate::server::{
    Cx,
    http::{edge::time::MAX_DURATION, shared::HttpShared},
};

/// The limit of detached calls of one session.
const SESSION_CALLS: usize = 128;

/// The limits of detached calls: of one owner, of all owners without a principal, and of all. Their bytes are charged as those of all
/// calls.
const OWNER: usize = 1024;
const ANONYMOUS: usize = 4096;
const TOTAL: usize = 8192;

/// The calls of one POST, to end them from outside.
#[derive(Clone, Default)]
pub(in crate::server::http) struct CallGroup(Vec<Cx>);

impl CallGroup {
    pub(in crate::server::http) fn new<'a>(calls: impl Iterator<Item = &'a Cx>) -> Self {
        Self(calls.cloned().collect())
    }

    /// Ends the running calls with this error.
    pub(super) fn fail(&self, error: &RpcError) {
        for sink in self.0.iter().filter_map(Cx::own_sink) {
            sink.fail(error.clone());
        }
    }
}

/// Runs the rest of the calls in a task. `away` returns the time since their client disconnected, and `None` while it is
/// connected.
///
/// The calls are ended if the client does not resume in time, and at once if a limit is exceeded.
pub(in crate::server::http) fn spawn(
    shared: &Arc<HttpShared>,
    session: &Session,
    group: CallGroup,
    work: impl Future<Output = ()> + Send + 'static,
    away: impl Fn() -> Option<Duration> + Send + 'static,
) {
    // Without a runtime there are no tasks.
    let Ok(runtime) = Handle::try_current() else { return };
    let permit = DetachedPermit::take(shared, session, &group);
    if permit.is_none() {
        // Not overload: the call ran, and may have had effects.
        group.fail(&RpcError::internal(
            "too many calls of disconnected clients are running, so this one was ended: wait for responses before disconnecting",
        ));
    }
    let limit = shared.settings().detached_call.min(MAX_DURATION);
    drop(crate::runtime::spawn_on(&runtime, async move {
        let _permit = permit;
        let mut work = pin!(work);
        let mut wait = limit;
        while timeout(wait, work.as_mut()).await.is_err() {
            wait = match away() {
                None => limit,
                Some(away) if away < limit => limit - away,
                Some(_) => {
                    let message =
                        format!("the call still ran {limit:?} after its client had left, and was ended");
                    group.fail(&RpcError::internal(message));
                    return work.await;
                }
            };
        }
    }));
}

/// The detached calls of a service.
#[derive(Default)]
pub(in crate::server::http) struct DetachedCalls(Mutex<DetachedUsage>);

#[derive(Default)]
struct DetachedUsage {
    total: usize,
    anonymous: usize,
    owners: HashMap<SessionOwner, usize>,
    sessions: HashMap<SessionId, usize>,
}

impl DetachedUsage {
    /// Adds calls, unless a limit would be exceeded. `session` is `None` if it exists for one request only.
    fn add(&mut self, owner: &SessionOwner, session: Option<SessionId>, calls: usize) -> bool {
        let of_session = session.map_or(0, |id| self.sessions.get(&id).copied().unwrap_or_default());
        let of_owner = self.owners.get(owner).copied().unwrap_or_default();
        let anonymous = self.anonymous + if owner.is_anonymous() { calls } else { 0 };
        // Those whose address is unknown have only the limit of all without a principal.
        let has_limit = *owner != SessionOwner::Address(None);
        if of_session + calls > SESSION_CALLS
            || (has_limit && of_owner + calls > OWNER)
            || anonymous > ANONYMOUS
            || self.total + calls > TOTAL
        {
            return false;
        }
        (self.total, self.anonymous) = (self.total + calls, anonymous);
        self.owners.insert(owner.clone(), of_owner + calls);
        if let Some(id) = session {
            self.sessions.insert(id, of_session + calls);
        }
        true
    }

    fn remove(&mut self, owner: &SessionOwner, session: Option<SessionId>, calls: usize) {
        self.total -= calls;
        if owner.is_anonymous() {
            self.anonymous -= calls;
        }
        if let Some(of_owner) = self.owners.get_mut(owner) {
            *of_owner -= calls;
            if *of_owner == 0 {
                self.owners.remove(owner);
            }
        }
        if let Some(id) = session
            && let Some(of_session) = self.sessions.get_mut(&id)
        {
            *of_session -= calls;
            if *of_session == 0 {
                self.sessions.remove(&id);
            }
        }
    }
}

impl DetachedCalls {
    fn lock(&self) -> MutexGuard<'_, DetachedUsage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A permit for the detached calls of one POST, released on drop.
struct DetachedPermit {
    shared: Arc<HttpShared>,
    owner: SessionOwner,
    session: Option<SessionId>,
    calls: usize,
}

impl DetachedPermit {
    fn take(shared: &Arc<HttpShared>, session: &Session, group: &CallGroup) -> Option<Self> {
        let (owner, calls) = (session.owner(), group.0.len());
        let session = Some(session.id).filter(|_| !session.transient);
        let added = shared.detached.lock().add(&owner, session, calls);
        added.then(|| Self { shared: shared.clone(), owner, session, calls })
    }
}

impl Drop for DetachedPermit {
    fn drop(&mut self) {
        self.shared.detached.lock().remove(&self.owner, self.session, self.calls);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::access::peer_address::AddressKey;

    fn address(last: u8) -> SessionOwner {
        SessionOwner::Address(Some(AddressKey::of([192, 0, 2, last].into())))
    }

    fn named(name: &str) -> SessionOwner {
        SessionOwner::Principal(name.into())
    }

    /// Adds calls until they are refused, each in a session of its own, and returns their number.
    fn fill(usage: &mut DetachedUsage, owner: &SessionOwner) -> usize {
        (0..=TOTAL).take_while(|_| usage.add(owner, None, 1)).count()
    }

    #[test]
    fn an_owner_and_all_without_a_principal_leave_room_for_others() {
        let mut usage = DetachedUsage::default();
        for last in 1..=4 {
            assert_eq!(fill(&mut usage, &address(last)), OWNER);
        }
        assert_eq!(fill(&mut usage, &address(5)), 0, "all that have no principal");
        for name in ["a", "b", "c", "d"] {
            assert_eq!(fill(&mut usage, &named(name)), OWNER);
        }
        assert_eq!(fill(&mut usage, &named("e")), 0);
        usage.remove(&address(1), None, 1);
        assert_eq!(fill(&mut usage, &address(5)), 1);
        let mut usage = DetachedUsage::default();
        assert_eq!(fill(&mut usage, &SessionOwner::Address(None)), ANONYMOUS);
    }

    #[test]
    fn calls_that_ended_leave_nothing() {
        let mut usage = DetachedUsage::default();
        let session = Some(SessionId::NIL);
        for owner in [named("ann"), address(1), SessionOwner::Address(None)] {
            assert!(usage.add(&owner, session, 2));
            usage.remove(&owner, session, 2);
        }
        assert_eq!((usage.total, usage.anonymous), (0, 0));
        assert!(usage.owners.is_empty() && usage.sessions.is_empty());
    }
}
