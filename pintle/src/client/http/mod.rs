//! Servers over HTTP: every revision of Streamable HTTP, and the two endpoints of the oldest transport.
//!
//! [`Http`] is the transport. Which of them the server speaks is found out when a connection is opened; a call is one
//! POST, whatever comes back for it, and a failed one fails nothing else.

mod connect;
mod fetch;
mod transport;

use std::{fmt, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use tower_service::Service;

pub use connect::{Body, Limits, Proxy};
pub use fetch::{Auth, Bearer, Challenge, Outgoing, Requests, Retry};

use crate::{
    Result,
    transport::{Holdups, Listening},
};
use connect::{Address, Erased, Fetch, Sender};
use fetch::{AnyAuth, Wire};
use transport::Live;

/// A server at a URL.
///
/// ```no_run
/// use pintle::{Client, client::http::Http};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let http = Http::new("https://example.com/mcp")?.bearer("s3cret")?;
/// let server = Client::new("demo", "0.1.0").connect(http).await?;
/// for tool in server.tools().await? {
///     println!("{}", tool.name);
/// }
/// server.close().await;
/// # Ok(()) }
/// ```
#[must_use = "nothing is sent until a client connects with it"]
pub struct Http {
    address: Address,
    headers: HeaderMap,
    auth: Option<Arc<dyn AnyAuth>>,
    client: Option<Box<dyn Fetch>>,
    limits: Limits,
    retry: Retry,
    proxy: Proxy,
    fault: Option<String>,
    holdups: Holdups,
    listening: Listening,
    /// What the client that uses it says.
    message_bytes: usize,
    live: Option<Live>,
}

impl Http {
    /// The server at this URL. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// It is no URL of a server: it needs `http` or `https` and a host, and must not hold a password.
    pub fn new(url: impl AsRef<str>) -> Result<Self> {
        Ok(Self {
            address: Address::parse(url.as_ref())?,
            headers: HeaderMap::new(),
            auth: None,
            client: None,
            limits: Limits::default(),
            retry: Retry::default(),
            proxy: Proxy::system(),
            fault: None,
            holdups: Holdups::new(),
            listening: Listening::closed(),
            message_bytes: pintle_proto::Limits::default().message_bytes,
            live: None,
        })
    }

    /// Sends a header with every request. What the protocol itself says in headers cannot be changed by that.
    ///
    /// A header that cannot be is an error of the first request.
    pub fn header(mut self, name: impl TryInto<HeaderName>, value: impl TryInto<HeaderValue>) -> Self {
        match (name.try_into(), value.try_into()) {
            (Ok(name), Ok(value)) => drop(self.headers.append(name, value)),
            (Ok(name), Err(_)) => {
                self.fault = Some(format!("the header `{name}` has a value that none can carry"))
            }
            (Err(_), _) => self.fault = Some("a header has a name that none can have".into()),
        }
        self
    }

    /// Sends these with every request.
    pub fn headers(mut self, headers: impl IntoIterator<Item = (HeaderName, HeaderValue)>) -> Self {
        for (name, value) in headers {
            self.headers.append(name, value);
        }
        self
    }

    /// Authorizes every request.
    pub fn auth(mut self, auth: impl Auth) -> Self {
        self.auth = Some(Arc::new(auth));
        self
    }

    /// Authorizes every request with this token.
    ///
    /// # Errors
    ///
    /// No header can carry it.
    pub fn bearer(self, token: impl AsRef<str>) -> Result<Self> {
        Ok(self.auth(Bearer::new(token)?))
    }

    /// Sends requests with an HTTP client of your own, for what this one does not have: other proxies, certificates of
    /// your own, HTTP/2, a recording.
    ///
    /// It should keep its connections, and not follow redirects. [`Limits::connect`], [`Limits::head`] and
    /// [`proxy`](Self::proxy) are its business then.
    ///
    /// ```
    /// use http::{Request, Response};
    /// use pintle::{Client, client::http::{Body, Http}};
    ///
    /// #[derive(Clone)]
    /// struct Canned;
    ///
    /// impl tower_service::Service<Request<Body>> for Canned {
    ///     type Response = Response<Body>;
    ///     type Error = std::convert::Infallible;
    ///     type Future = std::future::Ready<Result<Response<Body>, Self::Error>>;
    ///
    ///     fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
    ///         std::task::Poll::Ready(Ok(()))
    ///     }
    ///
    ///     fn call(&mut self, request: Request<Body>) -> Self::Future {
    ///         assert_eq!(request.headers()["mcp-method"], "server/discover");
    ///         let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],
    ///             "capabilities":{},"ttlMs":0,"cacheScope":"public"}}"#;
    ///         let answer = Response::builder().header("content-type", "application/json").body(Body::from(bytes::Bytes::from(answer)));
    ///         std::future::ready(Ok(answer.unwrap()))
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// let http = Http::new("http://example.com/mcp")?.client(Canned);
    /// let server = Client::new("demo", "0.1.0").connect(http).await?;
    /// assert_eq!(server.revision().to_string(), "2026-07-28");
    /// # Ok(()) }
    /// ```
    pub fn client<S, B>(mut self, client: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
        B: http_body::Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
            + Send
            + 'static,
    {
        self.client = Some(Box::new(Erased::new(client)));
        self
    }

    /// How much is taken, and how far a request goes.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What is tried again.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Which proxy to go through. Otherwise the environment says.
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.proxy = proxy;
        self
    }

    fn wire(&mut self) -> Wire {
        let sender = match self.client.take() {
            Some(client) => Sender::Theirs(client),
            None => {
                let proxies = Arc::new(self.proxy.matcher());
                Sender::Ours(connect::pool(&self.limits, proxies, connect::encryption(), None))
            }
        };
        Wire {
            address: self.address.clone(),
            sender,
            headers: std::mem::take(&mut self.headers),
            auth: self.auth.take(),
            limits: self.limits.clone(),
            answer: self.limits.answer(self.message_bytes),
            retry: self.retry.clone(),
            holdups: self.holdups.clone(),
            listening: self.listening.clone(),
            fault: self.fault.take(),
        }
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("address", &self.address).finish_non_exhaustive()
    }
}
