use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    future::poll_fn,
    io,
    net::IpAddr,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use bytes::{Buf, Bytes, BytesMut};
use http::{Request, Response, Uri, header::HOST};
use http_body::{Frame, SizeHint};
use pintle::{Error, Result, client::http::Body};
use tower_service::Service;

use super::asked::{Asked, Log};
use crate::{
    client::{Reach, Web},
    shared::address::origin,
};

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type HostFuture<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

/// A network in memory: services by their addresses.
///
/// Clients send their requests with it ([`Http::client`](pintle::client::http::Http::client)), and their logins
/// ([`OAuth::web`](crate::client::OAuth::web)). Clones share their state.
///
/// ```
/// use pintle::{Server, client::http::Http};
/// use pintle_oauth::testing::{AuthorizationServer, Hosts};
///
/// # fn main() -> pintle::Result<()> {
/// let login = AuthorizationServer::new("https://login.test");
/// let server = Server::new("notes", "1.0.0").http()?;
/// let hosts = Hosts::new().host(login.issuer(), login.clone()).host("http://localhost", server);
/// let http = Http::new("http://localhost/mcp")?.client(hosts);
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
#[must_use = "a network does nothing until it is given to a client"]
pub struct Hosts(Arc<Mutex<HostsInner>>);

#[derive(Default)]
struct HostsInner {
    hosts: HashMap<String, Box<dyn Host>>,
    /// The addresses that names resolve to.
    addresses: HashMap<String, Vec<IpAddr>>,
    log: Log,
}

impl Hosts {
    /// Creates a network without hosts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a service at an address. It receives all requests to its origin, whatever their path.
    ///
    /// # Panics
    ///
    /// Panics if it is not an address.
    pub fn host<S, B>(self, address: impl AsRef<str>, service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        let address = address.as_ref();
        let uri: Uri = address.parse().expect("a host is at an address");
        assert!(uri.scheme().is_some(), "a host is at an address such as `https://{address}`");
        self.inner().hosts.insert(origin(&uri), Box::new(Served(service)));
        self
    }

    /// Adds an address that a name resolves to. Other names resolve to a public address.
    ///
    /// Logins and verifiers do not send requests to addresses that are not allowed, for example in a private network that the
    /// server is not in.
    ///
    /// ```
    /// # use pintle_oauth::testing::Hosts;
    /// let hosts = Hosts::new().address("intern.test", [10, 0, 0, 7]);
    /// ```
    pub fn address(self, name: impl Into<String>, address: impl Into<IpAddr>) -> Self {
        self.inner().addresses.entry(name.into()).or_default().push(address.into());
        self
    }

    /// Returns the requests to all hosts since the last call: `POST https://mcp.test/mcp (tools/call): 401`.
    pub fn log(&self) -> Vec<Asked> {
        self.inner().log.take()
    }

    fn inner(&self) -> MutexGuard<'_, HostsInner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fetch(&self, mut request: Request<Body>) -> io::Result<Response<HostBody>> {
        let uri = request.uri().clone();
        let detail = request.headers().get("mcp-method").and_then(|method| method.to_str().ok());
        let detail = detail.map(|method| format!(" ({method})")).unwrap_or_default();
        let request_line = format!("{} {}{}{detail}", request.method(), origin(&uri), uri.path());
        let sent = {
            let inner = self.inner();
            inner.hosts.get(&origin(&uri)).map(|host| {
                // In origin form, as a server receives it.
                let host_name = uri.authority().and_then(|authority| authority.as_str().parse().ok());
                if let Some(name) = host_name {
                    request.headers_mut().entry(HOST).or_insert(name);
                }
                if let Some(path) = uri.path_and_query() {
                    *request.uri_mut() = path.as_str().parse().unwrap_or(uri.clone());
                }
                host.send(request)
            })
        };
        let answer = match sent {
            Some(sent) => sent.await,
            None => Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("there is no host at `{}`; add one with `Hosts::host`", origin(&uri)),
            )),
        };
        let status = answer.as_ref().ok().map(|answer| answer.status().as_u16());
        let outcome = status.map_or_else(|| "cut off".to_owned(), |status| status.to_string());
        let parameters = BTreeMap::new();
        self.inner().log.push(Asked {
            line: format!("{request_line}: {outcome}"),
            parameters,
            client: None,
            status,
        });
        answer
    }
}

/// Sends the requests of a login to the same hosts.
impl Web for Hosts {
    async fn send(&self, request: Request<Bytes>, reach: Reach) -> Result<Response<Bytes>> {
        let uri = request.uri().clone();
        let unreached = |why: &dyn fmt::Display| {
            let place = format!("{}{}", origin(&uri), uri.path());
            Error::Io(io::Error::other(format!("`{place}` could not be reached: {why}")))
        };
        let addresses = self.addresses(uri.host().unwrap_or_default()).await;
        if !addresses.is_empty() && !addresses.into_iter().any(|address| reach.allows(address)) {
            return Err(unreached(&"its address is not allowed"));
        }
        let answer = self.fetch(request.map(Body::from)).await.map_err(|error| unreached(&error))?;
        let (head, body) = answer.into_parts();
        let body = collected(body).await.map_err(io::Error::other)?;
        Ok(Response::from_parts(head, body))
    }

    async fn addresses(&self, host: &str) -> Vec<IpAddr> {
        self.inner().addresses.get(host).cloned().unwrap_or_default()
    }
}

impl Service<Request<Body>> for Hosts {
    type Response = Response<HostBody>;
    type Error = io::Error;
    type Future = HostFuture<Response<HostBody>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let hosts = self.clone();
        Box::pin(async move { hosts.fetch(request).await })
    }
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.inner().hosts.keys()).finish()
    }
}

/// The body of a response of a host.
pub struct HostBody(Pin<Box<dyn http_body::Body<Data = Bytes, Error = BoxError> + Send>>);

impl http_body::Body for HostBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, BoxError>>> {
        self.0.as_mut().poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl fmt::Debug for HostBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostBody(…)")
    }
}

/// A service of any type.
trait Host: Send {
    fn send(&self, request: Request<Body>) -> HostFuture<Response<HostBody>>;
}

struct Served<S>(S);

impl<S, B> Host for Served<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    fn send(&self, request: Request<Body>) -> HostFuture<Response<HostBody>> {
        let mut service = self.0.clone();
        Box::pin(async move {
            poll_fn(|cx| service.poll_ready(cx)).await.map_err(io::Error::other)?;
            let answer = service.call(request).await.map_err(io::Error::other)?;
            Ok(answer.map(|body| HostBody(Box::pin(Plain(Box::pin(body))))))
        })
    }
}

/// A body in one type of data and error.
struct Plain<B>(Pin<Box<B>>);

impl<B: http_body::Body<Error: Into<BoxError>>> http_body::Body for Plain<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, BoxError>>> {
        self.0.as_mut().poll_frame(cx).map(|frame| {
            let bytes = |mut data: B::Data| data.copy_to_bytes(data.remaining());
            frame.map(|frame| frame.map(|frame| frame.map_data(bytes)).map_err(Into::into))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

async fn collected(body: HostBody) -> std::result::Result<Bytes, BoxError> {
    let mut body = pin!(body);
    let mut all = BytesMut::new();
    while let Some(frame) = poll_fn(|cx| http_body::Body::poll_frame(body.as_mut(), cx)).await {
        if let Ok(data) = frame?.into_data() {
            all.extend_from_slice(&data);
        }
    }
    Ok(all.freeze())
}
