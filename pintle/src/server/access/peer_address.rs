use std::net::SocketAddr;

/// The address of the client: an extension of every request received by an
/// [`HttpServer`](crate::server::http::HttpServer).
///
/// Behind a proxy, this is the address of the proxy.
///
/// ```
/// use pintle::server::{Extension, http::PeerAddress, tool};
///
/// let whence = tool("whence", |Extension(PeerAddress(address)): Extension<PeerAddress>| async move {
///     format!("You connected from {}.", address.ip())
/// });
/// ```
#[expect(clippy::exhaustive_structs, reason = "a newtype of an address")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PeerAddress(pub SocketAddr);
