use std::{fmt, future::Future, pin::Pin};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Uri,
    header::{AUTHORIZATION, WWW_AUTHENTICATE},
};

use crate::{Error, Result};

/// Authorizes requests: a challenge in, headers out.
///
/// It is asked before every request, and told when a server refuses one; what it knows by then is its own business, and
/// so is that only one of several calls at once goes and fetches a new token. Nothing is locked while it thinks, and
/// the time that it takes is not counted against the server.
///
/// ```
/// use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
/// use pintle::client::http::{Auth, Challenge, Http, Outgoing};
///
/// struct FromDisk;
///
/// impl Auth for FromDisk {
///     async fn authorize(&self, _: Outgoing<'_>) -> pintle::Result<HeaderMap> {
///         let token = std::fs::read_to_string("/run/secrets/token")?;
///         let mut value = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
///             .map_err(|_| pintle::Error::Misuse("the token is no text".into()))?;
///         value.set_sensitive(true);
///         Ok([(AUTHORIZATION, value)].into_iter().collect())
///     }
///
///     async fn challenged(&self, challenge: Challenge<'_>) -> pintle::Result<bool> {
///         // It may have been replaced since.
///         Ok(challenge.tries == 1)
///     }
/// }
///
/// let http = Http::new("https://example.com/mcp")?.auth(FromDisk);
/// # Ok::<(), pintle::Error>(())
/// ```
pub trait Auth: Send + Sync + 'static {
    /// The headers that this request needs. None at all is fine, as long as nobody has asked for any.
    fn authorize(&self, request: Outgoing<'_>) -> impl Future<Output = Result<HeaderMap>> + Send;

    /// A request was refused with 401, or with 403 and a challenge. Says whether it is worth sending it again.
    ///
    /// # Errors
    ///
    /// Authorization was tried and failed: the request fails with this.
    fn challenged(&self, _challenge: Challenge<'_>) -> impl Future<Output = Result<bool>> + Send {
        async { Ok(false) }
    }
}

/// A request that is about to be sent.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// Its method.
    pub method: &'a Method,
    /// Where it goes.
    pub url: &'a Uri,
    /// All that it says.
    pub body: &'a Bytes,
}

/// A request that was refused.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct Challenge<'a> {
    /// Its method.
    pub method: &'a Method,
    /// Where it went.
    pub url: &'a Uri,
    /// 401 or 403.
    pub status: u16,
    /// The headers of the answer.
    pub headers: &'a HeaderMap,
    /// What [`Auth::authorize`] gave for this request: it may have been replaced since.
    pub sent: &'a HeaderMap,
    /// How often this request was refused so far: 1 for the first time.
    pub tries: u32,
}

impl Challenge<'_> {
    /// What the server wants: its `WWW-Authenticate` headers.
    pub fn wanted(&self) -> impl Iterator<Item = &str> {
        self.headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok())
    }
}

/// A token that does not change.
#[derive(Clone)]
pub struct Bearer(HeaderValue);

impl Bearer {
    /// Sends `Authorization: Bearer` with this token.
    ///
    /// # Errors
    ///
    /// No header can carry it.
    pub fn new(token: impl AsRef<str>) -> Result<Self> {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", token.as_ref())).map_err(|_| {
            Error::misuse(
                "the token has characters that no header can carry: trim it, and check where it came from",
            )
        })?;
        value.set_sensitive(true);
        Ok(Self(value))
    }
}

impl Auth for Bearer {
    async fn authorize(&self, _request: Outgoing<'_>) -> Result<HeaderMap> {
        Ok([(AUTHORIZATION, self.0.clone())].into_iter().collect())
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer(…)")
    }
}

type Thinking<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// An [`Auth`] of any type.
pub(in crate::client::http) trait AnyAuth: Send + Sync {
    fn authorize<'a>(&'a self, request: Outgoing<'a>) -> Thinking<'a, HeaderMap>;
    fn challenged<'a>(&'a self, challenge: Challenge<'a>) -> Thinking<'a, bool>;
}

impl<A: Auth> AnyAuth for A {
    fn authorize<'a>(&'a self, request: Outgoing<'a>) -> Thinking<'a, HeaderMap> {
        Box::pin(Auth::authorize(self, request))
    }

    fn challenged<'a>(&'a self, challenge: Challenge<'a>) -> Thinking<'a, bool> {
        Box::pin(Auth::challenged(self, challenge))
    }
}
