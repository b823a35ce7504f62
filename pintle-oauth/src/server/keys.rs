use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::Uri;
use pintle::{Error, Result};
use tokio::time::Instant;

use super::{
    jwk::{KeySet, Published},
    metadata::ServerMetadata,
    reach::Reach,
    verify::Rejection,
    web::{AnyWeb, Guarded},
};

/// For so long keys are used before it is looked whether they are still published.
const FRESH: Duration = Duration::from_secs(10 * 60);
/// For so long they are used after that if it cannot be looked.
const STALE: Duration = Duration::from_secs(60 * 60);
/// After a failure nobody is asked again for so long.
const PAUSE: Duration = Duration::from_secs(5);
/// Tokens may name keys that nobody has. So often in a row it is looked for such a key,
const LOOKS: u32 = 5;
/// and once more after each of these.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// The keys of an authorization server: fetched when they are needed, kept, and fetched again when it has others.
pub(super) struct Keys {
    pub(super) issuer: String,
    /// Where they are, if the issuer's metadata is not to be asked.
    pub(super) url: Option<String>,
    pub(super) web: Arc<dyn AnyWeb>,
    now: Mutex<Now>,
    /// Held by whoever fetches.
    flight: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct Now {
    held: Option<(Arc<KeySet>, Instant)>,
    failed: Option<(Instant, String)>,
    /// How many looks for unknown keys were taken, of which one is forgotten from time to time.
    looks: u32,
    looked: Option<Instant>,
}

impl Now {
    fn within(&self, age: Duration) -> Option<Arc<KeySet>> {
        self.held.as_ref().filter(|(_, since)| since.elapsed() < age).map(|(keys, _)| keys.clone())
    }

    /// Takes one of the looks, if one is left.
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

    /// The keys that there are, fetched if need be.
    pub(super) async fn current(self: &Arc<Self>) -> Result<Arc<KeySet>, Rejection> {
        if let Some(keys) = self.now().within(FRESH) {
            return Ok(keys);
        }
        self.fetched(|now| now.within(FRESH).is_none()).await;
        let now = self.now();
        now.within(FRESH + STALE).ok_or_else(|| {
            let why = now.failed.as_ref().map(|(_, why)| why.clone());
            Rejection::Unavailable(why.unwrap_or_else(|| "the keys could not be fetched".into()))
        })
    }

    /// Other keys than these, for a token that names none of them: perhaps it is newer than they are.
    pub(super) async fn newer(self: &Arc<Self>, known: &Arc<KeySet>) -> Option<Arc<KeySet>> {
        let is_known = |now: &Now| now.held.as_ref().is_some_and(|(keys, _)| Arc::ptr_eq(keys, known));
        if is_known(&self.now()) {
            if !self.now().look() {
                return None;
            }
            self.fetched(is_known).await;
        }
        let now = self.now();
        now.within(FRESH).filter(|keys| !Arc::ptr_eq(keys, known))
    }

    /// Fetches them, once for all who wait, if that is still wanted when it is our turn.
    async fn fetched(self: &Arc<Self>, wanted: impl Fn(&Now) -> bool) {
        let flight = self.flight.clone().lock_owned().await;
        {
            let now = self.now();
            let paused = now.failed.as_ref().is_some_and(|(at, _)| at.elapsed() < PAUSE);
            if paused || !wanted(&now) {
                return;
            }
        }
        let keys = self.clone();
        // Apart from the request that needs them: others wait for the same keys, and it may be given up.
        let fetching = tokio::spawn(async move {
            let fetched = keys.fetch().await;
            let mut now = keys.now();
            match fetched {
                Ok(set) => (now.held, now.failed) = (Some((Arc::new(set), Instant::now())), None),
                Err(error) => {
                    tracing::warn!(issuer = keys.issuer, %error, "the keys of an issuer could not be fetched");
                    now.failed = Some((Instant::now(), error.to_string()));
                }
            }
            drop(now);
            drop(flight);
        });
        // It ends without a word only with the runtime.
        let _ = fetching.await;
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
        keys.ok_or_else(|| {
            Error::Decode(format!("there are no keys at `{url}` that signatures can be checked with"))
        })
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The web, as far as it may be reached on behalf of an issuer.
pub(super) async fn guarded<'a>(web: &'a dyn AnyWeb, issuer: &str) -> Result<Guarded<'a>> {
    let uri: Uri = issuer.parse().map_err(|_| Error::Misuse(format!("`{issuer}` is no address")))?;
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
        let set = keys.newer(&set).await.expect("others by now");
        assert!(knows(&set, "1") && knows(&set, "2"));
        let mut set = set;
        for _ in 0..100 {
            set = keys.newer(&set).await.unwrap_or(set);
        }
        assert_eq!(web.count("/jwks"), 6, "the first, and five looks");
        advance(LOOK_AGAIN).await;
        for _ in 0..100 {
            set = keys.newer(&set).await.unwrap_or(set);
        }
        assert_eq!(web.count("/jwks"), 7, "one more after a while");
        advance(100 * LOOK_AGAIN).await;
        set = keys.current().await.unwrap();
        for _ in 0..100 {
            set = keys.newer(&set).await.unwrap_or(set);
        }
        assert_eq!(web.count("/jwks"), 13, "and not more than five however long it was quiet");
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_an_older_set_takes_the_newer_without_asking() {
        let web = Script::issuer(&published(&["1"]));
        let keys = keys(&web);
        let first = keys.current().await.unwrap();
        web.publishes(&published(&["2"]));
        let second = keys.newer(&first).await.unwrap();
        let again = keys.newer(&first).await.unwrap();
        assert!(Arc::ptr_eq(&second, &again));
        assert_eq!(web.count("/jwks"), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn stale_keys_are_used_for_a_while_if_there_are_no_others() {
        let web = Script::issuer(&published(&["1"]));
        let keys = keys(&web);
        keys.current().await.unwrap();
        web.answers("/jwks", 500, &Value::Null);
        advance(FRESH).await;
        assert!(knows(&keys.current().await.unwrap(), "1"));
        assert!(knows(&keys.current().await.unwrap(), "1"));
        assert_eq!(web.count("/jwks"), 2, "after a failure there is a pause");
        advance(PAUSE).await;
        keys.current().await.unwrap();
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
                "no request is sent to",
            ),
            ("/jwks", json!({ "keys": [] }), "there are no keys at `https://as.test/jwks`"),
            ("/jwks", json!([1]), "there are no keys at"),
            ("/jwks", json!({ "keys": [{ "kty": "oct", "k": "AA" }] }), "there are no keys at"),
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
