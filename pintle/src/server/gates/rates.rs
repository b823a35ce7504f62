use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    rule::{RateLimit, RateScope, Rule, RuleSubject},
    shared_rates::SharedRates,
};
use crate::{
    server::{Principal, store::Store},
    uri::Uri,
};

/// The limit of buckets. The one that was used least recently is dropped for a new one.
const MAX_BUCKETS: usize = 10_000;

/// The calls that were counted, by rule and by what the rule counts separately.
#[derive(Debug)]
pub(super) struct Rates {
    own: Mutex<HashMap<String, Bucket>>,
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
    pub(super) fn new(store: Option<(Arc<dyn Store>, Arc<str>)>) -> Self {
        Self { own: Mutex::default(), shared: store.map(|(store, part)| SharedRates::new(store, part)) }
    }

    /// Takes one call from the bucket of a rule with this key. Returns how long to wait if it is empty.
    pub(super) fn take(&self, rule: &str, limit: &RateLimit, subject: &RuleSubject<'_>) -> Option<Duration> {
        // A changed limit is another bucket.
        let bucket = format!("{rule} {}/{} {}", limit.calls, limit.seconds, key(limit.per, subject));
        if let Some(shared) = &self.shared {
            return shared.take(bucket, limit.calls, limit.window());
        }
        let now = Instant::now();
        let mut buckets = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS && !buckets.contains_key(&bucket) {
            let oldest = buckets.iter().min_by_key(|(_, bucket)| bucket.at).map(|(key, _)| key.clone());
            oldest.map(|oldest| buckets.remove(&oldest));
        }
        let bucket = buckets.entry(bucket).or_insert_with(|| Bucket::full(limit.calls, now));
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

/// Returns the keys of rules, which do not depend on other rules: the names, or what the rules say.
pub(super) fn rule_keys(rules: &[Rule]) -> Vec<String> {
    let mut known = HashMap::<String, usize>::new();
    let keys = rules.iter().map(|rule| {
        let key = match &rule.name {
            Some(name) => format!("={}:{name}", name.len()),
            None => format!("#{:016x}", rule.fingerprint()),
        };
        let times = known.entry(key.clone()).or_default();
        *times += 1;
        match times {
            1 => key,
            times => format!("{key} {times}"),
        }
    });
    keys.collect()
}

/// Returns what is counted separately. No part of a name can be taken for another part.
fn key(scope: RateScope, subject: &RuleSubject<'_>) -> Box<str> {
    let principal = || match subject.identity {
        Principal::Local => "l".to_owned(),
        Principal::Anonymous => "a".to_owned(),
        Principal::Named(name) => format!("n{}:{name}", name.len()),
    };
    // The case of an authority is no other resource.
    let name = subject.uri.map_or(subject.name.into(), Uri::key);
    let entry = || format!("{:?}:{name}", subject.list);
    match scope {
        RateScope::All => "".into(),
        RateScope::Principal => principal().into(),
        RateScope::Tool => entry().into(),
        RateScope::PrincipalAndTool => format!("{} {}", principal(), entry()).into(),
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::yield_now;

    use super::*;
    use crate::server::{Access, ListKind, store::WatchedStore};

    fn limit(calls: u32, per: RateScope) -> RateLimit {
        RateLimit { calls, seconds: 60, per }
    }

    fn subject<'a>(identity: Principal<'a>, list: ListKind, name: &'a str) -> RuleSubject<'a> {
        RuleSubject {
            identity,
            has: &|_| false,
            access: Access::Call,
            list: Some(list),
            name,
            uri: None,
            backend: None,
            hints: None,
            upstream: None,
            arguments: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn calls_are_counted_by_principal_by_tool_by_both_or_together() {
        let (ann, bob) = (Principal::Named("ann"), Principal::Named("bob"));
        let calls = [
            (ann, ListKind::Tools, "a"),
            (ann, ListKind::Tools, "b"),
            (bob, ListKind::Tools, "a"),
            (ann, ListKind::Prompts, "a"),
            (Principal::Local, ListKind::Tools, "a"),
            (Principal::Anonymous, ListKind::Tools, "a"),
            (ann, ListKind::Tools, "a"),
        ];
        for (per, expected) in [
            (RateScope::Principal, [true, false, true, false, true, true, false]),
            (RateScope::Tool, [true, true, false, true, false, false, false]),
            (RateScope::PrincipalAndTool, [true, true, true, true, true, true, false]),
            (RateScope::All, [true, false, false, false, false, false, false]),
        ] {
            let rates = Rates::new(None);
            let allowed = calls.map(|(identity, list, name)| {
                rates.take("", &limit(1, per), &subject(identity, list, name)).is_none()
            });
            assert_eq!(allowed, expected, "{per:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn buckets_are_bounded() {
        let rates = Rates::new(None);
        for number in 0..=MAX_BUCKETS {
            let name = number.to_string();
            let caller = subject(Principal::Named(&name), ListKind::Tools, "a");
            assert_eq!(rates.take("", &limit(1, RateScope::Principal), &caller), None);
        }
        assert_eq!(rates.own.lock().unwrap().len(), MAX_BUCKETS);
    }

    #[tokio::test(start_paused = true)]
    async fn a_shared_bucket_is_that_of_a_rule_by_its_name_and_of_its_limit() {
        let bucket = async |names: &[Option<&str>], calls: u32| {
            let rules = names.iter().map(|name| {
                let mut rule = Rule::default();
                rule.name = name.map(str::to_owned);
                rule.tools = vec![name.unwrap_or("a").to_owned()];
                rule
            });
            let rule = rule_keys(&rules.collect::<Vec<_>>()).pop().unwrap();
            let store = Arc::new(WatchedStore::default());
            let rates = Rates::new(Some((store.clone(), "part ".into())));
            rates.take(
                &rule,
                &limit(calls, RateScope::All),
                &subject(Principal::Local, ListKind::Tools, "a"),
            );
            for _ in 0..5 {
                yield_now().await;
            }
            store.store.names().pop().unwrap()
        };
        let (named, unnamed) = (bucket(&[Some("x")], 5).await, bucket(&[None], 5).await);
        assert!(named.starts_with("rate:part "), "{named}");
        let before = [Some("y"), Some("x")];
        assert_eq!(bucket(&before, 5).await, named, "another rule was added before it");
        assert_eq!(bucket(&[Some("y"), None], 5).await, unnamed, "another rule was added before it");
        let others = [
            bucket(&[Some("y")], 5).await,
            bucket(&[Some("x")], 6).await,
            bucket(&[Some("x"), Some("x")], 5).await,
            unnamed,
            bucket(&[None, None], 5).await,
        ];
        for (at, other) in others.iter().enumerate() {
            assert!(*other != named && !others[..at].contains(other), "{other}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_as_long_as_is_said_has_a_call() {
        let (rates, limit) = (Rates::new(None), limit(6, RateScope::All));
        let take = || rates.take("", &limit, &subject(Principal::Local, ListKind::Tools, "a"));
        assert!((0..6).all(|_| take().is_none()));
        tokio::time::advance(Duration::from_secs(7)).await;
        let wait = take().unwrap();
        assert_eq!(wait.as_secs_f64().round(), 3.0);
        tokio::time::advance(wait - Duration::from_millis(10)).await;
        assert!(take().is_some());
        tokio::time::advance(Duration::from_millis(20)).await;
        assert_eq!(take(), None);
    }
}
