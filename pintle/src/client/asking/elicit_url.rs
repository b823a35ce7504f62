use std::{
    net::{Ipv4Addr, Ipv6Addr},
    ops::Deref,
};

use pintle_types::{RpcError, schema::ElicitUrlParams};

/// A URL that a server asks the user to open, and its host.
///
/// Handlers only see URLs that cannot be misread: `https`, or `http` to a loopback host, in ASCII and without user info. Others
/// are refused.
///
/// ```
/// use pintle::client::{Answer, Client};
///
/// let client = Client::new("demo", "0.1.0").on_elicit_url(|question| async move {
///     println!("open {}? It is on {}.", question.url, question.host);
///     if question.has_punycode() {
///         println!("The name of the host has letters that look like others.");
///     }
///     Answer::Decline
/// });
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct ElicitUrl {
    /// The host in lower-case ASCII, without the port. Show it apart from the URL.
    pub host: String,
    /// The port, if the URL names one.
    pub port: Option<u16>,
    /// The params of the server's request.
    pub params: ElicitUrlParams,
}

impl ElicitUrl {
    /// Parses the host, and refuses URLs that must not be opened.
    pub(in crate::client) fn new(params: ElicitUrlParams) -> Result<Self, RpcError> {
        match host_of(&params.url) {
            Ok((host, port)) => Ok(Self { host, port, params }),
            Err(why) => {
                let reason = format!("the page was not shown to the user: its `url` {why}");
                tracing::warn!(%reason, "a server's question was refused");
                Err(RpcError::invalid_params(reason))
            }
        }
    }

    /// Whether the host has a label in Punycode (`xn--…`), whose letters may resemble others.
    pub fn has_punycode(&self) -> bool {
        self.host.split('.').any(|label| label.starts_with("xn--"))
    }
}

impl Deref for ElicitUrl {
    type Target = ElicitUrlParams;

    fn deref(&self) -> &ElicitUrlParams {
        &self.params
    }
}

/// Returns the host and port of a URL that may be opened, or what is wrong with it.
///
/// Stricter than browsers on purpose: each of them repairs malformed URLs in its own way.
fn host_of(url: &str) -> Result<(String, Option<u16>), &'static str> {
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(
            "has characters beyond printable ASCII: send it percent-encoded, and its host as `xn--…`",
        );
    }
    // Browsers read it as a slash, others do not.
    if url.contains('\\') {
        return Err("has a backslash in it: send it percent-encoded");
    }
    let (scheme, rest) = url.split_once("://").ok_or("is neither `https://…` nor `http://…`")?;
    let secure = scheme.eq_ignore_ascii_case("https");
    if !secure && !scheme.eq_ignore_ascii_case("http") {
        return Err("is neither `https://…` nor `http://…`");
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err("has a user or a password before its host: leave them out");
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(inside) => {
            let (address, port) = inside.split_once(']').ok_or(NO_HOST)?;
            let address: Ipv6Addr = address.parse().map_err(|_| NO_HOST)?;
            (format!("[{address}]"), port)
        }
        None => {
            let end = authority.find(':').unwrap_or(authority.len());
            let (name, port) = authority.split_at(end);
            (name_of(name)?, port)
        }
    };
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => None,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse().map_err(|_| "names no port that there is")?)
        }
        _ => return Err("names no port that there is"),
    };
    if !secure && !is_this_machine(&host) {
        return Err("is not encrypted: send an `https` one");
    }
    Ok((host, port))
}

const NO_HOST: &str = "names no host that every reader takes for the same";

fn name_of(name: &str) -> Result<String, &'static str> {
    let name = name.to_ascii_lowercase();
    let labels = name.strip_suffix('.').unwrap_or(&name);
    let is_label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    if !labels.split('.').all(is_label) {
        return Err(NO_HOST);
    }
    // `127.1`, `0x7f.0.0.1` and `2130706433` are addresses to browsers, and names to others.
    let last = labels.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if is_number && labels.parse::<Ipv4Addr>().is_err() {
        return Err(NO_HOST);
    }
    Ok(labels.to_owned())
}

fn is_this_machine(host: &str) -> bool {
    host == "localhost"
        || host == "[::1]"
        || host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_read_as_every_browser_reads_it() {
        for (url, host, port) in [
            ("https://Example.COM/pay?to=a@b.c#x", "example.com", None),
            ("HTTPS://example.com.", "example.com", None),
            ("https://xn--pple-43d.com/", "xn--pple-43d.com", None),
            ("https://example.com:8443?q", "example.com", Some(8443)),
            ("https://[2001:DB8::1]:1/", "[2001:db8::1]", Some(1)),
            ("https://192.0.2.7/", "192.0.2.7", None),
            ("http://localhost:3000/cb", "localhost", Some(3000)),
            ("http://127.8.9.1/", "127.8.9.1", None),
            ("http://[::1]/", "[::1]", None),
            ("https://example.com#@evil.com", "example.com", None),
        ] {
            assert_eq!(host_of(url), Ok((host.to_owned(), port)), "{url}");
        }
    }

    #[test]
    fn what_could_be_misread_or_run_is_refused() {
        for url in [
            "javascript:alert(1)//https://example.com",
            "javascript://example.com/%0aalert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "vbscript://x",
            "https:example.com",
            "https:/example.com",
            "https:///example.com",
            "//example.com",
            "example.com",
            "",
            " https://example.com",
            "https://example.com/\n",
            "ht\ttps://example.com",
            "https://good.com@evil.com/",
            "https://good.com:443@evil.com/",
            "https://evil.com\\@good.com/",
            "https://ev%69l.com/",
            "https://аpple.com/",
            "https://good.com。evil.com/",
            "https://example.com/\u{202e}",
            "https://a..b/",
            "https://:443/",
            "https://example.com:99999/",
            "https://example.com:8o/",
            "https://example.com:+1/",
            "https://[::1/",
            "https://[::1]x/",
            "https://[fe80::1%25eth0]/",
            "https://127.1/",
            "https://2130706433/",
            "https://0x7f.0.0.1/",
            "https://1.2.3.0x4/",
            "http://example.com/",
            "http://localhost.evil.com/",
            "http://127.0.0.1.evil.com/",
            "http://192.168.0.1/",
        ] {
            assert!(host_of(url).is_err(), "{url}: {:?}", host_of(url));
        }
    }
}
