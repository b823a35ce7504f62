#[cfg(feature = "http-server")]
use std::sync::OnceLock;

use http::{Extensions, HeaderMap, Method, Uri};

#[cfg(feature = "http-server")]
use crate::server::access::peer_address::PeerAddress;

/// The context of a request: its extensions, and its head if it came over HTTP.
#[derive(Debug, Default)]
pub(crate) struct RequestContext {
    /// The extensions without the peer address.
    left: Extensions,
    /// The head of the HTTP request.
    pub(crate) head: Option<HttpHead>,
    #[cfg(feature = "http-server")]
    address: Option<PeerAddress>,
    /// The extensions with the peer address, once they were asked for.
    #[cfg(feature = "http-server")]
    with_address: OnceLock<Extensions>,
}

impl RequestContext {
    pub(crate) fn new(left: Extensions) -> Self {
        Self { left, ..Self::default() }
    }

    /// Creates the context of a request over HTTP. The address is added to the extensions when they are first asked for.
    #[cfg(feature = "http-server")]
    pub(crate) fn over_http(left: Extensions, head: HttpHead, address: Option<PeerAddress>) -> Self {
        Self { left, head: Some(head), address, with_address: OnceLock::new() }
    }

    /// Returns the extensions that layers have inserted, and the peer address.
    pub(crate) fn extensions(&self) -> &Extensions {
        #[cfg(feature = "http-server")]
        if let Some(address) = self.address {
            return self.with_address.get_or_init(|| {
                let mut all = self.left.clone();
                all.insert(address);
                all
            });
        }
        &self.left
    }

    /// Returns the peer address, if it is known.
    #[cfg(feature = "http-server")]
    pub(crate) fn address(&self) -> Option<PeerAddress> {
        self.address.or_else(|| self.left.get::<PeerAddress>().copied())
    }

    /// Returns the extensions without the peer address.
    pub(crate) fn left(&self) -> &Extensions {
        &self.left
    }
}

/// The head of the HTTP request of a call, for handlers that read a header.
///
/// A handler takes it as an argument, or calls [`Cx::http`](crate::server::Cx::http), which copies nothing.
///
/// ```
/// use pintle::server::{HttpHead, tool};
///
/// let agent = tool("agent", |head: HttpHead| async move {
///     let agent = head.headers.get("user-agent").and_then(|value| value.to_str().ok());
///     format!("You use {}.", agent.unwrap_or("something"))
/// });
/// ```
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct HttpHead {
    /// The method.
    pub method: Method,
    /// The target, as the client wrote it.
    pub uri: Uri,
    /// The headers.
    pub headers: HeaderMap,
}

impl HttpHead {
    /// Creates a head, for tests of handlers that read one.
    pub fn new(method: Method, uri: Uri, headers: HeaderMap) -> Self {
        Self { method, uri, headers }
    }
}
