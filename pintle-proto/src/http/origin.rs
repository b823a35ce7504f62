use super::{Head, Refusal, head::Field};
use crate::shown::shown;

/// The allowed values of `Host` and `Origin`, which protect a local server from web pages (DNS rebinding).
///
/// The default is loopback: `localhost`, `127.*.*.*` and `[::1]`, on any port. A request without an `Origin` does not
/// come from a browser and passes; an origin passes if its host is allowed, or if it is listed.
///
/// ```
/// use http::{HeaderMap, Method, Uri};
/// use pintle_proto::http::{Guard, Head};
///
/// let mut headers = HeaderMap::new();
/// headers.insert("host", "mcp.example.com".parse().unwrap());
/// headers.insert("origin", "https://app.example.com".parse().unwrap());
/// let uri = Uri::from_static("/mcp");
/// let head = Head::new(&Method::POST, &uri, &headers);
///
/// assert_eq!(Guard::loopback().check(&head).unwrap_err().status, 403);
/// let guard = Guard::hosts(["mcp.example.com"]).origins(["https://app.example.com"]);
/// assert!(guard.check(&head).is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct Guard {
    hosts: Hosts,
    origins: Vec<String>,
    any_origin: bool,
}

#[derive(Clone, Debug)]
enum Hosts {
    Loopback,
    Listed(Vec<String>),
    Any,
}

impl Default for Guard {
    fn default() -> Self {
        Self::loopback()
    }
}

impl Guard {
    /// Allows loopback names and addresses only.
    pub fn loopback() -> Self {
        Self { hosts: Hosts::Loopback, origins: Vec::new(), any_origin: false }
    }

    /// Allows these hosts only. `example.com` matches any port, `example.com:8080` only that one.
    pub fn hosts<T: Into<String>>(hosts: impl IntoIterator<Item = T>) -> Self {
        let hosts = hosts.into_iter().map(|host| host.into().to_ascii_lowercase());
        Self { hosts: Hosts::Listed(hosts.collect()), ..Self::loopback() }
    }

    /// Allows any host, for a server behind a proxy that checks it. Origins still have to be listed.
    pub fn any_host() -> Self {
        Self { hosts: Hosts::Any, ..Self::loopback() }
    }

    /// Returns whether only loopback names and addresses are allowed as hosts.
    pub fn is_loopback(&self) -> bool {
        matches!(self.hosts, Hosts::Loopback)
    }

    /// Allows these origins too, such as `https://app.example.com` or `null`.
    #[must_use]
    pub fn origins<T: Into<String>>(mut self, origins: impl IntoIterator<Item = T>) -> Self {
        let origins = origins.into_iter().map(|origin| origin.into().to_ascii_lowercase());
        self.origins.extend(origins.map(|origin| without_default_port(&origin).to_owned()));
        self
    }

    /// Allows every origin: any page that the user opens can then call the server.
    #[must_use]
    pub fn any_origin(mut self) -> Self {
        self.any_origin = true;
        self
    }

    /// Refuses with 403 a request for a host, or from an origin, that is not allowed.
    ///
    /// A request without `Host` passes: browsers always send one, and this check is about browsers.
    pub fn check(&self, head: &Head<'_>) -> Result<(), Refusal> {
        if !matches!(self.hosts, Hosts::Any) {
            if let Some(authority) = head.authority {
                self.check_host(authority)?;
            }
            match head.host {
                Field::Absent => {}
                Field::Once(host) if matches!(self.hosts, Hosts::Loopback) && is_usual(host.as_bytes()) => {}
                Field::Once(host) => self.check_host(host.to_str().unwrap_or_default())?,
                Field::Repeated => return Err(foreign("Host", "more than one value")),
            }
        }
        match head.origin {
            Field::Absent => Ok(()),
            _ if self.any_origin => Ok(()),
            Field::Once(origin) => self.check_origin(origin.to_str().unwrap_or_default()),
            Field::Repeated => Err(foreign("Origin", "more than one value")),
        }
    }

    fn check_host(&self, authority: &str) -> Result<(), Refusal> {
        match split_port(authority) {
            Some((host, port)) if self.knows(host, port) => Ok(()),
            _ => Err(foreign("Host", authority)),
        }
    }

    fn check_origin(&self, origin: &str) -> Result<(), Refusal> {
        let site = without_default_port(origin);
        if self.origins.iter().any(|listed| listed.eq_ignore_ascii_case(site)) {
            return Ok(());
        }
        // If any host is allowed, the host says nothing about the page.
        if !matches!(self.hosts, Hosts::Any)
            && let Some((scheme, authority)) = origin.split_once("://")
            && (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https"))
            && let Some((host, port)) = split_port(authority)
            && self.knows(host, port)
        {
            return Ok(());
        }
        Err(foreign("Origin", origin))
    }

    fn knows(&self, host: &str, port: &str) -> bool {
        match &self.hosts {
            Hosts::Any => true,
            Hosts::Loopback => is_loopback(host),
            Hosts::Listed(hosts) => hosts.iter().any(|listed| match split_port(listed) {
                Some((name, "")) => name.eq_ignore_ascii_case(host),
                Some((name, only)) => name.eq_ignore_ascii_case(host) && only == port,
                None => false,
            }),
        }
    }
}

fn foreign(header: &str, value: &str) -> Refusal {
    let list = if header == "Host" { "hosts" } else { "origins" };
    Refusal::forbidden(format!(
        "`{header}: {}` is not allowed here; add it on the server with `Guard::{list}`",
        shown(value)
    ))
}

/// Splits `host:port`. Returns `None` if another parser could see another host.
///
/// The dot that ends a fully qualified name is not part of the host; an IPv6 address keeps its brackets.
fn split_port(authority: &str) -> Option<(&str, &str)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let end = rest.find(']')? + 2;
            let address = &authority[1..end - 1];
            if !address.bytes().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.')) {
                return None;
            }
            (
                &authority[..end],
                authority[end..].strip_prefix(':').or(Some("").filter(|_| authority.len() == end))?,
            )
        }
        None => {
            let colon = authority.bytes().position(|byte| byte == b':');
            let (host, port) = colon.map_or((authority, ""), |at| (&authority[..at], &authority[at + 1..]));
            let host = host.strip_suffix('.').unwrap_or(host);
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
            if host.is_empty() || !host.bytes().all(plain) {
                return None;
            }
            (host, port)
        }
    };
    (port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit())).then_some((host, port))
}

/// Returns whether a `Host` is one of the two that nearly every local request has.
fn is_usual(host: &[u8]) -> bool {
    match host.strip_prefix(b"127.0.0.1").or_else(|| host.strip_prefix(b"localhost")) {
        Some([b':', port @ ..]) => port.len() <= 5 && port.iter().all(u8::is_ascii_digit),
        Some(rest) => rest.is_empty(),
        None => false,
    }
}

fn is_loopback(host: &str) -> bool {
    let mapped = host.strip_prefix("[::ffff:").and_then(|rest| rest.strip_suffix(']'));
    host.eq_ignore_ascii_case("localhost") || host == "[::1]" || is_loopback_v4(mapped.unwrap_or(host))
}

fn is_loopback_v4(host: &str) -> bool {
    // Some parsers read `0127` and `127.1` as other addresses.
    let octet = |part: &str| part.parse::<u8>().is_ok() && (part == "0" || !part.starts_with(['0', '+']));
    let mut parts = host.split('.');
    parts.next() == Some("127") && parts.clone().count() == 3 && parts.all(octet)
}

fn without_default_port(origin: &str) -> &str {
    let default = match origin.split_once(':') {
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("http") => ":80",
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => ":443",
        _ => return origin,
    };
    origin.strip_suffix(default).unwrap_or(origin)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method, Uri};
    use proptest::prelude::*;

    use super::*;

    fn status(guard: &Guard, host: Option<&str>, origin: Option<&str>) -> u16 {
        let mut headers = HeaderMap::new();
        if let Some(host) = host {
            headers.insert("host", host.parse().unwrap());
        }
        if let Some(origin) = origin {
            headers.insert("origin", origin.parse().unwrap());
        }
        let uri = Uri::from_static("/mcp");
        match guard.check(&Head::new(&Method::POST, &uri, &headers)) {
            Ok(()) => 200,
            Err(refusal) => refusal.status.as_u16(),
        }
    }

    #[test]
    fn loopback_hosts() {
        for (host, expected) in [
            ("localhost", 200),
            ("LocalHost:3000", 200),
            ("localhost.", 200),
            ("localhost.:8080", 200),
            ("localhost:", 200),
            ("127.0.0.1", 200),
            ("127.0.0.1:65535", 200),
            ("127.255.3.9:80", 200),
            ("[::1]", 200),
            ("[::1]:8080", 200),
            ("[::ffff:127.0.0.1]:8080", 200),
            ("[::ffff:10.0.0.1]", 403),
            ("[::ffff:127.0.0.1", 403),
            ("evil.example.com", 403),
            ("evil.example.com:3000", 403),
            ("localhost.evil.com", 403),
            ("evil.localhost", 403),
            ("localhost..", 403),
            ("localhost@evil.com", 403),
            ("localhost:80@evil.com", 403),
            ("localhost:80:80", 403),
            ("localhost:123456", 403),
            ("localhost:8o", 403),
            ("localhost/evil", 403),
            ("127.0.0.1.evil.com", 403),
            ("127.0.0.256", 403),
            ("127.0.0", 403),
            ("127.1", 403),
            ("0127.0.0.1", 403),
            ("127.0.0.01", 403),
            ("127.0.0.+1", 403),
            ("0.0.0.0", 403),
            ("::1", 403),
            ("[::1", 403),
            ("[::1]evil", 403),
            ("[::1].evil.com", 403),
            ("[::2]", 403),
            ("[localhost]", 403),
            ("192.168.0.7", 403),
            ("", 403),
        ] {
            assert_eq!(status(&Guard::loopback(), Some(host), None), expected, "{host:?}");
        }
        assert_eq!(status(&Guard::default(), None, None), 200);
    }

    #[test]
    fn loopback_origins() {
        for (origin, expected) in [
            ("http://localhost", 200),
            ("http://localhost:5173", 200),
            ("HTTPS://LOCALHOST:1", 200),
            ("http://127.0.0.1:6274", 200),
            ("http://[::1]:3000", 200),
            ("http://evil.example.com", 403),
            ("null", 403),
            ("", 403),
            ("localhost", 403),
            ("http://localhost@evil.com", 403),
            ("http://localhost/", 403),
            ("http://localhost http://evil.com", 403),
            ("http://localhost.evil.com", 403),
            ("chrome-extension://localhost", 403),
            ("file://", 403),
        ] {
            assert_eq!(
                status(&Guard::loopback(), Some("localhost:3000"), Some(origin)),
                expected,
                "{origin:?}"
            );
        }
    }

    #[test]
    fn lists() {
        let guard = Guard::hosts(["mcp.Example.com", "other.example.com:8443"])
            .origins(["https://app.example.com:443"]);
        for (host, origin, expected) in [
            ("mcp.example.com", None, 200),
            ("MCP.example.com:9", None, 200),
            ("other.example.com:8443", None, 200),
            ("other.example.com", None, 403),
            ("localhost", None, 403),
            ("mcp.example.com", Some("https://mcp.example.com"), 200),
            ("mcp.example.com", Some("https://APP.example.com"), 200),
            ("mcp.example.com", Some("https://app.example.com:443"), 200),
            ("mcp.example.com", Some("https://app.example.com:8443"), 403),
            ("mcp.example.com", Some("http://app.example.com"), 403),
            ("mcp.example.com", Some("null"), 403),
        ] {
            assert_eq!(status(&guard, Some(host), origin), expected, "{host} {origin:?}");
        }
        let any_host = Guard::any_host().origins(["vscode-webview://abc", "null"]);
        for (origin, expected) in [
            (None, 200),
            (Some("vscode-webview://abc"), 200),
            (Some("null"), 200),
            (Some("http://anything"), 403),
            (Some("http://localhost"), 403),
        ] {
            assert_eq!(status(&any_host, Some("anything"), origin), expected, "{origin:?}");
        }
        // Each scheme has its own default port, and most have none.
        let ports = Guard::any_host().origins(["http://a:80", "https://b:443", "http://c:443", "app://d"]);
        for (origin, expected) in [
            ("http://a", 200),
            ("http://a:80", 200),
            ("https://b", 200),
            ("http://c", 403),
            ("app://d:80", 403),
            ("app://d:443", 403),
        ] {
            assert_eq!(status(&ports, Some("anything"), Some(origin)), expected, "{origin:?}");
        }
        assert_eq!(status(&Guard::any_host().any_origin(), Some("a"), Some("http://b")), 200);
        assert_eq!(status(&Guard::loopback().any_origin(), Some("a"), Some("http://b")), 403);
    }

    #[test]
    fn an_empty_host_and_one_with_other_characters_have_no_parts() {
        for authority in ["", ":80", ".", "a/b", "a@b", "é", "[::1]x", "[g]"] {
            assert_eq!(split_port(authority), None, "{authority:?}");
        }
        assert_eq!(split_port("a_b-c.d.:80"), Some(("a_b-c.d", "80")));
    }

    #[test]
    fn the_authority_of_http_2_and_repeated_headers_count_too() {
        let headers = HeaderMap::new();
        let check = |uri: &'static str, headers: &HeaderMap| {
            Guard::loopback().check(&Head::new(&Method::POST, &Uri::from_static(uri), headers)).is_ok()
        };
        assert!(check("http://localhost:80/mcp", &headers));
        assert!(!check("http://evil.com/mcp", &headers));
        assert!(!check("http://localhost@evil.com/mcp", &headers));
        let mut headers = HeaderMap::new();
        headers.append("host", "localhost".parse().unwrap());
        assert!(check("/mcp", &headers));
        assert!(!check("http://evil.com/mcp", &headers));
        headers.append("host", "evil.com".parse().unwrap());
        assert!(!check("/mcp", &headers));
    }

    #[test]
    fn the_message_names_header_and_value() {
        let refusal = Guard::loopback().check_origin("http://evil.com").unwrap_err();
        assert_eq!(
            refusal.error.message,
            "`Origin: http://evil.com` is not allowed here; add it on the server with `Guard::origins`"
        );
    }

    proptest! {
        #[test]
        fn no_text_leads_a_second_reader_to_another_host(text in "(localhost|127\\.0\\.0\\.1|\\[::1\\])?[a-z0-9.:@/\\[\\]é -]{0,8}") {
            if let Some((host, port)) = split_port(&text) {
                prop_assert!(port.bytes().all(|byte| byte.is_ascii_digit()));
                if let Ok(authority) = text.parse::<http::uri::Authority>() {
                    prop_assert_eq!(authority.host().strip_suffix('.').unwrap_or(authority.host()), host);
                }
            }
            if is_usual(text.as_bytes()) {
                prop_assert!(split_port(&text).is_some_and(|(host, _)| is_loopback(host)));
            }
        }
    }
}
