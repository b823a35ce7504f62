//! The removal of secrets from messages, before the function of a log sees them.
//!
//! A `MessageLog` is attached to a server or a client, never to a transport's code. On a byte stream, a `LoggedTransport` lies between the
//! driver and the transport. Over HTTP the exchange is logged where its head and body are known: `HttpRequestCx::start` and `Body` in the
//! server, `HttpClient::send` and `ResponseBody` in the client; the events of a stream are decoded again from what is sent.
//!
//! JSON that the [`Redactor`] cannot read is withheld. A client's response is an answer, whatever it looks like, so the direction decides,
//! and no ids are remembered.

use std::{
    borrow::Cow,
    hash::{BuildHasher, RandomState},
};

use http::{HeaderMap, HeaderName, HeaderValue};

use super::json::Rewriter;

/// Removes secrets from messages, headers and URLs, for logs, traces and recordings.
///
/// Redacted by default:
///
/// - headers: `Authorization`, `Proxy-Authorization`, `Cookie`, `Set-Cookie`, `DPoP`, `Mcp-Session-Id`, and every header whose
///   name contains `auth`, `cookie`, `credential`, `key`, `nonce`, `password`, `secret`, `session`, `signature` or `token`;
/// - `requestState`;
/// - answers of clients: the responses to input requests, and `inputResponses`. Their action and model remain;
/// - user information and query of URLs, wherever they are in a text, and fragments with parameters;
/// - members such as `access_token`, `client_secret` or `password` that are not objects;
/// - texts that should be messages and are not JSON.
///
/// Arguments of tools, prompts and completions, and results, are not redacted by default:
/// [`arguments`](Self::arguments). Session ids, states and credentials are replaced by a text that is the same for the same
/// value within one `Redactor`, and that cannot be reversed; everything else by `<redacted>`.
///
/// ```
/// use pintle::message_log::{MessageLog, Redactor};
///
/// let redactor = Redactor::new().arguments().header("x-customer").member("iban");
/// assert_eq!(redactor.url("https://ann:pw@example.com/a?token=1"), "https://<redacted>@example.com/a?<redacted>");
/// let log = MessageLog::to_writer(std::io::stderr()).redactor(redactor);
/// ```
#[derive(Clone, Debug)]
pub struct Redactor {
    enabled: bool,
    arguments: bool,
    headers: Vec<String>,
    members: Vec<String>,
    tags: RandomState,
}

/// The replacement of a secret.
pub(super) const REDACTED: &str = "<redacted>";

/// Parts of the names of headers with secrets.
const HEADER_PARTS: [&str; 11] = [
    "auth",
    "cookie",
    "credential",
    "dpop",
    "key",
    "nonce",
    "password",
    "secret",
    "session",
    "signature",
    "token",
];

/// Headers that have such a part and no secret.
const PLAIN_HEADERS: [&str; 2] = [":authority", "www-authenticate"];

/// Members with secrets, in lower case without `_` and `-`.
const SECRET_MEMBERS: [&str; 13] = [
    "accesstoken",
    "apikey",
    "assertion",
    "authorization",
    "clientassertion",
    "clientsecret",
    "codeverifier",
    "idtoken",
    "passphrase",
    "password",
    "privatekey",
    "refreshtoken",
    "secret",
];

/// The start of a header value that is encoded.
const ENCODED: &str = "=?base64?";
/// The start of the names of headers that mirror arguments.
const MIRRORED: &str = "mcp-param-";

impl Redactor {
    /// Creates a redactor with the defaults.
    pub fn new() -> Self {
        Self {
            enabled: true,
            arguments: false,
            headers: Vec::new(),
            members: Vec::new(),
            tags: RandomState::new(),
        }
    }

    /// Creates a redactor that changes nothing, for recordings that are kept as safe as the secrets in them.
    pub fn disabled() -> Self {
        Self { enabled: false, ..Self::new() }
    }

    /// Redacts the arguments of tools, prompts and completions too, and the headers that mirror them.
    #[must_use]
    pub fn arguments(mut self) -> Self {
        self.arguments = true;
        self
    }

    /// Redacts a header too.
    #[must_use]
    pub fn header(mut self, name: &str) -> Self {
        self.headers.push(name.to_ascii_lowercase());
        self
    }

    /// Redacts the members of a name too, at any depth of a message.
    #[must_use]
    pub fn member(mut self, name: impl Into<String>) -> Self {
        self.members.push(name.into());
        self
    }

    /// Redacts a message or a batch. The result is JSON on one line. `by_client` is whether a client has sent it.
    ///
    /// # Errors
    ///
    /// The text is not JSON, or nested too deeply. The error is what may be shown of it.
    pub fn message(&self, message: &[u8], by_client: bool) -> Result<String, String> {
        let rewritten =
            std::str::from_utf8(message).ok().and_then(|text| Rewriter::rewrite(self, text, by_client));
        rewritten.ok_or_else(|| match self.enabled {
            true => format!("<redacted: {} bytes that are not JSON>", message.len()),
            false => String::from_utf8_lossy(message).into_owned(),
        })
    }

    /// Redacts headers.
    pub fn headers(&self, headers: &HeaderMap) -> HeaderMap {
        let mut redacted = HeaderMap::with_capacity(headers.len());
        for (name, value) in headers {
            redacted.append(name, self.header_value(name, value));
        }
        redacted
    }

    fn header_value(&self, name: &HeaderName, value: &HeaderValue) -> HeaderValue {
        if !self.enabled {
            return value.clone();
        }
        let name = name.as_str();
        let secret = !PLAIN_HEADERS.contains(&name)
            && (HEADER_PARTS.iter().any(|part| name.contains(part))
                || self.headers.iter().any(|own| own == name));
        let text = match value.to_str() {
            _ if secret || value.is_sensitive() => Cow::Owned(self.tag(value.as_bytes())),
            _ if self.arguments && name.starts_with(MIRRORED) => Cow::Borrowed(REDACTED),
            Ok(text) if !text.starts_with(ENCODED) => self.text(text),
            // The text inside is not looked at.
            _ => Cow::Borrowed(REDACTED),
        };
        HeaderValue::try_from(&*text).unwrap_or(HeaderValue::from_static(REDACTED))
    }

    /// Redacts user information, query and fragment of a URL or of the target of an HTTP request.
    pub fn url<'a>(&self, url: &'a str) -> Cow<'a, str> {
        if !self.enabled {
            return Cow::Borrowed(url);
        }
        let mut redacted = String::with_capacity(url.len());
        redact_url(url, &mut redacted);
        if redacted == url { Cow::Borrowed(url) } else { Cow::Owned(redacted) }
    }

    /// Redacts the URLs in a text.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !self.enabled || !text.contains("://") {
            return Cow::Borrowed(text);
        }
        let mut redacted = String::with_capacity(text.len());
        for word in text.split_inclusive(ends_url) {
            let (word, end) = word.split_at(word.trim_end_matches(ends_url).len());
            redact_urls(word, &mut redacted);
            redacted.push_str(end);
        }
        if redacted == text { Cow::Borrowed(text) } else { Cow::Owned(redacted) }
    }

    /// Returns a text in place of a secret: the same for the same secret, and of no use to find it.
    pub fn tag(&self, secret: &[u8]) -> String {
        if !self.enabled {
            return String::from_utf8_lossy(secret).into_owned();
        }
        format!("<redacted:{:08x}>", self.tags.hash_one(secret) >> 32)
    }

    /// Returns whether anything is redacted.
    pub(super) fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Returns whether arguments are redacted.
    pub(super) fn redacts_arguments(&self) -> bool {
        self.arguments
    }

    /// Returns whether the members of a name were added by [`member`](Self::member).
    pub(super) fn has_member(&self, name: &str) -> bool {
        self.members.iter().any(|own| own == name)
    }
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns whether members of a name hold a secret, unless they are objects.
pub(super) fn is_secret_member(name: &str) -> bool {
    let plain = |c: &char| !matches!(c, '_' | '-');
    let name: String = name.chars().filter(plain).take(32).map(|c| c.to_ascii_lowercase()).collect();
    SECRET_MEMBERS.contains(&&*name)
}

/// Returns whether a URL in a text ends before a character.
fn ends_url(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '<' | '>' | '`')
}

/// Returns where the scheme before `://` starts.
fn start_of_scheme(text: &str, end: usize) -> usize {
    let scheme = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    end - text.as_bytes()[..end].iter().rev().take_while(|byte| scheme(byte)).count()
}

/// Redacts the URLs in a text without white space.
fn redact_urls(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, url) = rest.split_at(start_of_scheme(rest, at));
        out.push_str(before);
        let authority = at - before.len() + "://".len();
        let next = url[authority..].find("://").map(|next| start_of_scheme(url, authority + next));
        let url = match next {
            // A URL in a query or a fragment is redacted with it.
            Some(next) if next > authority && !url[..next].contains(['?', '#']) => &url[..next],
            Some(next) if next <= authority => return out.push_str(REDACTED),
            _ => url,
        };
        redact_url(url, out);
        rest = &rest[before.len() + url.len()..];
    }
    out.push_str(rest);
}

fn redact_url(url: &str, out: &mut String) {
    let (before_fragment, fragment) = match url.split_once('#') {
        Some((before, fragment)) => (before, Some(fragment)),
        None => (url, None),
    };
    let (before_query, query) = match before_fragment.split_once('?') {
        Some((before, query)) => (before, Some(query)),
        None => (before_fragment, None),
    };
    match before_query.split_once("://") {
        Some((scheme, rest)) => {
            out.push_str(scheme);
            out.push_str("://");
            let authority = rest.split('/').next().unwrap_or_default();
            match authority.rsplit_once('@') {
                Some((user, _)) => {
                    out.push_str(REDACTED);
                    out.push_str(&rest[user.len()..]);
                }
                None => out.push_str(rest),
            }
        }
        None => out.push_str(before_query),
    }
    if query.is_some_and(|query| !query.is_empty()) {
        out.push('?');
        out.push_str(REDACTED);
    }
    if let Some(fragment) = fragment {
        out.push('#');
        out.push_str(if fragment.contains(['=', '?', '@', ':']) { REDACTED } else { fragment });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let redactor = Redactor::new();
        for (url, redacted) in [
            ("https://example.com/a", "https://example.com/a"),
            ("https://u:p@example.com:8/a?b=c#d", "https://<redacted>@example.com:8/a?<redacted>#d"),
            ("https://u:p@w@example.com", "https://<redacted>@example.com"),
            ("https://example.com/u@v", "https://example.com/u@v"),
            ("/mcp?session=1", "/mcp?<redacted>"),
            ("/mcp#access_token=1", "/mcp#<redacted>"),
            ("https://example.com?u@v", "https://example.com?<redacted>"),
            ("db+x://u@h/?q", "db+x://<redacted>@h/?<redacted>"),
        ] {
            assert_eq!(redactor.url(url), redacted);
        }
        let text = "see <https://a/?k=1>, (http://u@b/c) or\nx://y";
        assert_eq!(redactor.text(text), "see <https://a/?<redacted>>, (http://<redacted>@b/c) or\nx://y");
        // The second URL is part of the query of the first.
        assert_eq!(redactor.text("a://b/?c=d://e?f=g h"), "a://b/?<redacted> h");
        assert_eq!(redactor.text("a://b,c://u:p@d"), "a://b,c://<redacted>@d");
        assert_eq!(redactor.text("a://://u:p@d e://f"), "<redacted> e://f");
    }

    #[test]
    fn headers() {
        let redactor = Redactor::new().header("X-Own").arguments();
        for (name, value, shown) in [
            ("authorization", "Bearer 1", false),
            ("proxy-authorization", "Basic 1", false),
            ("cookie", "a=1", false),
            ("set-cookie", "a=1", false),
            ("dpop", "1", false),
            ("mcp-session-id", "1", false),
            ("x-api-key", "1", false),
            ("x-own", "1", false),
            ("mcp-param-city", "1", false),
            ("mcp-name", "=?base64?MQ==?=", false),
            ("mcp-name", "x", true),
            ("host", "localhost", true),
            ("www-authenticate", "Bearer scope=\"a\"", true),
        ] {
            let name = HeaderName::from_static(name);
            let redacted = redactor.header_value(&name, &HeaderValue::from_static(value));
            assert_eq!(redacted == value, shown, "{name} {redacted:?}");
        }
        let location = HeaderValue::from_static("https://u:p@a/?b");
        let location = redactor.header_value(&http::header::LOCATION, &location);
        assert_eq!(location, "https://<redacted>@a/?<redacted>");
    }

    #[test]
    fn a_tag_is_the_same_for_the_same_secret() {
        let redactor = Redactor::new();
        assert_eq!(redactor.tag(b"a"), redactor.clone().tag(b"a"));
        assert_ne!(redactor.tag(b"a"), redactor.tag(b"b"));
        assert_ne!(redactor.tag(b"a"), Redactor::new().tag(b"a"));
    }
}
