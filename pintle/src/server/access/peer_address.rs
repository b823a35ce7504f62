use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroU64,
};

/// The address of the client: an extension of every request that an `HttpServer` receives, and of the calls of a TCP connection.
///
/// Behind a proxy, this is the address of the proxy.
///
/// ```
/// use pintle::server::{Extension, PeerAddress, tool};
///
/// let whence = tool("whence", |Extension(PeerAddress(address)): Extension<PeerAddress>| async move {
///     format!("You connected from {}.", address.ip())
/// });
/// ```
#[expect(clippy::exhaustive_structs, reason = "a newtype of an address")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PeerAddress(pub SocketAddr);

/// An IPv4 address, or an IPv6 network of 64 bits, whose addresses usually belong to one subscriber.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct AddressKey(NonZeroU64);

impl AddressKey {
    pub(crate) fn of(address: IpAddr) -> Self {
        let key = match address.to_canonical() {
            // No IPv6 network in use has this prefix.
            IpAddr::V4(address) => 0xffff << 32 | u64::from(address.to_bits()),
            IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
        };
        Self(NonZeroU64::new(key).unwrap_or(NonZeroU64::MIN))
    }
}
