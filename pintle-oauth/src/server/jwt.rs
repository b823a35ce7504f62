use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use http::Uri;
use pintle::{Error, Result};

use super::{
    address,
    algorithm::Algorithm,
    cache::{Cache, digest_of},
    claims::{self, Rules},
    clock,
    jwk::KeySet,
    keys::Keys,
    principal::Principal,
    reach::Reach,
    token::{Header, Signed, Token},
    verify::{Rejection, Verify},
    web::{AnyWeb, Network, Web},
};

/// How long a valid token is not verified again, in seconds.
const REMEMBERED: u64 = 60;

/// Verifies JWTs that are signed by an authorization server (RFC 9068).
///
/// The keys are found through its metadata, cached, and fetched again when a token names another. A token has to be from
/// this issuer, for this server ([`aud`](Self::audience) is its address, byte for byte), and not expired.
///
/// ```
/// use pintle_oauth::server::{Algorithm, Jwt, Protected};
///
/// # fn main() -> pintle::Result<()> {
/// let tokens = Jwt::new("https://login.example.com")?.algorithms([Algorithm::ES256]);
/// let protected = Protected::new("https://mcp.example.com/mcp", tokens)?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Jwt {
    issuer: String,
    audience: Vec<String>,
    algorithms: Vec<Algorithm>,
    skew: u64,
    source: Source,
    known: Arc<VerifiedTokens>,
}

/// The source of the keys.
#[derive(Clone)]
enum Source {
    Given(Arc<KeySet>),
    Fetched(Arc<Keys>),
}

/// Valid tokens, and the keys that they were verified with.
#[derive(Default)]
struct VerifiedTokens {
    by: Mutex<Weak<KeySet>>,
    tokens: Cache<Principal>,
}

impl Jwt {
    /// Verifies the tokens of this issuer. It is the `iss` of its tokens and the address of its metadata.
    ///
    /// # Errors
    ///
    /// Fails if it is not an `https` address. Plain `http` is accepted for loopback addresses only.
    pub fn new(issuer: impl Into<String>) -> Result<Self> {
        let issuer = issuer.into();
        check_issuer(&issuer)?;
        Ok(Self {
            audience: Vec::new(),
            algorithms: Algorithm::ALL.to_vec(),
            skew: 60,
            source: Source::Fetched(Arc::new(Keys::new(issuer.clone(), Arc::new(Network::new())))),
            known: Arc::default(),
            issuer,
        })
    }

    /// Accepts tokens for this audience instead of the server's address, for authorization servers with audiences of their
    /// own. Can be called several times.
    #[must_use]
    pub fn audience(mut self, name: impl Into<String>) -> Self {
        self.audience.push(name.into());
        self.changed()
    }

    /// Accepts only these algorithms. By default all are accepted: each fits one kind of key, so that the issuer's keys
    /// decide.
    #[must_use]
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self.changed()
    }

    /// Sets the accepted clock skew. The default is one minute.
    #[must_use]
    pub fn clock_skew(mut self, skew: Duration) -> Self {
        self.skew = skew.as_secs();
        self.changed()
    }

    /// Fetches the keys from this address, for issuers whose metadata has none. It may be in a private network, since it
    /// is configured here.
    #[must_use]
    pub fn keys_at(mut self, url: impl Into<String>) -> Self {
        let mut keys = Keys::new(self.issuer.clone(), self.web_of());
        keys.url = Some(url.into());
        self.source = Source::Fetched(Arc::new(keys));
        self.changed()
    }

    /// Uses the keys of this JWK set. Nothing is fetched.
    ///
    /// # Errors
    ///
    /// Fails if it contains no key for verifying signatures.
    pub fn keys(mut self, jwks: impl AsRef<str>) -> Result<Self> {
        let published = serde_json::from_str(jwks.as_ref()).ok().map(KeySet::of);
        let keys = published.filter(|keys| !keys.is_empty()).ok_or_else(|| {
            let message = "no key for verifying signatures; use a JWK set, `{\"keys\": [..]}`";
            Error::Misuse(message.into())
        })?;
        self.source = Source::Given(Arc::new(keys));
        Ok(self.changed())
    }

    /// Sends requests with this. The default is [`Network`].
    #[must_use]
    pub fn web(mut self, web: impl Web) -> Self {
        if let Source::Fetched(old) = &self.source {
            let mut keys = Keys::new(self.issuer.clone(), Arc::new(web));
            keys.url = old.url.clone();
            self.source = Source::Fetched(Arc::new(keys));
        }
        self.changed()
    }

    fn web_of(&self) -> Arc<dyn AnyWeb> {
        match &self.source {
            Source::Fetched(keys) => keys.web.clone(),
            Source::Given(_) => Arc::new(Network::new()),
        }
    }

    /// Resets the cache: the tokens in it were verified by other rules.
    fn changed(mut self) -> Self {
        self.known = Arc::default();
        self
    }

    async fn check(&self, token: &Token) -> Result<Principal, Rejection> {
        let signed = token.signed().ok_or_else(|| Rejection::invalid("it is not a JWT"))?;
        let algorithm = self.algorithm(&signed.header)?;
        let digest = digest_of(token);
        let keys = match &self.source {
            Source::Given(keys) => keys.clone(),
            Source::Fetched(keys) => keys.current().await?,
        };
        if let Some(principal) = self.known.find(&keys, &digest) {
            return Ok(principal);
        }
        let audience: Vec<_> = match self.audience.as_slice() {
            [] => vec![token.resource()],
            names => names.iter().map(String::as_str).collect(),
        };
        let now = clock::now();
        let rules = Rules { issuer: &self.issuer, audience: &audience, skew: self.skew, now };
        // Before the signature: an invalid token costs neither a verification nor a fetch of keys.
        let principal = claims::check(&signed.claims, &rules)?;
        let keys = self.verified(token, signed, algorithm, keys).await?;
        let left = principal.expires_at().unwrap_or(now).saturating_add(self.skew).saturating_sub(now);
        self.known.keep(&keys, digest, &principal, Duration::from_secs(left.min(REMEMBERED)));
        Ok(principal)
    }

    fn algorithm(&self, header: &Header) -> Result<Algorithm, Rejection> {
        if header.crit.is_some() {
            return Err(Rejection::invalid("it has a `crit` header, which is not supported"));
        }
        let kind = header.typ.as_deref().unwrap_or("JWT").to_ascii_lowercase();
        if !matches!(kind.trim_start_matches("application/"), "jwt" | "at+jwt") {
            return Err(Rejection::invalid("it is a JWT of another type than an access token"));
        }
        let allowed = Algorithm::named(&header.alg).filter(|algorithm| self.algorithms.contains(algorithm));
        allowed.ok_or_else(|| {
            let names: Vec<_> = self.algorithms.iter().map(|algorithm| algorithm.name()).collect();
            Rejection::Invalid(format!(
                "its signature algorithm is not accepted; use `{}`",
                names.join("`, `")
            ))
        })
    }

    /// Verifies the signature and returns the keys that it was verified with.
    async fn verified(
        &self,
        token: &Token,
        signed: &Signed,
        algorithm: Algorithm,
        keys: Arc<KeySet>,
    ) -> Result<Arc<KeySet>, Rejection> {
        let kid = signed.header.kid.as_deref();
        let message = signed.covered(token.reveal());
        let by = |keys: &KeySet| keys.verifies(kid, algorithm, message, &signed.signature);
        if by(&keys) {
            return Ok(keys);
        }
        // A known `kid` decides. Without a `kid` the key may be one that was not fetched yet.
        let unknown = kid.is_none() || !keys.knows(kid, algorithm);
        if let Source::Fetched(source) = &self.source
            && unknown
            && let Some(newer) = source.newer(&keys).await?
            && by(&newer)
        {
            return Ok(newer);
        }
        Err(Rejection::invalid(if unknown {
            "it is signed with a key that its issuer does not have"
        } else {
            "its signature is invalid"
        }))
    }
}

impl VerifiedTokens {
    fn find(&self, keys: &Arc<KeySet>, token: &[u8; 32]) -> Option<Principal> {
        let is_by = {
            let by = self.by.lock().unwrap_or_else(PoisonError::into_inner);
            std::ptr::eq(by.as_ptr(), Arc::as_ptr(keys))
        };
        // Keys that are no longer published verify nothing.
        if is_by { self.tokens.find(token) } else { None }
    }

    fn keep(&self, keys: &Arc<KeySet>, token: [u8; 32], principal: &Principal, lifetime: Duration) {
        let mut by = self.by.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::ptr::eq(by.as_ptr(), Arc::as_ptr(keys)) {
            self.tokens.clear();
            *by = Arc::downgrade(keys);
        }
        self.tokens.keep(token, principal, lifetime);
    }
}

impl Verify for Jwt {
    fn issuer(&self) -> &str {
        &self.issuer
    }

    fn takes(&self, token: &Token) -> bool {
        token.claimed_issuer() == Some(&self.issuer)
    }

    async fn verify(&self, token: Token) -> Result<Principal, Rejection> {
        self.check(&token).await
    }
}

/// Checks that metadata can be fetched from an issuer.
pub(super) fn check_issuer(issuer: &str) -> Result<()> {
    let uri: Option<Uri> = issuer.parse().ok().filter(|_| address::metadata_urls(issuer).is_some());
    let checked = uri.map(|uri| Reach::of(&uri, &[]).check(issuer).is_ok());
    if checked != Some(true) {
        return Err(Error::Misuse(format!(
            "`{issuer}` is not an issuer; use the `https` address that its metadata has as `issuer`, byte for byte"
        )));
    }
    Ok(())
}

impl fmt::Debug for Jwt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jwt")
            .field("issuer", &self.issuer)
            .field("audience", &self.audience)
            .field("algorithms", &self.algorithms)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        super::kit::{ISSUER, RESOURCE, Script, Signer, claims},
        *,
    };

    fn jwt(signer: &Signer) -> Jwt {
        Jwt::new(ISSUER).unwrap().keys(json!({ "keys": [signer.jwk("1")] }).to_string()).unwrap()
    }

    async fn verified(jwt: &Jwt, token: &str) -> Result<Principal, Rejection> {
        jwt.verify(Token::new(token, RESOURCE)).await
    }

    async fn refused(jwt: &Jwt, token: &str) -> String {
        verified(jwt, token).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn a_good_token_says_whose_it_is() {
        let signer = Signer::es256();
        let token = signer.sign(
            json!({ "kid": "1", "typ": "at+jwt" }),
            &claims(&json!({ "client_id": "app", "scope": "read write", "tenant": 7 })),
        );
        let principal = verified(&jwt(&signer), &token).await.unwrap();
        assert_eq!((principal.issuer(), principal.subject()), (ISSUER, "ann"));
        assert_eq!(principal.client_id(), Some("app"));
        assert_eq!(principal.scopes().collect::<Vec<_>>(), ["read", "write"]);
        assert_eq!(principal.claim("tenant"), Some(&json!(7)));
    }

    #[tokio::test]
    async fn each_algorithm_is_checked_by_its_kind_of_key() {
        for signer in [Signer::es256(), Signer::es384(), Signer::ed25519(), Signer::rsa()] {
            let token = signer.sign(json!({ "kid": "1" }), &claims(&json!({})));
            verified(&jwt(&signer), &token).await.unwrap();
        }
        let signer = Signer::rsa();
        for alg in ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"] {
            let token = signer.sign(json!({ "kid": "1", "alg": alg }), &claims(&json!({})));
            verified(&jwt(&signer), &token).await.unwrap();
            let narrow = jwt(&signer).algorithms([Algorithm::ES256]);
            assert!(
                refused(&narrow, &token).await.contains("signature algorithm is not accepted; use `ES256`")
            );
        }
    }

    #[tokio::test]
    async fn headers_that_would_have_us_believe_something_are_refused() {
        let signer = Signer::es256();
        let another = Signer::es256();
        let jwt = jwt(&signer);
        let table = [
            (json!({ "alg": "none" }), "signature algorithm is not accepted"),
            (json!({ "alg": "HS256" }), "signature algorithm is not accepted"),
            (json!({ "alg": "es256" }), "signature algorithm is not accepted"),
            (json!({ "alg": "RS256" }), "a key that its issuer does not have"),
            (json!({ "alg": "ES384" }), "a key that its issuer does not have"),
            (json!({ "kid": "2" }), "a key that its issuer does not have"),
            (json!({ "crit": ["b64"], "b64": false }), "`crit`"),
            (json!({ "crit": [] }), "`crit`"),
            (json!({ "typ": "dpop+jwt" }), "another type"),
            (json!({ "typ": "oauth-id-jag+jwt" }), "another type"),
            (json!({ "typ": "logout+jwt" }), "another type"),
        ];
        for (header, expected) in table {
            let mut whole = json!({ "kid": "1" });
            whole.as_object_mut().unwrap().extend(header.as_object().unwrap().clone());
            let text = refused(&jwt, &signer.sign(whole, &claims(&json!({})))).await;
            assert!(text.contains(expected), "{header}: {text}");
        }
        for header in [
            json!({ "kid": "1", "jwk": another.jwk("1") }),
            json!({ "kid": "1", "jku": "https://evil/jwks", "x5u": "https://evil/x" }),
        ] {
            let text = refused(&jwt, &another.sign(header, &claims(&json!({})))).await;
            assert!(text.ends_with("its signature is invalid"), "{text}");
        }
        for typ in ["JWT", "jwt", "at+jwt", "application/at+jwt"] {
            let token = signer.sign(json!({ "typ": typ }), &claims(&json!({})));
            verified(&jwt, &token).await.unwrap();
        }
    }

    #[tokio::test]
    async fn texts_that_are_no_tokens_are_refused() {
        let signer = Signer::es256();
        let jwt = jwt(&signer);
        let good = signer.sign(json!({ "kid": "1" }), &claims(&json!({})));
        let parts: Vec<_> = good.split('.').collect();
        let other = signer.sign(json!({ "kid": "1" }), &claims(&json!({ "sub": "bob" })));
        let others: Vec<_> = other.split('.').collect();
        for token in [
            String::new(),
            "opaque".into(),
            "a.b".into(),
            "..".into(),
            format!("{}.{}.", parts[0], parts[1]),
            format!("{}.{}", parts[0], parts[1]),
            format!("{good}."),
            format!("{good}.x"),
            format!(".{good}"),
            format!("{good}="),
            format!("{}.{}.{}", parts[0], others[1], parts[2]),
            format!("{}.{}.{}", parts[0], parts[1], others[2]),
            format!("{}.{}.{}", parts[0], parts[1], "A".repeat(86)),
            format!("{}.{}.{}", parts[0], "e30", parts[2]),
            format!("{}.{}.{}", "bnVsbA", parts[1], parts[2]),
        ] {
            let text = verified(&jwt, &token).await;
            assert!(matches!(text, Err(Rejection::Invalid(_))), "{token}");
        }
        verified(&jwt, &good).await.unwrap();
    }

    #[tokio::test]
    async fn other_names_for_what_tokens_are_for_take_the_place_of_the_address() {
        let signer = Signer::ed25519();
        let named = jwt(&signer).audience("api://notes").audience("api://old-notes");
        let token = |aud: Value| signer.sign(json!({ "kid": "1" }), &claims(&json!({ "aud": aud })));
        verified(&named, &token(json!("api://notes"))).await.unwrap();
        verified(&named, &token(json!(["x", "api://old-notes"]))).await.unwrap();
        assert!(refused(&named, &token(json!(RESOURCE))).await.contains("not issued for `api://notes`"));
    }

    #[tokio::test]
    async fn a_token_that_is_good_for_one_server_is_not_for_another() {
        let signer = Signer::es256();
        let jwt = jwt(&signer);
        let token = signer.sign(json!({ "kid": "1" }), &claims(&json!({})));
        verified(&jwt, &token).await.unwrap();
        let other = jwt.clone().verify(Token::new(token.as_str(), "https://other.test/mcp")).await;
        assert!(other.unwrap_err().to_string().contains("not issued for `https://other.test/mcp`"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_cannot_be_looked_for_is_not_the_clients_fault() {
        let (signer, rotated) = (Signer::es256(), Signer::es256());
        let web = Script::issuer(&json!([signer.jwk("1")]));
        let jwt = Jwt::new(ISSUER).unwrap().web(web.clone());
        verified(&jwt, &signer.sign(json!({ "kid": "1" }), &claims(&json!({})))).await.unwrap();
        web.answers("/jwks", 0, &Value::Null);
        let token = rotated.sign(json!({ "kid": "2" }), &claims(&json!({})));
        assert!(matches!(verified(&jwt, &token).await, Err(Rejection::Unavailable(_))));
        web.publishes(&json!([signer.jwk("1"), rotated.jwk("2")]));
        tokio::time::advance(Duration::from_secs(5)).await;
        verified(&jwt, &token).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_names_no_key_may_be_by_one_that_is_not_known_yet() {
        let (signer, rotated) = (Signer::es256(), Signer::es256());
        let web = Script::issuer(&json!([signer.jwk("1")]));
        let jwt = Jwt::new(ISSUER).unwrap().web(web.clone());
        verified(&jwt, &signer.sign(json!({}), &claims(&json!({})))).await.unwrap();
        web.publishes(&json!([rotated.jwk("2")]));
        verified(&jwt, &rotated.sign(json!({}), &claims(&json!({})))).await.unwrap();
        // One that names a key which is known is not looked for.
        let wrong = signer.sign(json!({ "kid": "2" }), &claims(&json!({})));
        assert!(refused(&jwt, &wrong).await.ends_with("its signature is invalid"));
        assert_eq!(web.count("/jwks"), 2);
    }

    #[tokio::test]
    async fn tokens_that_were_verified_with_former_keys_are_forgotten_with_them() {
        let (former, current) = (Arc::new(KeySet::default()), Arc::new(KeySet::default()));
        let known = VerifiedTokens::default();
        let keep = |keys: &Arc<KeySet>, token: u8| {
            known.keep(keys, [token; 32], &Principal::new(ISSUER, "ann"), Duration::from_secs(60));
        };
        let finds = |keys: &Arc<KeySet>, token: u8| known.find(keys, &[token; 32]).is_some();
        keep(&former, 1);
        assert!(finds(&former, 1) && !finds(&current, 1));
        (2..9).for_each(|token| keep(&current, token));
        assert!((2..9).all(|token| finds(&current, token)));
        assert!(!finds(&current, 1), "the current keys have not verified it");
    }

    #[test]
    fn what_is_no_issuer_is_found_at_once() {
        for issuer in ["", "login", "http://login.example.com", "https://login.example.com/?x", "https://a b"]
        {
            let text = Jwt::new(issuer).unwrap_err().to_string();
            assert!(text.contains("is not an issuer"), "{text}");
        }
        assert!(Jwt::new("http://localhost:4000/realm").is_ok());
        assert!(Jwt::new(ISSUER).unwrap().keys(r#"{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}"#).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_was_found_good_is_not_good_by_other_keys() {
        let signer = Signer::es256();
        let web = Script::issuer(&json!([signer.jwk("1")]));
        let jwt = Jwt::new(ISSUER).unwrap().web(web.clone());
        let token = signer.sign(json!({ "kid": "1" }), &claims(&json!({})));
        verified(&jwt, &token).await.unwrap();
        verified(&jwt, &token).await.unwrap();
        // Its key is not published any more, and that is looked at from time to time.
        web.publishes(&json!([Signer::es256().jwk("2")]));
        tokio::time::advance(Duration::from_secs(601)).await;
        // Whoever comes first has it looked, and does not wait for it.
        verified(&jwt, &token).await.unwrap();
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert!(refused(&jwt, &token).await.contains("a key that its issuer does not have"));
    }
}
