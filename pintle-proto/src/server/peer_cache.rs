use std::sync::{Arc, Mutex};

use super::weight::weight;
use crate::Peer;

/// A bounded cache of peers by the `_meta` that described them, so that the same `_meta` is not read again.
///
/// A stateless client describes itself in every request. The description depends on these bytes only, so equal bytes
/// describe the same peer, whatever the connection: nothing is inferred from an earlier request (see
/// `bench/LEDGER.md`).
#[derive(Debug, Default)]
pub(super) struct PeerCache(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    peers: Vec<(Box<str>, Arc<Peer>)>,
    oldest: usize,
}

/// The number of entries. Comparing them all costs less than parsing one.
const MAX_ENTRIES: usize = 8;
/// The maximum size of a `_meta`, in bytes. A longer one is parsed each time.
const MAX_BYTES: usize = 2048;
/// The maximum memory of a parsed peer, in bytes.
const MAX_WEIGHT: usize = 8192;

impl PeerCache {
    pub(super) fn find(&self, meta: &str) -> Option<Arc<Peer>> {
        // A contended lock is not waited for: parsing is cheap enough.
        let known = self.0.try_lock().ok()?;
        known.peers.iter().find(|(text, _)| **text == *meta).map(|(_, peer)| peer.clone())
    }

    pub(super) fn add(&self, meta: &str, peer: &Arc<Peer>) {
        let Ok(mut known) = self.0.try_lock() else { return };
        if meta.len() > MAX_BYTES || weight(meta) > MAX_WEIGHT {
            return;
        }
        let entry = (meta.into(), peer.clone());
        if known.peers.len() < MAX_ENTRIES {
            known.peers.push(entry);
            return;
        }
        let oldest = known.oldest % MAX_ENTRIES;
        known.oldest = oldest + 1;
        if let Some(slot) = known.peers.get_mut(oldest) {
            *slot = entry;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Revision;

    fn peer() -> Arc<Peer> {
        let (info, capabilities, log_level) = (None, Default::default(), None);
        Arc::new(Peer { revision: Revision::LATEST, info, capabilities, log_level })
    }

    #[test]
    fn a_large_description_is_not_kept() {
        let cache = PeerCache::default();
        // A few bytes of text may be many values.
        let values = |count: usize, length: usize| format!("{:1$}", ",".repeat(count), length);
        assert_eq!(weight(&values(100, 1792)), MAX_WEIGHT);
        for (meta, kept) in [
            (format!("{:MAX_BYTES$}", "{}"), true),
            (format!("{:1$}", "{}", MAX_BYTES + 1), false),
            (format!("{:1$}", "{}", 2 * MAX_BYTES), false),
            (values(100, 1792), true),
            (values(100, 1793), false),
            (values(600, 1793), false),
        ] {
            cache.add(&meta, &peer());
            assert_eq!(cache.find(&meta).is_some(), kept, "{}", meta.len());
        }
    }

    #[test]
    fn the_newest_peers_are_kept() {
        let (cache, peer) = (PeerCache::default(), peer());
        let meta = |at: usize| format!(r#"{{"at":{at}}}"#);
        for at in 0..4 * MAX_ENTRIES {
            cache.add(&meta(at), &peer);
            let kept = (0..=at).filter(|at| cache.find(&meta(*at)).is_some());
            let newest = (at + 1).saturating_sub(MAX_ENTRIES)..=at;
            assert_eq!(kept.collect::<Vec<_>>(), newest.collect::<Vec<_>>());
        }
    }
}
