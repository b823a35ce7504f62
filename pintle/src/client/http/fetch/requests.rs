use std::{
    fmt, io,
    net::IpAddr,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header::USER_AGENT};
use tokio::time::timeout;

use super::client::cause;
use crate::{
    Error, Result,
    client::http::connect::{
        self, Address, AddressFilter, Body, CollectError, ExchangeKind, Limits, Pool, Proxy, ResponseBody,
        ResponseStream,
    },
};

/// A plain HTTP client with the proxies, TLS and connection pool of [`Http`](crate::client::http::Http).
///
/// For requests beside the protocol, such as a login. No redirects, no retries; the response is read completely.
///
/// ```no_run
/// use pintle::client::http::Requests;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let requests = Requests::new();
/// let request = http::Request::get("https://example.com/about.json").body(bytes::Bytes::new()).unwrap();
/// let answer = requests.send(request).await?;
/// println!("{} {:?}", answer.status(), answer.body());
/// # Ok(()) }
/// ```
#[must_use = "a client does nothing until a request is sent"]
pub struct Requests {
    limits: Limits,
    proxy: Proxy,
    allowed: Option<AddressFilter>,
    /// Created with the first request.
    pool: OnceLock<Pool>,
}

impl Requests {
    /// Creates a client with [`Proxy::system`] and default limits.
    pub fn new() -> Self {
        Self { limits: Limits::default(), proxy: Proxy::system(), allowed: None, pool: OnceLock::new() }
    }

    /// Sets the limits. [`Limits::head_wait`] is the timeout of the whole response here.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the proxy. Default: [`Proxy::system`].
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.proxy = proxy;
        self
    }

    /// Restricts the addresses that are connected to, also after resolving a host name. Does not apply to requests through a
    /// proxy.
    ///
    /// ```
    /// let requests = pintle::client::http::Requests::new().only(|address| !address.is_loopback());
    /// ```
    pub fn only(mut self, allowed: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        self.allowed = Some(Arc::new(allowed));
        self
    }

    /// Sends a request and reads the response, whatever its status.
    ///
    /// # Errors
    ///
    /// There was no response, or it exceeds the limit.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>> {
        let to = Address::of(request.uri().clone());
        let shown = &to;
        let mut request = request;
        if !request.headers().contains_key(USER_AGENT) {
            let name = HeaderValue::from_static(concat!("pintle/", env!("CARGO_PKG_VERSION")));
            request.headers_mut().insert(USER_AGENT, name);
        }
        let fetched = timeout(self.limits.head_wait, async {
            let (head, body) = self.fetch(shown, request).await?.into_parts();
            let limit = self.limits.answer(pintle_proto::Limits::default().message_bytes).bytes;
            let body = body.collect(limit).await.map_err(|error| match error {
                CollectError::TooLong => Error::Decode(format!(
                    "the answer of `{shown}` is longer than {limit} bytes: raise `Limits::answer`"
                )),
                CollectError::Broken(error) => Error::Io(io::Error::other(format!(
                    "`{shown}` broke off before the end of its answer: {}",
                    cause(&*error)
                ))),
            })?;
            Ok(Response::from_parts(head, body))
        });
        fetched.await.unwrap_or(Err(Error::Timeout(self.limits.head_wait)))
    }

    /// Sends a request as it is, and returns the response when its head has arrived. The body is read as it arrives, without
    /// limits of size and time.
    ///
    /// ```no_run
    /// use http_body::Body;
    /// use pintle::client::http::Requests;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// let request = http::Request::get("https://example.com/events").body(bytes::Bytes::new())?;
    /// let response = Requests::new().stream(request).await?;
    /// let mut body = std::pin::pin!(response.into_body());
    /// while let Some(frame) = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
    ///     println!("{:?}", frame?.data_ref());
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// There was no response within [`Limits::head_wait`].
    pub async fn stream(&self, request: Request<Bytes>) -> Result<Response<ResponseStream>> {
        let to = Address::of(request.uri().clone());
        let fetched = timeout(self.limits.head_wait, self.fetch(&to, request)).await;
        let response = fetched.unwrap_or(Err(Error::Timeout(self.limits.head_wait)))?;
        Ok(response.map(ResponseStream::new))
    }

    async fn fetch(&self, to: &Address, request: Request<Bytes>) -> Result<Response<ResponseBody>> {
        let pool = self.pool.get_or_init(|| self.pool());
        let request = request.map(Body::from);
        pool.fetch(to, ExchangeKind::Short, || request.clone()).await.map_err(|error| {
            let cause = cause(&*error);
            Error::Io(io::Error::other(format!("`{to}` could not be reached: {cause}")))
        })
    }

    fn pool(&self) -> Pool {
        let proxies = Arc::new(self.proxy.matcher());
        connect::pool(&self.limits, proxies, connect::encryption(), self.allowed.clone())
    }
}

impl Default for Requests {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requests").field("proxy", &self.proxy).finish_non_exhaustive()
    }
}
