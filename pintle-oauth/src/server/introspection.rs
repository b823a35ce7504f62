use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::{HeaderMap, StatusCode};
use pintle::{Error, Result, types::JsonObject};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    cache::{Cache, Digest, digest_of},
    claims, clock,
    form::Form,
    identity::Identity,
    jwt::check_issuer,
    keys::guarded,
    metadata::ServerMetadata,
    principal::Principal,
    questions::{Question, Questions, Verdict},
    registered::Registered,
    token::Token,
    verify::{Rejection, Verify},
    web::{AnyWeb, Guarded, Network, Web},
};

/// How long the discovered endpoint is used, and how long after a discovery that failed.
const ENDPOINT: Duration = Duration::from_secs(60 * 60);
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// How long a rejection is cached, and the limit of its length in bytes.
const REFUSED: Duration = Duration::from_secs(5);
const STORY: usize = 1024;

/// Verifies tokens by introspection at the authorization server (RFC 7662), for opaque tokens and for immediate revocation.
///
/// Valid tokens are cached for 30 seconds, invalid ones for 5 seconds, and requests with the same token share one
/// introspection. A few dozen run at the same time and a few hundred are queued. The newest starts first, some slots are
/// reserved for tokens that were valid before, and a request that would wait for more than two seconds gets status 503:
/// a flood of invalid tokens does not delay valid ones.
///
/// ```
/// use pintle_oauth::server::{Introspection, Protected, Registered};
///
/// # fn main() -> pintle::Result<()> {
/// // The registration of this server at the authorization server.
/// let us = Registered::new("https://login.example.com", "notes-server").secret("s3cret");
/// let tokens = Introspection::new(us)?;
/// let protected = Protected::new("https://mcp.example.com/mcp", tokens)?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Introspection(Arc<Introspector>);

#[derive(Clone)]
struct IntrospectionSettings {
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
    /// The authorization server checks it.
    Unchecked,
}

struct Introspector {
    settings: IntrospectionSettings,
    known: Cache<Principal>,
    refused: Cache<Rejection>,
    questions: Arc<Questions>,
    /// The endpoint, and when to discover it again.
    endpoint: Mutex<Option<(Arc<IntrospectionEndpoint>, Instant)>>,
    /// Held during the first discovery.
    finding: tokio::sync::Mutex<()>,
}

/// The introspection endpoint, and the client that uses it.
struct IntrospectionEndpoint {
    url: String,
    us: Identity,
}

impl Introspection {
    /// Verifies the tokens of the client's issuer, authenticated as this client.
    ///
    /// # Errors
    ///
    /// Fails if the issuer is not an `https` address. Plain `http` is accepted for loopback addresses only.
    pub fn new(client: Registered) -> Result<Self> {
        check_issuer(&client.issuer)?;
        Ok(Self::of(IntrospectionSettings {
            issuer: client.issuer.clone(),
            endpoint: None,
            client,
            audience: Audience::Resource,
            remembered: Duration::from_secs(30),
            skew: 60,
            web: Arc::new(Network::new()),
        }))
    }

    /// Sets the introspection endpoint, for issuers whose metadata has none.
    #[must_use]
    pub fn at(self, endpoint: impl Into<String>) -> Self {
        self.with(|settings| settings.endpoint = Some(endpoint.into()))
    }

    /// Accepts tokens for this audience instead of the server's address. Can be called several times.
    #[must_use]
    pub fn audience(self, name: impl Into<String>) -> Self {
        self.with(|settings| match &mut settings.audience {
            Audience::Named(names) => names.push(name.into()),
            other => *other = Audience::Named(vec![name.into()]),
        })
    }

    /// Accepts tokens without an audience. Use it only if the authorization server reports no token as active that is for
    /// another server. An audience that is present is still checked.
    #[must_use]
    pub fn allow_missing_audience(self) -> Self {
        self.with(|settings| settings.audience = Audience::Unchecked)
    }

    /// Sets how long valid tokens are cached, and so for how long a revoked one is accepted. The default is 30 seconds.
    #[must_use]
    pub fn cache_for(self, lifetime: Duration) -> Self {
        self.with(|settings| settings.remembered = lifetime)
    }

    /// Sets the accepted clock skew. The default is one minute.
    #[must_use]
    pub fn clock_skew(self, skew: Duration) -> Self {
        self.with(|settings| settings.skew = skew.as_secs())
    }

    /// Sends requests with this. The default is [`Network`].
    #[must_use]
    pub fn web(self, web: impl Web) -> Self {
        self.with(|settings| settings.web = Arc::new(web))
    }

    fn of(settings: IntrospectionSettings) -> Self {
        Self(Arc::new(Introspector {
            settings,
            known: Cache::default(),
            refused: Cache::default(),
            questions: Arc::default(),
            endpoint: Mutex::default(),
            finding: tokio::sync::Mutex::default(),
        }))
    }

    fn with(self, change: impl FnOnce(&mut IntrospectionSettings)) -> Self {
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
        let asking = &self.0;
        let digest = digest_of(&token);
        if let Some(principal) = asking.known.find(&digest) {
            return Ok(principal);
        }
        if let Some(rejection) = asking.refused.find(&digest) {
            return Err(rejection);
        }
        let was_good = asking.known.was_kept(&digest);
        asking.questions.ask(digest, was_good, || asking.clone().question(digest, token)).await
    }
}

impl Introspector {
    fn question(self: Arc<Self>, digest: Digest, token: Token) -> Question {
        Box::pin(async move {
            let verdict = self.answer(&token).await;
            self.keep(digest, &verdict);
            verdict
        })
    }

    fn keep(&self, digest: Digest, verdict: &Verdict) {
        match verdict {
            Ok(principal) => {
                let left = principal.expires_at().map_or(u64::MAX, |at| at.saturating_sub(clock::now()));
                let lifetime = self.settings.remembered.min(Duration::from_secs(left));
                // Even for no time at all: tokens that were valid before have reserved slots.
                self.known.keep(digest, principal, lifetime);
            }
            Err(rejection @ Rejection::Invalid(why)) => {
                self.known.forget(&digest);
                if why.len() <= STORY {
                    self.refused.keep(digest, rejection, REFUSED);
                }
            }
            Err(_) => {}
        }
    }

    async fn answer(self: &Arc<Self>, token: &Token) -> Verdict {
        let answer = self.request(token).await.map_err(|error| {
            tracing::warn!(issuer = self.settings.issuer, %error, "failed to introspect a token");
            Rejection::unavailable(error.to_string())
        })?;
        self.judge(&answer, token)
    }

    async fn request(self: &Arc<Self>, token: &Token) -> Result<JsonObject> {
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
                .map_err(|_| Error::Decode(format!("the response of `{url}` is not a JSON object"))),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Error::Refused(format!(
                "`{url}` refused the introspection; check the registration of this server there"
            ))),
            status => Err(Error::Io(std::io::Error::other(format!(
                "`{url}` returned status {}; try again later",
                status.as_u16()
            )))),
        }
    }

    /// Returns the endpoint. It is discovered again from time to time, in the background.
    async fn endpoint(self: &Arc<Self>, web: Guarded<'_>) -> Result<Arc<IntrospectionEndpoint>> {
        if let Some(endpoint) = self.known_endpoint() {
            return Ok(endpoint);
        }
        let _finding = self.finding.lock().await;
        if let Some(endpoint) = self.known_endpoint() {
            return Ok(endpoint);
        }
        self.find_endpoint(web).await
    }

    fn known_endpoint(self: &Arc<Self>) -> Option<Arc<IntrospectionEndpoint>> {
        let now = Instant::now();
        let mut held = self.held_endpoint();
        let (endpoint, look_at) = held.as_mut()?;
        if *look_at <= now {
            *look_at = now + LOOK_AGAIN;
            let asking = self.clone();
            tokio::spawn(async move {
                let found = async {
                    let web = guarded(&*asking.settings.web, &asking.settings.issuer).await?;
                    asking.find_endpoint(web).await
                };
                if let Err(error) = found.await {
                    tracing::warn!(issuer = asking.settings.issuer, %error, "failed to discover the introspection endpoint again");
                }
            });
        }
        Some(endpoint.clone())
    }

    async fn find_endpoint(&self, web: Guarded<'_>) -> Result<Arc<IntrospectionEndpoint>> {
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
        let endpoint =
            Arc::new(IntrospectionEndpoint { url, us: Identity::registered(&settings.client, &metadata) });
        *self.held_endpoint() = Some((endpoint.clone(), Instant::now() + ENDPOINT));
        Ok(endpoint)
    }

    fn judge(&self, answer: &JsonObject, token: &Token) -> Verdict {
        let IntrospectionSettings { issuer, audience, skew, .. } = &self.settings;
        if answer.get("active").and_then(Value::as_bool) != Some(true) {
            return Err(Rejection::invalid("it is expired, revoked or unknown"));
        }
        if answer.get("iss").is_some_and(|named| named.as_str() != Some(issuer)) {
            return Err(Rejection::Invalid(format!("it was not issued by `{issuer}`")));
        }
        let kind = answer.get("token_type").and_then(Value::as_str).unwrap_or("Bearer");
        if !kind.eq_ignore_ascii_case("bearer") && !kind.eq_ignore_ascii_case("dpop") {
            return Err(Rejection::invalid("it is not an access token"));
        }
        let names: Vec<_> = match audience {
            Audience::Named(names) => names.iter().map(String::as_str).collect(),
            Audience::Resource | Audience::Unchecked => vec![token.resource()],
        };
        let aud = answer.get("aud");
        if !(claims::is_for(aud, &names) || aud.is_none() && matches!(audience, Audience::Unchecked)) {
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

    fn held_endpoint(&self) -> MutexGuard<'_, Option<(Arc<IntrospectionEndpoint>, Instant)>> {
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner)
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
        assert!(verified(&asking(&unsaid).allow_missing_audience()).await.is_ok());
        let other = answering(&json!({ "active": true, "sub": "ann", "aud": "api://x" }));
        assert!(verified(&asking(&other).allow_missing_audience()).await.is_err());
        assert!(verified(&asking(&other).audience("api://x")).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_good_answer_is_remembered_for_a_while_and_a_bad_one_for_a_moment() {
        let web = answering(&json!({ "active": true, "aud": RESOURCE, "sub": "ann" }));
        let asking = asking(&web);
        for _ in 0..3 {
            verified(&asking).await.unwrap();
        }
        assert_eq!((web.count("/introspect"), web.count("/.well-known")), (1, 1));
        advance(Duration::from_secs(30)).await;
        web.answers("/introspect", 200, &json!({ "active": false }));
        let digest = digest_of(&Token::new("0paque", RESOURCE));
        assert!(asking.0.known.was_kept(&digest), "it is known that it was good");
        assert!(verified(&asking).await.is_err(), "it was revoked");
        assert!(!asking.0.known.was_kept(&digest), "and has no places of its own any more");
        web.answers("/introspect", 200, &json!({ "active": true, "aud": RESOURCE, "sub": "ann" }));
        assert!(verified(&asking).await.unwrap_err().to_string().contains("revoked"));
        assert_eq!(web.count("/introspect"), 2);
        advance(REFUSED).await;
        verified(&asking).await.unwrap();
        assert_eq!(web.count("/introspect"), 3);
        web.answers("/introspect", 200, &json!({ "active": false }));
        let never =
            super::tests::asking(&answering(&json!({ "active": true, "aud": RESOURCE, "sub": "ann" })));
        let never = never.cache_for(Duration::ZERO).web(web.clone());
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
        verified(&asking.clone().cache_for(Duration::ZERO)).await.unwrap();
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
        assert_eq!(asking.0.questions.counts(), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn where_to_ask_is_looked_up_apart_from_the_questions() {
        let web = answering(&json!({ "active": true, "aud": RESOURCE, "sub": "ann" }));
        let asking = asking(&web).cache_for(Duration::ZERO);
        verified(&asking).await.unwrap();
        advance(ENDPOINT).await;
        // It cannot be found out any more; where it was is good enough.
        web.answers("/.well-known/oauth-authorization-server", 500, &json!({}));
        for _ in 0..3 {
            verified(&asking).await.unwrap();
        }
        tokio::task::yield_now().await;
        verified(&asking).await.unwrap();
        assert_eq!(web.count("/.well-known/oauth-authorization-server"), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn who_cannot_be_asked_says_nothing_of_the_token() {
        for (status, expected) in
            [(500, "status 500"), (401, "refused the introspection"), (0, "nobody is there")]
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
