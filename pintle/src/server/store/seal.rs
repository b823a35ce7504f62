//! The form of stored values: a byte with the format and whether the value is sealed, and the value.
//!
//! Processes of two versions may share a store while one is rolled out. A change of a value that readers of the format before can ignore,
//! such as a new member of a record, does not change the format. Any other needs two releases: the first one reads the new format
//! ([`NEWEST`]), the second one writes it ([`WRITTEN`]). A value of a format that is not known is an error, and never an absent value.

use std::{io, time::Duration};

use super::{Expected, GetOptions, Got, Key, Life, Put, Store, Stored};
use crate::server::StateKeys;

/// The formats that are read, and the one that is written.
const OLDEST: u8 = 0;
const NEWEST: u8 = 1;
const WRITTEN: u8 = 0;

/// The bit of the first byte that says that a value is sealed. The others are the format.
const SEALED: u8 = 1;

/// The seal of stored values, for implementations of stores: whoever can write to the database cannot forge a value, or read one.
#[derive(Clone, Debug, Default)]
pub struct Seal(Option<StateKeys>);

impl Seal {
    /// Creates the seal of these keys. Without keys, values are not sealed.
    pub fn new(keys: Option<StateKeys>) -> Self {
        Self(keys)
    }

    /// Returns whether there are keys.
    pub fn is_keyed(&self) -> bool {
        self.0.is_some()
    }

    /// Encodes a value. `bound` is where it belongs: it cannot be opened elsewhere.
    ///
    /// # Errors
    ///
    /// Returns an error if the system has no random numbers.
    pub fn encode(&self, bound: &str, value: &[u8]) -> io::Result<Vec<u8>> {
        self.encode_as(WRITTEN, bound, value)
    }

    fn encode_as(&self, format: u8, bound: &str, value: &[u8]) -> io::Result<Vec<u8>> {
        let Some(keys) = &self.0 else { return Ok([&[format << 1], value].concat()) };
        Ok([&[format << 1 | SEALED], &keys.seal_value(bound, value)?[..]].concat())
    }

    /// Decodes a value. With keys, a value that is not sealed is refused.
    ///
    /// # Errors
    ///
    /// Returns an error if the value has another format, or cannot be opened with the keys.
    pub fn decode(&self, bound: &str, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let refused = |reason: &str| io::Error::new(io::ErrorKind::InvalidData, reason);
        let Some((first, value)) = bytes.split_first() else {
            return Err(refused("a stored value is empty"));
        };
        let format = first >> 1;
        if !(OLDEST..=NEWEST).contains(&format) {
            let reason = format!(
                "a stored value has format {format}, and this version reads {OLDEST} to {NEWEST}: update this process, or the other ones"
            );
            return Err(refused(&reason));
        }
        match (&self.0, first & SEALED != 0) {
            (None, false) => Ok(value.to_vec()),
            (None, true) => Err(refused("a stored value is sealed: set the keys of the fleet")),
            (Some(keys), true) => keys
                .open_value(bound, value)
                .ok_or_else(|| refused("a stored value cannot be opened with the keys of this process")),
            (Some(_), false) => {
                Err(refused("a stored value is not sealed, and the keys of the fleet are set"))
            }
        }
    }
}

/// A store whose values are sealed, each under its key. Counters are not.
///
/// ```
/// use pintle::server::{StateKeys, store::{MemoryStore, Sealed}};
///
/// let store = Sealed::new(MemoryStore::new(), StateKeys::from([7; 32]));
/// ```
#[derive(Debug)]
pub struct Sealed<S> {
    store: S,
    seal: Seal,
}

impl<S: Store> Sealed<S> {
    /// Seals the values of a store with these keys.
    pub fn new(store: S, keys: StateKeys) -> Self {
        Self { store, seal: Seal::new(Some(keys)) }
    }
}

impl<S: Store> Store for Sealed<S> {
    fn get<'a>(&'a self, key: Key<'a>, how: GetOptions) -> Stored<'a, Got> {
        Stored::later(async move {
            Ok(match self.store.get(key, how).await? {
                Got::Value { version, value } => {
                    Got::Value { version, value: self.seal.decode(&key.to_string(), &value)? }
                }
                other => other,
            })
        })
    }

    fn put<'a>(&'a self, key: Key<'a>, at: Expected, value: &'a [u8], life: Life) -> Stored<'a, Put> {
        Stored::later(async move {
            let sealed = self.seal.encode(&key.to_string(), value)?;
            self.store.put(key, at, &sealed, life).await
        })
    }

    fn remove<'a>(&'a self, key: Key<'a>) -> Stored<'a, bool> {
        self.store.remove(key)
    }

    fn count<'a>(&'a self, key: Key<'a>, add: i64, life: Life) -> Stored<'a, i64> {
        self.store.count(key, add, life)
    }

    fn now(&self) -> Stored<'_, u64> {
        self.store.now()
    }

    fn lease(&self) -> Option<Duration> {
        self.store.lease()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_value_is_opened_where_it_belongs_and_nowhere_else() {
        let keyed = |byte: u8| Seal::new(Some(StateKeys::from([byte; 32])));
        let sealed = keyed(1).encode("here", b"value").unwrap();
        assert!(!sealed.windows(5).any(|part| part == b"value"));
        assert_eq!(keyed(1).decode("here", &sealed).unwrap(), b"value");
        assert!(keyed(1).decode("there", &sealed).is_err());
        assert!(keyed(2).decode("here", &sealed).is_err());
        assert!(Seal::default().decode("here", &sealed).is_err());
        let plain = Seal::default().encode("here", b"value").unwrap();
        assert_eq!(Seal::default().decode("here", &plain).unwrap(), b"value");
        assert!(keyed(1).decode("here", &plain).is_err(), "it may be forged");
        assert!(Seal::default().decode("here", b"").is_err());
    }

    #[test]
    fn the_format_before_is_read_and_one_that_is_not_known_is_named() {
        for seal in [Seal::default(), Seal::new(Some(StateKeys::from([1; 32])))] {
            for format in [OLDEST, WRITTEN, NEWEST] {
                let value = seal.encode_as(format, "here", b"value").unwrap();
                assert_eq!(seal.decode("here", &value).unwrap(), b"value");
            }
            let later = seal.encode_as(NEWEST + 1, "here", b"value").unwrap();
            let error = seal.decode("here", &later).unwrap_err();
            assert!(error.to_string().contains("has format 2, and this version reads 0 to 1"), "{error}");
        }
    }
}
