use std::{
    fmt,
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, UNIX_EPOCH},
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode,
    header::{
        ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, CONTENT_TYPE, ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE,
    },
    request::Parts,
};
use pintle::{
    proto::{
        Revision,
        http::{MCP_PROTOCOL_VERSION, Refusal, adds_to_granted},
    },
    server::{
        Authenticated, MissingRights,
        store::{Expected, Key, Life, Put, Space},
    },
    types::RpcError,
};
use tower_service::Service;

use super::{
    address,
    challenge::Challenge,
    clock,
    document::Metadata,
    dpop::{self, CheckedProof, ProofContext, ProofError, USED},
    form,
    principal::Principal,
    protected::Protected,
    scope::Scopes,
    token::{CallerToken, Token},
    verify::Rejection,
};

/// The milliseconds for which a proof is known after its expiry: the clocks of processes differ.
const NONCE_MARGIN: u64 = 120_000;

/// The year 9999. Later points in time are not supported on every system.
const LAST: u64 = 253_402_300_799;

const PROOF: HeaderName = HeaderName::from_static("dpop");

/// A service that requires a token. [`Protected`] creates it.
#[derive(Clone)]
pub struct ProtectedService<S> {
    inner: S,
    gatekeeper: Arc<Gatekeeper>,
}

impl<S> ProtectedService<S> {
    pub(super) fn new(inner: S, gatekeeper: Arc<Gatekeeper>) -> Self {
        Self { inner, gatekeeper }
    }
}

impl<S, B, R> Service<Request<B>> for ProtectedService<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
    R: From<Bytes>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let gatekeeper = self.gatekeeper.clone();
        // The clone that is ready takes the request.
        let other = self.inner.clone();
        let mut inner = mem::replace(&mut self.inner, other);
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            if let Err(refused) = gatekeeper.admit(&mut parts).await {
                return Ok((*refused).map(R::from));
            }
            inner.call(Request::from_parts(parts, body)).await
        })
    }
}

impl<S> fmt::Debug for ProtectedService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProtectedService")
            .field("protected", &self.gatekeeper.protected)
            .finish_non_exhaustive()
    }
}

/// Admits requests by their tokens.
pub(super) struct Gatekeeper {
    protected: Protected,
    metadata: Metadata,
    metadata_url: String,
}

/// The response to a request that is refused.
type RefusalResponse = Box<Response<Bytes>>;

/// A token as it was presented.
struct Presented<'a> {
    text: &'a str,
    with_proof: bool,
}

impl Gatekeeper {
    pub(super) fn new(protected: Protected) -> Self {
        let (metadata, metadata_url) = (protected.metadata(), protected.metadata_url());
        Self { protected, metadata, metadata_url }
    }

    /// Admits a request: removes its token and adds the principal. Or returns the response.
    async fn admit(self: &Arc<Self>, parts: &mut Parts) -> Result<(), RefusalResponse> {
        if self.protected.is_metadata(parts.uri.path()) {
            return Err(Box::new(self.metadata.answer(&parts.method)));
        }
        if is_preflight(parts) {
            hide_token(&mut parts.headers);
            return Ok(());
        }
        let (principal, digest) = self.authenticate(parts).await?;
        let name = match &self.protected.names {
            None => principal.key(),
            Some(names) => names(&principal)
                .ok_or_else(|| self.invalid("it does not have the claim that names its principal here"))?,
        };
        let granted = Arc::new(self.granted(&principal));
        if !granted.covers(&self.protected.scopes) {
            let adds = revision(&parts.headers).is_some_and(adds_to_granted);
            let challenge = self.lacking(&principal, &self.protected.scopes, adds);
            let message =
                format!("the token lacks the scopes `{}`, which every request needs", self.protected.scopes);
            return Err(refused(StatusCode::FORBIDDEN, message, Some(challenge)));
        }
        let token =
            presented(parts).ok().flatten().filter(|token| self.protected.keeps_token && !token.with_proof);
        let token = token.map(|token| CallerToken::new(token.text));
        hide_token(&mut parts.headers);
        if let Some(token) = token {
            parts.extensions.insert(token);
        }
        let mut known = self.known(name, &principal, granted);
        if let Some(digest) = digest {
            let gatekeeper = self.clone();
            known = known.body(move |body| match dpop::is_digest_of(&digest, body) {
                true => Ok(()),
                false => Err(gatekeeper.unproven("the proof is for another body")),
            });
        }
        parts.extensions.insert(known);
        parts.extensions.insert(principal);
        Ok(())
    }

    /// Returns the principal in the form that `pintle` takes.
    fn known(self: &Arc<Self>, name: String, principal: &Principal, granted: Arc<Scopes>) -> Authenticated {
        let (gatekeeper, whose) = (self.clone(), principal.clone());
        let known = Authenticated::new(name).rights(move |right| granted.has(right)).challenge(
            move |lacking: &MissingRights<'_>| {
                let needed =
                    gatekeeper.protected.scopes.clone().and(&Scopes::of(lacking.needed.iter().copied()));
                Some(gatekeeper.lacking(&whose, &needed, lacking.accumulates))
            },
        );
        match principal.expires_at() {
            Some(at) => known.until(UNIX_EPOCH + Duration::from_secs(at.min(LAST))),
            None => known,
        }
    }

    /// Returns the granted scopes with those that they include.
    fn granted(&self, principal: &Principal) -> Scopes {
        let mut granted = principal.all_scopes().clone();
        // Each round adds a scope or is the last, so there are as many as the longest chain at most.
        for _ in 0..self.protected.implied.len() {
            let before = granted.clone();
            for (_, others) in self.protected.implied.iter().filter(|(scope, _)| before.has(scope)) {
                granted = granted.and(others);
            }
            if granted == before {
                break;
            }
        }
        granted
    }

    /// Returns the principal of a request, and the digest of its body if the client has signed it.
    async fn authenticate(&self, parts: &Parts) -> Result<(Principal, Option<String>), RefusalResponse> {
        let presented = match presented(parts) {
            Ok(Some(presented)) => presented,
            Ok(None) => {
                return Err(
                    self.unauthorized(None, "this server requires a token; see `WWW-Authenticate`".into())
                );
            }
            Err(message) => {
                let challenge = self.challenge(Some(("invalid_request", message)), &self.protected.scopes);
                return Err(refused(StatusCode::BAD_REQUEST, message.into(), Some(challenge)));
            }
        };
        let token = Token::new(presented.text, self.protected.resource.clone());
        let principal = self.verified(token).await.map_err(|rejection| match rejection {
            Rejection::Invalid(why) => self.invalid(&why),
            Rejection::Unavailable(why) => {
                tracing::error!(%why, "failed to check a token");
                let message = "the token cannot be checked at the moment; try again later";
                later(refused(StatusCode::SERVICE_UNAVAILABLE, message.into(), None), 5)
            }
            Rejection::Overloaded => {
                let message = "too many tokens are waiting to be checked; try again later";
                overloaded(StatusCode::SERVICE_UNAVAILABLE, message, 1)
            }
        })?;
        let Some(proof) = self.proven(parts, &presented, &principal)? else { return Ok((principal, None)) };
        self.first_use(&proof, &principal).await?;
        Ok((principal, proof.content_digest))
    }

    async fn verified(&self, token: Token) -> Result<Principal, Rejection> {
        if token.is_too_long() {
            return Err(Rejection::invalid("it is too long"));
        }
        let verifier = self.protected.verifiers.iter().find(|verifier| verifier.takes(&token));
        let verifier = verifier.ok_or_else(|| {
            let issuers: Vec<_> = self.protected.verifiers.iter().map(|verifier| verifier.issuer()).collect();
            Rejection::Invalid(format!("it was not issued by `{}`", issuers.join("` or `")))
        })?;
        verifier.verify(token).await
    }

    /// Checks that a bound token is presented with a proof of its key.
    fn proven(
        &self,
        parts: &Parts,
        presented: &Presented<'_>,
        principal: &Principal,
    ) -> Result<Option<CheckedProof>, RefusalResponse> {
        let Some(thumbprint) = principal.thumbprint() else {
            return match (presented.with_proof, self.protected.dpop_only) {
                (false, false) => Ok(None),
                _ => Err(self.invalid("it is not bound to a DPoP key")),
            };
        };
        if !presented.with_proof {
            return Err(
                self.invalid("it is bound to a DPoP key; send it as `Authorization: DPoP` with a proof")
            );
        }
        let unproven =
            |why: &str| refused(StatusCode::UNAUTHORIZED, why.to_owned(), Some(self.unproven(why)));
        let too_many = || {
            let message = "too many DPoP proofs were used; send fewer requests, and try again later";
            overloaded(StatusCode::TOO_MANY_REQUESTS, message, 30)
        };
        let mut proofs = parts.headers.get_all(PROOF).iter();
        let (Some(Ok(proof)), None) = (proofs.next().map(HeaderValue::to_str), proofs.next()) else {
            return Err(unproven("send one proof in the `DPoP` header"));
        };
        let seen = format!("{}{}", address::origin(&self.protected.uri), parts.uri.path());
        let urls = [seen, self.protected.resource.to_string()];
        let holder = (principal.issuer(), principal.subject());
        let proven = ProofContext {
            method: parts.method.as_str(),
            urls: &urls,
            thumbprint,
            holder,
            now: clock::now(),
        };
        dpop::check(proof, presented.text, &proven, &self.protected.replay).map(Some).map_err(|error| {
            match error {
                ProofError::Wrong(why) => unproven(why),
                ProofError::TooMany => too_many(),
            }
        })
    }

    /// Checks that no other process has accepted a proof.
    async fn first_use(&self, proof: &CheckedProof, principal: &Principal) -> Result<(), RefusalResponse> {
        let Some(nonces) = &self.protected.nonces else { return Ok(()) };
        let (nonce, expires) = &proof.nonce;
        let id = nonce.iter().fold(String::new(), |id, byte| format!("{id}{byte:02x}"));
        let key = Key::new(Space::Nonce, &id).owned_by(Some(principal.subject()));
        let life = Life::Until(expires.saturating_mul(1000).saturating_add(NONCE_MARGIN));
        match nonces.put(key, Expected::Absent, b"", life).await {
            Ok(Put::Done(_)) => Ok(()),
            Ok(_) => Err(refused(StatusCode::UNAUTHORIZED, USED.to_owned(), Some(self.unproven(USED)))),
            Err(error) => {
                tracing::error!(%error, "whether a DPoP proof was used cannot be found out");
                let message =
                    "whether the DPoP proof was used cannot be found out at the moment; try again later";
                Err(overloaded(StatusCode::SERVICE_UNAVAILABLE, message, 5))
            }
        }
    }

    fn invalid(&self, why: &str) -> RefusalResponse {
        tracing::debug!(why, "rejected a token");
        self.unauthorized(Some(("invalid_token", why)), format!("the token is not accepted: {why}"))
    }

    fn unauthorized(&self, error: Option<(&str, &str)>, message: String) -> RefusalResponse {
        refused(StatusCode::UNAUTHORIZED, message, Some(self.challenge(error, &self.protected.scopes)))
    }

    fn unproven(&self, why: &str) -> HeaderValue {
        self.challenge(Some(("invalid_dpop_proof", why)), &self.protected.scopes)
    }

    /// Returns the challenge for a valid token that lacks scopes.
    fn lacking(&self, principal: &Principal, needed: &Scopes, adds: bool) -> HeaderValue {
        let mut scopes = needed.clone();
        if !adds {
            let had = principal.scopes().filter(|scope| *scope != "offline_access");
            scopes = Scopes::of(had).and(&scopes);
        }
        self.challenge(Some(("insufficient_scope", "the token lacks a required scope")), &scopes)
    }

    fn challenge(&self, error: Option<(&str, &str)>, scopes: &Scopes) -> HeaderValue {
        let scheme = match error {
            Some(("invalid_dpop_proof", _)) => "DPoP",
            _ if self.protected.dpop_only => "DPoP",
            _ => "Bearer",
        };
        let scope = scopes.to_string();
        Challenge { scheme, error, scope: &scope, resource_metadata: &self.metadata_url }.header()
    }
}

/// Whether this is a CORS preflight. It never has a token and has no effect: the inner service decides which origins it
/// allows.
fn is_preflight(parts: &Parts) -> bool {
    let headers = &parts.headers;
    parts.method == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Removes the token, so that the inner service cannot log it or pass it on.
fn hide_token(headers: &mut HeaderMap) {
    headers.remove(AUTHORIZATION);
    headers.remove(PROOF);
}

/// Returns the token of a request. `None`: it has none. Only a header may carry one: queries end up in logs and histories.
fn presented(parts: &Parts) -> Result<Option<Presented<'_>>, &'static str> {
    let query = parts.uri.query().unwrap_or_default();
    if form::pairs(query).into_iter().flatten().any(|(name, _)| name == "access_token") {
        return Err("tokens are accepted in the `Authorization` header only; never put one into an address");
    }
    let mut values = parts.headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err("there are several `Authorization` headers; send one");
    }
    let malformed = "the `Authorization` header cannot be parsed; send `Bearer`, a space, and the token";
    let value = value.to_str().map_err(|_| malformed)?.trim();
    let (scheme, text) = value.split_once(' ').unwrap_or((value, ""));
    let with_proof = scheme.eq_ignore_ascii_case("DPoP");
    if !with_proof && !scheme.eq_ignore_ascii_case("Bearer") {
        // Another scheme.
        return Ok(None);
    }
    let text = text.trim();
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._~+/=".contains(c);
    if text.is_empty() || !text.chars().all(fits) {
        return Err(malformed);
    }
    Ok(Some(Presented { text, with_proof }))
}

/// Returns the revision of the request's header.
fn revision(headers: &HeaderMap) -> Option<Revision> {
    headers.get(&MCP_PROTOCOL_VERSION)?.to_str().ok()?.parse().ok()
}

fn refused(status: StatusCode, message: String, challenge: Option<HeaderValue>) -> RefusalResponse {
    let mut response = refused_with(status, RpcError::invalid_request(message));
    if let Some(challenge) = challenge {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Refuses a request for want of capacity, with the time after which it may be repeated.
fn overloaded(status: StatusCode, message: &'static str, seconds: u16) -> RefusalResponse {
    let error = RpcError::overloaded(message, 1000 * u64::from(seconds));
    later(refused_with(status, error), seconds)
}

fn refused_with(status: StatusCode, error: RpcError) -> RefusalResponse {
    let mut response = Response::new(Bytes::from(Refusal::new(status, error).body(None)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Box::new(response)
}

/// Adds a `Retry-After` header.
fn later(mut refused: RefusalResponse, seconds: u16) -> RefusalResponse {
    refused.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    refused
}

#[cfg(test)]
mod tests {
    use pintle::server::store::MemoryStore;
    use pintle_testing::kits::store::LossyStore;
    use serde_json::json;

    use super::{
        super::{
            checked::Checked,
            jwk,
            kit::{ISSUER, RESOURCE, Signer},
            noise,
            replay::Replay,
        },
        *,
    };

    fn found(uri: &str, headers: &[&str]) -> Result<Option<(String, bool)>, String> {
        let mut request = Request::post(uri);
        for value in headers {
            request = request.header(AUTHORIZATION, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let presented = presented(&parts).map_err(str::to_owned)?;
        Ok(presented.map(|presented| (presented.text.to_owned(), presented.with_proof)))
    }

    #[test]
    fn a_token_is_taken_from_one_header_and_from_nowhere_else() {
        let token = |text: &str| Ok(Some((text.to_owned(), false)));
        assert_eq!(found("/mcp", &["Bearer abc.DEF-1_2~+/="]), token("abc.DEF-1_2~+/="));
        assert_eq!(found("/mcp", &["bearer   abc"]), token("abc"));
        assert_eq!(found("/mcp?x=access_tokens&y", &["BEARER abc"]), token("abc"));
        assert_eq!(found("/mcp", &["DPoP abc"]), Ok(Some(("abc".to_owned(), true))));
        for none in [&[][..], &["Basic YTpi"], &["Negotiate"]] {
            assert_eq!(found("/mcp", none), Ok(None), "{none:?}");
        }
        for (uri, headers, expected) in [
            ("/mcp", &["Bearer"][..], "cannot be parsed"),
            ("/mcp", &["Bearer "], "cannot be parsed"),
            ("/mcp", &["Bearer a b"], "cannot be parsed"),
            ("/mcp", &["Bearer a,b"], "cannot be parsed"),
            ("/mcp", &["Bearer \"a\""], "cannot be parsed"),
            ("/mcp", &["Bearer a\u{fc}"], "cannot be parsed"),
            ("/mcp", &["Bearer a", "Bearer b"], "several"),
            ("/mcp", &["Basic YTpi", "Bearer b"], "several"),
            ("/mcp?access_token=a", &[], "header only"),
            ("/mcp?x&access_token=a", &["Bearer b"], "header only"),
            ("/mcp?access%5Ftoken=a", &[], "header only"),
        ] {
            let message = found(uri, headers).unwrap_err();
            assert!(message.contains(expected), "{uri} {headers:?}: {message}");
        }
    }

    #[tokio::test]
    async fn a_token_that_is_too_long_is_not_even_looked_at() {
        let tokens = Checked::new(ISSUER, |_| async { Ok(Principal::new(ISSUER, "ann")) });
        let protected = Protected::new(RESOURCE, tokens).unwrap();
        for (length, good) in [(16 << 10, true), ((16 << 10) + 1, false)] {
            let request =
                Request::post("/mcp").header(AUTHORIZATION, format!("Bearer {}", "a".repeat(length)));
            let (mut parts, ()) = request.body(()).unwrap().into_parts();
            let admitted = Arc::new(Gatekeeper::new(protected.clone())).admit(&mut parts).await;
            match admitted {
                Ok(()) => assert!(good, "{length}"),
                Err(refused) => {
                    assert!(!good && refused.status() == 401, "{length}");
                    assert!(String::from_utf8_lossy(refused.body()).contains("it is too long"));
                }
            }
        }
    }

    #[tokio::test]
    async fn who_has_sent_too_many_proofs_is_asked_to_retry() {
        let signer = Signer::es256();
        let (_, thumbprint) = jwk::alone(&signer.jwk("1")).unwrap();
        let tokens = Checked::new(ISSUER, move |_| {
            let bound = Principal::new(ISSUER, "ann").bound_to(&thumbprint);
            async move { Ok(bound) }
        });
        let mut protected = Protected::new(RESOURCE, tokens).unwrap();
        let claims = json!({
            "jti": "1", "htm": "POST", "htu": RESOURCE, "iat": clock::now(), "ath": noise::sha256(b"t0ken")
        });
        let proof = signer.sign(json!({ "typ": "dpop+jwt", "jwk": signer.jwk("1") }), &claims);
        let admitted = async |protected: &Protected| {
            let request = Request::post("/mcp").header(AUTHORIZATION, "DPoP t0ken").header(PROOF, &proof);
            let (mut parts, ()) = request.body(()).unwrap().into_parts();
            Arc::new(Gatekeeper::new(protected.clone())).admit(&mut parts).await
        };
        admitted(&protected).await.unwrap();
        protected.replay = Arc::new(Replay::of(0));
        let refused = admitted(&protected).await.unwrap_err();
        assert_eq!(
            (refused.status().as_u16(), &refused.headers()[RETRY_AFTER]),
            (429, &"30".parse().unwrap())
        );
        assert!(!refused.headers().contains_key(WWW_AUTHENTICATE), "another token would not help");
    }

    #[tokio::test]
    async fn processes_that_share_a_store_accept_a_proof_once_and_none_without_it() {
        let signer = Signer::es256();
        let (_, thumbprint) = jwk::alone(&signer.jwk("1")).unwrap();
        let process = || {
            let thumbprint = thumbprint.clone();
            let tokens = Checked::new(ISSUER, move |_| {
                let bound = Principal::new(ISSUER, "ann").bound_to(&thumbprint);
                async move { Ok(bound) }
            });
            Protected::new(RESOURCE, tokens).unwrap()
        };
        let proof = |jti: &str| {
            let claims = json!({
                "jti": jti, "htm": "POST", "htu": RESOURCE, "iat": clock::now(), "ath": noise::sha256(b"t0ken")
            });
            signer.sign(json!({ "typ": "dpop+jwt", "jwk": signer.jwk("1") }), &claims)
        };
        let status = async |protected: &Protected, proof: &str| {
            let request = Request::post("/mcp").header(AUTHORIZATION, "DPoP t0ken").header(PROOF, proof);
            let (mut parts, ()) = request.body(()).unwrap().into_parts();
            let admitted = Arc::new(Gatekeeper::new(protected.clone())).admit(&mut parts).await;
            admitted.map_or_else(|refused| refused.status().as_u16(), |_| 200)
        };
        let store = Arc::new(MemoryStore::new());
        let (one, other) = (process().nonce_store(store.clone()), process().nonce_store(store));
        let first = proof("1");
        assert_eq!(status(&one, &first).await, 200);
        assert_eq!(status(&other, &first).await, 401);
        assert_eq!(status(&other, &proof("2")).await, 200);
        // Without a store, each process accepts it once.
        assert_eq!(status(&process(), &first).await, 200);
        let unreachable = LossyStore::new(MemoryStore::new());
        unreachable.set_down(true);
        assert_eq!(status(&process().nonce_store(unreachable), &proof("3")).await, 503);
    }

    #[test]
    fn a_scope_includes_what_the_included_ones_include() {
        let tokens = Checked::new(ISSUER, |_| async { Ok(Principal::new(ISSUER, "ann")) });
        let protected = Protected::new(RESOURCE, tokens).unwrap();
        let protected =
            protected.implies("all", ["write"]).implies("write", ["read"]).implies("read", ["list"]);
        let gatekeeper = Gatekeeper::new(protected);
        let granted = |scope: &str| {
            let principal = Principal::new(ISSUER, "ann").granted([scope]);
            gatekeeper.granted(&principal).to_string()
        };
        assert_eq!(granted("all"), "all write read list");
        assert_eq!(granted("read"), "read list");
        assert_eq!(granted("other"), "other");
    }

    /// A service that is never ready.
    #[derive(Clone)]
    struct Busy;

    impl Service<Request<Bytes>> for Busy {
        type Response = Response<Bytes>;
        type Error = std::convert::Infallible;
        type Future = std::future::Ready<Result<Response<Bytes>, Self::Error>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
            Poll::Pending
        }

        fn call(&mut self, _: Request<Bytes>) -> Self::Future {
            std::future::ready(Ok(Response::default()))
        }
    }

    #[test]
    fn a_protected_service_is_ready_when_the_inner_one_is() {
        let tokens = Checked::new(ISSUER, |_| async { Ok(Principal::new(ISSUER, "ann")) });
        let gatekeeper = Arc::new(Gatekeeper::new(Protected::new(RESOURCE, tokens).unwrap()));
        let mut service = ProtectedService::new(Busy, gatekeeper);
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(service.poll_ready(&mut cx).is_pending());
    }
}
