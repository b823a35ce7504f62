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
    client::http::connect::{self, Address, AddressFilter, Body, CollectError, Limits, Pool, Proxy},
};

/// Plain requests beside the protocol, sent as [`Http`](crate::client::http::Http) sends its own: through the same proxies, with TLS,
/// over connections that are kept.
///
/// What a login needs, for example. No redirect is followed, nothing is tried again, and an answer is read whole.
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
#[must_use = "nothing is sent until it is told to"]
pub struct Requests {
    limits: Limits,
    proxy: Proxy,
    allowed: Option<AddressFilter>,
    /// Made when it is first needed.
    pool: OnceLock<Pool>,
}

impl Requests {
    /// With the proxies that the environment names, and the default limits.
    pub fn new() -> Self {
        Self { limits: Limits::default(), proxy: Proxy::system(), allowed: None, pool: OnceLock::new() }
    }

    /// How much is taken, and how long is waited: [`Limits::head_wait`] is for the whole answer here.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Which proxy to go through. Otherwise the environment says.
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.proxy = proxy;
        self
    }

    /// Connects only to addresses for which this is true, however a host's name was found to have them. What goes
    /// through a proxy is the proxy's business.
    ///
    /// ```
    /// let requests = pintle::client::http::Requests::new().only(|address| !address.is_loopback());
    /// ```
    pub fn only(mut self, allowed: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        self.allowed = Some(Arc::new(allowed));
        self
    }

    /// Sends a request and reads its answer, whatever its status.
    ///
    /// # Errors
    ///
    /// No answer came, or one that is longer than the limit.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>> {
        let to = Address::of(request.uri().clone());
        let shown = &to;
        let pool = self.pool.get_or_init(|| self.pool());
        let mut request = request.map(Body::from);
        if !request.headers().contains_key(USER_AGENT) {
            let name = HeaderValue::from_static(concat!("pintle/", env!("CARGO_PKG_VERSION")));
            request.headers_mut().insert(USER_AGENT, name);
        }
        let fetched = timeout(self.limits.head_wait, async {
            let answer = pool.fetch(shown, || request.clone()).await;
            let (head, body) = answer
                .map_err(|error| {
                    let cause = cause(&*error);
                    Error::Io(io::Error::other(format!("`{shown}` could not be reached: {cause}")))
                })?
                .into_parts();
            let most = self.limits.answer(pintle_proto::Limits::default().message_bytes).bytes;
            let body = body.collect(most).await.map_err(|error| match error {
                CollectError::TooLong => Error::Decode(format!(
                    "the answer of `{shown}` is longer than {most} bytes: raise `Limits::answer`"
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
