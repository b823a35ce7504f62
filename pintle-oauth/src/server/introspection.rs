use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::{HeaderMap, StatusCode};
use pintle::{Error, Result, types::JsonObject};
use serde_json::Value;
use tokio::{
    sync::{Semaphore, watch},
    time::Instant,
};

use super::{
    cache::{Cache, Digest, digest_of},
    claims, clock,
    form::Form,
    identity::Identity,
    jwt::check_issuer,
    keys::guarded,
    metadata::ServerMetadata,
    principal::Principal,
    registered::Registered,
    token::Token,
    verify::{Rejection, Verify},
    web::{AnyWeb, Network, Web},
};

/// Questions that are asked at the same time. Whoever sends nonsense must not make us a flood for somebody else.
const AT_ONCE: usize = 64;
/// For so long it is remembered where to ask.
const ENDPOINT: Duration = Duration::from_secs(60 * 60);

/// Tokens that the authorization server is asked about, one by one (RFC 7662): the way for tokens that say nothing by
/// themselves, and for those that can be revoked.
///
/// What it says of a good one is remembered for half a minute; requests with the same token wait for one answer.
///
/// ```
/// use pintle_oauth::server::{Introspection, Protected, Registered};
///
/// # fn main() -> pintle::Result<()> {
/// // What the authorization server knows this server as.
/// let us = Registered::new("https://login.example.com", "notes-server").secret("s3cret");
/// let tokens = Introspection::new(us)?;
/// let protected = Protected::new("https://mcp.example.com/mcp", tokens)?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Introspection(Arc<Asking>);

#[derive(Clone)]
struct Settings {
    issuer: String,
    endpoint: Option<String>,
    client: Registered,
    audience: Audience,
    remembered: Duration,
    skew: u64,
    web: Arc<dyn AnyWeb>,
}

#[derive(Clone, Debug)]
enum Audience {
    Resource,
    Named(Vec<String>),
    /// The authorization server sees to it.
    Unsaid,
}

struct Asking {
    settings: Settings,
    known: Cache,
    now: Mutex<Now>,
    at_once: Semaphore,
}

#[derive(Default)]
struct Now {
    /// Where to ask, and as whom.
    endpoint: Option<(Arc<Endpoint>, Instant)>,
    /// Questions that are being asked: as many as there are requests that wait.
    asked: HashMap<Digest, watch::Receiver<Option<Verdict>>>,
}

struct Endpoint {
    url: String,
    us: Identity,
}

type Verdict = Result<Principal, Rejection>;

impl Introspection {
    /// Asks the issuer that knows this client, as that client.
    ///
    /// # Errors
    ///
    /// The issuer is no `https` address. Plain `http` is for this machine only.
    pub fn new(client: Registered) -> Result<Self> {
        check_issuer(&client.issuer)?;
        Ok(Self::of(Settings {
            issuer: client.issuer.clone(),
            endpoint: None,
            client,
            audience: Audience::Resource,
            remembered: Duration::from_secs(30),
            skew: 60,
            web: Arc::new(Network::new()),
        }))
    }

    /// Where to ask, for an issuer whose metadata does not say.
    #[must_use]
    pub fn at(self, endpoint: impl Into<String>) -> Self {
        self.with(|settings| settings.endpoint = Some(endpoint.into()))
    }

    /// Tokens for this are accepted, instead of those for the server's address. Say it several times for several.
    #[must_use]
    pub fn audience(self, name: impl Into<String>) -> Self {
        self.with(|settings| match &mut settings.audience {
            Audience::Named(names) => names.push(name.into()),
            other => *other = Audience::Named(vec![name.into()]),
        })
    }

    /// Accepts tokens of which it is not said what they are for: only where the authorization server calls no token
    /// active that is not for the one who asks. What is said is checked all the same.
    #[must_use]
    pub fn audience_unsaid(self) -> Self {
        self.with(|settings| settings.audience = Audience::Unsaid)
    }

    /// For how long it is remembered that a token is good: as long as one that was revoked is accepted. 30 seconds.
    #[must_use]
    pub fn remembered(self, lifetime: Duration) -> Self {
        self.with(|settings| settings.remembered = lifetime)
    }

    /// By how much the issuer's clock may differ from ours. A minute.
    #[must_use]
    pub fn clock_skew(self, skew: Duration) -> Self {
        self.with(|settings| settings.skew = skew.as_secs())
    }

    /// Sends its requests through this.
    #[must_use]
    pub fn web(self, web: impl Web) -> Self {
        self.with(|settings| settings.web = Arc::new(web))
    }

    fn of(settings: Settings) -> Self {
        Self(Arc::new(Asking {
            settings,
            known: Cache::default(),
            now: Mutex::default(),
            at_once: Semaphore::new(AT_ONCE),
        }))
    }

    fn with(self, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = self.0.settings.clone();
        change(&mut settings);
        Self::of(settings)
    }
}

impl Verify for Introspection {
    fn issuer(&self) -> &str {
        &self.0.settings.issuer
    }

    async fn verify(&self, token: Token) -> Verdict {
        let digest = digest_of(&token);
        if let Some(principal) = self.0.known.find(&digest) {
            return Ok(principal);
        }
        let mut verdict = self.0.ask(digest, token);
        let given_up = || Rejection::unavailable("the question was given up");
        let verdict = verdict.wait_for(Option::is_some).await.map_err(|_| given_up())?;
        verdict.clone().unwrap_or_else(|| Err(given_up()))
    }
}

impl Asking {
    /// Asks about a token, unless somebody is at it. Apart from the request: others may wait for the answer.
    fn ask(self: &Arc<Self>, digest: Digest, token: Token) -> watch::Receiver<Option<Verdict>> {
        let mut now = self.now();
        if let Some(asked) = now.asked.get(&digest) {
            return asked.clone();
        }
        let (tell, told) = watch::channel(None);
        now.asked.insert(digest, told.clone());
        drop(now);
        let asking = Asked { asking: self.clone(), digest };
        tokio::spawn(async move {
            let verdict = asking.asking.answer(&token).await;
            if let Ok(principal) = &verdict {
                asking.asking.keep(asking.digest, principal);
            }
            drop(asking);
            // All may have gone meanwhile.
            let _ = tell.send(Some(verdict));
        });
        told
    }

    fn keep(&self, digest: Digest, principal: &Principal) {
        let left = principal.expires_at().map_or(u64::MAX, |at| at.saturating_sub(clock::now()));
        let lifetime = self.settings.remembered.min(Duration::from_secs(left));
        if !lifetime.is_zero() {
            self.known.keep(digest, principal, lifetime);
        }
    }

    async fn answer(&self, token: &Token) -> Verdict {
        // It is never closed.
        let _turn = self.at_once.acquire().await;
        let answer = self.request(token).await.map_err(|error| {
            tracing::warn!(issuer = self.settings.issuer, %error, "a token could not be asked about");
            Rejection::unavailable(error.to_string())
        })?;
        self.judge(&answer, token)
    }

    async fn request(&self, token: &Token) -> Result<JsonObject> {
        let settings = &self.settings;
        let web = guarded(&*settings.web, settings.endpoint.as_ref().unwrap_or(&settings.issuer)).await?;
        let endpoint = self.endpoint(web).await?;
        let mut headers = HeaderMap::new();
        let mut form = Form::new().with("token", token.reveal()).with("token_type_hint", "access_token");
        endpoint.us.prove(&settings.issuer, &mut headers, &mut form)?;
        let kind = "application/x-www-form-urlencoded";
        let answer = web.post(&endpoint.url, kind, headers, form.into_body()).await?;
        let url = &endpoint.url;
        match answer.status() {
            StatusCode::OK => serde_json::from_slice(answer.body())
                .map_err(|_| Error::Decode(format!("what `{url}` answered is no JSON object"))),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Error::Refused(format!(
                "`{url}` does not let this server ask about tokens: see how it is registered there"
            ))),
            status => Err(Error::Io(std::io::Error::other(format!(
                "`{url}` answered with status {}: try again later",
                status.as_u16()
            )))),
        }
    }

    async fn endpoint(&self, web: super::web::Guarded<'_>) -> Result<Arc<Endpoint>> {
        let known = self.now().endpoint.as_ref().filter(|(_, since)| since.elapsed() < ENDPOINT).cloned();
        if let Some((endpoint, _)) = known {
            return Ok(endpoint);
        }
        let settings = &self.settings;
        let mut metadata = match &settings.endpoint {
            Some(_) => ServerMetadata::default(),
            None => ServerMetadata::fetch(web, &settings.issuer).await?,
        };
        if let Some(methods) = metadata.introspection_endpoint_auth_methods_supported.take() {
            metadata.token_endpoint_auth_methods_supported = Some(methods);
        }
        let url = settings.endpoint.clone().or(metadata.introspection_endpoint.clone()).ok_or_else(|| {
            Error::Decode(format!(
                "the metadata of the authorization server `{}` has no `introspection_endpoint`: say where it is with \
                 `Introspection::at`",
                settings.issuer
            ))
        })?;
        let endpoint = Arc::new(Endpoint { url, us: Identity::registered(&settings.client, &metadata) });
        self.now().endpoint = Some((endpoint.clone(), Instant::now()));
        Ok(endpoint)
    }

    fn judge(&self, answer: &JsonObject, token: &Token) -> Verdict {
        let Settings { issuer, audience, skew, .. } = &self.settings;
        if answer.get("active").and_then(Value::as_bool) != Some(true) {
            return Err(Rejection::invalid("it has expired, was revoked, or never was"));
        }
        if answer.get("iss").is_some_and(|named| named.as_str() != Some(issuer)) {
            return Err(Rejection::Invalid(format!("it was not issued by `{issuer}`")));
        }
        let kind = answer.get("token_type").and_then(Value::as_str).unwrap_or("Bearer");
        if !kind.eq_ignore_ascii_case("bearer") && !kind.eq_ignore_ascii_case("dpop") {
            return Err(Rejection::invalid("it is no access token"));
        }
        let names: Vec<_> = match audience {
            Audience::Named(names) => names.iter().map(String::as_str).collect(),
            Audience::Resource | Audience::Unsaid => vec![token.resource()],
        };
        let aud = answer.get("aud");
        if !(claims::is_for(aud, &names) || aud.is_none() && matches!(audience, Audience::Unsaid)) {
            return Err(Rejection::Invalid(format!(
                "it was not issued for `{}`: ask for one with that `resource`",
                names.first().copied().unwrap_or_default()
            )));
        }
        let expires_at = claims::seconds(answer, "exp")?;
        claims::in_time(answer, expires_at.unwrap_or(u64::MAX), *skew, clock::now())?;
        let principal = claims::principal(answer, issuer)?;
        Ok(expires_at.map_or_else(|| principal.clone(), |at| principal.clone().until(at)))
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that is being asked, also if asking it fails in a way that nobody thought of.
struct Asked {
    asking: Arc<Asking>,
    digest: Digest,
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.asking.now().asked.remove(&self.digest);
    }
}

impl fmt::Debug for Introspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Introspection")
            .field("issuer", &self.0.settings.issuer)
            .field("endpoint", &self.0.settings.endpoint)
            .field("client", &self.0.settings.client)
            .field("audience", &self.0.settings.audience)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::{sync::Notify, time::advance};

    use super::{
        super::kit::{ISSUER, RESOURCE, Script},
        *,
    };

    fn asking(web: &Script) -> Introspection {
        let us = Registered::new(ISSUER, "notes").secret("s3cret");
        Introspection::new(us).unwrap().web(web.clone())
    }

    fn answering(answer: &Value) -> Script {
        let web = Script::issuer(&json!([]));
        web.answers("/introspect", 200, answer);
        web
    }

    async fn verified(asking: &Introspection) -> Verdict {
        asking.verify(Token::new("0paque", RESOURCE)).await
    }

    #[tokio::test(start_paused = true)]
    async fn the_authorization_server_is_asked_as_a_client_of_it() {
        let web = answering(&json!({
            "active": true, "aud": RESOURCE, "sub": "ann", "client_id": "app", "scope": "a b",
            "exp": clock::now() + 600, "iss": ISSUER, "token_type": "Bearer"
        }));
        let principal = verified(&asking(&web)).await.unwrap();
        assert_eq!(
            web.last(),
            "/introspect token=0paque&token_type_hint=access_token Basic bm90ZXM6czNjcmV0"
        );
        assert_eq!((principal.subject(), principal.client_id()), ("ann", Some("app")));
        assert_eq!(principal.scopes().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_it_says_has_to_be_of_a_token_for_us() {
        let now = clock::now();
        let table = [
            (json!({}), true),
            (json!({ "active": false }), false),
            (json!({ "active": "true" }), false),
            (json!({ "active": null }), false),
            (json!({ "aud": ["x", RESOURCE] }), true),
            (json!({ "aud": "https://other.test" }), false),
            (json!({ "aud": null }), false),
            (json!({ "iss": "https://other.test" }), false),
            (json!({ "exp": now - 61 }), false),
            (json!({ "exp": "later" }), false),
            (json!({ "nbf": now + 100 }), false),
            (json!({ "token_type": "refresh_token" }), false),
            (json!({ "token_type": "DPoP" }), true),
            (json!({ "sub": "" }), false),
        ];
        for (others, good) in table {
            let mut answer = json!({ "active": true, "aud": RESOURCE, "sub": "ann" });
            answer.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
            let verdict = verified(&asking(&answering(&answer))).await;
            assert_eq!(verdict.is_ok(), good, "{others}");
            assert!(good || matches!(verdict, Err(Rejection::Invalid(_))), "{others}");
        }
        let unsaid = answering(&json!({ "active": true, "sub": "ann" }));
        assert!(verified(&asking(&unsaid)).await.is_err());
        assert!(verified(&asking(&unsaid).audience_unsaid()).await.is_ok());
        let other = answering(&json!({ "active": true, "sub": "ann", "aud": "api://x" }));
        assert!(verified(&asking(&other).audience_unsaid()).await.is_err());
        assert!(verified(&asking(&other).audience("api://x")).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_good_answer_is_remembered_for_a_while_and_a_bad_one_is_not() {
        let web = answering(&json!({ "active": true, "aud": RESOURCE, "sub": "ann" }));
        let asking = asking(&web);
        for _ in 0..3 {
            verified(&asking).await.unwrap();
        }
        assert_eq!((web.count("/introspect"), web.count("/.well-known")), (1, 1));
        advance(Duration::from_secs(30)).await;
        web.answers("/introspect", 200, &json!({ "active": false }));
        assert!(verified(&asking).await.is_err(), "it was revoked");
        assert!(verified(&asking).await.is_err());
        assert_eq!(web.count("/introspect"), 3);
        let never =
            super::tests::asking(&answering(&json!({ "active": true, "aud": RESOURCE, "sub": "ann" })));
        let never = never.remembered(Duration::ZERO).web(web.clone());
        assert!(verified(&never).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_soon_expires_is_not_remembered_for_longer() {
        let soon = clock::now() + 5;
        let web = answering(&json!({ "active": true, "aud": RESOURCE, "sub": "ann", "exp": soon }));
        let asking = asking(&web);
        verified(&asking).await.unwrap();
        advance(Duration::from_secs(6)).await;
        verified(&asking).await.unwrap();
        assert_eq!(web.count("/introspect"), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_with_the_same_token_wait_for_one_answer() {
        let web = answering(&json!({ "active": true, "aud": RESOURCE, "sub": "ann" }));
        let asking = asking(&web);
        verified(&asking.clone().remembered(Duration::ZERO)).await.unwrap();
        let gate = Arc::new(Notify::new());
        web.waits_for(&gate);
        let before = web.count("/introspect");
        let waiting: Vec<_> = (0..10)
            .map(|_| {
                let asking = asking.clone();
                tokio::spawn(async move { verified(&asking).await })
            })
            .collect();
        tokio::task::yield_now().await;
        // The one that began to ask is given up.
        waiting[0].abort();
        for _ in 0..3 {
            tokio::task::yield_now().await;
            gate.notify_one();
        }
        for (at, waits) in waiting.into_iter().enumerate() {
            assert!(waits.await.map_or(at == 0, |verdict| verdict.is_ok()), "{at}");
        }
        assert_eq!(web.count("/introspect"), before + 1);
        assert!(asking.0.now().asked.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_cannot_be_asked_says_nothing_of_the_token() {
        for (status, expected) in
            [(500, "status 500"), (401, "does not let this server ask"), (0, "nobody is there")]
        {
            let web = answering(&json!({}));
            web.answers("/introspect", status, &json!({}));
            let error = verified(&asking(&web)).await.unwrap_err();
            assert!(matches!(&error, Rejection::Unavailable(why) if why.contains(expected)), "{error}");
            assert!(!error.to_string().contains("0paque"));
        }
    }

    #[test]
    fn nothing_secret_is_printed() {
        let shown = format!("{:?}", asking(&Script::default()));
        assert!(shown.contains("as.test") && !shown.contains("s3cret"), "{shown}");
    }
}
