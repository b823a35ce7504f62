use std::{fmt, sync::Arc, time::SystemTime};

use http::HeaderValue;
#[cfg(feature = "http-server")]
use {std::pin::Pin, tokio::time::Sleep};

/// An authenticated caller and its rights, put into the extensions of an HTTP request by an authentication layer.
///
/// A request without one is [anonymous](crate::server::Principal::Anonymous) and has no rights.
///
/// Sessions, states and subscriptions are bound to the principal, unless `Http::principal` overrides it. The rights are
/// compared with those that tools, prompts and resources [require](crate::server::ToolRoute::requires).
///
/// ```
/// use pintle::server::Authenticated;
///
/// # fn layer<B>(mut request: http::Request<B>) {
/// // In a layer around the service, after checking the caller's password:
/// let ann = Authenticated::new("ann").rights(|right| right == "notes:read");
/// request.extensions_mut().insert(ann);
/// # }
/// ```
#[derive(Clone)]
pub struct Authenticated {
    /// The name of the principal; `None` for the local user.
    principal: Option<Box<str>>,
    rights: Option<Arc<RightsCheck>>,
    challenge: Option<Arc<ChallengeMaker>>,
    body: Option<Arc<BodyCheck>>,
    expiry: Option<SystemTime>,
}

type RightsCheck = dyn Fn(&str) -> bool + Send + Sync;
type BodyCheck = dyn Fn(&[u8]) -> Result<(), HeaderValue> + Send + Sync;
type ChallengeMaker = dyn Fn(&MissingRights<'_>) -> Option<HeaderValue> + Send + Sync;

/// The rights that a request needs, given to [`Authenticated::challenge`] if its caller lacks some of them.
///
/// ```
/// use pintle::server::Authenticated;
///
/// let ann = Authenticated::new("ann").rights(|right| right == "notes:read").challenge(|missing| {
///     format!("Bearer scope=\"{}\"", missing.needed.join(" ")).parse().ok()
/// });
/// assert!(!ann.has("notes:write"));
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct MissingRights<'a> {
    /// All rights that the request needs.
    pub needed: &'a [&'a str],
    /// Whether clients of this revision add the requested rights to those granted before. Other clients request only what
    /// the challenge names, so it has to repeat the rights that the caller already has.
    pub accumulates: bool,
}

impl Authenticated {
    /// Creates a caller with every right.
    pub fn new(principal: impl Into<Box<str>>) -> Self {
        Self { principal: Some(principal.into()), rights: None, challenge: None, body: None, expiry: None }
    }

    /// Creates the local user, who has every right and no name.
    pub(crate) fn local() -> Self {
        Self { principal: None, rights: None, challenge: None, body: None, expiry: None }
    }

    /// Sets the function that decides whether the caller has a right.
    #[must_use]
    pub fn rights(mut self, has: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.rights = Some(Arc::new(has));
        self
    }

    /// Sets the function that creates the `WWW-Authenticate` header if the caller lacks rights. The response is 403, and
    /// nothing of the request is run.
    #[must_use]
    pub fn challenge(
        mut self,
        make: impl Fn(&MissingRights<'_>) -> Option<HeaderValue> + Send + Sync + 'static,
    ) -> Self {
        self.challenge = Some(Arc::new(make));
        self
    }

    /// Sets a check of the request's body, for callers who sign it. If it fails, the response is 401 with the returned value
    /// in `WWW-Authenticate`, and nothing of the request is run.
    #[must_use]
    pub fn body(mut self, check: impl Fn(&[u8]) -> Result<(), HeaderValue> + Send + Sync + 'static) -> Self {
        self.body = Some(Arc::new(check));
        self
    }

    /// Sets when the authentication expires. Notification streams are then closed, and the client has to authenticate again;
    /// running calls continue.
    #[must_use]
    pub fn until(mut self, expiry: SystemTime) -> Self {
        self.expiry = Some(expiry);
        self
    }

    /// Returns the name of the principal, or `None` for the local user.
    pub fn principal(&self) -> Option<&str> {
        self.principal.as_deref()
    }

    /// Returns whether the caller has this right.
    pub fn has(&self, right: &str) -> bool {
        self.rights.as_ref().is_none_or(|has| has(right))
    }

    /// Returns when the authentication expires.
    pub(crate) fn expires_at(&self) -> Option<SystemTime> {
        self.expiry
    }

    /// Returns a timer that fires when the authentication of a request expires, if it does.
    #[cfg(feature = "http-server")]
    pub(crate) fn expiry(extensions: &http::Extensions) -> Option<Pin<Box<Sleep>>> {
        let expiry = extensions.get::<Self>()?.expiry?;
        let left = expiry.duration_since(SystemTime::now()).unwrap_or_default();
        Some(Box::pin(tokio::time::sleep(left)))
    }

    #[cfg(feature = "http-server")]
    pub(crate) fn check_body(&self, body: &[u8]) -> Result<(), HeaderValue> {
        self.body.as_ref().map_or(Ok(()), |check| check(body))
    }

    #[cfg(feature = "http-server")]
    pub(crate) fn challenge_for(&self, missing: &MissingRights<'_>) -> Option<HeaderValue> {
        self.challenge.as_ref().and_then(|make| make(missing))
    }
}

impl fmt::Debug for Authenticated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticated").field("principal", &self.principal).finish_non_exhaustive()
    }
}
