use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::Uri;
use pintle::{Error, Result};
use tokio::{
    sync::OwnedMutexGuard,
    task::JoinHandle,
    time::{Instant, timeout},
};

use super::{
    jwk::{KeySet, Published},
    metadata::ServerMetadata,
    reach::Reach,
    verify::Rejection,
    web::{AnyWeb, Guarded},
};

/// How long keys are used before they are fetched again.
const FRESH: Duration = Duration::from_secs(10 * 60);
/// How long after that they are used during the fetch, without waiting for it.
const GRACE: Duration = Duration::from_secs(5 * 60);
/// How long a request waits for the fetch after that, since an idle server may have missed a rotation.
const MOMENT: Duration = Duration::from_secs(1);
/// How long keys are used if fetching fails.
const STALE: Duration = Duration::from_secs(60 * 60);
/// How long a request waits that needs other keys.
const WAIT: Duration = Duration::from_secs(5);
/// The pause after a failed fetch.
const PAUSE: Duration = Duration::from_secs(5);
/// The limit of fetches in a row for unknown key ids, which anyone can invent.
const LOOKS: u32 = 5;
/// The interval after which one more such fetch is allowed.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// The keys of an authorization server. They are fetched on first use, cached, and fetched again from time to time and when
/// a token names another. Requests use the cached ones meanwhile.
pub(super) struct Keys {
    pub(super) issuer: String,
    /// The configured address of the keys. By default it is that of the issuer's metadata.
    pub(super) url: Option<String>,
    pub(super) web: Arc<dyn AnyWeb>,
    now: Mutex<KeysState>,
    /// Held during a fetch.
    flight: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct KeysState {
    held: Option<(Arc<KeySet>, Instant)>,
    failed: Option<(Instant, String)>,
    /// When the current fetch started.
    fetching: Option<Instant>,
    /// The number of recent fetches for unknown keys. It decays over time.
    looks: u32,
    looked: Option<Instant>,
}

impl KeysState {
    /// Returns how much longer a request waits for a fetch.
    fn moment_left(&self) -> Duration {
        if self.within(FRESH + GRACE).is_some() || self.failed.is_some() {
            return Duration::ZERO;
        }
        MOMENT.saturating_sub(self.fetching.map_or(Duration::ZERO, |since| since.elapsed()))
    }

    fn within(&self, age: Duration) -> Option<Arc<KeySet>> {
        self.held.as_ref().filter(|(_, since)| since.elapsed() < age).map(|(keys, _)| keys.clone())
    }

    /// Counts a fetch for an unknown key. Returns whether it is allowed.
    fn look(&mut self) -> bool {
        let now = Instant::now();
        let since = self.looked.map_or(Duration::ZERO, |looked| now - looked);
        let regained = u32::try_from(since.as_secs() / LOOK_AGAIN.as_secs()).unwrap_or(LOOKS);
        if self.looked.is_none() || regained > 0 {
            self.looks = self.looks.saturating_sub(regained);
            self.looked = Some(now);
        }
        let left = self.looks < LOOKS;
        self.looks += u32::from(left);
        left
    }
}

impl Keys {
    pub(super) fn new(issuer: String, web: Arc<dyn AnyWeb>) -> Self {
        Self { issuer, url: None, web, now: Mutex::default(), flight: Arc::default() }
    }

    /// Returns the current keys. Waits only if there are none, or if they are too old.
    pub(super) async fn current(self: &Arc<Self>) -> Result<Arc<KeySet>, Rejection> {
        let (held, moment) = {
            let now = self.now();
            if let Some(keys) = now.within(FRESH) {
                return Ok(keys);
            }
            (now.within(FRESH + STALE), now.moment_left())
        };
        let wait = match held {
            None => WAIT,
            Some(keys) => {
                self.fetch_apart();
                if moment.is_zero() {
                    return Ok(keys);
                }
                moment
            }
        };
        // The result is read below.
        let _ = timeout(wait, self.fetched(|now| now.within(FRESH).is_none())).await;
        let now = self.now();
        now.within(FRESH + STALE).ok_or_else(|| {
            let why = now.failed.as_ref().map(|(_, why)| why.clone());
            Rejection::Unavailable(why.unwrap_or_else(|| "the keys could not be fetched in time".into()))
        })
    }

    /// Fetches newer keys than these, for a token that names none of them.
    pub(super) async fn newer(
        self: &Arc<Self>,
        known: &Arc<KeySet>,
    ) -> Result<Option<Arc<KeySet>>, Rejection> {
        let is_known = |now: &KeysState| now.held.as_ref().is_some_and(|(keys, _)| Arc::ptr_eq(keys, known));
        if is_known(&self.now()) {
            if !self.now().look() {
                return Ok(None);
            }
            let in_time = timeout(WAIT, self.fetched(is_known)).await;
            in_time.map_err(|_| Rejection::unavailable("the keys could not be fetched in time"))?;
        }
        let now = self.now();
        match &now.failed {
            Some((_, why)) => Err(Rejection::unavailable(why)),
            None => Ok(now.within(FRESH).filter(|keys| !Arc::ptr_eq(keys, known))),
        }
    }

    /// Fetches the keys once for all waiting requests, if that is still needed when the lock is taken.
    async fn fetched(self: &Arc<Self>, wanted: impl Fn(&KeysState) -> bool) {
        let flight = self.flight.clone().lock_owned().await;
        if self.is_paused() || !wanted(&self.now()) {
            return;
        }
        // It ends without a result only when the runtime shuts down.
        let _ = self.start(flight).await;
    }

    /// Starts a fetch in the background, unless one is running.
    fn fetch_apart(self: &Arc<Self>) {
        if let Ok(flight) = self.flight.clone().try_lock_owned()
            && !self.is_paused()
        {
            drop(self.start(flight));
        }
    }

    fn is_paused(&self) -> bool {
        self.now().failed.as_ref().is_some_and(|(at, _)| at.elapsed() < PAUSE)
    }

    /// Runs in a task of its own: other requests wait for the same keys, and the first one may be dropped.
    fn start(self: &Arc<Self>, flight: OwnedMutexGuard<()>) -> JoinHandle<()> {
        let keys = self.clone();
        self.now().fetching = Some(Instant::now());
        tokio::spawn(async move {
            let fetched = keys.fetch().await;
            let mut now = keys.now();
            now.fetching = None;
            match fetched {
                Ok(set) => (now.held, now.failed) = (Some((Arc::new(set), Instant::now())), None),
                Err(error) => {
                    tracing::warn!(issuer = keys.issuer, %error, "failed to fetch the keys of an issuer");
                    now.failed = Some((Instant::now(), error.to_string()));
                }
            }
            drop(now);
            drop(flight);
        })
    }

    async fn fetch(&self) -> Result<KeySet> {
        let web = guarded(&*self.web, self.url.as_ref().unwrap_or(&self.issuer)).await?;
        let url = match &self.url {
            Some(url) => url.clone(),
            None => ServerMetadata::fetch(web, &self.issuer).await?.jwks_uri.ok_or_else(|| {
                Error::Decode(format!(
                    "the metadata of the authorization server `{}` has no `jwks_uri`: say where its keys are with \
                     `Jwt::keys_at`, or ask it about each token with `Introspection`",
                    self.issuer
                ))
            })?,
        };
        let published: Option<Published> = web.get(&url).await?;
        let keys = published.map(KeySet::of).filter(|keys| !keys.is_empty());
        keys.ok_or_else(|| Error::Decode(format!("there are no keys for verifying signatures at `{url}`")))
    }

    fn now(&self) -> MutexGuard<'_, KeysState> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Restricts requests to the reach of an issuer.
pub(super) async fn guarded<'a>(web: &'a dyn AnyWeb, issuer: &str) -> Result<Guarded<'a>> {
    let uri: Uri = issuer.parse().map_err(|_| Error::Misuse(format!("`{issuer}` is not an address")))?;
    let found = web.addresses(uri.host().unwrap_or_default()).await;
    Ok(Guarded { web, reach: Reach::of(&uri, &found) })
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("issuer", &self.issuer).field("url", &self.url).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::{sync::Notify, time::advance};

    use super::{
        super::kit::{ISSUER, Script, Signer},
        *,
    };
    use crate::server::Algorithm;

    fn keys(web: &Script) -> Arc<Keys> {
        Arc::new(Keys::new(ISSUER.into(), Arc::new(web.clone())))
    }

    fn published(kids: &[&str]) -> Value {
        let signer = Signer::es256();
        kids.iter().map(|kid| signer.jwk(kid)).collect()
    }

    fn knows(set: &KeySet, kid: &str) -> bool {
        set.knows(Some(kid), Algorithm::ES256)
    }

    #[tokio::test(start_paused = true)]
    async fn keys_that_do_not_come_are_not_waited_for_forever() {
        let web = Script::issuer(&published(&["1"]));
        web.waits_for(&Arc::new(Notify::new()));
        let since = Instant::now();
        let error = keys(&web).current().await.unwrap_err();
        assert!(matches!(&error, Rejection::Unavailable(why) if why.contains("in time")), "{error}");
        assert_eq!(since.elapsed(), WAIT);
    }

    #[tokio::test(start_paused = true)]
    async fn keys_are_fetched_once_for_all_who_wait() {
        let web = Script::issuer(&published(&["1"]));
        let gate = Arc::new(Notify::new());
        web.waits_for(&gate);
        let keys = keys(&web);
        let waiting: Vec<_> = (0..10)
            .map(|_| {
                let keys = keys.clone();
                tokio::spawn(async move { keys.current().await })
            })
            .collect();
        // One that needs them is given up; the others get them all the same.
        tokio::task::yield_now().await;
        waiting[0].abort();
        for _ in 0..2 {
            tokio::task::yield_now().await;
            gate.notify_one();
        }
        for (at, waits) in waiting.into_iter().enumerate() {
            match waits.await {
                Ok(set) => assert!(knows(&set.unwrap(), "1")),
                Err(_) => assert_eq!(at, 0),
            }
        }
        assert_eq!((web.count("/jwks"), web.count("/.well-known")), (1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_rotated_key_is_found_and_nonsense_is_not_looked_for_forever() {
        let web = Script::issuer(&published(&["1"]));
        let keys = keys(&web);
        let set = keys.current().await.unwrap();
        web.publishes(&published(&["1", "2"]));
        let set = keys.newer(&set).await.unwrap().expect("others by now");
        assert!(knows(&set, "1") && knows(&set, "2"));
        let mut set = set;
        for _ in 0..100 {
            set = keys.newer(&set).await.unwrap().unwrap_or(set);
        }
        assert_eq!(web.count("/jwks"), 6, "the first, and five looks");
        advance(LOOK_AGAIN).await;
        for _ in 0..100 {
            set = keys.newer(&set).await.unwrap().unwrap_or(set);
        }
        assert_eq!(web.count("/jwks"), 7, "one more after a while");
        advance(100 * LOOK_AGAIN).await;
        set = keys.current().await.unwrap();
        settled().await;
        for _ in 0..100 {
            set = keys.newer(&set).await.unwrap().unwrap_or(set);
        }
        assert_eq!(web.count("/jwks"), 13, "and not more than five however long it was quiet");
    }

    #[tokio::test(start_paused = true)]
    async fn looks_are_regained_even_if_it_is_tried_all_the_time() {
        let mut state = KeysState::default();
        while state.look() {}
        let mut allowed = 0;
        for _ in 0..6 {
            advance(LOOK_AGAIN / 2).await;
            allowed += u32::from(state.look());
        }
        assert_eq!(allowed, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_an_older_set_takes_the_newer_without_asking() {
        let web = Script::issuer(&published(&["1"]));
        let keys = keys(&web);
        let first = keys.current().await.unwrap();
        web.publishes(&published(&["2"]));
        let second = keys.newer(&first).await.unwrap().unwrap();
        let again = keys.newer(&first).await.unwrap().unwrap();
        assert!(Arc::ptr_eq(&second, &again));
        assert_eq!(web.count("/jwks"), 2);
    }

    /// What was begun apart gets to its end.
    async fn settled() {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_request_waits_while_newer_keys_are_fetched() {
        let web = Script::issuer(&published(&["1"]));
        let keys = keys(&web);
        keys.current().await.unwrap();
        web.publishes(&published(&["2"]));
        let gate = Arc::new(Notify::new());
        web.waits_for(&gate);
        advance(FRESH).await;
        let since = Instant::now();
        for _ in 0..100 {
            assert!(knows(&keys.current().await.unwrap(), "1"));
            settled().await;
        }
        assert_eq!(since.elapsed(), Duration::ZERO);
        assert_eq!(web.count("/.well-known"), 2, "it is looked once for all of them");
        for _ in 0..2 {
            gate.notify_one();
            settled().await;
        }
        assert!(knows(&keys.current().await.unwrap(), "2"));
        assert_eq!(web.count("/jwks"), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_long_silence_newer_keys_are_waited_for_only_a_moment() {
        let web = Script::issuer(&published(&["1"]));
        let keys = keys(&web);
        keys.current().await.unwrap();
        web.publishes(&published(&["2"]));
        advance(FRESH + GRACE).await;
        assert!(knows(&keys.current().await.unwrap(), "2"), "they were to be had at once");
        // KeysState they are not.
        web.waits_for(&Arc::new(Notify::new()));
        advance(FRESH + GRACE).await;
        let since = Instant::now();
        for _ in 0..3 {
            assert!(knows(&keys.current().await.unwrap(), "2"));
        }
        assert_eq!(since.elapsed(), MOMENT, "who comes later does not wait again");
    }

    #[tokio::test(start_paused = true)]
    async fn an_issuer_that_has_failed_is_not_waited_for_when_it_is_asked_again() {
        let web = Script::issuer(&published(&["1"]));
        let keys = keys(&web);
        keys.current().await.unwrap();
        web.answers("/jwks", 500, &Value::Null);
        advance(FRESH + GRACE).await;
        keys.current().await.unwrap();
        web.waits_for(&Arc::new(Notify::new()));
        advance(PAUSE).await;
        let since = Instant::now();
        assert!(knows(&keys.current().await.unwrap(), "1"));
        assert_eq!(since.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn stale_keys_are_used_for_a_while_if_there_are_no_others() {
        let web = Script::issuer(&published(&["1"]));
        let keys = keys(&web);
        keys.current().await.unwrap();
        web.answers("/jwks", 500, &Value::Null);
        advance(FRESH).await;
        assert!(knows(&keys.current().await.unwrap(), "1"));
        settled().await;
        assert!(knows(&keys.current().await.unwrap(), "1"));
        settled().await;
        assert_eq!(web.count("/jwks"), 2, "after a failure there is a pause");
        advance(PAUSE).await;
        keys.current().await.unwrap();
        settled().await;
        assert_eq!(web.count("/jwks"), 3);
        advance(STALE).await;
        let error = keys.current().await.unwrap_err();
        assert!(matches!(&error, Rejection::Unavailable(why) if why.contains("status 500")), "{error}");
        web.publishes(&published(&["2"]));
        advance(PAUSE).await;
        assert!(knows(&keys.current().await.unwrap(), "2"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_used_is_a_failure_that_says_why() {
        for (path, body, expected) in [
            ("/.well-known/oauth-authorization-server", json!({ "issuer": ISSUER }), "has no `jwks_uri`"),
            (
                "/.well-known/oauth-authorization-server",
                json!({ "issuer": "https://evil.test", "jwks_uri": "https://evil.test/jwks" }),
                "is that of `https://evil.test`",
            ),
            (
                "/.well-known/oauth-authorization-server",
                json!({ "issuer": ISSUER, "jwks_uri": "http://169.254.169.254/keys" }),
                "requests to",
            ),
            (
                "/jwks",
                json!({ "keys": [] }),
                "there are no keys for verifying signatures at `https://as.test/jwks`",
            ),
            ("/jwks", json!([1]), "there are no keys for verifying signatures at"),
            (
                "/jwks",
                json!({ "keys": [{ "kty": "oct", "k": "AA" }] }),
                "there are no keys for verifying signatures at",
            ),
        ] {
            let web = Script::issuer(&published(&["1"]));
            web.answers(path, 200, &body);
            let error = keys(&web).current().await.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let web = Script::issuer(&published(&["1"]));
        let mut elsewhere = Keys::new(ISSUER.into(), Arc::new(web.clone()));
        elsewhere.url = Some("https://keys.test/jwks".into());
        Arc::new(elsewhere).current().await.unwrap();
        assert_eq!(web.count("/.well-known"), 0, "who says where they are need not be asked");
    }
}
