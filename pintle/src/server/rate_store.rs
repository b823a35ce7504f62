//! Limits of rates that processes share.

use std::{fmt, future::Future, io, pin::Pin, sync::Arc, time::Duration};

/// A store of token buckets that processes share, so that the limit of a rate is that of all of them: see
/// [`Rules::share_rates`](crate::server::Rules::share_rates).
///
/// A process takes calls in blocks, so that most calls need no request to the store. Run
/// `pintle_testing::kits::rates::check` on a store that you wrote.
pub trait RateStore: fmt::Debug + Send + Sync + 'static {
    /// Takes calls out of a bucket. A bucket is full when it is first used, and is filled again at a constant rate, by the clock of the
    /// store.
    ///
    /// Those in [`spent`](RateRequest::spent) are taken in any case, down to an empty bucket minus its capacity; of those
    /// [`wanted`](RateRequest::wanted) as many as there are.
    fn take<'a>(&'a self, request: &'a RateRequest) -> RateFuture<'a>;
}

/// The future that [`RateStore::take`] returns.
pub type RateFuture<'a> = Pin<Box<dyn Future<Output = io::Result<RateLease>> + Send + 'a>>;

/// A request of a process for calls.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RateRequest {
    /// The bucket: what the calls of are counted together.
    pub bucket: String,
    /// The number of calls in a window. It is the capacity of the bucket.
    pub calls: u32,
    /// The time in which an empty bucket is filled.
    pub window: Duration,
    /// The calls that were made already.
    pub spent: u32,
    /// The calls that the process wants to be able to make.
    pub wanted: u32,
}

impl RateRequest {
    /// Creates a request for one call.
    pub fn new(bucket: impl Into<String>, calls: u32, window: Duration) -> Self {
        Self { bucket: bucket.into(), calls, window, spent: 0, wanted: 1 }
    }
}

/// The calls that a process may make.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RateLease {
    /// The number of calls.
    pub calls: u32,
    /// The time until there is at least one more in the bucket. Zero if there is one.
    pub wait: Duration,
}

impl RateLease {
    /// Creates a lease.
    pub fn new(calls: u32, wait: Duration) -> Self {
        Self { calls, wait }
    }
}

impl<S: RateStore + ?Sized> RateStore for Arc<S> {
    fn take<'a>(&'a self, request: &'a RateRequest) -> RateFuture<'a> {
        (**self).take(request)
    }
}
