use std::{
    collections::HashSet,
    mem,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use ring::digest::{SHA256, digest};
use tokio::time::Instant;

/// A proof may be so old, or by a clock that is so early.
pub(super) const WINDOW: u64 = 300;
/// So long one is remembered at least: from the earliest to the latest moment that it is good.
const REMEMBERED: Duration = Duration::from_secs(2 * WINDOW);
/// Proofs in each of the two halves. Only who has a good token gets to add one.
const MOST: usize = 100_000;

/// Proofs that were used, because each may be used once.
#[derive(Debug, Default)]
pub(super) struct Replay(Mutex<Halves>);

/// What was seen in this period and in the one before.
#[derive(Debug, Default)]
struct Halves {
    new: HashSet<[u8; 16]>,
    old: HashSet<[u8; 16]>,
    since: Option<Instant>,
}

impl Replay {
    /// Notes a proof of this key; `false` if it was used before.
    pub(super) fn note(&self, thumbprint: &str, jti: &str) -> bool {
        let digest = digest(&SHA256, format!("{thumbprint} {jti}").as_bytes());
        let mut key = [0; 16];
        key.copy_from_slice(&digest.as_ref()[..16]);
        let mut halves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let since = *halves.since.get_or_insert(now);
        let full = halves.new.len() >= MOST;
        if full || now - since >= REMEMBERED {
            if full {
                tracing::warn!("so many DPoP proofs came that older ones are forgotten early");
            }
            // After a long silence those of the period before are no good any more either.
            let seen = mem::take(&mut halves.new);
            halves.old = if now - since >= 2 * REMEMBERED { HashSet::new() } else { seen };
            halves.since = Some(now);
        }
        !halves.old.contains(&key) && halves.new.insert(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_proof_is_good_once() {
        let seen = Replay::default();
        assert!(seen.note("key", "1"));
        assert!(!seen.note("key", "1"));
        assert!(seen.note("other", "1"));
        tokio::time::advance(REMEMBERED).await;
        assert!(!seen.note("key", "1"), "it was in the period before");
        tokio::time::advance(REMEMBERED).await;
        tokio::time::advance(REMEMBERED).await;
        assert!(seen.note("key", "1"), "by then it has expired by itself");
    }
}
