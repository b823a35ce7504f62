#[cfg(feature = "http-server")]
use std::sync::OnceLock;

use http::{Extensions, HeaderMap, Method, Uri};

#[cfg(feature = "http-server")]
use crate::server::access::peer_address::PeerAddress;

/// What came with a request besides its message.
#[derive(Debug, Default)]
pub(crate) struct RequestContext {
    left: Extensions,
    /// What it looked like over HTTP.
    pub(crate) head: Option<HttpHead>,
    #[cfg(feature = "http-server")]
    address: Option<PeerAddress>,
    /// What was left, and the address.
    #[cfg(feature = "http-server")]
    with_address: OnceLock<Extensions>,
}

impl RequestContext {
    pub(crate) fn new(left: Extensions) -> Self {
        Self { left, ..Self::default() }
    }

    /// Creates the context of a request over HTTP. The address is added to the extensions on demand (see
    /// `bench/LEDGER.md`).
    #[cfg(feature = "http-server")]
    pub(crate) fn over_http(left: Extensions, head: HttpHead, address: Option<PeerAddress>) -> Self {
        Self { left, head: Some(head), address, with_address: OnceLock::new() }
    }

    /// All that layers below have left for the handler.
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

    /// Where it came from, if that is known.
    #[cfg(feature = "http-server")]
    pub(crate) fn address(&self) -> Option<PeerAddress> {
        self.address.or_else(|| self.left.get::<PeerAddress>().copied())
    }

    /// The same but for the address: for those who look for something else.
    pub(crate) fn left(&self) -> &Extensions {
        &self.left
    }
}

/// The head of the HTTP request that brought a call: for handlers that read a header.
///
/// A handler takes it as an argument, or asks [`Cx::http`](crate::server::Cx::http), which copies nothing.
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
    /// The headers, all of them.
    pub headers: HeaderMap,
}

impl HttpHead {
    /// A head: for tests of what reads one.
    pub fn new(method: Method, uri: Uri, headers: HeaderMap) -> Self {
        Self { method, uri, headers }
    }
}
