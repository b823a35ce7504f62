use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use pintle_types::RawObject;

use super::definition::Definition;
use crate::server::ListKind;

/// The limit of the bytes of decoded definitions, and of the text of one that is kept.
const MAX_BYTES: usize = 32 << 20;
const MAX_TEXT: usize = 64 << 10;

/// The definitions of the entries that a provider has listed, by their text. Gates judge each entry for each caller, and it is decoded
/// once. If there are too many, it begins anew.
#[derive(Default)]
pub(crate) struct DefinitionCache(Mutex<DecodedEntries>);

#[derive(Default)]
struct DecodedEntries {
    lists: HashMap<ListKind, HashMap<Box<str>, Arc<Definition>>>,
    bytes: usize,
}

impl DefinitionCache {
    /// Returns the definition of an entry; `None` if it cannot be decoded.
    pub(crate) fn decode(&self, list: ListKind, entry: &RawObject) -> Option<Arc<Definition>> {
        let text = entry.as_str();
        if text.len() > MAX_TEXT {
            return Definition::decode(list, entry).map(Arc::new);
        }
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().lists.get(&list).and_then(|known| known.get(text)) {
            return Some(known.clone());
        }
        let decoded = Arc::new(Definition::decode(list, entry)?);
        let mut entries = lock();
        let bytes = weight(text);
        let is_full = entries.bytes + bytes > MAX_BYTES;
        let before = if is_full { std::mem::take(&mut *entries) } else { DecodedEntries::default() };
        entries.bytes += bytes;
        entries.lists.entry(list).or_default().insert(text.into(), decoded.clone());
        drop(entries);
        // Outside of the lock: it may be large.
        drop(before);
        Some(decoded)
    }
}

/// Returns the bytes that an entry takes at most: its text, and a tree of values of two bytes of text each.
fn weight(text: &str) -> usize {
    text.len().saturating_mul(17).saturating_add(512)
}

impl fmt::Debug for DefinitionCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("DefinitionCache").field("bytes", &entries.bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> RawObject {
        format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#).parse().unwrap()
    }

    #[test]
    fn an_entry_is_decoded_once_and_its_text_decides() {
        let cache = DefinitionCache::default();
        let first = cache.decode(ListKind::Tools, &entry("a")).unwrap();
        assert!(Arc::ptr_eq(&first, &cache.decode(ListKind::Tools, &entry("a")).unwrap()));
        let changed: RawObject = r#"{"name":"a","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}"#.parse().unwrap();
        assert!(!Arc::ptr_eq(&first, &cache.decode(ListKind::Tools, &changed).unwrap()));
        let prompt = cache.decode(ListKind::Prompts, &entry("a")).unwrap();
        assert_eq!(prompt.key(), (ListKind::Prompts, "a"));
        assert!(cache.decode(ListKind::Resources, &entry("a")).is_none(), "it has no URI");
    }

    #[test]
    fn a_provider_fills_no_more_than_its_share() {
        let cache = DefinitionCache::default();
        for number in 0..60_000 {
            cache.decode(ListKind::Tools, &entry(&format!("tool_{number}_{}", "x".repeat(100))));
            assert!(cache.0.lock().unwrap().bytes <= MAX_BYTES);
        }
        let long = entry(&"x".repeat(MAX_TEXT));
        let before = cache.0.lock().unwrap().bytes;
        assert!(cache.decode(ListKind::Tools, &long).is_some());
        assert_eq!(cache.0.lock().unwrap().bytes, before);
    }
}
