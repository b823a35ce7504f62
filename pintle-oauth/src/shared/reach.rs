use std::net::{IpAddr, Ipv4Addr};

use http::Uri;
use pintle::{Error, Result};

/// The networks that requests may be sent to on behalf of a server: public ones, and the server's own.
///
/// Metadata is written by other parties. Without this limit it could make the client send requests into private networks.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Reach(Kind);

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Kind {
    Public,
    /// A private network.
    Private,
    /// Link-local addresses, which include the metadata services of clouds.
    Link,
    /// Loopback addresses.
    Loopback,
}

impl Reach {
    /// Returns the reach of a server by how its address is written: a private network only for an IP address of it, and this machine
    /// only for a loopback address or `localhost`. What another name resolves to has to be public.
    ///
    /// ```
    /// use pintle_oauth::client::Reach;
    ///
    /// let private = "10.0.0.7".parse().unwrap();
    /// assert!(Reach::as_written("https://10.0.0.5/mcp").allows(private));
    /// assert!(!Reach::as_written("https://mcp.example.com/mcp").allows(private));
    /// ```
    pub fn as_written(url: &str) -> Self {
        Self(url.parse::<Uri>().ok().and_then(|uri| literal(uri.host()?)).unwrap_or(Kind::Public))
    }

    /// Returns the reach of a server at this address. `found` are the addresses that its name resolves to.
    pub(crate) fn of(server: &Uri, found: &[IpAddr]) -> Self {
        let host = server.host().unwrap_or_default();
        if let Some(kind) = literal(host) {
            return Self(kind);
        }
        // A name with a public address is public: its owner may have added the others to attack us.
        let mut kinds = found.iter().map(|address| kind(*address));
        let first = kinds.next().unwrap_or(Kind::Public);
        Self(if kinds.all(|kind| kind == first) { first } else { Kind::Public })
    }

    /// Whether the server is on this machine.
    pub(crate) fn is_loopback(self) -> bool {
        self.0 == Kind::Loopback
    }

    /// Whether a connection to this address is allowed.
    pub fn allows(self, address: IpAddr) -> bool {
        let kind = kind(address);
        kind == Kind::Public || kind == self.0
    }

    /// Checks that a request to this address is allowed: encrypted or on this machine, and public or in the server's network.
    pub(crate) fn check(self, url: &str) -> Result<Uri> {
        let refuse = |why: &str| {
            let shown = url.split(['?', '#']).next().unwrap_or_default();
            Error::Refused(format!("requests to `{shown}` are not allowed: {why}"))
        };
        let uri: Uri = url.parse().map_err(|_| refuse("it is not an address"))?;
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(|| refuse("it has no host"))?;
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(refuse("it contains a user or a password"));
        }
        let kind = literal(host);
        match uri.scheme_str() {
            Some("https") => {}
            Some("http") if kind == Some(Kind::Loopback) => {}
            Some("http") => {
                return Err(refuse("it is not encrypted; use `https`"));
            }
            _ => return Err(refuse("it is not an `https` address")),
        }
        match kind {
            Some(kind) if kind != Kind::Public && kind != self.0 => {
                Err(refuse("it is in a private network that the server is not in"))
            }
            _ => Ok(uri),
        }
    }
}

/// Returns the kind of a host that does not have to be resolved.
fn literal(host: &str) -> Option<Kind> {
    let host = host.trim_end_matches('.');
    let name = host.to_ascii_lowercase();
    if name == "localhost" || name.ends_with(".localhost") {
        return Some(Kind::Loopback);
    }
    host.trim_start_matches('[').trim_end_matches(']').parse().ok().map(kind)
}

fn kind(address: IpAddr) -> Kind {
    match address {
        IpAddr::V4(address) => kind_v4(address),
        IpAddr::V6(address) => {
            let parts = address.segments();
            if address.is_loopback() || address.is_unspecified() {
                return Kind::Loopback;
            }
            let inner = |high: u16, low: u16| {
                let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
                kind_v4(Ipv4Addr::new(a, b, c, d))
            };
            match parts {
                [0, 0, 0, 0, 0, 0xffff, high, low] => inner(high, low),
                // An IPv4 address behind a translator or a 6to4 relay, or in the deprecated compatible form: not on this machine.
                [0x64, 0xff9b, 0, 0, 0, 0, high, low]
                | [0x2002, high, low, ..]
                | [0, 0, 0, 0, 0, 0, high, low] => match inner(high, low) {
                    Kind::Loopback => Kind::Private,
                    kind => kind,
                },
                [0xfe80..=0xfebf, ..] => Kind::Link,
                // Private, site-local, multicast, and behind a local translator.
                [0xfc00..=0xfdff | 0xfec0..=0xffff, ..] | [0x64, 0xff9b, 1, ..] => Kind::Private,
                _ => Kind::Public,
            }
        }
    }
}

fn kind_v4(address: Ipv4Addr) -> Kind {
    match address.octets() {
        [127 | 0, ..] => Kind::Loopback,
        [169, 254, ..] => Kind::Link,
        // Private, shared address space, benchmarking, multicast, and reserved.
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] | [198, 18 | 19, ..] => {
            Kind::Private
        }
        [224..=255, ..] => Kind::Private,
        _ => Kind::Public,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(server: &str, url: &str) -> bool {
        Reach::of(&server.parse().unwrap(), &[]).check(url).is_ok()
    }

    #[test]
    fn plain_http_and_foreign_networks_are_not_reached() {
        let public = "https://mcp.example/mcp";
        let table = [
            (public, "https://as.example/token", true),
            (public, "http://as.example/token", false),
            (public, "https://127.0.0.1/token", false),
            (public, "http://localhost:9200/", false),
            (public, "https://LOCALHOST./", false),
            (public, "https://a.localhost/", false),
            (public, "https://169.254.169.254/latest", false),
            (public, "https://10.0.0.1/", false),
            (public, "https://192.168.1.1/", false),
            (public, "https://224.0.0.1/", false),
            (public, "https://255.255.255.255/", false),
            (public, "https://223.255.255.255/", true),
            (public, "https://[::1]/", false),
            (public, "https://[::ffff:10.0.0.1]/", false),
            (public, "https://[64:ff9b::10.0.0.1]/", false),
            (public, "https://[fe80::1]/", false),
            (public, "https://[fd00::1]/", false),
            (public, "https://[fec0::1]/", false),
            (public, "https://[ff02::1]/", false),
            (public, "https://[::10.0.0.1]/", false),
            (public, "https://[::8.8.8.8]/", true),
            (public, "https://[2002:a00:1::1]/", false),
            (public, "https://[2002:808:808::1]/", true),
            (public, "https://[64:ff9b:1::1]/", false),
            (public, "https://0.0.0.0/", false),
            (public, "https://8.8.8.8/", true),
            (public, "https://[2001:4860::8888]/", true),
            (public, "https://user@as.example/", false),
            (public, "file:///etc/passwd", false),
            (public, "/token", false),
            (public, "", false),
            ("http://localhost:3000/mcp", "http://localhost:4000/token", true),
            ("http://localhost:3000/mcp", "http://127.0.0.1:4000/token", true),
            ("http://localhost:3000/mcp", "https://as.example/token", true),
            ("http://localhost:3000/mcp", "http://as.example/token", false),
            ("http://localhost:3000/mcp", "https://10.0.0.1/", false),
            ("https://10.0.0.5/mcp", "https://10.0.0.6/token", true),
            ("https://10.0.0.5/mcp", "http://10.0.0.6/token", false),
            ("https://10.0.0.5/mcp", "http://127.0.0.1:9200/", false),
            ("https://10.0.0.5/mcp", "https://169.254.169.254/", false),
            ("https://10.0.0.5/mcp", "https://[::ffff:169.254.169.254]/", false),
            ("https://10.0.0.5/mcp", "https://[64:ff9b::169.254.169.254]/", false),
            ("https://10.0.0.5/mcp", "https://[64:ff9b::10.0.0.6]/", true),
            ("http://localhost:3000/mcp", "http://[::1]:4000/token", true),
            ("http://localhost:3000/mcp", "http://[::ffff:127.0.0.1]/", true),
            ("http://localhost:3000/mcp", "http://[::127.0.0.1]/", false),
            ("http://localhost:3000/mcp", "https://[2002:7f00:1::1]/", false),
        ];
        for (server, url, expected) in table {
            assert_eq!(sent(server, url), expected, "{server} {url}");
        }
    }

    #[test]
    fn a_name_has_the_kind_of_all_its_addresses() {
        let server = "https://mcp.corp/mcp".parse().unwrap();
        let (inside, outside): (IpAddr, IpAddr) = ([10, 0, 0, 1].into(), [8, 8, 8, 8].into());
        assert!(Reach::of(&server, &[inside]).allows(inside));
        assert!(!Reach::of(&server, &[inside, outside]).allows(inside));
        assert!(!Reach::of(&server, &[]).allows(inside));
        assert!(!Reach::of(&server, &[inside]).allows([127, 0, 0, 1].into()));
    }

    #[test]
    fn a_name_that_is_not_of_this_machine_is_public_as_it_is_written() {
        let (loopback, link): (IpAddr, IpAddr) = ([127, 0, 0, 1].into(), [169, 254, 169, 254].into());
        for (url, reaches) in [
            ("http://localhost:1/mcp", [true, false]),
            ("http://[::1]/mcp", [true, false]),
            ("http://169.254.169.254/", [false, true]),
            ("https://mcp.corp/mcp", [false, false]),
            ("http://127.1/mcp", [false, false]),
            ("http://2130706433/mcp", [false, false]),
            ("nothing", [false, false]),
        ] {
            let reach = Reach::as_written(url);
            assert_eq!([loopback, link].map(|address| reach.allows(address)), reaches, "{url}");
            assert!(reach.allows([8, 8, 8, 8].into()), "{url}");
        }
    }

    #[test]
    fn an_address_is_refused_without_its_query() {
        let reach = Reach::of(&"https://mcp.example/mcp".parse().unwrap(), &[]);
        let error = reach.check("http://as.example/token?code=s3cret").unwrap_err().to_string();
        assert!(error.contains("`http://as.example/token`") && !error.contains("s3cret"), "{error}");
    }
}
