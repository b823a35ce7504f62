use std::{
    collections::HashMap,
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Waker},
    time::Duration,
};

use pintle_proto::server::Reply;
use tokio::{runtime::Handle, sync::OnceCell, time::sleep};

use super::{
    active::{ActiveClaim, ClaimPhase, UsedState, Waited},
    record::{StatePhase, StateRecord, Tag},
};
use crate::server::{
    clock, hex, random,
    store::{Expected, GetOptions, Got, Key, Life, Put, Space, Store},
};

/// The guard of a server: it claims states in a store.
pub(crate) struct ReplayGuard {
    store: Arc<dyn Store>,
    /// The sign of life of this process, once it has claimed a state.
    node: OnceCell<Tag>,
    /// The claims of this process that are not over. Their number is that of running calls, and of those that are being released.
    active: Mutex<HashMap<Arc<str>, Arc<ActiveClaim>>>,
}

/// The result of a claim.
#[derive(Debug)]
pub(super) enum Claimed {
    /// The state is claimed: the handler runs, with the progress of an earlier claim that was released, or whose process is gone.
    First(Arc<ActiveClaim>, Option<Vec<u8>>),
    /// The state was used with the same answers. This was the reply.
    Replied(Reply),
    /// The state is or was used with other answers.
    OtherAnswers,
    /// The state was used, and its reply is no longer kept.
    Used,
}

/// The limit of claims of this process that are not over.
const MAX_ACTIVE: usize = 100_000;
/// The time for which a use is known after its state has expired: the clocks of processes differ.
const MARGIN: u64 = 600_000;
/// The bounds of the interval in which a claim of another process is waited for.
const WAIT: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));
/// How often the end of a claim is tried again if the store cannot be reached.
const END_ATTEMPTS: usize = 60;
/// How often a record is written again because it has changed.
const MAX_CONFLICTS: usize = 8;

impl ReplayGuard {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, node: OnceCell::new(), active: Mutex::default() }
    }

    fn active(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<ActiveClaim>>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims a state. If it is claimed already with the same answers, waits for the end of that claim.
    ///
    /// On an error the handler does not run, and the client gets an error.
    pub(super) async fn claim(self: &Arc<Self>, used: &UsedState) -> io::Result<Claimed> {
        loop {
            let claim = Arc::new(ActiveClaim::new(used.clone())?);
            let before = {
                let mut active = self.active();
                let before = active.get(&used.id).cloned();
                if before.is_none() {
                    if active.len() >= MAX_ACTIVE {
                        return Err(io::Error::other("too many claims of call states are not over"));
                    }
                    active.insert(used.id.clone(), claim.clone());
                }
                before
            };
            let Some(before) = before else {
                return Attempt { guard: self.clone(), claim, unclear: None, is_claimed: false }.run().await;
            };
            match before.wait(&used.answers).await? {
                Waited::Replied(reply) => return Ok(Claimed::Replied(reply)),
                Waited::OtherAnswers => return Ok(Claimed::OtherAnswers),
                Waited::Over => {}
            }
        }
    }

    /// Records the progress of a claim, in case its process ends: before each action of [`Cx::once`](crate::server::Cx::once), with the
    /// action as one that was started, and after it, with its value.
    ///
    /// On an error the action is not started.
    pub(super) async fn save(&self, claim: &ActiveClaim, progress: Vec<u8>) -> io::Result<()> {
        let node = self.node.get().copied().unwrap_or_default();
        match self.write(claim, StatePhase::Running { node, progress: Some(progress) }).await? {
            true => Ok(()),
            false => Err(io::Error::other("another process has taken over the call")),
        }
    }

    /// Ends a claim with the reply, which later claims of the state get until it expires. If the store cannot be reached, that is tried
    /// again in a task.
    pub(super) async fn complete(self: &Arc<Self>, claim: &Arc<ActiveClaim>, reply: Reply) -> io::Result<()> {
        let phase = StatePhase::replied(&reply);
        let written = self.write(claim, phase.clone()).await;
        claim.enter(ClaimPhase::Over(Some(reply.clone())));
        match &written {
            Ok(_) => self.leave(claim, Some(reply)),
            Err(_) => self.end(claim, phase, Some(reply)),
        }
        written.map(drop)
    }

    /// Ends a claim without a reply. The next claim of the state gets the progress. It is called from destructors.
    pub(super) fn release(self: &Arc<Self>, claim: &Arc<ActiveClaim>, progress: Option<Vec<u8>>) {
        claim.enter(ClaimPhase::Releasing);
        self.end(claim, StatePhase::Released { progress }, None);
    }

    /// Ends a claim, in a task unless the store is ready at once. It is repeated if the store cannot be reached, because others wait.
    fn end(self: &Arc<Self>, claim: &Arc<ActiveClaim>, phase: StatePhase, reply: Option<Reply>) {
        let (guard, ended) = (self.clone(), claim.clone());
        let mut ending: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
            let mut written = guard.write(&ended, phase.clone()).await;
            for _ in 0..END_ATTEMPTS {
                if written.is_ok() {
                    break;
                }
                sleep(WAIT.1).await;
                written = guard.write(&ended, phase.clone()).await;
            }
            if let Err(error) = written {
                tracing::error!(%error, "the claim of a call state could not be ended");
            }
            guard.leave(&ended, reply);
        });
        let runtime = Handle::try_current();
        let is_here = self.store.lease().is_none();
        if is_here && ending.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            return;
        }
        match runtime {
            Ok(runtime) => drop(crate::runtime::spawn_on(&runtime, ending)),
            // The record stays: the next claim of this process takes it over.
            Err(_) => self.leave(claim, None),
        }
    }

    fn leave(&self, claim: &ActiveClaim, reply: Option<Reply>) {
        self.active().remove(&claim.used.id);
        claim.enter(ClaimPhase::Over(reply));
    }

    /// Writes the record of a claim. Returns `false` if the claim is over, because another process has taken over the state.
    ///
    /// If the reply to an earlier change was lost, the record has the tag of the claim, and another version.
    async fn write(&self, claim: &ActiveClaim, phase: StatePhase) -> io::Result<bool> {
        let record = claim.record(phase).encode();
        let mut at = claim.at();
        for _ in 0..MAX_CONFLICTS {
            match self.put(claim, at, &record).await? {
                Put::Done(version) => {
                    claim.set_at(Expected::Version(version));
                    return Ok(true);
                }
                Put::Gone | Put::Forgotten => return Ok(false),
                Put::Other => {}
            }
            let Some((version, found)) = self.get(claim).await? else { return Ok(false) };
            if found.tag != claim.tag {
                return Ok(false);
            }
            if !matches!(found.phase, StatePhase::Running { .. }) {
                return Ok(found.encode() == record);
            }
            at = Expected::Version(version);
        }
        Err(io::Error::other("the record of a call state changes all the time"))
    }

    async fn put(&self, claim: &ActiveClaim, at: Expected, record: &[u8]) -> io::Result<Put> {
        // The clocks of the users of one process are one.
        let margin = self.store.lease().map_or(0, |_| MARGIN);
        let life = Life::Until(claim.used.expires.saturating_add(margin));
        self.store.put(claim.key(), at, record, life).await
    }

    async fn get(&self, claim: &ActiveClaim) -> io::Result<Option<(u64, StateRecord)>> {
        match self.store.get(claim.key(), GetOptions::default()).await? {
            Got::Value { version, value } => Ok(Some((version, StateRecord::decode(&value)?))),
            Got::None | Got::Same => Ok(None),
        }
    }

    /// Begins to show that this process is alive.
    async fn live(self: &Arc<Self>) -> io::Result<Tag> {
        let node =
            random::bytes().map_err(|_| io::Error::other("the system's random number generator failed"))?;
        if let Some(lease) = self.store.lease() {
            self.renew(&node, lease).await?;
            crate::runtime::spawn(keep_alive(Arc::downgrade(self), node, lease));
        }
        Ok(node)
    }

    async fn renew(&self, node: &Tag, lease: Duration) -> io::Result<()> {
        let id = hex(node);
        let key = Key::new(Space::Lease, &id);
        if let Got::None = self.store.get(key, GetOptions::default().prolong(lease)).await? {
            self.store.put(key, Expected::Absent, b"", Life::Idle(lease)).await?;
        }
        Ok(())
    }

    async fn is_alive(&self, node: &Tag) -> io::Result<bool> {
        // Whoever is in this process releases what it has claimed.
        if self.store.lease().is_none() {
            return Ok(true);
        }
        let id = hex(node);
        Ok(self.store.get(Key::new(Space::Lease, &id), GetOptions::default()).await? != Got::None)
    }
}

/// Keeps the sign of life of a process, until its server is gone.
async fn keep_alive(guard: Weak<ReplayGuard>, node: Tag, lease: Duration) {
    loop {
        sleep(lease / 3).await;
        let Some(guard) = guard.upgrade() else { return };
        if let Err(error) = guard.renew(&node, lease).await {
            tracing::warn!(%error, "the sign of life of this process could not be renewed");
        }
    }
}

/// A claim that the store is asked for. If its reply is lost, or nobody waits for it any more, the claim is ended: others would wait
/// for it.
struct Attempt {
    guard: Arc<ReplayGuard>,
    claim: Arc<ActiveClaim>,
    /// The progress that the claim goes on with, if it may have been made.
    unclear: Option<Option<Vec<u8>>>,
    is_claimed: bool,
}

impl Attempt {
    async fn run(mut self) -> io::Result<Claimed> {
        let (guard, claim) = (self.guard.clone(), self.claim.clone());
        let node = *guard.node.get_or_try_init(|| guard.live()).await?;
        let (mut wait, mut next) = (WAIT.0, Some((Expected::Absent, None)));
        loop {
            if let Some((at, progress)) = next.take() {
                let record = claim.record(StatePhase::Running { node, progress: progress.clone() }).encode();
                claim.set_at(at);
                self.unclear = Some(progress.clone());
                let put = guard.put(&claim, at, &record).await?;
                self.unclear = None;
                match put {
                    Put::Done(version) => {
                        self.is_claimed = true;
                        claim.set_at(Expected::Version(version));
                        claim.enter(ClaimPhase::Running);
                        return Ok(Claimed::First(claim, progress));
                    }
                    Put::Forgotten => return Ok(Claimed::Used),
                    Put::Other | Put::Gone => {}
                }
            }
            match guard.get(&claim).await? {
                // It has expired meanwhile.
                None => next = Some((Expected::Absent, None)),
                Some((version, found)) => match found.phase {
                    StatePhase::Released { progress } => {
                        next = Some((Expected::Version(version), progress));
                        continue;
                    }
                    _ if found.answers != claim.used.answers => return Ok(Claimed::OtherAnswers),
                    StatePhase::Replied(reply) => return Ok(Claimed::Replied(reply)),
                    StatePhase::Used => return Ok(Claimed::Used),
                    // This process has no other claim of the state, so one of its own is a claim that nobody knows of any more.
                    StatePhase::Running { node: other, progress } => {
                        if other == node || !guard.is_alive(&other).await? {
                            next = Some((Expected::Version(version), progress));
                            continue;
                        }
                        if clock::now() >= claim.used.expires {
                            return Ok(Claimed::Used);
                        }
                    }
                },
            }
            sleep(wait).await;
            wait = (2 * wait).min(WAIT.1);
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        match self.unclear.take() {
            _ if self.is_claimed => {}
            // At the place of the claim, which cannot be made any more then if it is still on its way.
            Some(progress) => self.guard.release(&self.claim, progress),
            None => self.guard.leave(&self.claim, None),
        }
    }
}

impl fmt::Debug for ReplayGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayGuard").field("store", &self.store).finish_non_exhaustive()
    }
}
