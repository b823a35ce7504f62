//! The address of an anonymous client, which its sessions are counted by.

use std::net::{IpAddr, Ipv6Addr};

use http::{HeaderMap, HeaderName, header::FORWARDED};

use crate::{Error, Result};

/// The proxies whose headers determine the address of a client.
#[derive(Clone, Debug, Default)]
pub(super) struct TrustedProxies(Vec<Network>);

/// An address prefix. IPv4 addresses are mapped to IPv6.
#[derive(Clone, Copy, Debug)]
struct Network {
    first: u128,
    bits: u32,
}

/// The limit of hops of one request that are read.
const HOPS: usize = 32;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

impl TrustedProxies {
    /// Parses addresses, or networks such as `10.0.0.0/8`.
    pub(super) fn parse<T: AsRef<str>>(proxies: impl IntoIterator<Item = T>) -> Result<Self> {
        proxies.into_iter().map(|proxy| Network::parse(proxy.as_ref())).collect::<Result<_>>().map(Self)
    }

    /// Returns the address of the client: that of the connection or, if that is a trusted proxy, the one in its header.
    ///
    /// A proxy that writes one of the two headers forwards the other as the client wrote it. If both are present, they have to
    /// agree.
    pub(super) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.trusts(peer) {
            return peer;
        }
        let forwarded = self.named(peer, headers, &FORWARDED, forwarded_for);
        let listed = self.named(peer, headers, &X_FORWARDED_FOR, address);
        match (forwarded, listed) {
            (Some(one), Some(other)) if one != other => peer,
            (Some(client), _) | (None, Some(client)) => client,
            (None, None) => peer,
        }
    }

    /// Returns the address in one of the headers of the peer of the first trusted proxy. Each proxy appends to the header, so
    /// only the part that trusted proxies added is read.
    fn named(
        &self,
        peer: IpAddr,
        headers: &HeaderMap,
        name: &HeaderName,
        read: impl Fn(&str) -> Option<IpAddr>,
    ) -> Option<IpAddr> {
        if !headers.contains_key(name) {
            return None;
        }
        let lines: Vec<_> = headers.get_all(name).iter().collect();
        let hops = lines.iter().rev().flat_map(|line| line.to_str().unwrap_or_default().rsplit(','));
        let mut nearest = peer;
        for hop in hops.take(HOPS) {
            // A hop without an address hides the hops before it.
            let Some(address) = read(hop.trim()) else { break };
            nearest = address;
            if !self.trusts(address) {
                break;
            }
        }
        Some(nearest)
    }

    fn trusts(&self, address: IpAddr) -> bool {
        let address = bits(address);
        self.0.iter().any(|network| network.contains(address))
    }
}

impl Network {
    fn parse(text: &str) -> Result<Self> {
        let no = || {
            let shown: String = text.chars().take(64).collect();
            Error::misuse(format!(
                "`{shown}` is not the address of a proxy: write one such as `10.0.0.1`, or a network such as `10.0.0.0/8`"
            ))
        };
        let (address, prefix) =
            text.split_once('/').map_or((text, None), |(left, right)| (left, Some(right)));
        let address: IpAddr = address.parse().map_err(|_| no())?;
        let limit = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(limit), |prefix| prefix.parse::<u32>().map_err(|_| no()))?;
        if prefix > limit {
            return Err(no());
        }
        Ok(Self { first: bits(address), bits: prefix + (128 - limit) })
    }

    fn contains(self, address: u128) -> bool {
        // A shift by all bits is none.
        (self.first ^ address).checked_shr(128 - self.bits).unwrap_or(0) == 0
    }
}

/// Returns the bits of an address, with IPv4 mapped to IPv6.
fn bits(address: IpAddr) -> u128 {
    let address: Ipv6Addr = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    address.to_bits()
}

/// Parses the address in a hop of `Forwarded`: `for=192.0.2.1;proto=https`, `for="[2001:db8::1]:4711"`.
fn forwarded_for(hop: &str) -> Option<IpAddr> {
    let named = hop.split(';').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then(|| value.trim())
    })?;
    address(named.trim_matches('"'))
}

/// An address, with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.to_canonical());
    }
    if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return inner.0.parse::<Ipv6Addr>().ok().map(|address| IpAddr::V6(address).to_canonical());
    }
    text.parse::<std::net::SocketAddr>().ok().map(|address| address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::access::peer_address::AddressKey;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn client(trusted: &[&str], peer: &str, lines: &[(&'static str, &str)]) -> IpAddr {
        let mut headers = HeaderMap::new();
        for (name, line) in lines {
            headers.append(*name, line.parse().unwrap());
        }
        TrustedProxies::parse(trusted).unwrap().client(ip(peer), &headers)
    }

    #[test]
    fn only_a_trusted_proxy_is_believed_and_only_what_trusted_ones_added() {
        const XFF: &str = "x-forwarded-for";
        let proxies = ["10.0.0.0/8", "2001:db8::/32"];
        for (peer, lines, found) in [
            ("192.0.2.9", &[(XFF, "198.51.100.1")][..], "192.0.2.9"),
            ("10.1.1.1", &[], "10.1.1.1"),
            ("10.1.1.1", &[(XFF, "198.51.100.1")], "198.51.100.1"),
            ("10.1.1.1", &[(XFF, "6.6.6.6, 198.51.100.1")], "198.51.100.1"),
            ("10.1.1.1", &[(XFF, "6.6.6.6, 198.51.100.1, 10.2.2.2")], "198.51.100.1"),
            ("10.1.1.1", &[(XFF, "6.6.6.6"), (XFF, "198.51.100.1")], "198.51.100.1"),
            ("10.1.1.1", &[(XFF, "6.6.6.6, nonsense")], "10.1.1.1"),
            ("10.1.1.1", &[(XFF, "6.6.6.6, unknown, 10.2.2.2")], "10.2.2.2"),
            ("10.1.1.1", &[(XFF, "198.51.100.1:4711")], "198.51.100.1"),
            ("::ffff:10.1.1.1", &[(XFF, "198.51.100.1")], "198.51.100.1"),
            (
                "2001:db8::9",
                &[("forwarded", r#"for=6.6.6.6, For="[2001:db9::1]:47";proto=https"#)],
                "2001:db9::1",
            ),
            ("10.1.1.1", &[("forwarded", "by=10.1.1.1;for=198.51.100.1")], "198.51.100.1"),
            ("10.1.1.1", &[("forwarded", "for=_hidden")], "10.1.1.1"),
            ("10.1.1.1", &[("forwarded", "for=6.6.6.6"), (XFF, "198.51.100.1")], "10.1.1.1"),
            ("10.1.1.1", &[("forwarded", "for=198.51.100.1"), (XFF, "198.51.100.1")], "198.51.100.1"),
        ] {
            assert_eq!(client(&proxies, peer, lines), ip(found), "{peer} {lines:?}");
        }
        assert_eq!(client(&[], "10.1.1.1", &[(XFF, "198.51.100.1")]), ip("10.1.1.1"));
        assert_eq!(client(&["0.0.0.0/0"], "1.2.3.4", &[(XFF, "5.6.7.8")]), ip("5.6.7.8"));
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in ["", "proxy", "10.0.0.0/33", "10.0.0.0/", "::/129", "10.0.0.1:80", "10.0.0.0/-1"] {
            assert!(TrustedProxies::parse([text]).is_err(), "{text}");
        }
        for one in ["10.0.0.1/32", "::1/128"] {
            assert!(TrustedProxies::parse([one]).is_ok(), "{one} is one address");
        }
    }

    #[test]
    fn an_ipv6_client_has_one_key_for_its_network() {
        let key = |text| AddressKey::of(ip(text));
        assert_eq!(key("2001:db8:1:2::1"), key("2001:db8:1:2:ffff::9"));
        assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
        assert_eq!(key("::ffff:192.0.2.1"), key("192.0.2.1"));
        assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
        assert_ne!(key("::1"), key("127.0.0.1"));
    }
}
