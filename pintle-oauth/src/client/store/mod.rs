//! Storage of credentials.

pub(crate) mod credentials;
pub(crate) mod file;
mod lock;
pub(crate) mod stored_login;

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use pintle::Result;

use credentials::Credentials;

/// Stores credentials by authorization server. A store belongs to one user.
///
/// [`MemoryStore`] is the default; a [`FileStore`](file::FileStore) outlives the process. Credentials can be serialized with serde, for
/// example into a keychain.
///
/// ```
/// use pintle_oauth::client::{Credentials, Store};
///
/// /// Stores nothing.
/// struct Forgetful;
///
/// impl Store for Forgetful {
///     async fn load(&self, _issuer: &str) -> pintle::Result<Option<Credentials>> {
///         Ok(None)
///     }
///
///     async fn save(&self, _issuer: &str, _credentials: &Credentials) -> pintle::Result<()> {
///         Ok(())
///     }
/// }
/// ```
pub trait Store: Send + Sync + 'static {
    /// Returns the credentials of this issuer, if there are any.
    fn load(&self, issuer: &str) -> impl Future<Output = Result<Option<Credentials>>> + Send;

    /// Replaces the credentials of this issuer.
    fn save(&self, issuer: &str, credentials: &Credentials) -> impl Future<Output = Result<()>> + Send;

    /// Locks the credentials of this issuer against other processes that share the store, until the lock is dropped.
    ///
    /// It is held while tokens are loaded, refreshed and saved: a refresh token that is used twice counts as stolen. The
    /// default does not lock, for stores that are not shared. It should not wait forever; if it fails, that is logged, and
    /// the work is done without a lock.
    fn lock(&self, issuer: &str) -> impl Future<Output = Result<StoreLock>> + Send {
        let _ = issuer;
        std::future::ready(Ok(StoreLock::none()))
    }
}

/// The lock on the credentials of one issuer in a [`Store`]. Dropping it releases it.
#[must_use = "the lock is released when it is dropped"]
pub struct StoreLock(Option<Box<dyn Send + Sync>>);

impl StoreLock {
    /// Wraps a guard that releases the lock when it is dropped.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use pintle_oauth::client::StoreLock;
    /// use tokio::sync::Mutex;
    ///
    /// async fn lock(mutex: Arc<Mutex<()>>) -> StoreLock {
    ///     StoreLock::new(mutex.lock_owned().await)
    /// }
    /// ```
    pub fn new(guard: impl Send + Sync + 'static) -> Self {
        Self(Some(Box::new(guard)))
    }

    /// Returns a lock that locks nothing, for stores that are not shared.
    pub fn none() -> Self {
        Self(None)
    }
}

impl fmt::Debug for StoreLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreLock").field("held", &self.0.is_some()).finish()
    }
}

/// Stores credentials in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    all: Mutex<HashMap<String, Credentials>>,
    /// By issuer.
    locks: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Store for MemoryStore {
    async fn load(&self, issuer: &str) -> Result<Option<Credentials>> {
        Ok(self.all.lock().unwrap_or_else(PoisonError::into_inner).get(issuer).cloned())
    }

    async fn save(&self, issuer: &str, credentials: &Credentials) -> Result<()> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(issuer.to_owned(), credentials.clone());
        Ok(())
    }

    async fn lock(&self, issuer: &str) -> Result<StoreLock> {
        let lock = {
            let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
            locks.entry(issuer.to_owned()).or_default().clone()
        };
        Ok(StoreLock::new(lock.lock_owned().await))
    }
}

impl<S: Store> Store for Arc<S> {
    fn load(&self, issuer: &str) -> impl Future<Output = Result<Option<Credentials>>> + Send {
        S::load(self, issuer)
    }

    fn save(&self, issuer: &str, credentials: &Credentials) -> impl Future<Output = Result<()>> + Send {
        S::save(self, issuer, credentials)
    }

    fn lock(&self, issuer: &str) -> impl Future<Output = Result<StoreLock>> + Send {
        S::lock(self, issuer)
    }
}

type Keeping<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A [`Store`] of any type.
pub(crate) trait AnyStore: Send + Sync {
    fn load<'a>(&'a self, issuer: &'a str) -> Keeping<'a, Option<Credentials>>;
    fn save<'a>(&'a self, issuer: &'a str, credentials: &'a Credentials) -> Keeping<'a, ()>;
    fn lock<'a>(&'a self, issuer: &'a str) -> Keeping<'a, StoreLock>;
}

impl<S: Store> AnyStore for S {
    fn load<'a>(&'a self, issuer: &'a str) -> Keeping<'a, Option<Credentials>> {
        Box::pin(Store::load(self, issuer))
    }

    fn save<'a>(&'a self, issuer: &'a str, credentials: &'a Credentials) -> Keeping<'a, ()> {
        Box::pin(Store::save(self, issuer, credentials))
    }

    fn lock<'a>(&'a self, issuer: &'a str) -> Keeping<'a, StoreLock> {
        Box::pin(Store::lock(self, issuer))
    }
}
