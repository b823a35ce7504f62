use std::{
    collections::HashMap,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ring::digest::{Context, SHA256};
use tokio::time::Instant;

use super::token::Token;

/// Tokens in each of the two halves.
const MOST: usize = 1024;

/// What was found out about tokens a short while ago: whose they are, or why they are no good. Tokens themselves are not in
/// it.
pub(super) struct Cache<T>(Mutex<Halves<T>>);

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// What is looked at often is in the new half. When that is full, it becomes the old one, and what was there is
/// forgotten.
struct Halves<T> {
    new: HashMap<Digest, Known<T>>,
    old: HashMap<Digest, Known<T>>,
}

impl<T> Default for Halves<T> {
    fn default() -> Self {
        Self { new: HashMap::new(), old: HashMap::new() }
    }
}

pub(super) type Digest = [u8; 32];

#[derive(Clone)]
struct Known<T> {
    found: T,
    until: Instant,
}

/// What a token is remembered by, together with what it was found to be for: one verifier may serve several resources.
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

    /// Remembers it for so long.
    pub(super) fn keep(&self, token: Digest, found: &T, lifetime: Duration) {
        let known = Known { found: found.clone(), until: Instant::now() + lifetime };
        self.lock().put(token, known);
    }

    /// Whether it is remembered, or was until a while ago.
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
    fn put(&mut self, token: Digest, known: Known<T>) {
        if self.new.len() >= MOST {
            self.old = mem::take(&mut self.new);
        }
        self.new.insert(token, known);
    }
}
