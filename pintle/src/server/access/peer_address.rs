use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroU64,
};

use pintle_proto::ledger::Owner;

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
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct AddressKey(NonZeroU64);

impl AddressKey {
    #[cfg(feature = "http-server")]
    pub(crate) const MIN: Self = Self(NonZeroU64::MIN);

    pub(crate) fn of(address: IpAddr) -> Self {
        let key = match address.to_canonical() {
            // No IPv6 network in use has this prefix.
            IpAddr::V4(address) => 0xffff << 32 | u64::from(address.to_bits()),
            IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
        };
        Self(NonZeroU64::new(key).unwrap_or(NonZeroU64::MIN))
    }

    /// Returns the owner of what clients of this address make a server hold.
    pub(crate) fn owner(self) -> Owner {
        Owner::Address { near: self.0.get(), network: self.network().0.get() }
    }

    /// Returns the network of 24 bits of an IPv4 address, or of 48 bits of an IPv6 one, whose addresses are often had by one party.
    pub(crate) fn network(self) -> Self {
        let bits = if self.0.get() >> 32 == 0xffff { 8 } else { 16 };
        Self(NonZeroU64::new(self.0.get() >> bits << bits).unwrap_or(NonZeroU64::MIN))
    }
}
