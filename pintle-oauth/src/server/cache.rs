use std::{
    collections::HashMap,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ring::digest::{SHA256, digest};
use tokio::time::Instant;

use super::principal::Principal;

/// Tokens in each of the two halves.
const MOST: usize = 2048;

/// Whose tokens are, for those that were found to be good a short while ago. Tokens themselves are not in it.
#[derive(Default)]
pub(super) struct Cache(Mutex<Halves>);

/// What is looked at often is in the new half. When that is full, it becomes the old one, and what was there is
/// forgotten.
#[derive(Default)]
struct Halves {
    new: HashMap<Digest, Known>,
    old: HashMap<Digest, Known>,
}

pub(super) type Digest = [u8; 32];

#[derive(Clone)]
struct Known {
    principal: Principal,
    until: Instant,
}

pub(super) fn digest_of(token: &str) -> Digest {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}

impl Cache {
    pub(super) fn find(&self, token: &Digest) -> Option<Principal> {
        let mut halves = self.lock();
        let known = match halves.new.get(token) {
            Some(known) => known.clone(),
            None => {
                let known = halves.old.remove(token)?;
                halves.put(*token, known.clone());
                known
            }
        };
        (known.until > Instant::now()).then_some(known.principal)
    }

    /// Remembers it for so long.
    pub(super) fn keep(&self, token: Digest, principal: &Principal, lifetime: Duration) {
        let known = Known { principal: principal.clone(), until: Instant::now() + lifetime };
        self.lock().put(token, known);
    }

    pub(super) fn clear(&self) {
        *self.lock() = Halves::default();
    }

    fn lock(&self) -> MutexGuard<'_, Halves> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Halves {
    fn put(&mut self, token: Digest, known: Known) {
        if self.new.len() >= MOST {
            self.old = mem::take(&mut self.new);
        }
        self.new.insert(token, known);
    }
}
