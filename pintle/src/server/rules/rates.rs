use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::rule::{RateLimit, RateScope, RuleSubject};
use crate::server::Principal;

/// The limit of buckets. The one that was used least recently is dropped for a new one.
const MAX_BUCKETS: usize = 10_000;

/// The calls that were counted, by rule and by what the rule counts separately.
#[derive(Debug, Default)]
pub(super) struct Rates(Mutex<HashMap<(usize, Box<str>), Bucket>>);

/// A token bucket.
#[derive(Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Rates {
    /// Takes one call from the bucket of a rule. Returns how long to wait if it is empty.
    pub(super) fn take(&self, rule: usize, limit: &RateLimit, subject: &RuleSubject<'_>) -> Option<Duration> {
        let now = Instant::now();
        let capacity = f64::from(limit.calls);
        let per_second = capacity / limit.window().as_secs_f64();
        let key = (rule, key(limit.per, subject));
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS && !buckets.contains_key(&key) {
            let oldest = buckets.iter().min_by_key(|(_, bucket)| bucket.at).map(|(key, _)| key.clone());
            oldest.map(|oldest| buckets.remove(&oldest));
        }
        let bucket = buckets.entry(key).or_insert(Bucket { left: capacity, at: now });
        let since = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.left = (bucket.left + since * per_second).min(capacity);
        bucket.at = now;
        if bucket.left >= 1.0 {
            bucket.left -= 1.0;
            return None;
        }
        Some(Duration::from_secs_f64((1.0 - bucket.left) / per_second).max(Duration::from_millis(1)))
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
