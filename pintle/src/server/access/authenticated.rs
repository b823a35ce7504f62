use std::{fmt, sync::Arc, time::SystemTime};

use http::HeaderValue;
#[cfg(feature = "http-server")]
use {std::pin::Pin, tokio::time::Sleep};

/// On whose behalf a request comes and what it may do, as an authentication layer found out: it leaves this in the
/// extensions of the HTTP request.
///
/// A request without one is [anonymous](crate::server::Principal::Anonymous) and has no rights.
///
/// The principal binds sessions, states and subscriptions, unless `Http::principal` says otherwise. What the caller may
/// do is compared with what tools, prompts and resources [require](crate::server::ToolRoute::requires).
///
/// ```
/// use pintle::server::Authenticated;
///
/// # fn layer<B>(mut request: http::Request<B>) {
/// // In a layer around the service, once the caller's password was found to be right:
/// let ann = Authenticated::new("ann").rights(|right| right == "notes:read");
/// request.extensions_mut().insert(ann);
/// # }
/// ```
#[derive(Clone)]
pub struct Authenticated {
    /// `None` for the local user, who has no name.
    principal: Option<Box<str>>,
    has: Option<Arc<Has>>,
    challenge: Option<Arc<Challenge>>,
    body: Option<Arc<Body>>,
    until: Option<SystemTime>,
}

type Has = dyn Fn(&str) -> bool + Send + Sync;
type Body = dyn Fn(&[u8]) -> Result<(), HeaderValue> + Send + Sync;
type Challenge = dyn Fn(&Lacking<'_>) -> Option<HeaderValue> + Send + Sync;

/// What a request needs and its caller does not have all of.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct Lacking<'a> {
    /// All rights that the request needs.
    pub needed: &'a [&'a str],
    /// Whether clients of this revision add what they are asked for to what they were granted before. Others ask for
    /// nothing else, so that what they have is to be named again.
    pub adds: bool,
}

impl Authenticated {
    /// Somebody who may do everything.
    pub fn new(principal: impl Into<Box<str>>) -> Self {
        Self { principal: Some(principal.into()), has: None, challenge: None, body: None, until: None }
    }

    /// The user of this machine, at the other end of a pipe: may do everything, and has no name.
    pub(crate) fn local() -> Self {
        Self { principal: None, has: None, challenge: None, body: None, until: None }
    }

    /// Which rights it has.
    #[must_use]
    pub fn rights(mut self, has: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.has = Some(Arc::new(has));
        self
    }

    /// What `WWW-Authenticate` says when it lacks some: the answer is 403, and nothing of the request is run.
    #[must_use]
    pub fn challenge(
        mut self,
        say: impl Fn(&Lacking<'_>) -> Option<HeaderValue> + Send + Sync + 'static,
    ) -> Self {
        self.challenge = Some(Arc::new(say));
        self
    }

    /// Only with a body that this agrees to, for callers who have signed it: for any other the answer is 401, with this in
    /// `WWW-Authenticate`, and nothing of the request is run.
    #[must_use]
    pub fn body(mut self, fits: impl Fn(&[u8]) -> Result<(), HeaderValue> + Send + Sync + 'static) -> Self {
        self.body = Some(Arc::new(fits));
        self
    }

    /// Only until then. Streams on which the server tells of changes end, and the client has to come back with whatever it
    /// authenticates with; calls that run come to their end.
    #[must_use]
    pub fn until(mut self, end: SystemTime) -> Self {
        self.until = Some(end);
        self
    }

    /// On whose behalf it is.
    pub fn principal(&self) -> Option<&str> {
        self.principal.as_deref()
    }

    /// Whether it has this right.
    pub fn has(&self, right: &str) -> bool {
        self.has.as_ref().is_none_or(|has| has(right))
    }

    /// Comes when it is over, if that is known.
    #[cfg(feature = "http-server")]
    pub(crate) fn end(extensions: &http::Extensions) -> Option<Pin<Box<Sleep>>> {
        let end = extensions.get::<Self>()?.until?;
        let left = end.duration_since(SystemTime::now()).unwrap_or_default();
        Some(Box::pin(tokio::time::sleep(left)))
    }

    #[cfg(feature = "http-server")]
    pub(crate) fn signed(&self, body: &[u8]) -> Result<(), HeaderValue> {
        self.body.as_ref().map_or(Ok(()), |fits| fits(body))
    }

    #[cfg(feature = "http-server")]
    pub(crate) fn challenged(&self, lacking: &Lacking<'_>) -> Option<HeaderValue> {
        self.challenge.as_ref().and_then(|say| say(lacking))
    }
}

impl fmt::Debug for Authenticated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticated").field("principal", &self.principal).finish_non_exhaustive()
    }
}
