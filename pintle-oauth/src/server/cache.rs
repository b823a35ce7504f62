use std::{
    collections::HashMap,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ring::digest::{Context, SHA256};
use tokio::time::Instant;

use super::token::Token;

/// The limit of tokens in each of the two halves.
const MAX_ENTRIES: usize = 1024;

/// Recent results of checking tokens, by digest. The tokens themselves are not stored.
pub(super) struct Cache<T>(Mutex<Halves<T>>);

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// Two generations of entries. Entries in use are in the new one. When it is full, it becomes the old one, whose entries are
/// dropped.
struct Halves<T> {
    new: HashMap<Digest, CacheEntry<T>>,
    old: HashMap<Digest, CacheEntry<T>>,
}

impl<T> Default for Halves<T> {
    fn default() -> Self {
        Self { new: HashMap::new(), old: HashMap::new() }
    }
}

pub(super) type Digest = [u8; 32];

#[derive(Clone)]
struct CacheEntry<T> {
    found: T,
    until: Instant,
}

/// Returns the digest of a token and its resource: one verifier may serve several resources.
pub(super) fn digest_of(token: &Token) -> Digest {
    let mut context = Context::new(&SHA256);
    context.update(token.reveal().as_bytes());
    context.update(b" ");
    context.update(token.resource().as_bytes());
    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.finish().as_ref());
    bytes
}

impl<T: Clone> Cache<T> {
    pub(super) fn find(&self, token: &Digest) -> Option<T> {
        let mut halves = self.lock();
        let known = match halves.new.get(token) {
            Some(known) => known.clone(),
            None => {
                let known = halves.old.remove(token)?;
                halves.put(*token, known.clone());
                known
            }
        };
        (known.until > Instant::now()).then_some(known.found)
    }

    /// Stores a result for this long.
    pub(super) fn keep(&self, token: Digest, found: &T, lifetime: Duration) {
        let known = CacheEntry { found: found.clone(), until: Instant::now() + lifetime };
        self.lock().put(token, known);
    }

    /// Whether there is an entry, even an expired one.
    pub(super) fn was_kept(&self, token: &Digest) -> bool {
        let halves = self.lock();
        halves.new.contains_key(token) || halves.old.contains_key(token)
    }

    pub(super) fn forget(&self, token: &Digest) {
        let mut halves = self.lock();
        halves.new.remove(token);
        halves.old.remove(token);
    }

    pub(super) fn clear(&self) {
        *self.lock() = Halves::default();
    }

    fn lock(&self) -> MutexGuard<'_, Halves<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Halves<T> {
    fn put(&mut self, token: Digest, known: CacheEntry<T>) {
        if self.new.len() >= MAX_ENTRIES {
            self.old = mem::take(&mut self.new);
        }
        self.new.insert(token, known);
    }
}
