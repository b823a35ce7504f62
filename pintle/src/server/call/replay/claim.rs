//! What a call that came with a state does before and after its handler.

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
    server::{Call, Outcome, Reply},
};
use pintle_types::RpcError;
use ring::digest::{SHA256, digest};
use tokio::runtime::Handle;

use super::{Claim, Claimed, ReplayGuard, UsedState};
use crate::server::{Cx, call::run::HandlerFuture, clock::now};

/// What a call holds of the state that it came with.
#[derive(Debug)]
pub(crate) struct StateClaim {
    guard: Arc<dyn ReplayGuard>,
    used: Arc<UsedState>,
    /// `None` before it is claimed, and when it is given back.
    claim: Mutex<Option<Claim>>,
    /// Whether an answer that came with the state did not fit what the handler asked for.
    refused: AtomicBool,
    /// What an earlier use of the state was answered with.
    reply: Mutex<Option<Reply>>,
}

impl StateClaim {
    fn new(guard: Arc<dyn ReplayGuard>, call: &Call, used: &StateUse) -> Self {
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

    /// An answer did not fit. If the call fails, the state can be used again.
    pub(crate) fn refuse(&self) {
        self.refused.store(true, Ordering::Release);
    }

    /// The reply of an earlier use, to answer with.
    pub(crate) fn take_reply(&self) -> Option<Reply> {
        self.reply.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn is_claimed(&self) -> bool {
        self.claim.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn take_claim(&self) -> Option<Claim> {
        self.claim.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Gives the state back, with what was done. Nothing of the handler may be left to do more.
    pub(crate) fn release(&self, call: &Call) {
        if let Some(claim) = self.take_claim() {
            self.guard.release(&self.used, claim, call.progress_so_far());
        }
    }

    /// Ends the claim with how the call ended. `Err` if there is nothing to wait for.
    pub(crate) fn settle(&self, cx: &Cx, outcome: Outcome, now: u64) -> Result<HandlerFuture, Outcome> {
        if self.refused.load(Ordering::Acquire) && is_failure(&outcome) {
            // First nobody begins anything more, then what was done is looked at.
            cx.call().close();
            self.release(cx.call());
            return Err(outcome);
        }
        let Some(claim) = self.take_claim() else { return Err(outcome) };
        let call = cx.call();
        let reply = call.finish(&cx.snapshot().service, outcome, now).reply(call.id());
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

/// Claims the state that a call came with, then runs its handler. If the state was used before, its reply is the call's.
pub(crate) fn enter(cx: &Cx, go: impl FnOnce(Cx) -> HandlerFuture + Send + 'static) -> HandlerFuture {
    let cx = cx.clone();
    Box::pin(async move {
        let Some(used) = cx.call().state_use() else { return go(cx).await };
        let guard = &cx.snapshot().settings.replay;
        let held = cx.hold(|| StateClaim::new(guard.clone(), cx.call(), &used));
        // A layer that sends a call through twice has it already.
        if held.is_claimed() {
            return go(cx.clone()).await;
        }
        let refuse = |reason: &'static str| Outcome::Failed(RpcError::invalid_params(reason));
        match held.guard.claim(&held.used).await {
            Ok(Claimed::First(mut claim)) => {
                let progress = claim.progress.take();
                // It was looked at when the call came; what was known of it may have been forgotten since.
                if now() >= held.used.expires {
                    held.guard.release(&held.used, claim, progress);
                    return refuse(EXPIRED);
                }
                *held.claim.lock().unwrap_or_else(PoisonError::into_inner) = Some(claim);
                if progress.is_some_and(|progress| !cx.call().resume(&progress)) {
                    return refuse(USED);
                }
                go(cx.clone()).await
            }
            Ok(Claimed::Replied(reply)) => {
                *held.reply.lock().unwrap_or_else(PoisonError::into_inner) = Some(reply);
                cx.end_round().await
            }
            Ok(Claimed::OtherAnswers) => refuse(OTHER_ANSWERS),
            Ok(Claimed::Used) => refuse(USED),
            Err(error) => {
                tracing::error!(%error, "a `requestState` could not be claimed");
                let reason =
                    "whether `requestState` was used before cannot be found out now: try again later";
                Outcome::Failed(RpcError::internal(reason))
            }
        }
    })
}

const EXPIRED: &str = "`requestState` has expired: start the call again";
const OTHER_ANSWERS: &str = "`requestState` was used with other answers already: go on with the newest state that you \
    were given, or start the call again";
const USED: &str = "`requestState` was used already, and its reply is not kept any more: start the call again if it is safe to repeat";

/// Whether a client takes it for one.
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

/// The end of a claim. If nobody waits for it, it becomes a task: what was done must not be forgotten.
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
