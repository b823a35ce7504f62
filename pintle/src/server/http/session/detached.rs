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

use super::{Session, id::SessionId};
use crate::server::{
    Cx,
    http::{edge::time::MAX_DURATION, shared::HttpShared},
};

/// The limit of detached calls of one session.
const SESSION_CALLS: usize = 128;

/// The limits of detached calls of all sessions, and of the bytes of their requests.
const TOTAL_CALLS: usize = 8192;
const TOTAL_BYTES: usize = 256 << 20;

/// The calls of one POST, to end them from outside.
#[derive(Clone, Default)]
pub(in crate::server::http) struct CallGroup(Vec<Cx>);

impl CallGroup {
    pub(in crate::server::http) fn new<'a>(calls: impl Iterator<Item = &'a Cx>) -> Self {
        Self(calls.cloned().collect())
    }

    /// Ends the running calls with this error.
    fn fail(&self, error: &RpcError) {
        for sink in self.0.iter().filter_map(Cx::own_sink) {
            sink.fail(error.clone());
        }
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(|cx| cx.call().params().as_str().len()).sum()
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
            "too many calls run whose clients have left, so this one was ended: wait for answers before you hang up",
        ));
    }
    let limit = shared.settings().detached_call.min(MAX_DURATION);
    drop(runtime.spawn(async move {
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
    calls: usize,
    bytes: usize,
    sessions: HashMap<SessionId, usize>,
}

impl DetachedCalls {
    fn lock(&self) -> MutexGuard<'_, DetachedUsage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A permit for the detached calls of one POST, released on drop.
struct DetachedPermit {
    shared: Arc<HttpShared>,
    session: Option<SessionId>,
    calls: usize,
    bytes: usize,
}

impl DetachedPermit {
    fn take(shared: &Arc<HttpShared>, session: &Session, group: &CallGroup) -> Option<Self> {
        let (calls, bytes) = (group.0.len(), group.bytes());
        let session = Some(session.id).filter(|_| !session.transient);
        let mut usage = shared.detached.lock();
        let of_session = session.map_or(0, |id| usage.sessions.get(&id).copied().unwrap_or_default());
        if of_session + calls > SESSION_CALLS
            || usage.calls + calls > TOTAL_CALLS
            || usage.bytes.saturating_add(bytes) > TOTAL_BYTES
        {
            return None;
        }
        usage.calls += calls;
        usage.bytes += bytes;
        if let Some(id) = session {
            usage.sessions.insert(id, of_session + calls);
        }
        drop(usage);
        Some(Self { shared: shared.clone(), session, calls, bytes })
    }
}

impl Drop for DetachedPermit {
    fn drop(&mut self) {
        let mut usage = self.shared.detached.lock();
        usage.calls -= self.calls;
        usage.bytes -= self.bytes;
        if let Some(id) = self.session
            && let Some(of_session) = usage.sessions.get_mut(&id)
        {
            *of_session -= self.calls;
            if *of_session == 0 {
                usage.sessions.remove(&id);
            }
        }
    }
}
