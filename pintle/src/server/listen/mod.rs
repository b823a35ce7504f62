//! Where a server listens: the `Listen` setting, its flags, and `Server::serve_on` and `Server::run`.

#[cfg(feature = "net")]
mod accept;
mod args;
mod parse;
mod serve;

use std::fmt;
#[cfg(feature = "http-server")]
use std::sync::Arc;

#[cfg(feature = "http-server")]
use crate::{Result, server::http::Http};

/// Where a server listens: on the standard streams, over HTTP, or on a socket.
///
/// A program that serves stdio, or HTTP if it is started with `--http`:
///
/// ```no_run
/// use pintle::{Server, server::{Listen, tool}};
///
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> pintle::Result<()> {
///     let server = Server::new("greeter", "1.0.0").tool(tool("greet", || async { "Hello!" }));
///     server.run(Listen::from_args()).await
/// }
/// ```
///
/// A `Listen` is also parsed from a string, for example as the value of a flag of `clap` or a line of a configuration file:
///
/// | string | listens |
/// |---|---|
/// | `stdio` | on the standard streams of the process (feature `stdio`) |
/// | `http://127.0.0.1:8000` | over HTTP at the path `/mcp`, or at that of the URL (feature `http-server`) |
/// | `tcp://127.0.0.1:8000` | on TCP, one message per line (feature `net`) |
/// | `unix:/run/greeter.sock` | on a Unix socket, one message per line (feature `net`) |
///
/// ```
/// use pintle::server::Listen;
///
/// # #[cfg(feature = "stdio")]
/// let listen: Listen = "stdio".parse()?;
/// let error = "127.0.0.1:8000".parse::<Listen>().unwrap_err();
/// assert!(error.to_string().contains("write `http://127.0.0.1:8000`"));
/// # Ok::<(), pintle::Error>(())
/// ```
#[derive(Clone)]
pub struct Listen {
    address: ListenAddress,
    /// The allowed hosts; those of this machine if it is empty.
    hosts: Vec<String>,
    #[cfg(feature = "http-server")]
    configure: Option<Arc<ConfigureHttp>>,
}

#[cfg(feature = "http-server")]
type ConfigureHttp = dyn Fn(Http) -> Result<Http> + Send + Sync;

/// An address of any kind, whether or not the feature that serves it is enabled.
#[derive(Clone, Debug, Eq, PartialEq)]
enum ListenAddress {
    Stdio,
    Http { address: String, path: String },
    Tcp(String),
    Unix(String),
}

/// The path of HTTP unless another one is given.
const PATH: &str = "/mcp";

impl Listen {
    fn new(address: ListenAddress) -> Self {
        Self {
            address,
            hosts: Vec::new(),
            #[cfg(feature = "http-server")]
            configure: None,
        }
    }

    /// Listens on the standard streams of the process, for the host that started it.
    #[cfg(feature = "stdio")]
    pub fn stdio() -> Self {
        Self::new(ListenAddress::Stdio)
    }

    /// Listens on this address over HTTP, at the path `/mcp`. Port 0 is a free port.
    ///
    /// ```
    /// use std::time::Duration;
    /// use pintle::{Server, server::{Listen, tool}};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// let server = Server::new("greeter", "1.0.0").tool(tool("greet", || async { "Hello!" }));
    /// let serving = server.serve_on(Listen::http("127.0.0.1:0")).await?;
    /// assert!(serving.url().is_some_and(|url| url.ends_with("/mcp")));
    /// serving.close(Duration::from_secs(10)).await?;
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "http-server")]
    pub fn http(address: impl fmt::Display) -> Self {
        Self::new(ListenAddress::Http { address: address.to_string(), path: PATH.into() })
    }

    /// Listens on TCP, for clients that send one message per line. See [`listen_tcp`](crate::transport::listen_tcp) for who may
    /// connect.
    #[cfg(feature = "net")]
    pub fn tcp(address: impl fmt::Display) -> Self {
        Self::new(ListenAddress::Tcp(address.to_string()))
    }

    /// Listens on a Unix socket, for clients that send one message per line. See
    /// [`listen_unix`](crate::transport::listen_unix) for who may connect.
    #[cfg(all(feature = "net", unix))]
    pub fn unix(path: impl AsRef<std::path::Path>) -> Self {
        Self::new(ListenAddress::Unix(path.as_ref().to_string_lossy().into_owned()))
    }

    /// Sets the host names that HTTP requests may be for, instead of those of this machine. `mcp.example.com` allows any port.
    ///
    /// A server on an address that other machines can reach needs them: it answers requests for other hosts with 403, since
    /// they may be those of a web page (DNS rebinding). Other addresses ignore this setting.
    #[must_use]
    pub fn hosts<T: Into<String>>(mut self, hosts: impl IntoIterator<Item = T>) -> Self {
        self.hosts.extend(hosts.into_iter().map(Into::into));
        self
    }

    /// Changes the settings of the HTTP service, if the server listens over HTTP.
    ///
    /// ```no_run
    /// # async fn serve(server: pintle::Server) -> pintle::Result<()> {
    /// use pintle::server::Listen;
    ///
    /// let listen = Listen::from_args().configure_http(|http| http.max_sessions(1_000).trusted_proxies(["10.0.0.0/8"]));
    /// server.run(listen).await
    /// # }
    /// ```
    #[cfg(feature = "http-server")]
    #[must_use]
    pub fn configure_http(
        mut self,
        configure: impl Fn(Http) -> Result<Http> + Send + Sync + 'static,
    ) -> Self {
        self.configure = Some(Arc::new(configure));
        self
    }

    /// Returns the address if it is one of HTTP, for servers that add layers of their own.
    pub fn http_address(&self) -> Option<&str> {
        match &self.address {
            ListenAddress::Http { address, .. } => Some(address),
            _ => None,
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio => f.write_str("stdio"),
            Self::Http { address, path } => write!(f, "http://{address}{path}"),
            Self::Tcp(address) => write!(f, "tcp://{address}"),
            Self::Unix(path) => write!(f, "unix:{path}"),
        }
    }
}

impl fmt::Debug for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listen")
            .field("address", &self.address)
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}
