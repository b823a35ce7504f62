use std::{
    collections::HashMap,
    future::pending,
    panic::resume_unwind,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak, mpsc},
};

use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::Semaphore,
    task::{AbortHandle, JoinError},
};

#[cfg(feature = "logging")]
use crate::server::core::cx::current;
use crate::server::{Cx, core::cx::caller_key::CallerKey};

/// The limit on synchronous handlers of a server that run at the same time.
const MAX_BLOCKING: usize = 256;

/// The limit for one caller, so that one with many slow calls leaves threads to the others.
const MAX_PER_CALLER: usize = 64;

/// The threads that run the synchronous handlers of a server.
#[derive(Debug)]
pub(crate) struct BlockingThreads {
    /// The runtime whose blocking pool has the threads. That of the caller would wait for them when it is dropped, and with it the end
    /// of the program. `None` if the system refuses to create it.
    pool: OnceLock<Option<Runtime>>,
    /// One permit for each handler that may run. A handler keeps its permit until it returns, even if its call was cancelled: otherwise
    /// a client that calls and cancels could fill the queue of the pool, which has no limit.
    permits: Arc<Semaphore>,
    /// The permits of the callers whose handlers run or wait.
    callers: Mutex<CallerPermits>,
}

#[derive(Debug, Default)]
struct CallerPermits {
    by_caller: HashMap<CallerKey, Weak<Semaphore>>,
    /// The length at which callers without handlers are removed, so that adding one is cheap, however many there are.
    cleanup_at: usize,
}

impl Default for BlockingThreads {
    fn default() -> Self {
        let permits = Arc::new(Semaphore::new(MAX_BLOCKING));
        Self { pool: OnceLock::new(), permits, callers: Mutex::default() }
    }
}

impl BlockingThreads {
    fn pool(&self) -> Option<&Runtime> {
        let create = || {
            let mut builder = Builder::new_current_thread();
            builder.max_blocking_threads(MAX_BLOCKING).thread_name("pintle-blocking").build().ok()
        };
        self.pool.get_or_init(create).as_ref()
    }

    fn permits_of(&self, caller: CallerKey) -> Arc<Semaphore> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(permits) = callers.by_caller.get(&caller).and_then(Weak::upgrade) {
            return permits;
        }
        let CallerPermits { by_caller, cleanup_at } = &mut *callers;
        if by_caller.len() >= *cleanup_at {
            by_caller.retain(|_, permits| permits.strong_count() > 0);
            *cleanup_at = 2 * by_caller.len() + 16;
        }
        let permits = Arc::new(Semaphore::new(MAX_PER_CALLER));
        by_caller.insert(caller, Arc::downgrade(&permits));
        permits
    }
}

impl Drop for BlockingThreads {
    /// Leaves the threads to themselves: a function that runs is not waited for.
    fn drop(&mut self) {
        if let Some(Some(pool)) = self.pool.take() {
            pool.shutdown_background();
        }
    }
}

/// A synchronous function as a handler, which runs on a thread for such functions.
#[derive(Debug)]
pub struct Blocking<F>(Arc<F>);

/// Makes a handler of a synchronous function, for functions that wait or compute for long.
///
/// The function runs on a thread of its own, so that other calls of its connection go on meanwhile. Of a server at most 256
/// such functions run at the same time, those of servers that it mounts included, and at most 64 of one caller other than the local
/// user: a principal, or else an address or a connection. The calls of further ones wait for their turn, and count as running for
/// the limits of the server.
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

/// Runs a function on a thread of the server of a call. Dropping the future removes the function from the queue, if it has not started.
pub(super) async fn run<R: Send + 'static>(cx: Cx, function: impl FnOnce() -> R + Send + 'static) -> R {
    // Without a runtime there is no pool.
    let Ok(runtime) = Handle::try_current() else { return function() };
    let threads = &cx.connection_server().0.blocking_threads;
    let own_permit = match CallerKey::of(&cx) {
        // The permits are never closed.
        Some(caller) => threads.permits_of(caller).acquire_owned().await.ok(),
        None => None,
    };
    let Ok(permit) = threads.permits.clone().acquire_owned().await else { return function() };
    let span = tracing::Span::current();
    #[cfg(feature = "logging")]
    let call = current::current();
    let Some(pool) = threads.pool() else { return function() };
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
