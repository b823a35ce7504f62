//! The runner of the checks of all kits, their report, and the handles of a store.

use std::{
    error::Error,
    fmt,
    future::Future,
    hash::{BuildHasher as _, RandomState},
    io,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::{task::JoinSet, time::timeout};

/// A property that does not hold.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Broken {
    /// The property, as a sentence.
    pub property: &'static str,
    /// The observed behaviour.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.property, self.what)
    }
}

impl Error for Broken {}

/// The result of a check: the error is what was seen instead of the property.
pub(super) type Checked<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// The time after which a check is taken to hang. The longest ones have hundreds of requests, and may run on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The runner of a kit: it checks one property after the other, each on what `open` returns for it.
pub(super) struct Check<O> {
    open: O,
    broken: Vec<Broken>,
}

impl<O> Check<O> {
    pub(super) fn new<S>(open: O) -> Self
    where
        O: AsyncFn() -> io::Result<S>,
    {
        Self { open, broken: Vec::new() }
    }

    /// Checks that this sentence is true.
    pub(super) async fn that<S, F>(&mut self, property: &'static str, run: impl FnOnce(S) -> F)
    where
        O: AsyncFn() -> io::Result<S>,
        F: Future<Output = Checked>,
    {
        let checked = match (self.open)().await {
            // Boxed, because the futures of some checks are large.
            Ok(subject) => timeout(TIMEOUT, Box::pin(run(subject)))
                .await
                .unwrap_or_else(|_| wrong(format!("it hangs: nothing after {TIMEOUT:?}"))),
            Err(error) => wrong(format!("not opened: {error}")),
        };
        if let Err(error) = checked {
            let what = match error.downcast::<io::Error>() {
                Ok(error) => format!("an operation failed: {error}"),
                Err(error) => error.to_string(),
            };
            self.broken.push(Broken { property, what });
        }
    }

    pub(super) fn end(self) -> Result<(), Vec<Broken>> {
        if self.broken.is_empty() { Ok(()) } else { Err(self.broken) }
    }
}

/// Returns two handles of a store in memory: `async || Ok(two_handles(MemoryStore::new()))`.
pub fn two_handles<S>(store: S) -> [Arc<S>; 2] {
    let store = Arc::new(store);
    [store.clone(), store]
}

/// Two handles of one store, as two processes have them.
pub(super) struct Handles<T: ?Sized> {
    pub(super) one: Arc<T>,
    pub(super) other: Arc<T>,
}

impl<T: ?Sized> Handles<T> {
    /// Returns one or the other, in turn.
    pub(super) fn of_turn(&self, turn: usize) -> Arc<T> {
        if turn.is_multiple_of(2) { self.one.clone() } else { self.other.clone() }
    }
}

/// Runs all of them at the same time.
pub(super) async fn at_once<F>(runs: impl IntoIterator<Item = F>) -> Checked<Vec<F::Output>>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let mut running: JoinSet<_> = runs.into_iter().collect();
    let mut ended = Vec::new();
    while let Some(run) = running.join_next().await {
        ended.push(run?);
    }
    Ok(ended)
}

/// Says what was seen instead of the property.
pub(super) fn wrong<T>(what: impl Into<Box<dyn Error + Send + Sync>>) -> Checked<T> {
    Err(what.into())
}

/// Requires that something holds, or says what was seen.
pub(super) fn require(holds: bool, otherwise: &str) -> Checked {
    if holds { Ok(()) } else { wrong(otherwise) }
}

/// Returns bytes that no other check has: the name of what it stores.
pub(super) fn fresh<const N: usize>() -> [u8; N] {
    std::array::from_fn(|at| RandomState::new().hash_one(at).to_le_bytes()[0])
}

/// Returns the current time in milliseconds of the Unix epoch.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
