//! Redirects that a client follows: never to another origin, where its credentials would leak.

use std::fmt;

use http::{StatusCode, Uri};

/// Resolves the address in the `endpoint` event of the HTTP+SSE transport against the stream's own address.
///
/// ```
/// use http::Uri;
/// use pintle_proto::http::{BadLocation, resolve_endpoint};
///
/// let stream = Uri::from_static("https://example.com/mcp/sse");
/// assert_eq!(resolve_endpoint(&stream, "messages?sessionId=7").unwrap(), "https://example.com/mcp/messages?sessionId=7");
/// assert_eq!(resolve_endpoint(&stream, "//evil.com/messages"), Err(BadLocation::OtherOrigin));
/// ```
pub fn resolve_endpoint(stream: &Uri, endpoint: &str) -> Result<Uri, BadLocation> {
    resolve(stream, endpoint)
}

/// Returns the target of a redirect: only one that keeps method and body, and only on the same origin.
pub fn redirect(status: StatusCode, from: &Uri, location: &str) -> Result<Uri, BadLocation> {
    match status {
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => resolve(from, location),
        _ => Err(BadLocation::OtherMethod),
    }
}

/// Returns whether two addresses have the same scheme, host and port.
pub fn same_origin(one: &Uri, other: &Uri) -> bool {
    let (Some(scheme), Some(authority)) = (one.scheme_str(), one.authority()) else { return false };
    // Nearly always both are written alike, and are not taken apart.
    if other.scheme_str() == Some(scheme)
        && other.authority().is_some_and(|other| other.as_str() == authority.as_str())
    {
        return true;
    }
    let host = authority.host();
    other.scheme_str().is_some_and(|other| other.eq_ignore_ascii_case(scheme))
        && other.host().is_some_and(|other| other.eq_ignore_ascii_case(host))
        && port(one) == port(other)
}

/// The error for a location that a client does not follow.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BadLocation {
    /// The location is not a valid address.
    Unreadable,
    /// The location is on another origin.
    OtherOrigin,
    /// The redirect would change the method.
    OtherMethod,
}

impl fmt::Display for BadLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable => "the server redirected to an invalid address",
            Self::OtherOrigin => {
                "the server redirected to another origin; connect to that one if it is intended"
            }
            Self::OtherMethod => {
                "only redirects with status 307 or 308 keep the request; the server sent another status"
            }
        })
    }
}

impl std::error::Error for BadLocation {}

fn port(uri: &Uri) -> Option<u16> {
    uri.port_u16().or_else(|| match uri.scheme_str()? {
        scheme if scheme.eq_ignore_ascii_case("http") => Some(80),
        scheme if scheme.eq_ignore_ascii_case("https") => Some(443),
        _ => None,
    })
}

/// Resolves a reference as in RFC 3986, and refuses another origin.
fn resolve(base: &Uri, reference: &str) -> Result<Uri, BadLocation> {
    let (Some(scheme), Some(authority)) = (base.scheme_str(), base.authority()) else {
        return Err(BadLocation::Unreadable);
    };
    let reference = reference.trim_ascii();
    // Some parsers read a backslash as a slash.
    if reference.contains('\\') {
        return Err(BadLocation::Unreadable);
    }
    let reference = reference.split('#').next().unwrap_or_default();
    let text = if has_scheme(reference) {
        reference.to_owned()
    } else if reference.starts_with("//") {
        format!("{scheme}:{reference}")
    } else {
        let (path, query) = reference.split_at(reference.find('?').unwrap_or(reference.len()));
        let within = base.path().rfind('/').map_or("/", |end| &base.path()[..=end]);
        match (path, query) {
            ("", "") => base.to_string(),
            ("", query) => format!("{scheme}://{authority}{}{query}", base.path()),
            (path, query) if path.starts_with('/') => {
                format!("{scheme}://{authority}{}{query}", without_dots(path))
            }
            (path, query) => {
                format!("{scheme}://{authority}{}{query}", without_dots(&format!("{within}{path}")))
            }
        }
    };
    let uri: Uri = text.parse().map_err(|_| BadLocation::Unreadable)?;
    let named = uri.authority().ok_or(BadLocation::Unreadable)?;
    // User information before `@` would be sent as an unintended credential.
    let credentials = named.as_str().contains('@') && named != authority;
    match same_origin(base, &uri) && !credentials {
        true => Ok(uri),
        false => Err(BadLocation::OtherOrigin),
    }
}

fn has_scheme(reference: &str) -> bool {
    let Some((scheme, _)) = reference.split_once(':') else { return false };
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Removes the `.` and `..` segments of an absolute path.
fn without_dots(path: &str) -> String {
    let mut steps = Vec::new();
    let mut open = false;
    for step in path.split('/').skip(1) {
        open = matches!(step, "." | "..");
        match step {
            "." => {}
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    let mut text: String = steps.iter().flat_map(|step| ["/", step]).collect();
    if open || text.is_empty() {
        text.push('/');
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn endpoints() {
        for (base, endpoint, expected) in [
            ("http://h:1/a/sse", "/messages?sessionId=1", Ok("http://h:1/messages?sessionId=1")),
            ("http://h:1/a/sse?x=1", "messages", Ok("http://h:1/a/messages")),
            ("http://h:1/a/sse", "./m", Ok("http://h:1/a/m")),
            ("http://h:1/a/b/sse", "../m?u=a:b", Ok("http://h:1/a/m?u=a:b")),
            ("http://h:1/a/sse", "../../../m/.", Ok("http://h:1/m/")),
            ("http://h:1/sse", "..", Ok("http://h:1/")),
            ("http://h:1/a/sse", "?s=1", Ok("http://h:1/a/sse?s=1")),
            ("http://h:1/a/sse", "", Ok("http://h:1/a/sse")),
            ("http://h:1/a/sse", " /m#part ", Ok("http://h:1/m")),
            ("http://h:1", "m", Ok("http://h:1/m")),
            ("http://h/sse", "http://h:80/m", Ok("http://h:80/m")),
            ("https://H/sse", "HTTPS://h:443/m", Ok("https://h:443/m")),
            ("http://u:p@h/sse", "/m", Ok("http://u:p@h/m")),
            ("http://u:p@h/sse", "http://h/m", Ok("http://h/m")),
            // A colon after a slash or a digit ends no scheme.
            ("http://h/sse", "a/b:c", Ok("http://h/a/b:c")),
            ("http://h/sse", "1:2", Ok("http://h/1:2")),
            ("ws://h/sse", "ws://h/m", Ok("ws://h/m")),
            ("ws://h/sse", "ws://h:443/m", Err(BadLocation::OtherOrigin)),
            ("http://h/sse", "http://h:81/m", Err(BadLocation::OtherOrigin)),
            ("http://h/sse", "https://h/m", Err(BadLocation::OtherOrigin)),
            ("http://h/sse", "//evil.com/m", Err(BadLocation::OtherOrigin)),
            ("http://h/sse", "http://h@evil.com/m", Err(BadLocation::OtherOrigin)),
            ("http://h/sse", "http://evil@h/m", Err(BadLocation::OtherOrigin)),
            ("http://h/sse", "http://h.evil.com/m", Err(BadLocation::OtherOrigin)),
            ("http://h/sse", "/\\evil.com/m", Err(BadLocation::Unreadable)),
            ("http://h/sse", "javascript:alert(1)", Err(BadLocation::OtherOrigin)),
            ("http://h/sse", "/a b", Err(BadLocation::Unreadable)),
            ("/sse", "/m", Err(BadLocation::Unreadable)),
        ] {
            let expected = expected.map(|uri| uri.parse::<Uri>().unwrap());
            assert_eq!(resolve_endpoint(&base.parse().unwrap(), endpoint), expected, "{base} {endpoint}");
        }
    }

    #[test]
    fn redirects() {
        let from = Uri::from_static("https://h/mcp");
        for (status, location, expected) in [
            (307, "/mcp/", Ok("https://h/mcp/")),
            (308, "https://h/v2", Ok("https://h/v2")),
            (308, "https://other/mcp", Err(BadLocation::OtherOrigin)),
            (307, "http://h/mcp", Err(BadLocation::OtherOrigin)),
            (301, "/mcp/", Err(BadLocation::OtherMethod)),
            (302, "/mcp/", Err(BadLocation::OtherMethod)),
            (303, "/mcp/", Err(BadLocation::OtherMethod)),
            (200, "/mcp/", Err(BadLocation::OtherMethod)),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(
                redirect(status, &from, location),
                expected.map(Uri::from_static),
                "{status} {location}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_reference_leads_astray(
            base in "https?://(u@)?[a-z]{1,3}(:[0-9]{1,4})?(/[a-z./]{0,8})?",
            reference in "(https?:)?[/\\\\]{0,3}[a-z@:.?#/é -]{0,16}",
        ) {
            let Ok(base) = base.parse::<Uri>() else { return Ok(()) };
            if let Ok(uri) = resolve_endpoint(&base, &reference) {
                prop_assert!(same_origin(&base, &uri), "{uri}");
                prop_assert!(!uri.path().split('/').any(|step| step == "..") || uri.path() == base.path(), "{uri}");
            }
        }
    }
}
