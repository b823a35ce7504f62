use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt, io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::{Expected, GetOptions, Got, Key, Life, Put, Space, Store, Stored};
use crate::server::clock;

/// A [`Store`] in the memory of one process.
///
/// It has limits: 8 MiB per principal and 64 MiB in total; values without a principal share one account without a limit of its own.
/// Above a limit those that expire first are dropped, of the principal that uses the most memory. From then on, keys that would
/// expire as early as those are [forgotten](Put::Forgotten), whether they were there or not: what was used once is not used again.
///
/// After a restart nothing is known of earlier values.
///
/// ```
/// use pintle::server::store::MemoryStore;
///
/// let store = MemoryStore::new().bytes(16 << 20).bytes_per_principal(1 << 20);
/// ```
pub struct MemoryStore {
    table: Mutex<Table>,
    bytes: usize,
    per_principal: usize,
    /// When it was created, by both clocks.
    start: (Instant, u64),
}

/// The text of a [`Key`].
type KeyText = Arc<str>;
type Owner = Option<Arc<str>>;
/// Values by their end, in milliseconds since the store was created, then by a number.
type Order = BTreeMap<(u64, u64), KeyText>;
/// Keys of a space that expire by then may have been there, and are refused.
type Floors = HashMap<Space, u64>;

#[derive(Default)]
struct Table {
    entries: HashMap<KeyText, StoredEntry>,
    ends: Order,
    shares: HashMap<Owner, Share>,
    /// The principals by the bytes that they use.
    largest: BTreeSet<(usize, Owner)>,
    bytes: usize,
    last: u64,
    floors: Floors,
}

/// The usage of one principal.
#[derive(Default)]
struct Share {
    bytes: usize,
    ends: Order,
    floors: Floors,
}

struct StoredEntry {
    version: u64,
    value: Vec<u8>,
    owner: Owner,
    end: (u64, u64),
    /// The space and the time of one that lives until then.
    until: Option<(Space, u64)>,
}

/// The bytes that a value is charged for besides its own and those of its key.
const ENTRY: usize = 384;
/// The number of expired values that each operation removes at most. It has to be more than one for the table to shrink.
const EXPIRE: usize = 64;

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        let start = (Instant::now(), clock::now());
        Self { table: Mutex::default(), bytes: 64 << 20, per_principal: 8 << 20, start }
    }

    /// Sets the limit of bytes in total. The default is 64 MiB.
    #[must_use]
    pub fn bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }

    /// Sets the limit of bytes per principal. The default is 8 MiB.
    #[must_use]
    pub fn bytes_per_principal(self, bytes: usize) -> Self {
        Self { per_principal: bytes, ..self }
    }

    /// Returns the number of values, also of those that have expired and are not removed yet.
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Returns whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[cfg(test)]
    pub(crate) fn names(&self) -> Vec<String> {
        self.lock().entries.keys().map(|name| name.to_string()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Nothing that may panic is called while it is held.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the milliseconds since the store was created. The clock of the system may be set back meanwhile.
    fn elapsed(&self) -> u64 {
        milliseconds(self.start.0.elapsed())
    }

    fn end(&self, life: Life) -> u64 {
        self.elapsed().saturating_add(match life {
            Life::Idle(idle) => milliseconds(idle),
            Life::Until(until) => until.saturating_sub(clock::now()),
        })
    }

    /// Changes a value: `change` returns the new one and its version, or why nothing is changed. `forgotten` is the answer for a key
    /// that may have been there.
    fn change<T>(
        &self,
        (key, life): (Key<'_>, Life),
        change: impl FnOnce(Option<&StoredEntry>) -> Result<(Vec<u8>, T), T>,
        forgotten: T,
    ) -> T {
        let (now, name) = (self.elapsed(), KeyText::from(key.to_string()));
        let mut table = self.lock();
        table.expire(now);
        table.expire_one(&name, now);
        let found = table.entries.get(&name);
        let (value, done) = match change(found) {
            Ok(changed) => changed,
            Err(refused) => return refused,
        };
        let version = found.map_or(1, |found| found.version.saturating_add(1));
        let until = match life {
            Life::Until(until) if found.is_none() && until <= table.floor(key).max(clock::now()) => {
                return forgotten;
            }
            Life::Until(until) => Some((key.space, until)),
            Life::Idle(_) => None,
        };
        let before = table.remove(&name);
        table.last += 1;
        let owner: Owner = key.owner.map(Into::into);
        let end = (self.end(life), table.last);
        table.insert(name, StoredEntry { version, value, owner: owner.clone(), end, until });
        if let Some(before) = before {
            table.release(&before.owner);
        }
        self.trim(&mut table, &owner);
        done
    }

    /// Drops values until the limits are met, first those of this principal.
    fn trim(&self, table: &mut Table, owner: &Owner) {
        let limit = if owner.is_some() { self.per_principal } else { self.bytes };
        while let Some(share) = table.shares.get(owner).filter(|share| share.bytes > limit) {
            let Some(name) = share.ends.values().next().cloned() else { break };
            table.evict(&name);
        }
        while table.bytes > self.bytes {
            let largest = table.largest.last().and_then(|(_, owner)| table.shares.get(owner));
            // If everybody has one, the first to expire is dropped.
            let ends = largest.map(|share| &share.ends).filter(|ends| ends.len() > 1).unwrap_or(&table.ends);
            let Some(name) = ends.values().next().cloned() else { break };
            table.evict(&name);
        }
    }
}

impl Table {
    fn floor(&self, key: Key<'_>) -> u64 {
        let share = self.shares.get(&key.owner.map(Arc::from)).map(|share| &share.floors);
        let floors = [Some(&self.floors), share];
        floors.into_iter().flatten().filter_map(|floors| floors.get(&key.space)).copied().max().unwrap_or(0)
    }

    fn insert(&mut self, name: KeyText, entry: StoredEntry) {
        let bytes = entry.bytes(&name);
        self.ends.insert(entry.end, name.clone());
        self.shares.entry(entry.owner.clone()).or_default().ends.insert(entry.end, name.clone());
        self.charge(&entry.owner, 0, bytes);
        self.entries.insert(name, entry);
    }

    fn remove(&mut self, name: &KeyText) -> Option<StoredEntry> {
        let entry = self.entries.remove(name)?;
        self.ends.remove(&entry.end);
        if let Some(share) = self.shares.get_mut(&entry.owner) {
            share.ends.remove(&entry.end);
        }
        self.charge(&entry.owner, entry.bytes(name), 0);
        Some(entry)
    }

    /// Removes what has expired. Nothing of it can be used again, even if the clock of the system is set back.
    fn expire(&mut self, now: u64) {
        for _ in 0..EXPIRE {
            let Some((_, name)) = self.ends.first_key_value().filter(|((end, _), _)| *end <= now) else {
                break;
            };
            let name = name.clone();
            self.expire_one(&name, now);
        }
    }

    fn expire_one(&mut self, name: &KeyText, now: u64) {
        if self.entries.get(name).is_some_and(|entry| entry.end.0 <= now)
            && let Some(entry) = self.remove(name)
        {
            self.release(&entry.owner);
            if let Some((space, until)) = entry.until {
                raise(&mut self.floors, space, until);
            }
        }
    }

    /// Drops a value that has not expired.
    fn evict(&mut self, name: &KeyText) {
        let Some(StoredEntry { until, owner, .. }) = self.remove(name) else { return };
        self.release(&owner);
        let Some((space, until)) = until else { return };
        let floors = self.shares.get_mut(&owner).map_or(&mut self.floors, |share| &mut share.floors);
        raise(floors, space, until);
    }

    /// Changes the bytes that a principal is charged for.
    fn charge(&mut self, owner: &Owner, less: usize, more: usize) {
        let share = self.shares.entry(owner.clone()).or_default();
        let before = share.bytes;
        share.bytes = (before + more).saturating_sub(less);
        self.bytes = (self.bytes + more).saturating_sub(less);
        let after = share.bytes;
        self.largest.remove(&(before, owner.clone()));
        if after > 0 {
            self.largest.insert((after, owner.clone()));
        }
    }

    /// Forgets a principal that has no value left.
    fn release(&mut self, owner: &Owner) {
        if self.shares.get(owner).is_some_and(|share| share.bytes == 0)
            && let Some(share) = self.shares.remove(owner)
        {
            // What it had dropped would expire before all that it has dropped since.
            share.floors.into_iter().for_each(|(space, floor)| raise(&mut self.floors, space, floor));
        }
    }
}

impl StoredEntry {
    fn bytes(&self, name: &str) -> usize {
        ENTRY + name.len() + self.value.len()
    }
}

fn count_of(value: &[u8]) -> i64 {
    value.try_into().map_or(0, i64::from_le_bytes)
}

fn raise(floors: &mut Floors, space: Space, until: u64) {
    let floor = floors.entry(space).or_default();
    *floor = until.max(*floor);
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Store for MemoryStore {
    fn get<'a>(&'a self, key: Key<'a>, how: GetOptions) -> Stored<'a, Got> {
        let (now, name) = (self.elapsed(), KeyText::from(key.to_string()));
        let end = how.prolong.map(|idle| self.end(Life::Idle(idle)));
        let mut table = self.lock();
        table.expire_one(&name, now);
        if let Some(end) = end
            && let Some(mut entry) = table.remove(&name)
        {
            entry.end.0 = end;
            table.insert(name.clone(), entry);
        }
        Stored::now(match table.entries.get(&name) {
            None => Got::None,
            Some(entry) if how.unless == Some(entry.version) => Got::Same,
            Some(entry) => Got::Value { version: entry.version, value: entry.value.clone() },
        })
    }

    fn put<'a>(&'a self, key: Key<'a>, at: Expected, value: &'a [u8], life: Life) -> Stored<'a, Put> {
        let change = |found: Option<&StoredEntry>| match (at, found) {
            (Expected::Absent, None) => Ok((value.to_vec(), Put::Done(1))),
            (Expected::Version(version), Some(found)) if found.version == version => {
                Ok((value.to_vec(), Put::Done(version.saturating_add(1))))
            }
            (_, Some(_)) => Err(Put::Other),
            (Expected::Version(_), None) => Err(Put::Gone),
        };
        Stored::now(self.change((key, life), change, Put::Forgotten))
    }

    fn remove<'a>(&'a self, key: Key<'a>) -> Stored<'a, bool> {
        let (now, name) = (self.elapsed(), KeyText::from(key.to_string()));
        let mut table = self.lock();
        table.expire_one(&name, now);
        let removed = table.remove(&name);
        if let Some(removed) = &removed {
            table.release(&removed.owner);
        }
        Stored::now(removed.is_some())
    }

    fn count<'a>(&'a self, key: Key<'a>, add: i64, life: Life) -> Stored<'a, i64> {
        let name = KeyText::from(key.to_string());
        let now = self.elapsed();
        let mut table = self.lock();
        table.expire_one(&name, now);
        if let Some(found) = table.entries.get_mut(&name) {
            let count = count_of(&found.value).saturating_add(add);
            found.value = count.to_le_bytes().to_vec();
            return Stored::now(count);
        }
        drop(table);
        let change = |found: Option<&StoredEntry>| {
            let count = found.map_or(0, |found| count_of(&found.value)).saturating_add(add);
            Ok((count.to_le_bytes().to_vec(), Some(count)))
        };
        match self.change((key, life), change, None) {
            Some(count) => Stored::now(count),
            None => Stored::later(async { Err(io::Error::other("what was counted may be forgotten")) }),
        }
    }

    fn now(&self) -> Stored<'_, u64> {
        Stored::now(self.start.1.saturating_add(self.elapsed()))
    }

    /// All users of it are in this process.
    fn lease(&self) -> Option<Duration> {
        None
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.lock();
        f.debug_struct("MemoryStore")
            .field("values", &table.entries.len())
            .field("bytes", &table.bytes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::{
        pin::pin,
        task::{Context, Poll, Waker},
    };

    use proptest::prelude::*;

    use super::*;

    fn ready<T>(stored: Stored<'_, T>) -> T {
        match pin!(stored).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => done.unwrap(),
            Poll::Pending => panic!("it waits"),
        }
    }

    /// A time that is that far ahead.
    fn ahead(minutes: u64) -> Life {
        Life::Until(clock::now() / 60_000 * 60_000 + minutes * 60_000)
    }

    fn add(store: &MemoryStore, id: &str, owner: Option<&str>, life: Life, bytes: usize) -> Put {
        let key = Key::new(Space::State, id).owned_by(owner);
        ready(store.put(key, Expected::Absent, &vec![0; bytes], life))
    }

    fn is_there(store: &MemoryStore, id: &str) -> bool {
        ready(store.get(Key::new(Space::State, id), GetOptions::default())) != Got::None
    }

    /// All that is counted is there, and nothing else.
    fn check(store: &MemoryStore) {
        let table = store.lock();
        let bytes: usize = table.entries.iter().map(|(name, entry)| entry.bytes(name)).sum();
        assert_eq!(table.bytes, bytes);
        assert!(table.bytes <= store.bytes, "{} of {}", table.bytes, store.bytes);
        assert_eq!(table.shares.values().map(|share| share.bytes).sum::<usize>(), bytes);
        assert_eq!(table.largest.len(), table.shares.len());
        assert_eq!(table.ends.len(), table.entries.len());
        let listed: usize = table.shares.values().map(|share| share.ends.len()).sum();
        assert_eq!(listed, table.entries.len());
    }

    #[test]
    fn whoever_has_most_loses_what_expires_first_and_it_is_not_put_again() {
        let store = MemoryStore::new().bytes(100_000).bytes_per_principal(20_000);
        assert_eq!(add(&store, "bob", Some("bob"), ahead(10), 1000), Put::Done(1));
        for (number, who) in (0..1000).zip([Some("eve"), Some("mallory"), None].into_iter().cycle()) {
            assert_eq!(add(&store, &number.to_string(), who, ahead(20 + number), 500), Put::Done(1));
        }
        check(&store);
        assert!(is_there(&store, "bob") && is_there(&store, "999") && !is_there(&store, "0"));
        assert!(store.lock().shares[&Some("eve".into())].bytes <= 20_000);
        assert_eq!(add(&store, "0", Some("eve"), ahead(20), 0), Put::Forgotten);
        assert_eq!(add(&store, "new", Some("eve"), ahead(21), 0), Put::Forgotten, "as early as those");
        assert_eq!(add(&store, "new", Some("eve"), ahead(2000), 0), Put::Done(1));
        assert_eq!(add(&store, "other", Some("bob"), ahead(20), 0), Put::Done(1), "nobody pays for others");
    }

    #[test]
    fn many_who_have_one_each_lose_the_first_to_expire() {
        let store = MemoryStore::new().bytes(100 * ENTRY);
        for number in 0..1000 {
            add(&store, &number.to_string(), Some(&format!("user {}", 1000 - number)), ahead(10 + number), 0);
        }
        check(&store);
        assert!(is_there(&store, "999"));
        assert_eq!(add(&store, "0", Some("user 1000"), ahead(10), 0), Put::Forgotten);
        assert_eq!(add(&store, "new", Some("new"), ahead(10 + 999), 0), Put::Done(1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_expired_leaves_room_and_is_not_put_again() {
        let store = MemoryStore::new();
        for number in 0..1000 {
            add(&store, &number.to_string(), None, ahead(2), 10);
        }
        let used = ahead(2);
        tokio::time::advance(Duration::from_secs(180)).await;
        // The clock of the system has not moved: as if it had been set back.
        assert_eq!(add(&store, "1", None, used, 10), Put::Forgotten);
        for number in 0..20 {
            add(&store, &format!("new {number}"), None, ahead(10), 0);
        }
        assert_eq!(store.len(), 20);
        check(&store);
    }

    #[tokio::test(start_paused = true)]
    async fn a_counter_keeps_its_life_and_begins_anew_after_it() {
        let store = MemoryStore::new();
        let count = || ready(store.count(Key::new(Space::Seen, "a"), 1, Life::Idle(Duration::from_secs(60))));
        assert_eq!((count(), count()), (1, 2));
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(count(), 3);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(count(), 1);
        let over = store.count(Key::new(Space::Seen, "b"), 1, Life::Until(1));
        assert!(over.await.is_err(), "it may have been counted");
    }

    proptest! {
        /// What was put until a time is not put again, whatever is done with others and however little room there is.
        #[test]
        fn nothing_is_put_twice(steps in prop::collection::vec((0_u64..12, 0_usize..900), 1..120)) {
            let store = MemoryStore::new().bytes(4000).bytes_per_principal(2000);
            let lives: Vec<_> = (0..12).map(|id| ahead(10 + id)).collect();
            let mut done = [false; 12];
            for (id, bytes) in steps {
                let at = usize::try_from(id).unwrap();
                let who = [None, Some("ann"), Some("bob")][at % 3];
                let put = add(&store, &id.to_string(), who, lives[at], bytes);
                prop_assert!(!(done[at] && put == Put::Done(1)), "{put:?}");
                done[at] |= put == Put::Done(1);
                check(&store);
            }
        }
    }

    #[tokio::test]
    async fn a_value_that_is_prolonged_alone_refuses_no_state_of_others() {
        let store = MemoryStore::new().bytes_per_principal(1_000);
        let until = clock::now() + 1_000_000;
        let idle = Life::Idle(Duration::from_secs(2_000));
        let key = |space, id, owner| Key::new(space, id).owned_by(Some(owner));
        store.put(key(Space::State, "s", "ann"), Expected::Absent, b"", Life::Until(until)).await.unwrap();
        for id in ["x", "y"] {
            store.put(key(Space::Session, id, "ann"), Expected::Absent, b"", idle).await.unwrap();
        }
        store.remove(key(Space::Session, "y", "ann")).await.unwrap();
        let prolong = GetOptions::default().prolong(Duration::from_secs(2_000));
        store.get(key(Space::Session, "x", "ann"), prolong).await.unwrap();
        let put = |owner| store.put(key(Space::State, "t", owner), Expected::Absent, b"", Life::Until(until));
        assert_eq!(put("ann").await.unwrap(), Put::Forgotten);
        assert_eq!(put("bob").await.unwrap(), Put::Done(1));
    }
}
