//! `application/x-www-form-urlencoded`, and the queries that look like it.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// An encoder of names and values for a query or the body of a request.
#[derive(Clone, Default)]
pub(crate) struct Form(String);

impl Form {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.push(name, value);
        self
    }

    pub(crate) fn push(&mut self, name: &str, value: &str) {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        self.0.push_str(&encoded(name));
        self.0.push('=');
        self.0.push_str(&encoded(value));
    }

    pub(crate) fn into_body(self) -> String {
        self.0
    }

    /// Appends the pairs to the query of an address.
    #[cfg(feature = "client")]
    pub(crate) fn on(&self, url: &str) -> String {
        let url = url.split('#').next().unwrap_or_default();
        let between = if !url.contains('?') {
            "?"
        } else if url.ends_with(['?', '&']) {
            ""
        } else {
            "&"
        };
        format!("{url}{between}{}", self.0)
    }
}

/// All but the unreserved characters of RFC 3986. A space becomes `%20`, which every reader decodes.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Encodes one name or value.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Returns the pairs of a query. `None`: one of them cannot be decoded.
pub(crate) fn pairs(query: &str) -> Option<Vec<(String, String)>> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decoded(name)?, decoded(value)?))
    };
    query.split('&').filter(|part| !part.is_empty()).map(pair).collect()
}

/// Decodes one name or value. `None`: a `%` is not followed by two digits, or the bytes are not UTF-8.
pub(crate) fn decoded(text: &str) -> Option<String> {
    let is_triplet = |rest: &str| rest.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    if !text.split('%').skip(1).all(is_triplet) {
        return None;
    }
    let text = text.replace('+', " ");
    percent_decode_str(&text).decode_utf8().ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let pairs =
            [("resource", "https://h/mcp?a=b&c"), ("scope", "a b+c"), ("näme", "50% ✓"), ("empty", "")];
        let mut form = Form::new();
        pairs.iter().for_each(|(name, value)| form.push(name, value));
        let body = form.into_body();
        assert!(
            body.starts_with("resource=https%3A%2F%2Fh%2Fmcp%3Fa%3Db%26c&scope=a%20b%2Bc&n%C3%A4me="),
            "{body}"
        );
        let read = super::pairs(&body).unwrap();
        assert_eq!(read.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect::<Vec<_>>(), pairs);
    }

    #[cfg(feature = "client")]
    #[test]
    fn queries_are_added_to() {
        let form = Form::new().with("a", "1");
        for (url, expected) in [
            ("https://as/authorize", "https://as/authorize?a=1"),
            ("https://as/authorize?x=y", "https://as/authorize?x=y&a=1"),
            ("https://as/authorize?", "https://as/authorize?a=1"),
            ("https://as/authorize#top", "https://as/authorize?a=1"),
        ] {
            assert_eq!(form.on(url), expected);
        }
    }

    #[test]
    fn what_is_no_text_is_none() {
        for query in ["a=%", "a=%4", "a=%zz", "a=%ff"] {
            assert_eq!(pairs(query), None, "{query}");
        }
        assert_eq!(pairs("&&a").unwrap(), [("a".to_owned(), String::new())]);
    }
}
