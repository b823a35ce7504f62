//! The addresses of a Redis, of a cluster, and of the Sentinels that name a primary.

use std::io;

use redis::{ConnectionAddr, IntoConnectionInfo as _, RedisConnectionInfo};

/// The port of a Sentinel whose address has none.
const SENTINEL_PORT: u16 = 26379;

/// Where the data are.
#[derive(Debug)]
pub(crate) enum Address {
    /// One Redis, at this URL.
    Single(String),
    /// A cluster, with the URLs of some of its nodes.
    Cluster(Vec<String>),
    /// The primary that Sentinels name.
    Sentinel(SentinelAddress),
}

/// The Sentinels, the name that they have for a primary, and how one logs in to it.
pub(crate) struct SentinelAddress {
    pub(crate) sentinels: Vec<ConnectionAddr>,
    pub(crate) name: String,
    pub(crate) login: RedisConnectionInfo,
    pub(crate) is_tls: bool,
}

impl std::fmt::Debug for SentinelAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SentinelAddress").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Address {
    /// Parses `redis://host`, `redis+cluster://host:port,host:port` or `redis+sentinel://host:port,host:port/NAME/DATABASE`; with
    /// `rediss` for TLS, and `user:password@` before the hosts.
    pub(crate) fn parse(url: &str) -> io::Result<Self> {
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let (base, kind) = scheme.split_once('+').unwrap_or_default();
        if !matches!((base, kind), ("redis" | "rediss", "cluster" | "sentinel")) {
            return Ok(Self::Single(url.to_owned()));
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let url = |host: &str, database: &str| {
            let at = if login.is_empty() { "" } else { "@" };
            let mark = if query.is_empty() { "" } else { "?" };
            format!("{base}://{login}{at}{host}/{database}{mark}{query}")
        };
        if kind == "cluster" {
            if !matches!(path, "" | "0") {
                return Err(invalid(
                    "a cluster has one database: write `redis+cluster://HOST:PORT,HOST:PORT`, without a path",
                ));
            }
            return Ok(Self::Cluster(hosts.split(',').map(|host| url(host, "")).collect()));
        }
        let (name, database) = path.split_once('/').unwrap_or((path, ""));
        if name.is_empty() {
            return Err(invalid(
                "Sentinels need the name of a primary: write `redis+sentinel://HOST:PORT,HOST:PORT/NAME`",
            ));
        }
        let mut infos = Vec::new();
        for host in hosts.split(',') {
            let host = if has_port(host) { host.to_owned() } else { format!("{host}:{SENTINEL_PORT}") };
            infos.push(
                url(&host, database).into_connection_info().map_err(|error| invalid(&error.to_string()))?,
            );
        }
        let login = infos.first().map(|info| info.redis_settings().clone()).unwrap_or_default();
        Ok(Self::Sentinel(SentinelAddress {
            sentinels: infos.iter().map(|info| info.addr().clone()).collect(),
            name: name.to_owned(),
            login,
            is_tls: base == "rediss",
        }))
    }
}

/// Returns whether a host has a port after it. An IPv6 address is in brackets.
fn has_port(host: &str) -> bool {
    host.rsplit(']').next().unwrap_or_default().contains(':')
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("the address of Redis is invalid: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(url: &str) -> Vec<String> {
        match Address::parse(url).unwrap() {
            Address::Cluster(nodes) => nodes,
            other => panic!("{other:?}"),
        }
    }

    fn sentinel(url: &str) -> SentinelAddress {
        match Address::parse(url).unwrap() {
            Address::Sentinel(address) => address,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_cluster_has_hosts_and_the_login_is_that_of_all() {
        assert_eq!(cluster("redis+cluster://a:7000"), ["redis://a:7000/"]);
        let nodes = cluster("redis+cluster://ann:s%40same@a:7000,b:7001/?protocol=resp3");
        let one = |host| format!("redis://ann:s%40same@{host}/?protocol=resp3");
        assert_eq!(nodes, [one("a:7000"), one("b:7001")]);
        assert_eq!(cluster("rediss+cluster://a:7000/0"), ["rediss://a:7000/"]);
        let error = Address::parse("redis+cluster://a:7000/3").unwrap_err();
        assert!(error.to_string().contains("a cluster has one database"), "{error}");
    }

    #[test]
    fn sentinels_have_the_name_of_a_primary_and_the_login_is_that_of_the_primary() {
        let address = sentinel("redis+sentinel://ann:sesame@a,b:5000,[::1]/main/3");
        let tcp = |host: &str, port| ConnectionAddr::Tcp(host.to_owned(), port);
        assert_eq!(address.sentinels, [tcp("a", 26379), tcp("b", 5000), tcp("::1", 26379)]);
        assert_eq!((&*address.name, address.login.db(), address.is_tls), ("main", 3, false));
        assert_eq!((address.login.username(), address.login.password()), (Some("ann"), Some("sesame")));
        assert!(!format!("{address:?}").contains("sesame"));
        assert_eq!(sentinel("redis+sentinel://a/main").login.db(), 0);
        for unnamed in ["redis+sentinel://a", "redis+sentinel://a/", "redis+sentinel://a//3"] {
            let error = Address::parse(unnamed).unwrap_err();
            assert!(error.to_string().contains("the name of a primary"), "{error}");
        }
        assert!(Address::parse("redis+sentinel://a:b/main").is_err());
        assert!(Address::parse("redis+sentinel://a/main/x").is_err());
    }

    #[test]
    fn any_other_address_is_that_of_one_redis() {
        for url in ["redis://a/1", "rediss://a", "unix:///run/redis", "a", "redis+other://a"] {
            assert!(matches!(Address::parse(url), Ok(Address::Single(single)) if single == url));
        }
    }
}
