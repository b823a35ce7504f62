use std::fmt;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

/// The proxy of requests.
///
/// Requests to `http` URLs are forwarded by the proxy; requests to `https` URLs use a `CONNECT` tunnel.
///
/// ```
/// use pintle::client::http::{Http, Proxy};
///
/// let http = Http::new("http://example.com/mcp")?
///     .proxy(Proxy::all("http://proxy.example.com:3128").except("localhost,.example.org"));
/// # Ok::<(), pintle::Error>(())
/// ```
#[derive(Clone)]
pub struct Proxy {
    kind: ProxyKind,
    except: String,
}

#[derive(Clone)]
enum ProxyKind {
    System,
    None,
    All(String),
}

impl Proxy {
    /// Reads `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, in upper or lower case. The default.
    pub fn system() -> Self {
        Self { kind: ProxyKind::System, except: String::new() }
    }

    /// Uses no proxy.
    pub fn none() -> Self {
        Self { kind: ProxyKind::None, except: String::new() }
    }

    /// Uses this proxy for every request. The URL may contain a user and a password.
    pub fn all(url: impl Into<String>) -> Self {
        Self { kind: ProxyKind::All(url.into()), except: String::new() }
    }

    /// Excludes hosts, domains and networks: a comma-separated list as in `NO_PROXY`.
    pub fn except(mut self, hosts: impl Into<String>) -> Self {
        self.except = hosts.into();
        self
    }

    pub(in crate::client::http) fn matcher(&self) -> Proxies {
        Proxies(match &self.kind {
            ProxyKind::System => Matcher::from_env(),
            ProxyKind::None => Matcher::builder().build(),
            ProxyKind::All(url) => Matcher::builder().all(url.clone()).no(self.except.clone()).build(),
        })
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may hold a password.
        f.write_str(match &self.kind {
            ProxyKind::System => "Proxy::system()",
            ProxyKind::None => "Proxy::none()",
            ProxyKind::All(_) => "Proxy::all(…)",
        })
    }
}

/// Selects the proxy of a request.
pub(in crate::client::http) struct Proxies(Matcher);

impl Proxies {
    pub(in crate::client::http) fn of(&self, uri: &Uri) -> Option<Intercept> {
        self.0.intercept(uri)
    }

    /// Returns the `Proxy-Authorization` header of a forwarded request. Requests in a tunnel have none.
    pub(in crate::client::http) fn authorization(&self, uri: &Uri) -> Option<HeaderValue> {
        if uri.scheme_str() != Some("http") {
            return None;
        }
        let mut value = self.of(uri)?.basic_auth()?.clone();
        value.set_sensitive(true);
        Some(value)
    }
}
