//! The claim of a call on the `requestState` that it came with.
//!
//! A state is used once. After everything that may refuse the call (admission, rights, filters, layers), `run_claimed` claims the state before
//! the handler runs. The claim is completed with the serialized reply, which a repeated request gets under its own id, or, if the handler was
//! dropped, released with the `once` values so far. Calls without a state do not use the guard.

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
    RETRY_AFTER_MS,
    inputs::StateUse,
    server::{Call, Outcome, Reply, Service},
};
use pintle_types::RpcError;
use ring::digest::{SHA256, digest};
use tokio::runtime::Handle;

use super::{
    active::{ActiveClaim, UsedState},
    guard::{Claimed, ReplayGuard},
};
use crate::server::{clock::now, hex};

/// The claim of a call on the state that it came with.
#[derive(Debug)]
pub(crate) struct StateClaim {
    guard: Arc<ReplayGuard>,
    used: UsedState,
    /// `None` before the state is claimed, and once the claim has ended.
    claim: Mutex<Option<Arc<ActiveClaim>>>,
    /// Whether the handler refused an answer that came with the state.
    refused: AtomicBool,
    /// The reply to an earlier use of the state.
    reply: Mutex<Option<Reply>>,
    clock: fn() -> u64,
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
    pub(crate) fn new(guard: Arc<ReplayGuard>, call: &Call, used: &StateUse) -> Self {
        let used = UsedState {
            id: hex(&sha256(used.state.as_bytes())).into(),
            answers: sha256(used.answers.as_bytes()),
            principal: call.principal().map(Into::into),
            expires: used.expires,
        };
        Self {
            guard,
            used,
            claim: Mutex::default(),
            refused: AtomicBool::new(false),
            reply: Mutex::default(),
            clock: now,
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
            Ok(Claimed::First(claim, progress)) => {
                // The expiry was checked on admission, but the store may have forgotten an expired use since.
                if (self.clock)() >= self.used.expires {
                    self.guard.release(&claim, progress);
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
                Err(Outcome::Failed(RpcError::unavailable(reason, RETRY_AFTER_MS)))
            }
        }
    }

    /// Records the progress of the call, in case the process ends.
    pub(crate) async fn save(&self, call: &Call) -> Result<(), String> {
        let claim = self.claim.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some((claim, progress)) = claim.zip(call.progress_so_far()) else { return Ok(()) };
        self.guard.save(&claim, progress).await.map_err(|error| error.to_string())
    }

    fn is_claimed(&self) -> bool {
        self.claim.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn take_claim(&self) -> Option<Arc<ActiveClaim>> {
        self.claim.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Releases the state, with the progress of the call. The handler must have been dropped.
    pub(crate) fn release(&self, call: &Call) {
        if let Some(claim) = self.take_claim() {
            self.guard.release(&claim, call.progress_so_far());
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
        let (guard, kept) = (self.guard.clone(), reply.clone());
        let completing = Completing(Some(Box::pin(async move {
            if let Err(error) = guard.complete(&claim, kept).await {
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
const OTHER_ANSWERS: &str = "`requestState` was already used with other answers: continue with the newest state that you \
    were given, or start the call again";
const USED: &str = "`requestState` was used already, and its reply is not kept any more: start the call again if it is safe to repeat";

/// Returns whether a client takes the outcome for a failure.
fn is_failure(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Complete(body) | Outcome::Cacheable(body, _) => body.get("isError") == Some("true"),
        Outcome::InputRequired | Outcome::Relayed(_) | Outcome::Replied(_) => false,
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
            drop(crate::runtime::spawn_on(&runtime, completing));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pintle_proto::{
        inputs::Once,
        server::{Arrival, Engine, Inbound},
    };
    use pintle_types::{
        Frame, RawObject, RawValue,
        schema::{Implementation, ServerCapabilities, ToolsCapability},
    };
    use tokio::time::timeout;

    use super::*;
    use crate::server::store::{MemoryStore, WatchedStore};

    fn service() -> Service {
        let mut capabilities = ServerCapabilities::default();
        capabilities.tools = Some(ToolsCapability::default());
        Service::new(Implementation::new("s", "0"), capabilities)
    }

    fn call(service: &Service) -> Call {
        let message = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","_meta":{
            "io.modelcontextprotocol/protocolVersion":"2026-07-28",
            "io.modelcontextprotocol/clientCapabilities":{}}}}"#;
        match Engine::new().receive(service, Frame::parse(message, 1).unwrap(), &Arrival::at(0)) {
            Inbound::Call(call) => call,
            other => panic!("{other:?}"),
        }
    }

    fn guard() -> Arc<ReplayGuard> {
        Arc::new(ReplayGuard::new(Arc::new(MemoryStore::new())))
    }

    /// The claim of a state that expires in the year 9999, with another clock.
    fn claim(guard: &Arc<ReplayGuard>, clock: fn() -> u64) -> StateClaim {
        StateClaim {
            guard: guard.clone(),
            used: UsedState { id: "s".into(), answers: [0; 32], principal: None, expires: LATE },
            claim: Mutex::default(),
            refused: AtomicBool::new(false),
            reply: Mutex::default(),
            clock,
        }
    }

    const LATE: u64 = 253_402_300_799_999;

    /// Returns the progress with which the next claim begins.
    async fn next(guard: &Arc<ReplayGuard>) -> Option<Vec<u8>> {
        match guard.claim(&claim(guard, || 0).used).await.unwrap() {
            Claimed::First(claim, progress) => {
                guard.release(&claim, progress.clone());
                progress
            }
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_state_that_expires_before_it_is_claimed_is_refused_and_its_progress_is_kept() {
        let service = service();
        let before = call(&service);
        before.remember("pay", RawValue::from_string("1".to_owned()).unwrap());
        let progress = before.progress_so_far();
        assert!(progress.is_some());
        let guard = guard();
        let held = claim(&guard, || LATE - 1);
        assert!(matches!(held.acquire(&before).await, Ok(Acquired::First)));
        held.release(&before);
        let expired = claim(&guard, || LATE);
        match expired.acquire(&call(&service)).await {
            Err(Outcome::Failed(error)) => assert_eq!(error.message, EXPIRED),
            _ => panic!("it is refused"),
        }
        assert!(!expired.is_claimed());
        assert_eq!(next(&guard).await, progress);
    }

    #[tokio::test]
    async fn a_call_that_refused_an_answer_is_over_before_its_state_is_released() {
        let service = service();
        let call = call(&service);
        let guard = guard();
        let held = claim(&guard, || 0);
        assert!(matches!(held.acquire(&call).await, Ok(Acquired::First)));
        held.refuse();
        let outcome = Outcome::Failed(RpcError::invalid_params("no such date"));
        let settled = held.settle(&call, &service, outcome, 0);
        assert!(matches!(settled, Err(Outcome::Failed(error)) if error.message == "no such date"));
        assert!(matches!(call.begin_once("late"), Once::Over));
        assert!(!held.is_claimed());
        assert_eq!(next(&guard).await, None);
    }

    fn complete(result: &str) -> Outcome {
        Outcome::Complete(result.parse::<RawObject>().unwrap().into())
    }

    #[tokio::test]
    async fn a_state_is_free_again_if_the_handler_refused_an_answer_and_the_call_failed() {
        let service = service();
        let failed = || Outcome::Failed(RpcError::invalid_params("no such date"));
        for (refuses, outcome, is_free) in [
            (true, failed(), true),
            (true, complete(r#"{"content":[],"isError":true}"#), true),
            (true, complete(r#"{"content":[],"isError":false}"#), false),
            (true, complete(r#"{"content":[]}"#), false),
            (false, failed(), false),
            (false, complete(r#"{"content":[],"isError":true}"#), false),
        ] {
            let (guard, call) = (guard(), call(&service));
            let held = claim(&guard, || 0);
            assert!(matches!(held.acquire(&call).await, Ok(Acquired::First)));
            if refuses {
                held.refuse();
            }
            let shown = format!("{refuses} {outcome:?}");
            match held.settle(&call, &service, outcome, 0) {
                Ok(settling) => drop(settling.await),
                Err(_) => assert!(is_free, "{shown}"),
            }
            let again = guard.claim(&held.used).await.unwrap();
            assert_eq!(matches!(again, Claimed::First(..)), is_free, "{shown}");
            assert_eq!(matches!(again, Claimed::Replied(_)), !is_free, "{shown}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_ends_once_its_reply_is_kept_and_the_reply_is_kept_if_nobody_waits() {
        let service = service();
        for waits in [true, false] {
            let store = Arc::new(WatchedStore::default());
            let guard = Arc::new(ReplayGuard::new(store.clone()));
            let (call, held) = (call(&service), claim(&guard, || 0));
            assert!(matches!(held.acquire(&call).await, Ok(Acquired::First)));
            let puts = store.hold_puts().await;
            let mut settling = held.settle(&call, &service, complete(r#"{"content":[]}"#), 0).unwrap();
            let early = timeout(Duration::from_secs(1), &mut settling).await;
            assert!(early.is_err(), "the reply is not kept yet");
            if waits {
                drop(puts);
                assert!(matches!(settling.await, Outcome::Replied(_)));
            } else {
                drop((settling, puts));
            }
            let again = timeout(Duration::from_secs(1), guard.claim(&held.used)).await.unwrap();
            assert!(matches!(again.unwrap(), Claimed::Replied(_)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_layer_that_runs_the_handler_twice_has_one_claim() {
        let (guard, call) = (guard(), call(&service()));
        let held = claim(&guard, || 0);
        for _ in 0..2 {
            let acquired = timeout(Duration::from_secs(1), held.acquire(&call)).await.unwrap();
            assert!(matches!(acquired, Ok(Acquired::First)));
        }
    }
}
