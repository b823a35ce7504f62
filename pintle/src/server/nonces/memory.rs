use std::{
    collections::{BTreeSet, HashSet},
    future::ready,
    io,
    sync::{Mutex, PoisonError},
};

use super::{NonceFuture, NonceStore};
use crate::server::clock::now;

/// The limit of values, of about 150 bytes each.
const MAX_NONCES: usize = 1 << 18;

/// The time in seconds for which a value is known after its expiry: clocks differ.
const MARGIN: u64 = 60;

/// A [`NonceStore`] of one process. At its limit, which is 262,144 values, it refuses more until some have expired.
///
/// ```
/// use pintle::server::{MemoryNonceStore, NonceStore as _};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// let nonces = MemoryNonceStore::new();
/// assert!(nonces.first_use(&[7; 32], u64::MAX).await?);
/// assert!(!nonces.first_use(&[7; 32], u64::MAX).await?);
/// # Ok(()) }
/// ```
#[derive(Debug, Default)]
pub struct MemoryNonceStore(Mutex<Nonces>);

#[derive(Debug, Default)]
struct Nonces {
    used: HashSet<[u8; 32]>,
    /// Their expiries, the earliest first.
    expiries: BTreeSet<(u64, [u8; 32])>,
}

impl MemoryNonceStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Nonces {
    fn first_use(&mut self, nonce: &[u8; 32], expires: u64, now: u64) -> io::Result<bool> {
        while let Some((expiry, expired)) = self.expiries.first().copied()
            && expiry < now
        {
            self.expiries.pop_first();
            self.used.remove(&expired);
        }
        if self.used.contains(nonce) {
            return Ok(false);
        }
        if self.used.len() >= MAX_NONCES {
            return Err(io::Error::other("too many values were used: try again later"));
        }
        self.used.insert(*nonce);
        self.expiries.insert((expires.saturating_add(MARGIN), *nonce));
        Ok(true)
    }
}

impl NonceStore for MemoryNonceStore {
    fn first_use<'a>(&'a self, nonce: &'a [u8; 32], expires: u64) -> NonceFuture<'a> {
        let mut nonces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = nonces.first_use(nonce, expires, now() / 1000);
        Box::pin(ready(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_expired_leaves_room_and_nothing_else_is_forgotten() {
        let mut nonces = Nonces::default();
        assert!(nonces.first_use(&[1; 32], 100, 50).unwrap());
        assert!(nonces.first_use(&[2; 32], 1_000, 50).unwrap());
        assert!(!nonces.first_use(&[1; 32], 100, 100 + MARGIN).unwrap());
        assert!(
            nonces.first_use(&[1; 32], 100, 101 + MARGIN).unwrap(),
            "whoever checks the expiry refuses it"
        );
        assert!(!nonces.first_use(&[2; 32], 1_000, 101 + MARGIN).unwrap());
        assert_eq!(nonces.used.len(), nonces.expiries.len());
    }

    #[test]
    fn a_full_store_refuses() {
        let mut nonces = Nonces::default();
        let nonce = |n: usize| {
            let mut nonce = [0; 32];
            nonce[..8].copy_from_slice(&n.to_be_bytes());
            nonce
        };
        for n in 0..MAX_NONCES {
            nonces.first_use(&nonce(n), 10, 0).unwrap();
        }
        assert!(nonces.first_use(&nonce(MAX_NONCES), 10, 0).is_err());
        assert!(!nonces.first_use(&nonce(3), 10, 0).unwrap());
        assert!(nonces.first_use(&nonce(MAX_NONCES), 1_000, 11 + MARGIN).unwrap());
        assert_eq!(nonces.used.len(), 1);
    }
}
