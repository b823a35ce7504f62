//! The part of a process in rates that processes share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{runtime::Handle, time::Instant};

use super::{rate_blocks::BlockRequest, rates::Bucket};
use crate::server::store::Store;

/// The limit of buckets. The one that was used least recently is dropped for a new one.
const MAX_BUCKETS: usize = 10_000;
/// A block is this fraction of the calls of a window.
const BLOCKS: u32 = 16;
/// The time for which a store that has failed is not asked.
const RETRY: Duration = Duration::from_secs(1);
/// The time after which a caller tries again if nobody knows whether there are more calls.
const UNKNOWN_WAIT: Duration = Duration::from_millis(50);

/// The calls that this process may make, and the store that grants them.
///
/// The first calls of a bucket are made on credit, up to one block, while the store is asked; what was spent is taken there with the next
/// request. So a limit may be exceeded by a block of each process for a moment, and not over time. While the store cannot be reached, the
/// whole limit is applied by each process.
#[derive(Clone, Debug)]
pub(super) struct SharedRates {
    store: Arc<dyn Store>,
    /// The begin of the names of buckets.
    part: Arc<str>,
    buckets: Arc<Mutex<HashMap<String, SharedBucket>>>,
}

#[derive(Debug)]
struct SharedBucket {
    /// The calls that the store has granted.
    leased: u32,
    /// The calls that were made without a lease, and that the store has not been told of.
    spent: u32,
    /// The calls without a lease of the request that the store is answering.
    asked: Option<u32>,
    /// The time until which the store has no more.
    empty_until: Option<Instant>,
    /// Until when the store is not asked, because it has failed, and the calls of this process alone meanwhile.
    alone: Option<(Instant, Bucket)>,
    used: Instant,
}

impl SharedRates {
    pub(super) fn new(store: Arc<dyn Store>, part: Arc<str>) -> Self {
        Self { store, part, buckets: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, SharedBucket>> {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one call. Returns how long to wait if there is none.
    pub(super) fn take(&self, bucket: String, calls: u32, window: Duration) -> Option<Duration> {
        let now = Instant::now();
        let block = (calls / BLOCKS).max(1);
        let mut buckets = self.lock();
        if buckets.len() >= MAX_BUCKETS && !buckets.contains_key(&bucket) {
            let oldest = buckets.iter().min_by_key(|(_, bucket)| bucket.used).map(|(key, _)| key.clone());
            oldest.map(|oldest| buckets.remove(&oldest));
        }
        let known = buckets.entry(bucket.clone()).or_insert_with(|| SharedBucket::new(now));
        known.used = now;
        let wait = known.take(now, block, calls, window);
        if known.wants_more(now, block) {
            let spent = std::mem::take(&mut known.spent);
            known.asked = Some(spent);
            drop(buckets);
            self.ask(bucket, BlockRequest { calls, window, spent, wanted: block });
        }
        wait
    }

    /// Asks the store for a block, in the background.
    fn ask(&self, bucket: String, request: BlockRequest) {
        let shared = self.clone();
        let asking = async move {
            let taken = request.take(&shared.store, &format!("{}{bucket}", shared.part)).await;
            let mut buckets = shared.lock();
            let Some(bucket) = buckets.get_mut(&bucket) else { return };
            let now = Instant::now();
            bucket.asked = None;
            match taken {
                Ok(block) => {
                    bucket.alone = None;
                    bucket.leased = bucket.leased.saturating_add(block.calls);
                    bucket.empty_until = (block.calls == 0).then(|| now + block.wait);
                }
                Err(error) => {
                    tracing::warn!(%error, "the store of rates cannot be reached: this process applies its limits alone");
                    bucket.spent = bucket.spent.saturating_add(request.spent).min(request.calls);
                    let own =
                        bucket.alone.take().map_or_else(|| Bucket::full(request.calls, now), |(_, own)| own);
                    bucket.alone = Some((now + RETRY, own));
                }
            }
        };
        // Without a runtime there is nobody to ask.
        if let Ok(runtime) = Handle::try_current() {
            crate::runtime::spawn_on(&runtime, asking);
        }
    }
}

impl SharedBucket {
    fn new(now: Instant) -> Self {
        Self { leased: 0, spent: 0, asked: None, empty_until: None, alone: None, used: now }
    }

    fn take(&mut self, now: Instant, block: u32, calls: u32, window: Duration) -> Option<Duration> {
        if let Some(leased) = self.leased.checked_sub(1) {
            self.leased = leased;
            return None;
        }
        if let Some((_, own)) = &mut self.alone {
            return own.take(now, calls, window);
        }
        if let Some(until) = self.empty_until
            && until > now
        {
            return Some((until - now).max(Duration::from_millis(1)));
        }
        // What the store is being asked for is on credit until it has answered.
        if self.spent + self.asked.unwrap_or_default() < block {
            self.spent += 1;
            return None;
        }
        Some(UNKNOWN_WAIT)
    }

    /// Returns whether the store is to be asked.
    fn wants_more(&self, now: Instant, block: u32) -> bool {
        let is_empty = self.empty_until.is_some_and(|until| until > now);
        let is_out = self.alone.as_ref().is_some_and(|(until, _)| *until > now);
        self.asked.is_none() && !is_empty && !is_out && self.leased <= block / 2
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use tokio::task::yield_now;

    use super::*;
    use crate::server::store::WatchedStore;

    fn process(store: &Arc<WatchedStore>) -> SharedRates {
        SharedRates::new(store.clone(), "".into())
    }

    const MINUTE: Duration = Duration::from_secs(60);

    /// Makes calls at each process in turn. Returns how many were allowed.
    async fn call(processes: &[&SharedRates], times: usize) -> usize {
        let mut allowed = 0;
        for _ in 0..times {
            for process in processes {
                allowed += usize::from(process.take("b".to_owned(), 160, MINUTE).is_none());
                yield_now().await;
            }
        }
        allowed
    }

    #[tokio::test(start_paused = true)]
    async fn two_processes_have_one_limit_and_ask_for_blocks() {
        let store = Arc::new(WatchedStore::default());
        let (one, two) = (process(&store), process(&store));
        let allowed = call(&[&one, &two], 500).await;
        // A block of each on credit, at most.
        assert!((160..=180).contains(&allowed), "{allowed}");
        let requests = store.times.load(Ordering::SeqCst);
        assert!(requests <= 2 * 160 / 10, "{requests} requests for {allowed} calls");
        let wait = one.take("b".to_owned(), 160, MINUTE).unwrap();
        assert!(wait <= MINUTE / 8, "{wait:?}");
        // What was spent on credit is missing now.
        tokio::time::advance(MINUTE / 2).await;
        let more = call(&[&one, &two], 500).await;
        assert!((60..=100).contains(&more), "{more}");
        assert!(allowed + more <= 160 + 80 + 20, "{allowed} and {more}");
    }

    #[tokio::test(start_paused = true)]
    async fn while_the_store_has_not_answered_there_is_one_block_on_credit() {
        let one = process(&Arc::default());
        // The store is only asked when this task yields.
        let allowed = (0..100).filter(|_| one.take("b".to_owned(), 160, MINUTE).is_none()).count();
        assert_eq!(allowed, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn without_the_store_each_process_applies_the_limit_alone_and_comes_back() {
        let store = Arc::new(WatchedStore::default());
        store.is_down.store(true, Ordering::SeqCst);
        let one = process(&store);
        let allowed = call(&[&one], 1_000).await;
        assert!((160..=170).contains(&allowed), "{allowed}");
        assert!(store.times.load(Ordering::SeqCst) <= 2, "a store that is down is not asked for each call");
        store.is_down.store(false, Ordering::SeqCst);
        tokio::time::advance(MINUTE).await;
        let two = process(&store);
        let allowed = call(&[&one, &two], 500).await;
        assert!(allowed <= 180, "{allowed}");
    }

    #[tokio::test(start_paused = true)]
    async fn buckets_are_bounded() {
        let shared = process(&Arc::new(WatchedStore::default()));
        for number in 0..=MAX_BUCKETS {
            shared.take(number.to_string(), 160, MINUTE);
        }
        assert_eq!(shared.lock().len(), MAX_BUCKETS);
    }

    #[tokio::test(start_paused = true)]
    async fn while_the_store_has_no_more_there_is_no_credit() {
        let store = Arc::new(WatchedStore::default());
        let one = process(&store);
        call(&[&one], 500).await;
        let requests = store.times.load(Ordering::SeqCst);
        assert_eq!(call(&[&one], 500).await, 0);
        assert_eq!(store.times.load(Ordering::SeqCst), requests, "it is not asked either");
        let take = || one.take("b".to_owned(), 160, MINUTE);
        let wait = take().unwrap();
        assert!(wait > UNKNOWN_WAIT && wait <= MINUTE / 8, "{wait:?}");
        tokio::time::advance(wait).await;
        assert_eq!(take(), None, "who has waited has a call");
    }
}
