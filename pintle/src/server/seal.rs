use std::fmt;

use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use pintle_proto::inputs::{KeyId, Seal};

/// The keys that seal what calls remember between their rounds: the first seals, all of them open.
///
/// One process makes its own, which is enough until a client's next round may reach another process. A fleet shares
/// them: put the new key first, keep the old one until the states it sealed have expired.
///
/// ```
/// use pintle::server::StateKeys;
///
/// let keys = StateKeys::random().and(StateKeys::from([7; 32]));
/// ```
#[derive(Clone)]
pub struct StateKeys {
    ring: Vec<Key>,
    random: bool,
}

#[derive(Clone)]
struct Key {
    id: KeyId,
    cipher: XChaCha20Poly1305,
}

impl StateKeys {
    /// A key that nobody else has, and that ends with the process.
    ///
    /// # Panics
    ///
    /// If the system has no randomness to give: there is no safe way to go on.
    #[expect(clippy::expect_used, reason = "without randomness nothing can be sealed")]
    pub fn random() -> Self {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).expect("the system gives random bytes");
        Self { random: true, ..Self::from(secret) }
    }

    /// Adds keys that open, but do not seal.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.ring.extend(others.ring);
        self
    }

    /// Whether the first key was made for this process alone.
    pub fn is_random(&self) -> bool {
        self.random
    }
}

/// A key of your own: 32 secret bytes that every process of a fleet is given.
impl From<[u8; 32]> for StateKeys {
    fn from(secret: [u8; 32]) -> Self {
        let cipher = XChaCha20Poly1305::new(&secret.into());
        // The key's name is what it makes of nothing: it tells keys apart and nothing about them.
        let named = cipher.encrypt(&XNonce::default(), b"".as_slice()).unwrap_or_default();
        let mut id = [0; 8];
        id.iter_mut().zip(named).for_each(|(to, from)| *to = from);
        Self { ring: vec![Key { id: KeyId(id), cipher }], random: false }
    }
}

impl Seal for StateKeys {
    fn key(&self) -> KeyId {
        self.ring.first().map_or(KeyId([0; 8]), |key| key.id)
    }

    fn seal(&self, key: KeyId, bound: &[u8], plain: &[u8]) -> Vec<u8> {
        let Some(key) = self.ring.iter().find(|known| known.id == key) else { return Vec::new() };
        let mut nonce = [0; 24];
        if getrandom::fill(&mut nonce).is_err() {
            return Vec::new();
        }
        let payload = Payload { msg: plain, aad: bound };
        let sealed = key.cipher.encrypt(&nonce.into(), payload).unwrap_or_default();
        [nonce.as_slice(), &sealed].concat()
    }

    fn open(&self, key: KeyId, bound: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let key = self.ring.iter().find(|known| known.id == key)?;
        let (nonce, sealed) = sealed.split_at_checked(24)?;
        let nonce: [u8; 24] = nonce.try_into().ok()?;
        key.cipher.decrypt(&nonce.into(), Payload { msg: sealed, aad: bound }).ok()
    }
}

impl fmt::Debug for StateKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateKeys").field("keys", &self.ring.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_key_seals_the_ring_opens() {
        let old = StateKeys::from([1; 32]);
        let sealed = old.seal(old.key(), b"bound", b"plain");
        let ring = StateKeys::from([2; 32]).and(old.clone());
        assert_eq!(ring.open(old.key(), b"bound", &sealed).unwrap(), b"plain");
        assert_ne!(ring.key(), old.key());
        assert_eq!(ring.open(old.key(), b"other", &sealed), None);
        assert_eq!(StateKeys::from([2; 32]).open(old.key(), b"bound", &sealed), None);
        assert_eq!(ring.open(old.key(), b"bound", b"short"), None);
        assert_ne!(old.seal(old.key(), b"bound", b"plain"), sealed, "no nonce twice");
    }
}
