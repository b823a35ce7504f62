//! `application/x-www-form-urlencoded`, and the queries that look like it.

/// Names and values on their way into a query or the body of a request.
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

    /// An address with these in its query, behind those that it has.
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

/// One name or value. Unreserved characters stay as they are; a space is `%20`, which every reader understands.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            byte => {
                const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
                out.push('%');
                out.push(char::from(DIGITS[usize::from(byte >> 4)]));
                out.push(char::from(DIGITS[usize::from(byte & 15)]));
            }
        }
    }
    out
}

/// The pairs of a query. `None`: it is not text.
pub(crate) fn pairs(query: &str) -> Option<Vec<(String, String)>> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decoded(name)?, decoded(value)?))
    };
    query.split('&').filter(|part| !part.is_empty()).map(pair).collect()
}

fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => digit(bytes.next()?)? << 4 | digit(bytes.next()?)?,
            byte => byte,
        });
    }
    String::from_utf8(out).ok()
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
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
