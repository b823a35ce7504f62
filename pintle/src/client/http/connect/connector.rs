//! Connections: straight or through a proxy, plain or with TLS.

use std::{
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderValue, Uri};
use hyper_util::{
    client::legacy::connect::{HttpConnector, proxy::Tunnel},
    rt::TokioIo,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tower_service::Service;

use super::{
    body::BoxError,
    limits::Limits,
    pool::Pool,
    proxy::Proxies,
    resolver::{self, AddressFilter, Resolver},
};

/// After how long without a word the system asks whether the other end is still there.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// Encrypts a connection to this host.
pub(in crate::client::http) trait Encrypt: Send + Sync {
    fn encrypt(&self, host: &str, socket: TcpStream) -> Encrypting;
}

pub(in crate::client::http) type Encrypting =
    Pin<Box<dyn Future<Output = Result<Box<dyn Duplex>, BoxError>> + Send>>;

/// A stream of bytes, both ways.
pub(in crate::client::http) trait Duplex:
    AsyncRead + AsyncWrite + Send + Unpin
{
}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Connections that are kept.
pub(in crate::client::http) fn pool(
    limits: &Limits,
    proxies: Arc<Proxies>,
    tls: Option<Arc<dyn Encrypt>>,
    allowed: Option<AddressFilter>,
) -> Pool {
    let names = Resolver::new(allowed);
    let tcp = tcp(limits, names.clone());
    let proxied = self::tcp(limits, Resolver::new(None));
    Pool::new(limits, PoolConnector { tcp, proxied, names, proxies, tls })
}

fn tcp(limits: &Limits, names: Resolver) -> HttpConnector<Resolver> {
    let mut tcp = HttpConnector::new_with_resolver(names);
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(limits.connect));
    // A stream may be silent for hours; that its other end is gone is for the system to notice.
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp
}

#[derive(Clone)]
pub(in crate::client::http) struct PoolConnector {
    tcp: HttpConnector<Resolver>,
    /// To proxies, which may be anywhere.
    proxied: HttpConnector<Resolver>,
    names: Resolver,
    proxies: Arc<Proxies>,
    tls: Option<Arc<dyn Encrypt>>,
}

impl Service<Uri> for PoolConnector {
    type Response = TokioIo<HttpStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<TokioIo<HttpStream>, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let proxy = self.proxies.of(&uri);
        if proxy.is_none() && self.names.refuses(uri.host().unwrap_or_default()) {
            return Box::pin(async { Err(resolver::refused().into()) });
        }
        let mut tcp = if proxy.is_some() { self.proxied.clone() } else { self.tcp.clone() };
        let tls = self.tls.clone();
        let authorization = self.proxies.authorization(&uri);
        Box::pin(async move {
            if let Some(proxy) = &proxy
                && proxy.uri().scheme_str() != Some("http")
            {
                return Err(unsupported(
                    "only proxies with the scheme `http` are supported; set one, or another HTTP client",
                ));
            }
            if uri.scheme_str() != Some("https") {
                let to = proxy.as_ref().map_or(&uri, |proxy| proxy.uri()).clone();
                let socket = tcp.call(to).await?.into_inner();
                let io = Io::Plain(socket);
                return Ok(TokioIo::new(HttpStream { io, proxied: proxy.is_some(), authorization }));
            }
            let Some(tls) = tls else {
                return Err(unsupported("`https` needs the feature `tls`, or an HTTP client of your own"));
            };
            let host = uri.host().unwrap_or_default().to_owned();
            let socket = match &proxy {
                None => tcp.call(uri).await?,
                Some(proxy) => {
                    let mut tunnel = Tunnel::new(proxy.uri().clone(), tcp);
                    if let Some(auth) = proxy.basic_auth() {
                        tunnel = tunnel.with_auth(auth.clone());
                    }
                    tunnel.call(uri).await?
                }
            };
            let encrypted = tls.encrypt(&host, socket.into_inner()).await?;
            // What goes through a tunnel is none of the proxy's business.
            let io = Io::Encrypted(encrypted);
            Ok(TokioIo::new(HttpStream { io, proxied: false, authorization: None }))
        })
    }
}

fn unsupported(message: &'static str) -> BoxError {
    io::Error::new(io::ErrorKind::Unsupported, message).into()
}

/// A connection to a server or to a proxy.
pub(in crate::client::http) struct HttpStream {
    io: Io,
    /// Whether the other end is a proxy that reads the requests: they have to be in absolute form.
    proxied: bool,
    /// The `Proxy-Authorization` header of each request to it.
    authorization: Option<HeaderValue>,
}

enum Io {
    Plain(TcpStream),
    Encrypted(Box<dyn Duplex>),
}

impl HttpStream {
    /// Returns whether a proxy reads the requests, and the `Proxy-Authorization` header for it.
    pub(in crate::client::http) fn proxy(&self) -> (bool, Option<HeaderValue>) {
        (self.proxied, self.authorization.clone())
    }
}

impl AsyncRead for HttpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().io {
            Io::Plain(io) => Pin::new(io).poll_read(cx, buffer),
            Io::Encrypted(io) => Pin::new(io).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for HttpStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().io {
            Io::Plain(io) => Pin::new(io).poll_write(cx, bytes),
            Io::Encrypted(io) => Pin::new(io).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().io {
            Io::Plain(io) => Pin::new(io).poll_write_vectored(cx, slices),
            Io::Encrypted(io) => Pin::new(io).poll_write_vectored(cx, slices),
        }
    }

    /// Head and body of a request leave in one write.
    fn is_write_vectored(&self) -> bool {
        match &self.io {
            Io::Plain(io) => io.is_write_vectored(),
            Io::Encrypted(io) => io.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().io {
            Io::Plain(io) => Pin::new(io).poll_flush(cx),
            Io::Encrypted(io) => Pin::new(io).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().io {
            Io::Plain(io) => Pin::new(io).poll_shutdown(cx),
            Io::Encrypted(io) => Pin::new(io).poll_shutdown(cx),
        }
    }
}

impl fmt::Debug for HttpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpStream").field("proxied", &self.proxied).finish_non_exhaustive()
    }
}
