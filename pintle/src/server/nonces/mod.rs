//! Values that are used once, such as the ids of DPoP proofs.

mod memory;

use std::{fmt, future::Future, io, pin::Pin, sync::Arc};

pub use memory::MemoryNonceStore;

/// A record of values that were used, each of which may be used once.
///
/// Processes that accept the same values have to share one, or each of them accepts a value once. `pintle-redis` has one; for another
/// store, implement this trait, and run `pintle_testing::kits::nonces::check` on it.
pub trait NonceStore: fmt::Debug + Send + Sync + 'static {
    /// Notes the use of a value, identified by a digest, until `expires`, in seconds of the Unix epoch. Returns `false` if it was used
    /// before. Of concurrent uses one is the first.
    ///
    /// A store that cannot be reached returns an error, and the value is refused.
    fn first_use<'a>(&'a self, nonce: &'a [u8; 32], expires: u64) -> NonceFuture<'a>;
}

/// The future that [`NonceStore::first_use`] returns.
pub type NonceFuture<'a> = Pin<Box<dyn Future<Output = io::Result<bool>> + Send + 'a>>;

impl<S: NonceStore + ?Sized> NonceStore for Arc<S> {
    fn first_use<'a>(&'a self, nonce: &'a [u8; 32], expires: u64) -> NonceFuture<'a> {
        (**self).first_use(nonce, expires)
    }
}
