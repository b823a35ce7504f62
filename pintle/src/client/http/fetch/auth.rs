use std::{fmt, future::Future, pin::Pin};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Uri,
    header::{AUTHORIZATION, WWW_AUTHENTICATE},
};

use crate::{Error, Result, message_log::Redactor};

/// Authorization of requests.
///
/// [`authorize`](Self::authorize) runs before every request, [`challenged`](Self::challenged) after a refusal. Both may run
/// concurrently for several calls: an implementation has to make sure that only one of them fetches a new token. Their time does
/// not count towards the timeout of the call.
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
///             .map_err(|_| pintle::Error::Misuse("the token is not text".into()))?;
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
    /// Returns the headers of a request. May be empty until a server asks for authorization.
    fn authorize(&self, request: Outgoing<'_>) -> impl Future<Output = Result<HeaderMap>> + Send;

    /// Handles a refusal with 401, or with 403 and a challenge. Returns whether to send the request again.
    ///
    /// # Errors
    ///
    /// Authorization failed; the request fails with this error.
    fn challenged(&self, _challenge: Challenge<'_>) -> impl Future<Output = Result<bool>> + Send {
        async { Ok(false) }
    }
}

/// A request that is about to be sent. `Debug` prints it [redacted](crate::message_log::Redactor).
#[non_exhaustive]
#[derive(Clone, Copy)]
pub struct Outgoing<'a> {
    /// The HTTP method.
    pub method: &'a Method,
    /// The URL.
    pub url: &'a Uri,
    /// The body.
    pub body: &'a Bytes,
}

/// A request that was refused. `Debug` prints it [redacted](crate::message_log::Redactor).
#[non_exhaustive]
#[derive(Clone, Copy)]
pub struct Challenge<'a> {
    /// The HTTP method.
    pub method: &'a Method,
    /// The URL.
    pub url: &'a Uri,
    /// The status: 401 or 403.
    pub status: u16,
    /// The headers of the response.
    pub headers: &'a HeaderMap,
    /// The headers that [`Auth::authorize`] returned for this request. Its credentials may have been replaced since.
    pub sent: &'a HeaderMap,
    /// How often this request was refused, from 1.
    pub tries: u32,
}

impl Challenge<'_> {
    /// Returns the `WWW-Authenticate` headers.
    pub fn wanted(&self) -> impl Iterator<Item = &str> {
        self.headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok())
    }

    /// Returns a copy that outlives the request, for an [`Auth`] that has the challenge answered in a task.
    pub fn into_owned(self) -> OwnedChallenge {
        OwnedChallenge {
            method: self.method.clone(),
            url: self.url.clone(),
            status: self.status,
            headers: self.headers.clone(),
            sent: self.sent.clone(),
            tries: self.tries,
        }
    }
}

/// A [`Challenge`] that outlives its request. `Debug` prints it [redacted](crate::message_log::Redactor).
///
/// ```
/// use pintle::client::http::{Auth, Challenge, Outgoing};
///
/// /// Answers challenges in tasks, which go on if their request is cancelled.
/// struct Detached<A>(std::sync::Arc<A>);
///
/// impl<A: Auth> Auth for Detached<A> {
///     async fn authorize(&self, request: Outgoing<'_>) -> pintle::Result<http::HeaderMap> {
///         self.0.authorize(request).await
///     }
///
///     async fn challenged(&self, challenge: Challenge<'_>) -> pintle::Result<bool> {
///         let (auth, challenge) = (self.0.clone(), challenge.into_owned());
///         let answered = tokio::spawn(async move { auth.challenged(challenge.get()).await });
///         answered.await.unwrap_or(Ok(false))
///     }
/// }
/// ```
#[derive(Clone)]
pub struct OwnedChallenge {
    method: Method,
    url: Uri,
    status: u16,
    headers: HeaderMap,
    sent: HeaderMap,
    tries: u32,
}

impl OwnedChallenge {
    /// Returns the challenge.
    pub fn get(&self) -> Challenge<'_> {
        Challenge {
            method: &self.method,
            url: &self.url,
            status: self.status,
            headers: &self.headers,
            sent: &self.sent,
            tries: self.tries,
        }
    }
}

impl fmt::Debug for OwnedChallenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.get(), f)
    }
}

impl fmt::Debug for Outgoing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (redactor, url) = (Redactor::new().arguments(), self.url.to_string());
        let body = redactor.message(self.body, true).unwrap_or_else(|withheld| withheld);
        f.debug_struct("Outgoing")
            .field("method", &self.method)
            .field("url", &redactor.url(&url))
            .field("body", &body)
            .finish()
    }
}

impl fmt::Debug for Challenge<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (redactor, url) = (Redactor::new(), self.url.to_string());
        f.debug_struct("Challenge")
            .field("method", &self.method)
            .field("url", &redactor.url(&url))
            .field("status", &self.status)
            .field("headers", &redactor.headers(self.headers))
            .field("sent", &redactor.headers(self.sent))
            .field("tries", &self.tries)
            .finish()
    }
}

/// A fixed bearer token.
#[derive(Clone)]
pub struct Bearer(HeaderValue);

impl Bearer {
    /// Creates the authorization from a token.
    ///
    /// # Errors
    ///
    /// The token is not a valid header value.
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

/// An object-safe [`Auth`].
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_not_printed() {
        let headers = |name: &'static str| {
            [(http::HeaderName::from_static(name), HeaderValue::from_static("canary"))].into_iter().collect()
        };
        let (answered, sent): (HeaderMap, HeaderMap) = (headers("set-cookie"), headers("dpop"));
        let url = Uri::from_static("http://canary@localhost/mcp?canary");
        let challenge = Challenge {
            method: &Method::POST,
            url: &url,
            status: 401,
            headers: &answered,
            sent: &sent,
            tries: 1,
        };
        let body = Bytes::from_static(br#"{"params":{"arguments":"canary","requestState":"canary"}}"#);
        let outgoing = Outgoing { method: &Method::POST, url: &url, body: &body };
        let printed = format!("{challenge:?} {outgoing:?}");
        assert!(printed.contains("localhost") && !printed.contains("canary"), "{printed}");
    }
}
