use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    rate_store::RateStore,
    rule::{RateLimit, RateScope, RuleSubject},
    shared_rates::SharedRates,
};
use crate::server::Principal;

/// The limit of buckets. The one that was used least recently is dropped for a new one.
const MAX_BUCKETS: usize = 10_000;

/// The calls that were counted, by rule and by what the rule counts separately.
#[derive(Debug)]
pub(super) struct Rates {
    own: Mutex<HashMap<(usize, Box<str>), Bucket>>,
    /// Those that are shared with other processes, in place of the own ones.
    shared: Option<SharedRates>,
}

/// A token bucket.
#[derive(Debug)]
pub(super) struct Bucket {
    left: f64,
    at: Instant,
}

impl Rates {
    /// Creates rates that are counted together with other processes, if there is a store for them.
    pub(super) fn new(store: Option<Arc<dyn RateStore>>) -> Self {
        Self { own: Mutex::default(), shared: store.map(SharedRates::new) }
    }

    /// Takes one call from the bucket of a rule. Returns how long to wait if it is empty.
    pub(super) fn take(
        &self,
        (rule, name): (usize, Option<&str>),
        limit: &RateLimit,
        subject: &RuleSubject<'_>,
    ) -> Option<Duration> {
        let key = key(limit.per, subject);
        if let Some(shared) = &self.shared {
            // Rules with a name keep it when others are added before them. A changed limit is another bucket.
            let rule = name.map_or_else(|| rule.to_string(), |name| format!("={}:{name}", name.len()));
            let bucket = format!("{rule} {}/{} {key}", limit.calls, limit.seconds);
            return shared.take(bucket, limit.calls, limit.window());
        }
        let now = Instant::now();
        let key = (rule, key);
        let mut buckets = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS && !buckets.contains_key(&key) {
            let oldest = buckets.iter().min_by_key(|(_, bucket)| bucket.at).map(|(key, _)| key.clone());
            oldest.map(|oldest| buckets.remove(&oldest));
        }
        let bucket = buckets.entry(key).or_insert_with(|| Bucket::full(limit.calls, now));
        bucket.take(now, limit.calls, limit.window())
    }
}

impl Bucket {
    /// Creates a bucket for this number of calls.
    pub(super) fn full(calls: u32, now: Instant) -> Self {
        Self { left: f64::from(calls), at: now }
    }

    /// Takes one call. Returns how long to wait if there is none.
    pub(super) fn take(&mut self, now: Instant, calls: u32, window: Duration) -> Option<Duration> {
        let capacity = f64::from(calls);
        let per_second = capacity / window.as_secs_f64();
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + since * per_second).min(capacity);
        self.at = now;
        if self.left >= 1.0 {
            self.left -= 1.0;
            return None;
        }
        Some(Duration::from_secs_f64((1.0 - self.left) / per_second).max(Duration::from_millis(1)))
    }
}

/// Returns what is counted separately. No part of a name can be taken for another part.
fn key(scope: RateScope, subject: &RuleSubject<'_>) -> Box<str> {
    let principal = match subject.identity {
        Principal::Local => "l".to_owned(),
        Principal::Anonymous => "a".to_owned(),
        Principal::Named(name) => format!("n{}:{name}", name.len()),
    };
    let entry = || format!("{:?}:{}", subject.list, subject.name);
    match scope {
        RateScope::All => "".into(),
        RateScope::Principal => principal.into(),
        RateScope::Tool => entry().into(),
        RateScope::PrincipalAndTool => format!("{principal} {}", entry()).into(),
    }
}
