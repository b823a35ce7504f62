use std::{
    collections::HashMap,
    future::pending,
    panic::resume_unwind,
    sync::{Arc, LazyLock, Mutex, PoisonError, Weak, mpsc},
};

use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::Semaphore,
    task::{AbortHandle, JoinError},
};

use crate::server::call::caller_key::CallerKey;
#[cfg(feature = "logging")]
use crate::server::call::current;

/// The limit on synchronous handlers that run at the same time in a process.
const MAX_BLOCKING: usize = 256;

/// The threads that run synchronous handlers: the blocking pool of a runtime that is never dropped. That of the caller would
/// wait for them when it is dropped, and with it the end of the program. `None` if the system refuses to create it.
static POOL: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    Builder::new_current_thread()
        .max_blocking_threads(MAX_BLOCKING)
        .thread_name("pintle-blocking")
        .build()
        .ok()
});

/// One permit for each synchronous handler that may run. A handler keeps its permit until it returns, even if its call was
/// cancelled: otherwise a client that calls and cancels could fill the queue of the pool, which has no limit.
static PERMITS: Semaphore = Semaphore::const_new(MAX_BLOCKING);

/// The limit for one caller, so that one with many slow calls leaves threads to the others.
const MAX_PER_CALLER: usize = 64;

/// The permits of the callers whose synchronous handlers run or wait.
static CALLERS: LazyLock<Mutex<CallerPermits>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct CallerPermits {
    by_caller: HashMap<CallerKey, Weak<Semaphore>>,
    /// The length at which callers without handlers are removed, so that adding one is cheap, however many there are.
    cleanup_at: usize,
}

impl CallerKey {
    fn permits(self) -> Arc<Semaphore> {
        let mut callers = CALLERS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(permits) = callers.by_caller.get(&self).and_then(Weak::upgrade) {
            return permits;
        }
        let CallerPermits { by_caller, cleanup_at } = &mut *callers;
        if by_caller.len() >= *cleanup_at {
            by_caller.retain(|_, permits| permits.strong_count() > 0);
            *cleanup_at = 2 * by_caller.len() + 16;
        }
        let permits = Arc::new(Semaphore::new(MAX_PER_CALLER));
        by_caller.insert(self, Arc::downgrade(&permits));
        permits
    }
}

/// A synchronous function as a handler, which runs on a thread for such functions.
#[derive(Debug)]
pub struct Blocking<F>(Arc<F>);

/// Makes a handler of a synchronous function, for functions that wait or compute for long.
///
/// The function runs on a thread of its own, so that other calls of its connection go on meanwhile. In a process at most 256
/// such functions run at the same time, and at most 64 of one caller other than the local user: a principal, or else an address or
/// a connection. The calls of further ones wait for their turn, and count as running for the limits of the server.
///
/// A thread cannot be interrupted: if the call is cancelled or exceeds its timeout, the client gets no result, or the error, at
/// once, but the function runs to its end and keeps its thread until then, or until the program ends, which does not wait for it.
/// A function with a loop takes [`Cx`] and asks [`Cx::is_cancelled`]. A function that has not started yet is never run. A panic fails the call, as in an async handler.
///
/// [`Cx`]: crate::server::Cx
/// [`Cx::is_cancelled`]: crate::server::Cx::is_cancelled
///
/// `#[pintle::tool]` and its siblings do this for every `fn` that is not `async`, unless they have the option `inline`: a
/// function that returns at once is cheaper without a thread.
///
/// ```
/// use pintle::server::{Args, blocking, tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Count {
///     below: u64,
/// }
///
/// let primes = tool("count_primes", blocking(|Args(Count { below })| {
///     (2..below).filter(|n| (2..*n).all(|divisor| n % divisor != 0)).count()
/// }));
/// ```
pub fn blocking<F>(function: F) -> Blocking<F> {
    Blocking(Arc::new(function))
}

impl<F> Blocking<F> {
    pub(super) fn function(&self) -> Arc<F> {
        self.0.clone()
    }
}

/// Runs a function on a thread of the pool. Dropping the future removes the function from the queue, if it has not started.
pub(super) async fn run<R: Send + 'static>(
    caller: Option<CallerKey>,
    function: impl FnOnce() -> R + Send + 'static,
) -> R {
    // Without a runtime there is no pool.
    let Ok(runtime) = Handle::try_current() else { return function() };
    let own_permit = match caller.map(CallerKey::permits) {
        // The permits are never closed.
        Some(permits) => permits.acquire_owned().await.ok(),
        None => None,
    };
    let Ok(permit) = PERMITS.acquire().await else { return function() };
    let span = tracing::Span::current();
    #[cfg(feature = "logging")]
    let call = current::current();
    let Some(pool) = &*POOL else { return function() };
    // Time that is paused advances when nothing runs, as far as the runtime knows: this thread is something.
    let (_running, ended) = mpsc::channel::<()>();
    runtime.spawn_blocking(move || ended.recv());
    let task = pool.spawn_blocking(move || {
        let _runtime = runtime.enter();
        let _permits = (own_permit, permit);
        let _entered = span.entered();
        #[cfg(feature = "logging")]
        let _here = call.map(current::Here::of);
        function()
    });
    let _abort = AbortOnDrop(task.abort_handle());
    match task.await.map_err(JoinError::try_into_panic) {
        Ok(result) => result,
        Err(Ok(panic)) => resume_unwind(panic),
        // The runtime shuts down, and the call with it.
        Err(Err(_)) => pending().await,
    }
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
