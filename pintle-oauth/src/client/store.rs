use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::{Mutex, PoisonError},
};

use pintle::Result;

use super::credentials::Credentials;

/// Keeps credentials, by the authorization server that gave them. One store is for one user.
///
/// [`Memory`] is the default, [`File`](super::File) outlives the process. A keychain is a few lines: what is kept can be
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
}

/// Keeps credentials until the process ends.
#[derive(Debug, Default)]
pub struct Memory(Mutex<HashMap<String, Credentials>>);

impl Memory {
    /// Nothing kept yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Store for Memory {
    async fn load(&self, issuer: &str) -> Result<Option<Credentials>> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).get(issuer).cloned())
    }

    async fn save(&self, issuer: &str, credentials: &Credentials) -> Result<()> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(issuer.to_owned(), credentials.clone());
        Ok(())
    }
}

impl<S: Store> Store for std::sync::Arc<S> {
    fn load(&self, issuer: &str) -> impl Future<Output = Result<Option<Credentials>>> + Send {
        S::load(self, issuer)
    }

    fn save(&self, issuer: &str, credentials: &Credentials) -> impl Future<Output = Result<()>> + Send {
        S::save(self, issuer, credentials)
    }
}

type Keeping<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A [`Store`] of any type.
pub(super) trait AnyStore: Send + Sync {
    fn load<'a>(&'a self, issuer: &'a str) -> Keeping<'a, Option<Credentials>>;
    fn save<'a>(&'a self, issuer: &'a str, credentials: &'a Credentials) -> Keeping<'a, ()>;
}

impl<S: Store> AnyStore for S {
    fn load<'a>(&'a self, issuer: &'a str) -> Keeping<'a, Option<Credentials>> {
        Box::pin(Store::load(self, issuer))
    }

    fn save<'a>(&'a self, issuer: &'a str, credentials: &'a Credentials) -> Keeping<'a, ()> {
        Box::pin(Store::save(self, issuer, credentials))
    }
}
