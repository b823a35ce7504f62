use std::sync::{Arc, Mutex, PoisonError};

use pintle_types::RawObject;

use super::CacheHint;
use crate::Revision;

/// A bounded cache of results that many calls share, in the shapes of revisions that are not the canonical one.
///
/// See `bench/LEDGER.md`.
#[derive(Debug, Default)]
pub(super) struct LoweredCache(Mutex<Vec<Lowered>>);

#[derive(Debug)]
struct Lowered {
    revision: Revision,
    method: Box<str>,
    /// The cache hint that the stateless era writes into the result.
    hint: CacheHint,
    /// Held, so that its address, which is compared, cannot be reused.
    canonical: Arc<RawObject>,
    lowered: Arc<RawObject>,
}

/// Four lists in four revisions.
const MAX_ENTRIES: usize = 16;
/// Total size in bytes. A larger result is lowered each time.
const MAX_BYTES: usize = 32 << 20;

impl Lowered {
    fn bytes(&self) -> usize {
        let own = if Arc::ptr_eq(&self.canonical, &self.lowered) { 0 } else { self.lowered.as_str().len() };
        self.canonical.as_str().len() + own
    }
}

impl LoweredCache {
    /// Returns the lowered form of a result, which is identified by its address.
    pub(super) fn find(
        &self,
        revision: Revision,
        method: &str,
        hint: &CacheHint,
        canonical: &Arc<RawObject>,
    ) -> Option<Arc<RawObject>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().find(|known| {
            Arc::ptr_eq(&known.canonical, canonical)
                && known.revision == revision
                && *known.method == *method
                && known.hint == *hint
        });
        found.map(|known| known.lowered.clone())
    }

    pub(super) fn add(
        &self,
        revision: Revision,
        method: &str,
        hint: &CacheHint,
        canonical: &Arc<RawObject>,
        lowered: &Arc<RawObject>,
    ) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (canonical, lowered) = (canonical.clone(), lowered.clone());
        let entry = Lowered { revision, method: method.into(), hint: hint.clone(), canonical, lowered };
        let mut bytes = entry.bytes();
        if bytes > MAX_BYTES {
            return;
        }
        bytes += known.iter().map(Lowered::bytes).sum::<usize>();
        // The oldest entry is evicted: it is the likeliest to have been replaced.
        while !known.is_empty() && (known.len() >= MAX_ENTRIES || bytes > MAX_BYTES) {
            bytes -= known.remove(0).bytes();
        }
        known.push(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_result_to_the_same_question_is_found_again() {
        let cache = LoweredCache::default();
        let revisions: Vec<_> = Revision::all().collect();
        let [new, old] = [revisions[1], revisions[2]];
        let object = |text: &str| Arc::new(text.parse::<RawObject>().unwrap());
        let (canonical, lowered) = (object(r#"{"tools":[]}"#), object(r#"{"tools":[1]}"#));
        cache.add(new, "tools/list", &CacheHint::default(), &canonical, &lowered);
        let found =
            |revision, method, result| cache.find(revision, method, &CacheHint::default(), result).is_some();
        assert!(found(new, "tools/list", &canonical));
        assert!(!found(old, "tools/list", &canonical));
        assert!(!found(new, "prompts/list", &canonical));
        let other = CacheHint::new(1, CacheHint::default().scope);
        assert!(cache.find(new, "tools/list", &other, &canonical).is_none());
        assert!(!found(new, "tools/list", &object(r#"{"tools":[]}"#)), "equal, but another one");
    }

    #[test]
    fn old_ones_make_room() {
        let cache = LoweredCache::default();
        let revision = Revision::LATEST;
        let lists: Vec<_> = (0..100).map(|_| Arc::new(RawObject::empty())).collect();
        for list in &lists {
            cache.add(revision, "tools/list", &CacheHint::default(), list, list);
        }
        let found = lists
            .iter()
            .filter(|list| cache.find(revision, "tools/list", &CacheHint::default(), list).is_some())
            .count();
        assert_eq!(found, MAX_ENTRIES);
    }

    /// The length of a result without its text.
    const EMPTY: usize = r#"{"tools":""}"#.len();

    #[test]
    fn large_ones_are_held_within_so_many_bytes() {
        let cache = LoweredCache::default();
        let list = |bytes: usize| -> Arc<RawObject> {
            Arc::new(format!(r#"{{"tools":"{}"}}"#, "x".repeat(bytes)).parse().unwrap())
        };
        let lists: Vec<_> = (0..3).map(|_| list(MAX_BYTES / 2 - 100)).collect();
        for list in &lists {
            cache.add(Revision::LATEST, "tools/list", &CacheHint::default(), list, list);
        }
        let found = |list| cache.find(Revision::LATEST, "tools/list", &CacheHint::default(), list).is_some();
        assert_eq!(lists.iter().map(found).collect::<Vec<_>>(), [false, true, true]);
        let all = list(MAX_BYTES);
        cache.add(Revision::LATEST, "tools/list", &CacheHint::default(), &all, &all);
        assert!(!found(&all) && found(&lists[1]));
        // As many as it takes are evicted, and not one more.
        let small = list(MAX_BYTES / 8 - EMPTY);
        let half = list(MAX_BYTES / 2 - EMPTY);
        let whole = list(MAX_BYTES - EMPTY);
        let find =
            |method: &str, list| cache.find(Revision::LATEST, method, &CacheHint::default(), list).is_some();
        let add = |method: &str, list| {
            cache.add(Revision::LATEST, method, &CacheHint::default(), list, list);
            let smalls = ["1", "2", "3", "4", "5", "6", "7", "8"].map(|method| find(method, &small));
            (smalls.iter().filter(|found| **found).count(), find("half", &half), find("whole", &whole))
        };
        for (count, method) in (1..).zip(["1", "2", "3", "4", "5", "6", "7", "8"]) {
            assert_eq!(add(method, &small), (count, false, false));
        }
        assert_eq!(add("half", &half), (4, true, false));
        assert_eq!(add("whole", &whole), (0, false, true));
    }
}
