//! The store of what processes share: sessions, the uses of call states, values that are used once, and rates.
//!
//! A [`Store`] has values under keys, and changes a value only if it has the version that was read. Nothing else is asked of a
//! database, so one implementation of the trait serves [sessions](crate::server::Server), the
//! [replay guard](crate::Server::replay_store), [rates](crate::server::Rules::share_rates) and the proofs of `pintle-oauth`.
//! [`MemoryStore`] is the store of one process, and `pintle-redis` has one for several. For another database, implement the
//! trait, and run `pintle_testing::kits::store::check` on it.

mod memory;
mod seal;
mod stored;
#[cfg(test)]
mod watched;

use std::{fmt, sync::Arc, time::Duration};

pub use memory::MemoryStore;
pub use seal::{Seal, Sealed};
pub use stored::Stored;
#[cfg(test)]
pub(crate) use watched::WatchedStore;

/// A store of values that processes share.
///
/// All methods may be called concurrently. A store that cannot be reached returns an error, and never the answer that a key is not
/// there. If a change was made and its reply is lost, the error says so little that the caller reads the key again.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Returns the value of a key. With [`GetOptions::prolong`], it expires that much later than now: that is used for values whose life
    /// is [idle](Life::Idle).
    fn get<'a>(&'a self, key: Key<'a>, how: GetOptions) -> Stored<'a, Got>;

    /// Puts a value under a key if that is as expected. Of concurrent changes that expect the same, one is made.
    ///
    /// The version of a new value is 1, and one more with each change. It has a new life, as given. A value that lives until a time
    /// that has passed, by the clock of the store, is not put: see [`Put::Forgotten`].
    fn put<'a>(&'a self, key: Key<'a>, at: Expected, value: &'a [u8], life: Life) -> Stored<'a, Put>;

    /// Removes a key. Returns `false` if it is not there. What is put under it later begins with version 1 again.
    fn remove<'a>(&'a self, key: Key<'a>) -> Stored<'a, bool>;

    /// Adds to a counter, atomically, and returns its new value. A counter that is not there is 0, and gets this life; later
    /// additions do not change its life. It is an error if that life is over, as for [`Put::Forgotten`].
    ///
    /// The keys of counters are used with no other method.
    fn count<'a>(&'a self, key: Key<'a>, add: i64, life: Life) -> Stored<'a, i64>;

    /// Returns the clock of the store, in milliseconds of the Unix epoch.
    fn now(&self) -> Stored<'_, u64>;

    /// Returns the time after which a process that is silent is taken to be gone: others take over the calls that it was running.
    /// `None` if all users of the store are in one process, and end with it. The default is 15 seconds.
    fn lease(&self) -> Option<Duration> {
        Some(Duration::from_secs(15))
    }
}

impl<S: Store + ?Sized> Store for Arc<S> {
    fn get<'a>(&'a self, key: Key<'a>, how: GetOptions) -> Stored<'a, Got> {
        (**self).get(key, how)
    }

    fn put<'a>(&'a self, key: Key<'a>, at: Expected, value: &'a [u8], life: Life) -> Stored<'a, Put> {
        (**self).put(key, at, value, life)
    }

    fn remove<'a>(&'a self, key: Key<'a>) -> Stored<'a, bool> {
        (**self).remove(key)
    }

    fn count<'a>(&'a self, key: Key<'a>, add: i64, life: Life) -> Stored<'a, i64> {
        (**self).count(key, add, life)
    }

    fn now(&self) -> Stored<'_, u64> {
        (**self).now()
    }

    fn lease(&self) -> Option<Duration> {
        (**self).lease()
    }
}

/// The key of a value.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Key<'a> {
    /// The kind of the value. Equal ids in different spaces are different keys.
    pub space: Space,
    /// The id, which may have any character.
    pub id: &'a str,
    /// The principal to whom the value is charged, if there is one. It is not part of the key.
    pub owner: Option<&'a str>,
}

impl<'a> Key<'a> {
    /// Creates a key.
    pub fn new(space: Space, id: &'a str) -> Self {
        Self { space, id, owner: None }
    }

    /// Sets the principal to whom the value is charged.
    #[must_use]
    pub fn owned_by(self, owner: Option<&'a str>) -> Self {
        Self { owner, ..self }
    }
}

/// Writes the space and the id, which differ for different keys.
impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.space.as_str(), self.id)
    }
}

/// The kind of a value of a store.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Space {
    /// The record of a session.
    Session,
    /// The use of a call state.
    State,
    /// A value that is used once.
    Nonce,
    /// A bucket of a rate.
    Rate,
    /// The number of times that a state of a server behind was seen.
    Seen,
    /// The sign of life of a process.
    Lease,
}

impl Space {
    /// Returns the name of the space, in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::State => "state",
            Self::Nonce => "nonce",
            Self::Rate => "rate",
            Self::Seen => "seen",
            Self::Lease => "lease",
        }
    }
}

/// How a value is read.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct GetOptions {
    /// The time from now after which the value expires. Without it, reading does not change its expiry.
    pub prolong: Option<Duration>,
    /// The version that the caller has: a value of this version is [`Got::Same`].
    pub unless: Option<u64>,
}

impl GetOptions {
    /// Sets the time from now after which the value expires.
    #[must_use]
    pub fn prolong(self, life: Duration) -> Self {
        Self { prolong: Some(life), ..self }
    }

    /// Sets the version that the caller has.
    #[must_use]
    pub fn unless(self, version: Option<u64>) -> Self {
        Self { unless: version, ..self }
    }
}

/// The result of [`Store::get`].
#[expect(clippy::exhaustive_enums, reason = "a comparison has no other result")]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Got {
    /// The key is not there.
    None,
    /// The value has the version that the caller has.
    Same,
    /// The value.
    Value {
        /// How often it was put.
        version: u64,
        /// The bytes.
        value: Vec<u8>,
    },
}

/// The state of a key that a change expects.
#[expect(clippy::exhaustive_enums, reason = "a key is there or not")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Expected {
    /// The key is not there.
    Absent,
    /// The value has this version.
    Version(u64),
}

/// When a value expires.
#[expect(clippy::exhaustive_enums, reason = "a value expires by its use or by the clock")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Life {
    /// This long after it was put or prolonged.
    Idle(Duration),
    /// At this time, in milliseconds of the Unix epoch.
    Until(u64),
}

/// The result of [`Store::put`].
#[expect(clippy::exhaustive_enums, reason = "a comparison has no other result")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Put {
    /// The value is stored with this version.
    Done(u64),
    /// The key is there and was to be absent, or its value has another version. It is unchanged.
    Other,
    /// The key is not there, and nothing was put.
    Gone,
    /// The life of the value is over, or the store has dropped values of that life to make room: the key may have been there.
    Forgotten,
}
