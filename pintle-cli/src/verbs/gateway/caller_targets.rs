use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::Extensions;
use pintle::server::{Provider as _, ProviderChanges};
use pintle_oauth::{client::Secret, server::CallerToken};
use ring::digest::{SHA256, digest};
use tokio::{sync::OnceCell, time::Instant};

use super::backend::ConnectedTarget;
use crate::failure::Failure;

/// The limit of tokens for which a target is connected. Those that were not used for the longest time are disconnected.
const MAX_CALLERS: usize = 1_000;
/// The time after which a connection that nobody has used is closed, when another one is opened.
const IDLE: Duration = Duration::from_secs(900);

/// Opens a target for a token of a client.
type OpenForToken =
    dyn Fn(Secret) -> Pin<Box<dyn Future<Output = Result<ConnectedTarget, Failure>> + Send>> + Send + Sync;

/// A target that is connected for each token of a client, because each has other rights there.
pub(super) struct CallerTargets {
    /// The text before the `_` of its names; it is empty if they have no prefix.
    prefix: String,
    open: Box<OpenForToken>,
    /// By the hash of the token.
    callers: Mutex<HashMap<[u8; 32], CallerSlot>>,
    attached: Mutex<Vec<ProviderChanges>>,
}

struct CallerSlot {
    target: Arc<OnceCell<Arc<ConnectedTarget>>>,
    used: Instant,
}

impl CallerTargets {
    /// Creates a target whose names have a prefix. `open` connects to it.
    pub(super) fn new<F>(prefix: &str, open: impl Fn(Secret) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<ConnectedTarget, Failure>> + Send + 'static,
    {
        Self {
            prefix: prefix.to_owned(),
            open: Box::new(move |token| Box::pin(open(token))),
            callers: Mutex::default(),
            attached: Mutex::default(),
        }
    }

    /// Returns the target for the token of a request, and connects to it if that was not done before.
    ///
    /// # Errors
    ///
    /// The request has no token, or the target cannot be connected.
    pub(super) async fn connected(&self, extensions: &Extensions) -> Result<Arc<ConnectedTarget>, String> {
        let token = extensions.get::<CallerToken>().map(CallerToken::secret).cloned();
        let token = token.ok_or("it needs a bearer token of the authorization server of the gateway")?;
        let cell = self.slot(key(&token));
        let opened = cell.get_or_try_init(|| async {
            let target = Arc::new((self.open)(token).await?);
            for changes in self.attached.lock().unwrap_or_else(PoisonError::into_inner).clone() {
                target.attach(changes);
            }
            Ok::<_, Failure>(target)
        });
        opened.await.cloned().map_err(|failure| failure.message)
    }

    /// Returns the target for the token of a request, if it is connected.
    pub(super) fn known(&self, extensions: &Extensions) -> Option<Arc<ConnectedTarget>> {
        let token = extensions.get::<CallerToken>()?.secret();
        self.callers().get(&key(token))?.target.get().cloned()
    }

    /// Returns the text before the `_` of its names.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the targets of all tokens.
    pub(super) fn all(&self) -> Vec<Arc<ConnectedTarget>> {
        self.callers().values().filter_map(|slot| slot.target.get().cloned()).collect()
    }

    /// Reports changes of all targets to a server.
    pub(super) fn attach(&self, changes: &ProviderChanges) {
        let mut attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        attached.retain(ProviderChanges::is_connected);
        attached.push(changes.clone());
        drop(attached);
        for target in self.all() {
            target.attach(changes.clone());
        }
    }

    fn slot(&self, key: [u8; 32]) -> Arc<OnceCell<Arc<ConnectedTarget>>> {
        let mut callers = self.callers();
        if !callers.contains_key(&key) {
            callers.retain(|_, slot| slot.used.elapsed() < IDLE);
            if callers.len() >= MAX_CALLERS {
                let oldest = callers.iter().min_by_key(|(_, slot)| slot.used).map(|(key, _)| *key);
                oldest.map(|oldest| callers.remove(&oldest));
            }
        }
        let slot =
            callers.entry(key).or_insert_with(|| CallerSlot { target: Arc::default(), used: Instant::now() });
        slot.used = Instant::now();
        slot.target.clone()
    }

    fn callers(&self) -> MutexGuard<'_, HashMap<[u8; 32], CallerSlot>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(token: &Secret) -> [u8; 32] {
    let mut key = [0; 32];
    key.copy_from_slice(digest(&SHA256, token.reveal().as_bytes()).as_ref());
    key
}
