use std::{
    io,
    net::{IpAddr, Ipv6Addr, SocketAddr},
};

use redis::{RedisError, RedisFuture, io::AsyncDNSResolver};
use tokio::net::lookup_host;

/// The resolver of the nodes of a cluster, which name each other. The password is sent to each of them: in clear text it does not leave
/// the private network in which the named ones are.
pub(crate) struct NodeResolver {
    allows_public: bool,
}

impl NodeResolver {
    /// Returns the resolver of the nodes of a cluster that is found by these.
    pub(crate) async fn of_named(nodes: impl IntoIterator<Item = (String, u16)>) -> Self {
        for (host, port) in nodes {
            // One that cannot be found is not connected to either.
            let found = lookup_host((host, port)).await.into_iter().flatten();
            if found.map(|address| address.ip()).any(is_public) {
                return Self { allows_public: true };
            }
        }
        Self { allows_public: false }
    }

    async fn find(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let found: Vec<_> = lookup_host((host, port)).await?.collect();
        if !self.allows_public && found.iter().any(|address| is_public(address.ip())) {
            let refused = format!(
                "a node of the cluster names `{host}`, which is not in the private network of the nodes in the URL, and is sent the \
                 password in clear text: use `rediss+cluster`, or put this node into the URL"
            );
            // The client of the cluster goes on without the node, and without the reason.
            tracing::warn!("{refused}");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, refused));
        }
        Ok(found)
    }
}

impl AsyncDNSResolver for NodeResolver {
    fn resolve<'a, 'b: 'a>(
        &'a self,
        host: &'b str,
        port: u16,
    ) -> RedisFuture<'a, Box<dyn Iterator<Item = SocketAddr> + Send + 'a>> {
        Box::pin(async move {
            let found = self.find(host, port).await.map_err(RedisError::from)?;
            Ok(Box::new(found.into_iter()) as Box<dyn Iterator<Item = SocketAddr> + Send>)
        })
    }
}

/// Returns whether an address is none of a host or of a private network.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            // The last one is shared by the customers of a provider, and used by clusters of containers.
            let [first, second, ..] = address.octets();
            !(address.is_loopback()
                || address.is_private()
                || address.is_link_local()
                || address.is_unspecified()
                || (first == 100 && second & 0xc0 == 0x40))
        }
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => is_public(mapped.into()),
            None => {
                !(address == Ipv6Addr::LOCALHOST
                    || address.is_unspecified()
                    || address.is_unique_local()
                    || address.is_unicast_link_local())
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_hosts_and_private_networks_are_not_public() {
        for (address, expected) in [
            ("127.0.0.1", false),
            ("10.1.2.3", false),
            ("172.16.0.1", false),
            ("172.32.0.1", true),
            ("192.168.1.1", false),
            ("169.254.1.1", false),
            ("100.64.0.1", false),
            ("100.128.0.1", true),
            ("0.0.0.0", false),
            ("203.0.113.9", true),
            ("::1", false),
            ("::", false),
            ("fd00::1", false),
            ("fe80::1", false),
            ("2001:db8::1", true),
            ("::ffff:10.0.0.1", false),
            ("::ffff:203.0.113.9", true),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[tokio::test]
    async fn a_public_node_is_found_if_one_is_named() {
        let named = |hosts: &[&str]| {
            NodeResolver::of_named(hosts.iter().map(|host| ((*host).to_owned(), 6379)).collect::<Vec<_>>())
        };
        for (hosts, allowed) in [
            (&["127.0.0.1"][..], false),
            (&["127.0.0.1", "203.0.113.1"], true),
            (&["10.0.0.1", "::1"], false),
        ] {
            let resolver = named(hosts).await;
            assert_eq!(resolver.find("203.0.113.9", 1).await.is_ok(), allowed, "{hosts:?}");
            assert!(resolver.find("127.0.0.2", 1).await.is_ok(), "{hosts:?}");
        }
    }
}
