use std::{fmt, io};

use pintle_proto::inputs::{KeyId, Seal, SealError};
use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey},
    error::Unspecified,
    hkdf::{HKDF_SHA256, KeyType, Prk, Salt},
};

use super::random;

/// The keys that seal what calls remember between their rounds: the first seals, all of them open.
///
/// One process makes its own, which is enough until a client's next round may reach another process. A fleet shares
/// them.
///
/// A fleet changes its key in two phases, because while a change is rolled out some processes have it and some do not:
///
/// 1. Every process is given the new key as one that opens, behind the old one, which goes on sealing.
/// 2. When all of them have it, the new key is put first. States that the old one sealed still open.
///
/// When the last of those has expired ([`Limits::state_ttl_ms`](crate::proto::Limits::state_ttl_ms) after the second phase is
/// through), the old key can go. Were the new key put first at once, a process that does not know it yet would refuse the
/// states that it sealed.
///
/// ```
/// use pintle::server::StateKeys;
///
/// let (old, new) = ([7; 32], [8; 32]);
/// let first_phase = StateKeys::from(old).and(StateKeys::from(new));
/// let second_phase = StateKeys::from(new).and(StateKeys::from(old));
/// ```
#[derive(Clone)]
pub struct StateKeys {
    keys: Vec<Key>,
    random: bool,
}

#[derive(Clone)]
struct Key {
    id: KeyId,
    /// The secret that the key of each seal is derived from.
    secret: Prk,
}

/// The length of the random salt of a seal, long enough that no salt repeats.
const SALT: usize = 24;

impl Key {
    /// Derives a key that is used once, with a zero nonce: twelve random bytes would be too few to be unique.
    fn once(&self, salt: &[u8]) -> Result<(LessSafeKey, Nonce), Unspecified> {
        let key: UnboundKey = self.secret.expand(&[b"state", salt], &CHACHA20_POLY1305)?.into();
        Ok((LessSafeKey::new(key), Nonce::assume_unique_for_key([0; 12])))
    }

    fn seal(&self, bound: &[u8], plain: &[u8]) -> Result<Vec<u8>, Unspecified> {
        self.seal_salted(random::bytes()?, bound, plain)
    }

    /// Returns a salt that depends on what is sealed, and on nothing else: equal values are sealed to equal bytes, and no salt is used
    /// for two values.
    fn stable_salt(&self, bound: &[u8], plain: &[u8]) -> Result<[u8; SALT], Unspecified> {
        let length = u64::try_from(bound.len()).map_err(|_| Unspecified)?.to_be_bytes();
        let mut salt = [0; SALT];
        self.secret.expand(&[b"stable salt", &length, bound, plain], SaltLength)?.fill(&mut salt)?;
        Ok(salt)
    }

    fn seal_salted(&self, salt: [u8; SALT], bound: &[u8], plain: &[u8]) -> Result<Vec<u8>, Unspecified> {
        let (key, nonce) = self.once(&salt)?;
        let mut sealed = [salt.as_slice(), plain].concat();
        let tag = key.seal_in_place_separate_tag(
            nonce,
            Aad::from(bound),
            sealed.get_mut(SALT..).unwrap_or_default(),
        )?;
        sealed.extend_from_slice(tag.as_ref());
        Ok(sealed)
    }

    fn open(&self, bound: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (salt, sealed) = sealed.split_at_checked(SALT)?;
        let (key, nonce) = self.once(salt).ok()?;
        let mut plain = sealed.to_vec();
        let length = key.open_in_place(nonce, Aad::from(bound), &mut plain).ok()?.len();
        plain.truncate(length);
        Some(plain)
    }
}

impl StateKeys {
    /// A key that nobody else has, and that ends with the process.
    ///
    /// # Panics
    ///
    /// If the system has no randomness to give: there is no safe way to go on.
    #[expect(clippy::expect_used, reason = "without randomness nothing can be sealed")]
    pub fn random() -> Self {
        let secret: [u8; 32] = random::bytes().expect("the system gives random bytes");
        Self { random: true, ..Self::from(secret) }
    }

    /// Adds keys that open, but do not seal.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.keys.extend(others.keys);
        self
    }

    /// Seals a value for a store that the processes of a fleet share. `bound` is where the value belongs: it can be opened only
    /// with the same.
    ///
    /// ```
    /// use pintle::server::StateKeys;
    ///
    /// let keys = StateKeys::from([7; 32]);
    /// let sealed = keys.seal_value("session 1", b"secret").expect("there are random numbers");
    /// assert_eq!(keys.open_value("session 1", &sealed).as_deref(), Some(&b"secret"[..]));
    /// assert_eq!(keys.open_value("session 2", &sealed), None);
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the system's random number generator failed.
    pub fn seal_value(&self, bound: &str, value: &[u8]) -> io::Result<Vec<u8>> {
        let key = self.key();
        let sealed = Seal::seal(self, key, value_bound(bound).as_bytes(), value).map_err(io::Error::other)?;
        Ok([&key.0[..], &sealed].concat())
    }

    /// Opens a value that [`seal_value`](Self::seal_value) has sealed. Returns `None` if it was sealed with another key, belongs
    /// elsewhere, or was changed.
    pub fn open_value(&self, bound: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (key, sealed) = sealed.split_first_chunk()?;
        Seal::open(self, KeyId(*key), value_bound(bound).as_bytes(), sealed)
    }

    /// Seals a value that clients get as a name. The same value is always sealed to the same bytes.
    pub(crate) fn seal_name(&self, bound: &str, value: &[u8]) -> Option<Vec<u8>> {
        let (key, bound) = (self.keys.first()?, name_bound(bound));
        let salt = key.stable_salt(bound.as_bytes(), value).ok()?;
        let sealed = key.seal_salted(salt, bound.as_bytes(), value).ok()?;
        Some([&key.id.0[..], &sealed].concat())
    }

    /// Opens a value that [`seal_name`](Self::seal_name) has sealed.
    pub(crate) fn open_name(&self, bound: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (key, sealed) = sealed.split_first_chunk()?;
        Seal::open(self, KeyId(*key), name_bound(bound).as_bytes(), sealed)
    }

    /// Whether the first key was made for this process alone.
    pub fn is_random(&self) -> bool {
        self.random
    }
}

/// Returns what a value is bound to: never what a state of a call is bound to.
fn value_bound(bound: &str) -> String {
    format!("stored value\0{bound}")
}

/// Returns what a name is bound to: never what anything else is bound to.
fn name_bound(bound: &str) -> String {
    format!("name\0{bound}")
}

/// A key of your own: 32 secret bytes that every process of a fleet is given.
impl From<[u8; 32]> for StateKeys {
    fn from(secret: [u8; 32]) -> Self {
        let secret = Salt::new(HKDF_SHA256, b"pintle").extract(&secret);
        // The key's name is made from it like the others: it tells keys apart and nothing about them.
        let mut id = [0; 8];
        let named = secret.expand(&[b"name"], Name).and_then(|name| name.fill(&mut id));
        debug_assert!(named.is_ok(), "eight bytes are not too many");
        Self { keys: vec![Key { id: KeyId(id), secret }], random: false }
    }
}

/// As long as the name of a key.
struct Name;

impl KeyType for Name {
    fn len(&self) -> usize {
        8
    }
}

/// As long as a salt.
struct SaltLength;

impl KeyType for SaltLength {
    fn len(&self) -> usize {
        SALT
    }
}

impl Seal for StateKeys {
    fn key(&self) -> KeyId {
        self.keys.first().map_or(KeyId([0; 8]), |key| key.id)
    }

    fn seal(&self, key: KeyId, bound: &[u8], plain: &[u8]) -> Result<Vec<u8>, SealError> {
        let key = self.keys.iter().find(|known| known.id == key);
        let key = key.ok_or_else(|| SealError::new("the key is not in the ring"))?;
        key.seal(bound, plain).map_err(|_| SealError::new("the operating system gives no random bytes"))
    }

    fn knows(&self, key: KeyId) -> bool {
        self.keys.iter().any(|known| known.id == key)
    }

    fn open(&self, key: KeyId, bound: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        self.keys.iter().find(|known| known.id == key)?.open(bound, sealed)
    }
}

impl fmt::Debug for StateKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateKeys").field("keys", &self.keys.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_state_is_refused_while_a_key_is_changed() {
        let (old, new) = (|| StateKeys::from([1; 32]), || StateKeys::from([2; 32]));
        let phases = [old(), old().and(new()), new().and(old()), new()];
        // During a phase, processes of the one before and of this one serve side by side.
        for pair in phases.windows(2) {
            for (sealer, opener) in [(&pair[0], &pair[1]), (&pair[1], &pair[0])] {
                let sealed = sealer.seal(sealer.key(), b"bound", b"plain").unwrap();
                let opened = opener.open(sealer.key(), b"bound", &sealed);
                assert_eq!(opened.is_some(), opener.knows(sealer.key()));
                // What the old key sealed has expired before the last phase.
                if sealer.key() == new().key() || opener.keys.len() == 2 {
                    assert_eq!(opened.as_deref(), Some(&b"plain"[..]));
                }
            }
        }
    }

    #[test]
    fn a_name_is_always_the_same_and_opens_where_it_belongs() {
        let keys = StateKeys::from([1; 32]);
        let sealed = keys.seal_name("ann", b"task 1").unwrap();
        assert_eq!(keys.seal_name("ann", b"task 1").unwrap(), sealed);
        assert_eq!(keys.open_name("ann", &sealed).unwrap(), b"task 1");
        assert_eq!(keys.open_name("bob", &sealed), None);
        assert_eq!(keys.open_value("ann", &sealed), None, "it is no stored value");
        // Nothing of the salt, the text or the tag is the same for another value or another owner.
        for other in [keys.seal_name("ann", b"task 2").unwrap(), keys.seal_name("annt", b"ask 1").unwrap()] {
            assert_ne!(other[8..16], sealed[8..16]);
            assert_ne!(other[other.len() - 16..], sealed[sealed.len() - 16..]);
        }
        let rotated = StateKeys::from([2; 32]).and(keys);
        assert_eq!(rotated.open_name("ann", &sealed).unwrap(), b"task 1");
    }

    #[test]
    fn a_key_that_is_not_in_the_ring_seals_nothing() {
        let error = StateKeys::from([1; 32]).seal(KeyId([0; 8]), b"bound", b"plain").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the state of the call could not be sealed: the key is not in the ring"
        );
    }

    #[test]
    fn what_one_key_seals_the_ring_opens() {
        let old = StateKeys::from([1; 32]);
        let sealed = old.seal(old.key(), b"bound", b"plain").unwrap();
        let ring = StateKeys::from([2; 32]).and(old.clone());
        assert_eq!(ring.open(old.key(), b"bound", &sealed).unwrap(), b"plain");
        assert_ne!(ring.key(), old.key());
        assert_eq!(ring.open(old.key(), b"other", &sealed), None);
        assert_eq!(StateKeys::from([2; 32]).open(old.key(), b"bound", &sealed), None);
        assert_eq!(ring.open(old.key(), b"bound", b"short"), None);
        assert_ne!(old.seal(old.key(), b"bound", b"plain").unwrap(), sealed, "no nonce twice");
    }
}
