use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use http::Uri;
use pintle::{Error, Result};

use super::{
    algorithm::Algorithm,
    cache::{Cache, digest_of},
    claims::{self, Rules},
    clock,
    jwk::KeySet,
    keys::Keys,
    places,
    principal::Principal,
    reach::Reach,
    token::{Header, Signed, Token},
    verify::{Rejection, Verify},
    web::{AnyWeb, Network, Web},
};

/// A token that was found to be good is not looked at again for so long.
const REMEMBERED: u64 = 60;

/// Tokens that an authorization server has signed, as JWTs (RFC 9068).
///
/// Its keys are found by its metadata, kept, and fetched again when it signs with another. A token has to be of this
/// issuer, for this server ([`aud`](Self::audience) is its address, byte for byte), and not expired.
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
    known: Arc<Known>,
}

/// Where keys come from.
#[derive(Clone)]
enum Source {
    Given(Arc<KeySet>),
    Fetched(Arc<Keys>),
}

/// Tokens that were found to be good, and the keys by which they were.
#[derive(Default)]
struct Known {
    by: Mutex<Weak<KeySet>>,
    tokens: Cache,
}

impl Jwt {
    /// Those of this issuer: the `iss` of its tokens, and where its metadata is.
    ///
    /// # Errors
    ///
    /// It is no `https` address. Plain `http` is for this machine only.
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

    /// Tokens for this are accepted, instead of those for the server's address: where the authorization server has names
    /// of its own for what tokens are for. Say it several times for several.
    #[must_use]
    pub fn audience(mut self, name: impl Into<String>) -> Self {
        self.audience.push(name.into());
        self.changed()
    }

    /// Only these algorithms. If nothing is said, all that there are: each goes with one kind of key, so that the
    /// issuer's keys decide.
    #[must_use]
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self.changed()
    }

    /// By how much the issuer's clock may differ from ours. A minute.
    #[must_use]
    pub fn clock_skew(mut self, skew: Duration) -> Self {
        self.skew = skew.as_secs();
        self.changed()
    }

    /// Where the keys are, for an issuer whose metadata does not say. Nobody but you says so: an address in a private
    /// network is fine.
    #[must_use]
    pub fn keys_at(mut self, url: impl Into<String>) -> Self {
        let mut keys = Keys::new(self.issuer.clone(), self.web_of());
        keys.url = Some(url.into());
        self.source = Source::Fetched(Arc::new(keys));
        self.changed()
    }

    /// These keys and no others: a JWK set, as text. Nothing is fetched.
    ///
    /// # Errors
    ///
    /// There is none in it that a signature can be checked with.
    pub fn keys(mut self, jwks: impl AsRef<str>) -> Result<Self> {
        let published = serde_json::from_str(jwks.as_ref()).ok().map(KeySet::of);
        let keys = published.filter(|keys| !keys.is_empty()).ok_or_else(|| {
            let said = "no key that a signature can be checked with: give a JWK set, `{\"keys\": [..]}`";
            Error::Misuse(said.into())
        })?;
        self.source = Source::Given(Arc::new(keys));
        Ok(self.changed())
    }

    /// Sends its requests through this.
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

    /// What clones remember was found to be good by other rules.
    fn changed(mut self) -> Self {
        self.known = Arc::default();
        self
    }

    async fn check(&self, token: &Token) -> Result<Principal, Rejection> {
        let signed = token.signed().ok_or_else(|| Rejection::invalid("it is no JWT"))?;
        let algorithm = self.algorithm(&signed.header)?;
        let digest = digest_of(token.reveal());
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
        // Before the signature: what is no good anyway costs neither a calculation nor a look for keys.
        let principal = claims::check(&signed.claims, &rules)?;
        let keys = self.verified(token, signed, algorithm, keys).await?;
        let left = principal.expires_at().unwrap_or(now).saturating_add(self.skew).saturating_sub(now);
        self.known.keep(&keys, digest, &principal, Duration::from_secs(left.min(REMEMBERED)));
        Ok(principal)
    }

    fn algorithm(&self, header: &Header) -> Result<Algorithm, Rejection> {
        if header.crit.is_some() {
            return Err(Rejection::invalid("it has a `crit` header, of which nothing is understood here"));
        }
        let kind = header.typ.as_deref().unwrap_or("JWT").to_ascii_lowercase();
        if !matches!(kind.trim_start_matches("application/"), "jwt" | "at+jwt") {
            return Err(Rejection::invalid("it is a JWT of another kind than an access token"));
        }
        let allowed = Algorithm::named(&header.alg).filter(|algorithm| self.algorithms.contains(algorithm));
        allowed.ok_or_else(|| {
            let names: Vec<_> = self.algorithms.iter().map(|algorithm| algorithm.name()).collect();
            Rejection::Invalid(format!(
                "it is signed in a way that is not accepted: use `{}`",
                names.join("`, `")
            ))
        })
    }

    /// The keys by which its signature is right.
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
        // A key by that name is the one that is meant. Without a name it may be one that is not known yet.
        let unknown = kid.is_none() || !keys.knows(kid, algorithm);
        if let Source::Fetched(source) = &self.source
            && unknown
            && let Some(newer) = source.newer(&keys).await
            && by(&newer)
        {
            return Ok(newer);
        }
        Err(Rejection::invalid(if unknown {
            "it is signed with a key that its issuer does not have"
        } else {
            "its signature is wrong"
        }))
    }
}

impl Known {
    fn find(&self, keys: &Arc<KeySet>, token: &[u8; 32]) -> Option<Principal> {
        let is_by = {
            let by = self.by.lock().unwrap_or_else(PoisonError::into_inner);
            std::ptr::eq(by.as_ptr(), Arc::as_ptr(keys))
        };
        // A key that is not published any more is good for nothing.
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
        token.said_issuer() == Some(&self.issuer)
    }

    async fn verify(&self, token: Token) -> Result<Principal, Rejection> {
        self.check(&token).await
    }
}

/// What metadata can be asked of.
pub(super) fn check_issuer(issuer: &str) -> Result<()> {
    let uri: Option<Uri> = issuer.parse().ok().filter(|_| places::of_issuer(issuer).is_some());
    let checked = uri.map(|uri| Reach::of(&uri, &[]).check(issuer).is_ok());
    if checked != Some(true) {
        return Err(Error::Misuse(format!(
            "`{issuer}` is no issuer: give the `https` address that its metadata has as `issuer`, byte for byte"
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
