//! The claim of a call on the `requestState` that it came with.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use pintle_proto::{
    inputs::StateUse,
    server::{Call, Outcome, Reply, Service},
};
use pintle_types::RpcError;
use ring::digest::{SHA256, digest};
use tokio::runtime::Handle;

use super::{Claim, Claimed, ReplayGuard, UsedState};
use crate::server::clock::now;

/// The claim of a call on the state that it came with.
#[derive(Debug)]
pub(crate) struct StateClaim {
    guard: Arc<dyn ReplayGuard>,
    used: Arc<UsedState>,
    /// `None` before the state is claimed, and once the claim has ended.
    claim: Mutex<Option<Claim>>,
    /// Whether the handler refused an answer that came with the state.
    refused: AtomicBool,
    /// The reply to an earlier use of the state.
    reply: Mutex<Option<Reply>>,
}

/// The result of claiming a state.
pub(crate) enum Acquired {
    /// The handler runs.
    First,
    /// The state was used before: the reply of that use is the reply of this call too.
    Replied,
}

/// The end of a claim that a call waits for, with the outcome of the call.
pub(crate) type Settling = Pin<Box<dyn Future<Output = Outcome> + Send>>;

impl StateClaim {
    pub(crate) fn new(guard: Arc<dyn ReplayGuard>, call: &Call, used: &StateUse) -> Self {
        let used = Arc::new(UsedState {
            state: sha256(used.state.as_bytes()),
            answers: sha256(used.answers.as_bytes()),
            principal: call.principal().map(Into::into),
            expires: used.expires,
        });
        Self {
            guard,
            used,
            claim: Mutex::default(),
            refused: AtomicBool::new(false),
            reply: Mutex::default(),
        }
    }

    /// Notes that the handler refused an answer. If the call then fails, the state can be used again.
    pub(crate) fn refuse(&self) {
        self.refused.store(true, Ordering::Release);
    }

    /// Takes the reply of an earlier use.
    pub(crate) fn take_reply(&self) -> Option<Reply> {
        self.reply.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Claims the state for a call, or waits for an earlier use with the same answers.
    pub(crate) async fn acquire(&self, call: &Call) -> Result<Acquired, Outcome> {
        // A layer that runs the handler twice has claimed it already.
        if self.is_claimed() {
            return Ok(Acquired::First);
        }
        let refuse = |reason: &'static str| Err(Outcome::Failed(RpcError::invalid_params(reason)));
        match self.guard.claim(&self.used).await {
            Ok(Claimed::First(mut claim)) => {
                let progress = claim.progress.take();
                // The expiry was checked on admission, but the guard may have forgotten an expired use since.
                if now() >= self.used.expires {
                    self.guard.release(&self.used, claim, progress);
                    return refuse(EXPIRED);
                }
                *self.claim.lock().unwrap_or_else(PoisonError::into_inner) = Some(claim);
                if progress.is_some_and(|progress| !call.resume(&progress)) {
                    return refuse(USED);
                }
                Ok(Acquired::First)
            }
            Ok(Claimed::Replied(reply)) => {
                *self.reply.lock().unwrap_or_else(PoisonError::into_inner) = Some(reply);
                Ok(Acquired::Replied)
            }
            Ok(Claimed::OtherAnswers) => refuse(OTHER_ANSWERS),
            Ok(Claimed::Used) => refuse(USED),
            Err(error) => {
                tracing::error!(%error, "a `requestState` could not be claimed");
                let reason =
                    "whether `requestState` was used before cannot be found out now: try again later";
                Err(Outcome::Failed(RpcError::internal(reason)))
            }
        }
    }

    fn is_claimed(&self) -> bool {
        self.claim.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn take_claim(&self) -> Option<Claim> {
        self.claim.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Releases the state, with the progress of the call. The handler must have been dropped.
    pub(crate) fn release(&self, call: &Call) {
        if let Some(claim) = self.take_claim() {
            self.guard.release(&self.used, claim, call.progress_so_far());
        }
    }

    /// Ends the claim with the outcome of the call. Returns the outcome as an error if there is nothing to wait for.
    pub(crate) fn settle(
        &self,
        call: &Call,
        service: &Service,
        outcome: Outcome,
        now: u64,
    ) -> Result<Settling, Outcome> {
        if self.refused.load(Ordering::Acquire) && is_failure(&outcome) {
            // Closed first, so that nothing is done after its progress is read.
            call.close();
            self.release(call);
            return Err(outcome);
        }
        let Some(claim) = self.take_claim() else { return Err(outcome) };
        let reply = call.finish(service, outcome, now).reply(call.id());
        let (guard, used, kept) = (self.guard.clone(), self.used.clone(), reply.clone());
        let completing = Completing(Some(Box::pin(async move {
            if let Err(error) = guard.complete(&used, &claim, kept).await {
                tracing::error!(%error, "the reply to a call could not be kept: it may be made again");
            }
        })));
        Ok(Box::pin(async move {
            completing.await;
            Outcome::Replied(reply)
        }))
    }
}

const EXPIRED: &str = "`requestState` has expired: start the call again";
const OTHER_ANSWERS: &str = "`requestState` was used with other answers already: go on with the newest state that you \
    were given, or start the call again";
const USED: &str = "`requestState` was used already, and its reply is not kept any more: start the call again if it is safe to repeat";

/// Returns whether a client takes the outcome for a failure.
fn is_failure(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Complete(body) | Outcome::Cacheable(body, _) => body.get("isError") == Some("true"),
        Outcome::InputRequired | Outcome::Replied(_) => false,
        _ => true,
    }
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut print = [0; 32];
    print.copy_from_slice(digest(&SHA256, bytes).as_ref());
    print
}

/// The completion of a claim. On drop it continues in a task, so that the reply is kept even if nobody waits for it.
struct Completing(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl Future for Completing {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<()> {
        let Some(completing) = &mut self.0 else { return Poll::Ready(()) };
        std::task::ready!(completing.as_mut().poll(task));
        self.0 = None;
        Poll::Ready(())
    }
}

impl Drop for Completing {
    fn drop(&mut self) {
        if let Some(completing) = self.0.take()
            && let Ok(runtime) = Handle::try_current()
        {
            drop(runtime.spawn(completing));
        }
    }
}
