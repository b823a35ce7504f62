//! Where credentials are kept.

pub(crate) mod credentials;
pub(crate) mod file;
mod lock;

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use pintle::Result;

use credentials::Credentials;

/// Keeps credentials, by the authorization server that gave them. One store is for one user.
///
/// [`Memory`] is the default, [`File`](file::File) outlives the process. A keychain is a few lines: what is kept can be
/// written with serde.
///
/// ```
/// use pintle_oauth::client::{Credentials, Store};
///
/// /// Logs in anew each time.
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
    /// What is kept for this issuer, if anything.
    fn load(&self, issuer: &str) -> impl Future<Output = Result<Option<Credentials>>> + Send;

    /// Keeps this for this issuer, instead of what was kept.
    fn save(&self, issuer: &str, credentials: &Credentials) -> impl Future<Output = Result<()>> + Send;

    /// Keeps everybody else who shares the store from changing what is kept for this issuer, until the lock is dropped.
    ///
    /// It is held while tokens are loaded, renewed and saved: a refresh token that comes twice is taken for a stolen one. A
    /// store that nobody shares needs none, which is what it does if you do not write it. It should not wait for ever; if
    /// it fails, that is logged, and the work is done without a lock.
    fn lock(&self, issuer: &str) -> impl Future<Output = Result<StoreLock>> + Send {
        let _ = issuer;
        std::future::ready(Ok(StoreLock::none()))
    }
}

/// The lock on what a [`Store`] keeps for one issuer. Dropping it gives it back.
#[must_use = "it is given back when it is dropped"]
pub struct StoreLock(Option<Box<dyn Send + Sync>>);

impl StoreLock {
    /// A lock that is held as long as this is not dropped.
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

    /// None, for stores that nobody shares.
    pub fn none() -> Self {
        Self(None)
    }
}

impl fmt::Debug for StoreLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreLock").field("held", &self.0.is_some()).finish()
    }
}

/// Keeps credentials until the process ends.
#[derive(Debug, Default)]
pub struct Memory {
    all: Mutex<HashMap<String, Credentials>>,
    /// By issuer.
    locks: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl Memory {
    /// Nothing kept yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Store for Memory {
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
