use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use pintle::{
    forward::{CallerKey, Downstream},
    proto::ledger::Charge,
    server::Cx,
    types::RpcError,
};
use tokio::{task::AbortHandle, time::sleep};

use crate::{calls::upstream_call::UpstreamCall, link_state::calls::OpenQuestion, random};

/// The limit of calls that wait in one relay.
const MAX_CALLS: usize = 1024;
/// The limit of calls of one caller that wait: a principal, or else an address or a connection.
const MAX_CALLS_OF_CALLER: usize = 32;
/// The limit of bytes of questions of one call that waits.
const MAX_QUESTION_BYTES: usize = 1 << 20;

/// Calls to a server with sessions that wait for the next round of a client without one.
///
/// A call is taken out once, by the principal that made it. When its lifetime ends, it is cancelled.
#[derive(Default)]
pub(crate) struct ParkedCalls(Arc<Mutex<HashMap<Box<str>, ParkedEntry>>>);

struct ParkedEntry {
    call: ParkedCall,
    principal: Option<Box<str>>,
    /// The caller that it is counted for; `None` is the local user.
    caller: Option<CallerKey>,
    expiry: AbortHandle,
}

/// A call with questions that its client has been sent.
pub(crate) struct ParkedCall {
    pub(crate) call: UpstreamCall,
    /// The questions by key.
    pub(crate) questions: Vec<(String, OpenQuestion)>,
    /// The number of questions so far.
    pub(crate) asked: u64,
    /// The bytes of the params of its first round, which it has until it ends.
    params: usize,
    /// The charge of its caller, from the first question to the end.
    pub(crate) charge: Charge,
}

impl ParkedCall {
    /// Creates the call of a first round.
    pub(crate) fn new(call: UpstreamCall, cx: &Cx) -> Self {
        let params = Downstream::of(cx).sent_params().as_str().len();
        Self { call, questions: Vec::new(), asked: 0, params, charge: Charge::default() }
    }
}

type Calls = Mutex<HashMap<Box<str>, ParkedEntry>>;

impl ParkedCalls {
    /// Stores a call, and returns the id to take it out.
    pub(crate) fn insert(
        &self,
        mut call: ParkedCall,
        cx: &Cx,
        lifetime: Duration,
    ) -> Result<Box<str>, RpcError> {
        let bytes: usize = call.questions.iter().map(|(_, open)| open.question.params.as_str().len()).sum();
        if bytes > MAX_QUESTION_BYTES {
            return Err(RpcError::internal(format!(
                "the questions have {bytes} bytes, and the limit is {MAX_QUESTION_BYTES}: ask for less at once"
            )));
        }
        let id = random::bytes::<16>()
            .map_err(|_| RpcError::internal("the system's random number generator failed"))?;
        let id: Box<str> = URL_SAFE_NO_PAD.encode(id).into();
        let downstream = Downstream::of(cx);
        let caller = downstream.caller();
        if call.charge.account().is_none() {
            call.charge = downstream.charge();
        }
        // Without the lock: calls that wait here may give way.
        let charged = call.charge.set(call.params + bytes, downstream.ceiling());
        charged.map_err(ended)?;
        let mut calls = self.lock();
        let of_caller = calls.values().filter(|entry| entry.caller == caller).count();
        if calls.len() >= MAX_CALLS || of_caller >= MAX_CALLS_OF_CALLER {
            return Err(ended("too many calls wait for answers: answer them first"));
        }
        calls.insert(id.clone(), self.entry(&id, call, cx, lifetime));
        Ok(id)
    }

    /// Stores a call again that was taken out.
    pub(crate) fn put_back(&self, id: &str, call: ParkedCall, cx: &Cx, lifetime: Duration) {
        let entry = self.entry(id, call, cx, lifetime);
        self.lock().insert(id.into(), entry);
    }

    fn entry(&self, id: &str, call: ParkedCall, cx: &Cx, lifetime: Duration) -> ParkedEntry {
        let (calls, own) = (Arc::downgrade(&self.0), Box::<str>::from(id));
        let expiry = tokio::spawn(expire(calls.clone(), own.clone(), lifetime)).abort_handle();
        call.charge.on_give_way(move || drop(removed(&calls, &own)));
        ParkedEntry {
            call,
            principal: cx.principal().map(Into::into),
            caller: Downstream::of(cx).caller(),
            expiry,
        }
    }

    /// Takes a call out. `None` if it has expired, or belongs to another principal, or to another process.
    pub(crate) fn take(&self, id: &str, principal: Option<&str>) -> Option<ParkedCall> {
        let mut calls = self.lock();
        calls.get(id).filter(|entry| entry.principal.as_deref() == principal)?;
        let ParkedEntry { call, expiry, .. } = calls.remove(id)?;
        expiry.abort();
        Some(call)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, ParkedEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the error of a call that cannot wait for its answers. Not overload, after which clients repeat a call: this one ran until its
/// question, and may have had effects.
fn ended(reason: impl fmt::Display) -> RpcError {
    RpcError::internal(format!("the call was ended: {reason}; then call again if it may run twice"))
}

async fn expire(calls: Weak<Calls>, id: Box<str>, lifetime: Duration) {
    sleep(lifetime).await;
    drop(removed(&calls, &id));
}

/// Removes a call. It is dropped outside of the lock: this cancels it.
fn removed(calls: &Weak<Calls>, id: &str) -> Option<ParkedEntry> {
    calls.upgrade().and_then(|calls| calls.lock().unwrap_or_else(PoisonError::into_inner).remove(id))
}

impl fmt::Debug for ParkedCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParkedCalls").field("len", &self.lock().len()).finish()
    }
}
