use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use pintle_types::{RawObject, method};

use crate::Change;

/// A bounded cache of results, for as long as the server allows.
///
/// Time is an argument, in milliseconds of any monotonic clock. A result is returned only while it is fresh, even if a
/// refetch has failed; a private one only to the principal that requested it.
///
/// ```
/// use pintle_proto::client::{Cache, Change};
///
/// let mut cache = Cache::new(100, 1 << 20);
/// let params = r#"{"_meta":{"progressToken":7}}"#.parse()?;
/// let ticket = cache.ticket();
/// cache.store("tools/list", &params, "alice", ticket, &r#"{"tools":[],"ttlMs":1000}"#.parse()?, 5_000);
///
/// let other = r#"{"_meta":{"progressToken":8}}"#.parse()?;
/// assert!(cache.fresh("tools/list", &other, "alice", 5_999).is_some());
/// assert!(cache.fresh("tools/list", &other, "bob", 5_999).is_none());
/// cache.forget(&Change::Tools);
/// assert!(cache.fresh("tools/list", &other, "alice", 5_999).is_none());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug)]
pub struct Cache {
    entries: HashMap<Arc<Key>, Entry>,
    /// Keys by last use: the least recently used entry is evicted first.
    order: BTreeMap<u64, Arc<Key>>,
    /// A logical clock that orders uses, tickets and invalidations.
    tick: u64,
    /// The tick of the last invalidation, by method.
    forgotten: BTreeMap<&'static str, u64>,
    /// The tick of the last [`clear`](Cache::clear).
    cleared: u64,
    bytes: usize,
    max_entries: usize,
    max_bytes: usize,
}

/// The logical time at which a request was sent.
///
/// A result that was requested before an invalidation may be stale, and is not stored.
#[derive(Clone, Copy, Debug)]
pub struct CacheTicket(u64);

/// Returns the static name of a method whose results are cacheable.
fn cacheable(method: &str) -> Option<&'static str> {
    method::find(method).filter(|row| row.cacheable).map(|row| row.name)
}

#[derive(Debug, Eq, Hash, PartialEq)]
struct Key {
    method: &'static str,
    /// The params without `_meta`, sorted by name.
    params: Box<str>,
    /// The principal of a private result; `None` for a public one.
    principal: Option<Box<str>>,
}

#[derive(Debug)]
struct Entry {
    result: RawObject,
    /// The time from which the result is stale.
    until: u64,
    used: u64,
    /// The URI, if the result is that of `resources/read`.
    uri: Option<Box<str>>,
}

impl Cache {
    /// Creates a cache with a maximum number of results, and a maximum size in bytes.
    pub fn new(max_entries: usize, max_bytes: usize) -> Self {
        Self {
            entries: HashMap::new(),
            order: BTreeMap::new(),
            tick: 0,
            forgotten: BTreeMap::new(),
            cleared: 0,
            bytes: 0,
            max_entries,
            max_bytes,
        }
    }

    /// Returns whether results of this method are ever cached.
    pub fn keeps(method: &str) -> bool {
        cacheable(method).is_some()
    }

    /// Returns a ticket for a request, to be taken when it is sent and passed to [`store`](Self::store) with its
    /// result.
    pub fn ticket(&mut self) -> CacheTicket {
        CacheTicket(self.next_tick())
    }

    /// Returns a fresh result for the same method, params and principal.
    pub fn fresh(
        &mut self,
        method: &str,
        params: &RawObject,
        principal: &str,
        now: u64,
    ) -> Option<&RawObject> {
        let mut key = Key::new(method, params, Some(principal))?;
        if self.entries.get(&key).is_none_or(|own| now >= own.until) {
            // A stale private entry does not hide a public one.
            self.remove(&key);
            key.principal = None;
        }
        let used = self.next_tick();
        let (key, entry) = self.entries.get_key_value(&key)?;
        let key = Arc::clone(key);
        if now >= entry.until {
            self.remove(&key);
            return None;
        }
        let entry = self.entries.get_mut(&key)?;
        self.order.remove(&entry.used);
        entry.used = used;
        self.order.insert(used, key);
        Some(&entry.result)
    }

    /// Stores a complete result, if its method, its params and its `ttlMs` allow it. `now` is the time at which it was
    /// received.
    ///
    /// Only results of the first round may be stored: see [`Rounds::may_cache`](super::Rounds::may_cache).
    pub fn store(
        &mut self,
        method: &str,
        params: &RawObject,
        principal: &str,
        ticket: CacheTicket,
        result: &RawObject,
        now: u64,
    ) {
        let Some(mut key) = Key::new(method, params, Some(principal)) else { return };
        if !matches!(result.get("resultType"), None | Some("\"complete\"")) {
            return;
        }
        let since = self.forgotten.get(key.method).copied().unwrap_or_default().max(self.cleared);
        if ticket.0 < since {
            return;
        }
        // An existing entry is older, even if the new result may not be stored or has another scope.
        self.remove(&key);
        key.principal = None;
        self.remove(&key);

        let ttl = result.decode_member::<i64>("ttlMs").ok().flatten().unwrap_or(0);
        let Ok(ttl @ 1..) = u64::try_from(ttl) else { return };
        if result.get("cacheScope") != Some("\"public\"") {
            key.principal = Some(principal.into());
        }
        let uri =
            if method == method::RESOURCES_READ { params.decode_member("uri").ok().flatten() } else { None };
        let entry =
            Entry { result: result.clone(), until: now.saturating_add(ttl), used: self.next_tick(), uri };
        let size = size(&key, &entry);
        if size > self.max_bytes || self.max_entries == 0 {
            return;
        }
        while self.entries.len() >= self.max_entries || self.bytes + size > self.max_bytes {
            let Some(oldest) = self.order.first_key_value().map(|(_, key)| Arc::clone(key)) else { return };
            self.remove(&oldest);
        }
        let key = Arc::new(key);
        self.bytes += size;
        self.order.insert(entry.used, Arc::clone(&key));
        self.entries.insert(key, entry);
    }

    /// Drops the entries that a change has made stale, and refuses results that were requested before it.
    pub fn forget(&mut self, change: &Change) {
        match change {
            Change::Tools => self.forget_all(method::TOOLS_LIST),
            Change::Prompts => self.forget_all(method::PROMPTS_LIST),
            Change::Resources => {
                self.forget_all(method::RESOURCES_LIST);
                self.forget_all(method::RESOURCES_TEMPLATES_LIST);
            }
            Change::Resource(uri) => {
                self.forget_where(method::RESOURCES_READ, |entry| entry.uri.as_ref() == Some(uri))
            }
        }
    }

    /// Drops every entry of a method, for example the pages of a list whose cursor has become invalid.
    pub fn forget_all(&mut self, method: &str) {
        self.forget_where(method, |_| true);
    }

    /// Drops all entries, because the server was replaced or restarted.
    pub fn clear(&mut self) {
        let now = self.next_tick();
        self.forgotten.clear();
        self.cleared = now;
        self.entries.clear();
        self.order.clear();
        self.bytes = 0;
    }

    fn forget_where(&mut self, method: &str, matches: impl Fn(&Entry) -> bool) {
        let Some(method) = cacheable(method) else { return };
        let now = self.next_tick();
        self.forgotten.insert(method, now);
        let stale = self.entries.iter().filter(|(key, entry)| key.method == method && matches(entry));
        let stale: Vec<_> = stale.map(|(key, _)| Arc::clone(key)).collect();
        for key in stale {
            self.remove(&key);
        }
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.order.remove(&entry.used);
            self.bytes -= size(key, &entry);
        }
    }

    fn next_tick(&mut self) -> u64 {
        self.tick += 1;
        self.tick
    }
}

impl Key {
    /// Creates the key of a request, or returns `None` if its results are never cached.
    fn new(method: &str, params: &RawObject, principal: Option<&str>) -> Option<Self> {
        let method = cacheable(method)?;
        let mut members: Vec<_> = params.iter().filter(|(name, _)| *name != "_meta").collect();
        if members.iter().any(|(name, _)| matches!(*name, "inputResponses" | "requestState")) {
            return None;
        }
        members.sort_unstable();
        let mut text = String::new();
        for (name, value) in members {
            // Names are printed and values are JSON, so different members never produce the same text.
            text.extend(["\"", name, "\":", value, "\n"]);
        }
        Some(Self { method, params: text.into(), principal: principal.map(Into::into) })
    }
}

fn size(key: &Key, entry: &Entry) -> usize {
    // The approximate overhead of the maps.
    const OVERHEAD: usize = 200;
    let uri = entry.uri.as_deref().map_or(0, str::len);
    entry.result.as_str().len()
        + key.params.len()
        + key.principal.as_deref().map_or(0, str::len)
        + uri
        + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> RawObject {
        text.parse().unwrap()
    }

    fn store(cache: &mut Cache, method: &str, params: &str, who: &str, result: &str, now: u64) {
        let ticket = cache.ticket();
        cache.store(method, &object(params), who, ticket, &object(result), now);
    }

    fn fresh(cache: &mut Cache, method: &str, params: &str, who: &str, now: u64) -> Option<String> {
        cache.fresh(method, &object(params), who, now).map(|result| result.as_str().to_owned())
    }

    const SECOND: &str = r#"{"tools":[],"ttlMs":1000,"cacheScope":"private"}"#;
    const SHARED: &str = r#"{"tools":[1],"ttlMs":1000,"cacheScope":"public"}"#;

    #[test]
    fn a_result_is_served_until_its_time_is_up_and_not_a_moment_longer() {
        let mut cache = Cache::new(9, 9_999);
        store(&mut cache, "tools/list", "{}", "a", SECOND, 10);
        assert_eq!(fresh(&mut cache, "tools/list", "{}", "a", 1009).as_deref(), Some(SECOND));
        assert_eq!(fresh(&mut cache, "tools/list", "{}", "a", 1010), None);
        // It is gone: a clock that went back would not bring it up again.
        assert_eq!(fresh(&mut cache, "tools/list", "{}", "a", 10), None);
        assert_eq!(cache.bytes, 0);
    }

    #[test]
    fn no_ttl_is_none_at_all() {
        for result in [
            "{}",
            r#"{"ttlMs":0}"#,
            r#"{"ttlMs":-5}"#,
            r#"{"ttlMs":"9"}"#,
            r#"{"ttlMs":null}"#,
            r#"{"resultType":"input_required","requestState":"s","ttlMs":9}"#,
        ] {
            let mut cache = Cache::new(9, 9_999);
            store(&mut cache, "resources/read", r#"{"uri":"a:b"}"#, "a", result, 0);
            assert_eq!(fresh(&mut cache, "resources/read", r#"{"uri":"a:b"}"#, "a", 0), None, "{result}");
        }
    }

    #[test]
    fn a_newer_result_that_may_not_be_kept_drops_the_older() {
        let mut cache = Cache::new(9, 9_999);
        store(&mut cache, "tools/list", "{}", "a", SHARED, 0);
        store(&mut cache, "tools/list", "{}", "a", r#"{"tools":[],"ttlMs":0}"#, 1);
        assert_eq!(fresh(&mut cache, "tools/list", "{}", "a", 2), None);
    }

    #[test]
    fn private_results_stay_with_their_principal() {
        let mut cache = Cache::new(9, 9_999);
        store(&mut cache, "tools/list", "{}", "a", SECOND, 0);
        assert_eq!(fresh(&mut cache, "tools/list", "{}", "b", 1), None);
        store(&mut cache, "prompts/list", "{}", "a", SHARED, 0);
        assert_eq!(fresh(&mut cache, "prompts/list", "{}", "b", 1).as_deref(), Some(SHARED));
    }

    #[test]
    fn only_the_same_question_has_the_same_answer() {
        let mut cache = Cache::new(9, 9_999);
        store(&mut cache, "tools/list", r#"{"cursor":"","_meta":{"x":1},"a":1}"#, "a", SECOND, 0);
        assert!(fresh(&mut cache, "tools/list", r#"{"a":1,"cursor":"","_meta":{"x":2}}"#, "a", 1).is_some());
        for other in ["{}", r#"{"cursor":""}"#, r#"{"cursor":"1","a":1}"#, r#"{"cursor":"","a":1,"b":2}"#] {
            assert_eq!(fresh(&mut cache, "tools/list", other, "a", 1), None, "{other}");
        }
        assert_eq!(fresh(&mut cache, "prompts/list", r#"{"a":1,"cursor":""}"#, "a", 1), None);
    }

    #[test]
    fn rounds_and_other_methods_are_never_kept() {
        let mut cache = Cache::new(9, 9_999);
        store(&mut cache, "tools/call", r#"{"name":"t"}"#, "a", SECOND, 0);
        assert_eq!(fresh(&mut cache, "tools/call", r#"{"name":"t"}"#, "a", 1), None);
        for params in [r#"{"uri":"a:b","requestState":"s"}"#, r#"{"uri":"a:b","inputResponses":{}}"#] {
            store(&mut cache, "resources/read", params, "a", SECOND, 0);
            assert!(cache.entries.is_empty());
        }
        store(&mut cache, "resources/read", r#"{"uri":"a:b"}"#, "a", SECOND, 0);
        assert_eq!(fresh(&mut cache, "resources/read", r#"{"uri":"a:b","requestState":"s"}"#, "a", 1), None);
    }

    #[test]
    fn changes_make_room_at_once() {
        let mut cache = Cache::new(9, 9_999);
        for (method, params) in [
            ("tools/list", "{}"),
            ("tools/list", r#"{"cursor":"2"}"#),
            ("resources/list", "{}"),
            ("resources/templates/list", "{}"),
            ("resources/read", r#"{"uri":"a:b"}"#),
            ("resources/read", r#"{"uri":"a:c"}"#),
        ] {
            store(&mut cache, method, params, "a", SECOND, 0);
        }
        cache.forget(&Change::Tools);
        assert_eq!(cache.entries.len(), 4);
        cache.forget(&Change::Resources);
        assert_eq!(cache.entries.len(), 2);
        cache.forget(&Change::Resource("a:b".into()));
        assert!(fresh(&mut cache, "resources/read", r#"{"uri":"a:b"}"#, "a", 1).is_none());
        assert!(fresh(&mut cache, "resources/read", r#"{"uri":"a:c"}"#, "a", 1).is_some());
    }

    #[test]
    fn a_result_that_was_overtaken_by_a_change_is_not_kept() {
        let mut cache = Cache::new(9, 9_999);
        let asked = cache.ticket();
        cache.forget(&Change::Tools);
        cache.store("tools/list", &object("{}"), "a", asked, &object(SECOND), 0);
        assert_eq!(fresh(&mut cache, "tools/list", "{}", "a", 1), None);
    }

    #[test]
    fn it_is_bounded_and_the_least_used_goes_first() {
        let mut cache = Cache::new(2, 9_999);
        let read = |n: u8| format!(r#"{{"uri":"a:{n}"}}"#);
        store(&mut cache, "resources/read", &read(1), "a", SECOND, 0);
        store(&mut cache, "resources/read", &read(2), "a", SECOND, 0);
        assert!(fresh(&mut cache, "resources/read", &read(1), "a", 1).is_some());
        store(&mut cache, "resources/read", &read(3), "a", SECOND, 0);
        assert!(fresh(&mut cache, "resources/read", &read(2), "a", 1).is_none());
        assert!(fresh(&mut cache, "resources/read", &read(1), "a", 1).is_some());

        let mut cache = Cache::new(1_000, 2_000);
        for n in 0..100 {
            store(&mut cache, "resources/read", &read(n), "a", SECOND, 0);
            assert!(cache.bytes <= 2_000);
        }
        assert_eq!(cache.entries.len(), cache.order.len());
        let huge = format!(r#"{{"ttlMs":9,"x":"{}"}}"#, "x".repeat(3_000));
        store(&mut cache, "tools/list", "{}", "a", &huge, 0);
        assert!(fresh(&mut cache, "tools/list", "{}", "a", 1).is_none());
        assert!(!cache.entries.is_empty());
    }
}
