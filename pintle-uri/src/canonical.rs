use std::{borrow::Cow, error::Error, fmt};

use super::percent::{Set, push, triplet};

/// The limits of a URI that is read.
///
/// ```
/// use pintle_uri::{Uri, UriLimits};
///
/// assert!(Uri::read(&"a".repeat(8 * 1024 + 1), UriLimits::READ).is_err());
/// assert!(Uri::read(&"a/".repeat(65), UriLimits::WATCHED).is_err());
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct UriLimits {
    /// The maximum length, as sent and as canonical, in bytes.
    pub bytes: usize,
    /// The maximum number of `/`.
    pub segments: usize,
}

impl UriLimits {
    /// The limits of a resource that is read: 8 KiB.
    pub const READ: Self = Self { bytes: 8 << 10, segments: usize::MAX };
    /// The limits of a resource that is watched: 2 KiB and 64 segments.
    pub const WATCHED: Self = Self { bytes: 2 << 10, segments: 64 };

    /// Creates limits.
    pub const fn new(bytes: usize, segments: usize) -> Self {
        Self { bytes, segments }
    }
}

/// The error for a URI that exceeds its limits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UriTooLong(UriLimits);

impl fmt::Display for UriTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UriLimits { bytes, segments } = self.0;
        write!(f, "uri: it has more than {bytes} bytes")?;
        if segments != usize::MAX {
            write!(f, " or {segments} segments")?;
        }
        f.write_str("; use a shorter one")
    }
}

impl Error for UriTooLong {}

/// The reason why a URI may be read as another one. Of several, the gravest counts, which is the last of these.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum UriFault {
    /// A space.
    Space,
    /// A fragment.
    Fragment,
    /// A `\`.
    Backslash,
    /// An empty segment in the path of a `file:` URI.
    EmptySegment,
    /// A control character, encoded or not.
    Control,
    /// A `.` or `..` segment, encoded or not.
    DotSegment,
    /// A `%` without two hexadecimal digits.
    Percent,
}

/// A URI in the one spelling that it is judged and found by: the scheme in lower case, unreserved characters decoded, all that has
/// to be encoded encoded, hexadecimal digits in upper case.
///
/// Two URIs are equal, and a URI has a [pattern](UriPattern), regardless of the case of the authority.
///
/// ```
/// use pintle_uri::{Uri, UriLimits, UriPattern};
///
/// let uri = Uri::read("NOTE://%73ecret/caf%c3%a9", UriLimits::READ)?;
/// assert_eq!(uri.as_str(), "note://secret/caf%C3%A9");
/// assert_eq!(uri.sent(), "note://secret/caf%c3%a9");
/// assert!(uri.matches(&UriPattern::new("note://Secret/*")));
/// # Ok::<(), pintle_uri::UriTooLong>(())
/// ```
#[derive(Clone, Debug)]
pub struct Uri {
    canonical: Box<str>,
    /// The spelling that is sent, if it is another one.
    own: Option<Box<str>>,
    /// The end of the authority.
    folded: usize,
    fault: Option<UriFault>,
}

/// The encoded characters that a server which decodes too often reads as delimiters.
const DECODED_AGAIN: [(&str, char); 5] =
    [("%2F", '/'), ("%5C", '/'), ("%3F", '?'), ("%23", '#'), ("%25", '%')];

impl Uri {
    /// Reads a URI, whose length is checked first.
    ///
    /// # Errors
    ///
    /// It exceeds the limits.
    pub fn read(text: &str, limits: UriLimits) -> Result<Self, UriTooLong> {
        let too_long = Err(UriTooLong(limits));
        if text.len() > limits.bytes || text.bytes().filter(|byte| *byte == b'/').count() > limits.segments {
            return too_long;
        }
        let uri = Self::of(text);
        // Encoding makes it up to three times as long.
        if uri.canonical.len() > limits.bytes { too_long } else { Ok(uri) }
    }

    /// Reads a URI of any length, such as one that this side has written.
    pub fn of(text: &str) -> Self {
        let mut canonical = String::with_capacity(text.len());
        let mut fault = rewrite(text, |octet, written, is_plain| match is_plain {
            true => canonical.push(char::from(octet)),
            false if written.len() == 3 => push(&mut canonical, octet),
            false => written.bytes().for_each(|octet| push(&mut canonical, octet)),
        });
        lower_scheme(&mut canonical);
        if let Some(path) = canonical.strip_prefix("file:").and_then(local_path) {
            canonical = format!("file://{path}");
        }
        let folded = authority_end(&canonical);
        let (before, path) = canonical.split_at(folded);
        let path = path.split_once(['?', '#']).map_or(path, |(path, _)| path);
        let authority = before.rsplit('/').next().unwrap_or_default();
        let is_dots = |segment: &str| matches!(segment, "." | "..");
        if is_dots(authority) || path.trim_start_matches(':').split('/').any(is_dots) {
            fault = fault.max(Some(UriFault::DotSegment));
        } else if before.starts_with("file:") && path.contains("//") {
            fault = fault.max(Some(UriFault::EmptySegment));
        }
        let own = match fault {
            _ if *canonical == *text => None,
            // What cannot be judged is not changed either.
            Some(_) => Some(text.into()),
            None => {
                let mut own = String::with_capacity(text.len());
                rewrite(text, |octet, written, is_plain| match is_plain {
                    true => own.push(char::from(octet)),
                    false => own.push_str(written),
                });
                lower_scheme(&mut own);
                (*own != *canonical).then(|| own.into())
            }
        };
        Self { canonical: canonical.into(), own, folded, fault }
    }

    /// Returns the canonical spelling.
    pub fn as_str(&self) -> &str {
        &self.canonical
    }

    /// Returns the spelling that is sent if the server has listed no other: as it was written, with unreserved characters decoded and
    /// the scheme in lower case. One with a [fault](Self::fault) is as it was written.
    pub fn sent(&self) -> &str {
        self.own.as_deref().unwrap_or(&self.canonical)
    }

    /// Returns the canonical spelling with the authority in lower case: equal URIs have the same.
    pub fn key(&self) -> Cow<'_, str> {
        let (authority, rest) = self.canonical.split_at(self.folded);
        match authority.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => (authority.to_ascii_lowercase() + rest).into(),
            false => Cow::Borrowed(&self.canonical),
        }
    }

    /// Returns the reason why readers may differ about what this URI means.
    pub fn fault(&self) -> Option<UriFault> {
        self.fault
    }

    /// Returns the URI with encoded delimiters and `%` decoded once, as a server may read it that decodes too often; `None` if it has
    /// none.
    pub fn second_reading(&self) -> Option<Self> {
        if !DECODED_AGAIN.iter().any(|(encoded, _)| self.canonical.contains(encoded)) {
            return None;
        }
        let (mut text, mut rest) = (String::with_capacity(self.canonical.len()), &*self.canonical);
        while let Some((before, behind)) = rest.split_once('%') {
            text.push_str(before);
            let digits = behind.get(..2).unwrap_or_default();
            let decoded = DECODED_AGAIN.iter().find(|(encoded, character)| {
                // A `%` that encodes nothing stays as it is.
                encoded[1..] == *digits && (*character != '%' || is_hex(behind.get(2..4)))
            });
            text.push(decoded.map_or('%', |(_, character)| *character));
            rest = if decoded.is_some() { &behind[2..] } else { behind };
        }
        text.push_str(rest);
        Some(Self::of(&text))
    }

    /// Returns whether the URI has a pattern.
    pub fn matches(&self, pattern: &UriPattern) -> bool {
        let [first, parts @ ..] = &*pattern.0 else { return false };
        let Some((last, parts)) = parts.split_last() else {
            return first.len() == self.canonical.len() && self.has(first, 0);
        };
        if !self.has(first, 0) {
            return false;
        }
        let mut at = first.len();
        // Taking each part where it first occurs leaves the most for the others.
        for part in parts {
            let end = self.canonical.len().saturating_sub(part.len());
            match (at..=end).find(|at| self.has(part, *at)) {
                Some(found) => at = found + part.len(),
                None => return false,
            }
        }
        self.canonical.len().checked_sub(last.len()).is_some_and(|start| start >= at && self.has(last, start))
    }

    /// Returns whether a text is at a position. The case of the authority does not count.
    fn has(&self, text: &str, at: usize) -> bool {
        let Some(found) = self.canonical.as_bytes().get(at..at + text.len()) else { return false };
        let folded = self.folded.saturating_sub(at).min(text.len());
        let ((one, one_rest), (other, other_rest)) =
            (found.split_at(folded), text.as_bytes().split_at(folded));
        one.eq_ignore_ascii_case(other) && one_rest == other_rest
    }
}

impl PartialEq for Uri {
    fn eq(&self, other: &Self) -> bool {
        self.canonical.len() == other.canonical.len() && self.has(&other.canonical, 0)
    }
}

impl Eq for Uri {}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.canonical)
    }
}

/// A pattern of URIs, in which `*` is any text. It is read as a [`Uri`] is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UriPattern(Box<[Box<str>]>);

impl UriPattern {
    /// Reads a pattern.
    pub fn new(pattern: &str) -> Self {
        Self(Uri::of(pattern).canonical.split('*').map(Into::into).collect())
    }
}

fn is_hex(digits: Option<&str>) -> bool {
    digits.is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// Calls a function for each character and encoded octet of a text: with the octet, the text, and whether a canonical URI has the
/// octet as it is. Returns the gravest fault.
fn rewrite(text: &str, mut write: impl FnMut(u8, &str, bool)) -> Option<UriFault> {
    let (mut fault, mut at) = (None, 0);
    while let Some(first) = text[at..].chars().next() {
        let encoded = triplet(text.as_bytes(), at);
        let width = if encoded.is_some() { 3 } else { first.len_utf8() };
        let octet = encoded.unwrap_or(text.as_bytes()[at]);
        let is_plain = match encoded {
            Some(octet) => Set::UNRESERVED.contains(octet),
            None => Set::ANY.contains(octet),
        };
        fault = fault.max(match (first, encoded) {
            (_, Some(0..=0x1F | 0x7F)) => Some(UriFault::Control),
            ('%', None) => Some(UriFault::Percent),
            ('\\', _) => Some(UriFault::Backslash),
            (' ', _) => Some(UriFault::Space),
            ('#', _) => Some(UriFault::Fragment),
            (other, None) if other.is_control() => Some(UriFault::Control),
            _ => None,
        });
        write(octet, &text[at..at + width], is_plain);
        at += width;
    }
    fault
}

/// Returns the end of the scheme; 0 if there is none.
pub(super) fn scheme_end(text: &str) -> usize {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    text.find(':').filter(|end| text[..*end].bytes().all(fits)).unwrap_or(0)
}

fn lower_scheme(text: &mut str) {
    let end = scheme_end(text);
    if let Some(scheme) = text.get_mut(..end) {
        scheme.make_ascii_lowercase();
    }
}

/// Returns the end of the authority of a canonical URI, or of the scheme if it has none.
fn authority_end(canonical: &str) -> usize {
    let scheme = scheme_end(canonical);
    match canonical[scheme..].strip_prefix("://") {
        Some(rest) => scheme + 3 + rest.find(['/', '?', '#']).unwrap_or(rest.len()),
        None => scheme,
    }
}

/// Returns the path of a file of this machine, if that has no host or is written without `//`.
fn local_path(rest: &str) -> Option<&str> {
    match rest.strip_prefix("//") {
        Some(host) => {
            let (host, path) = host.split_at(host.find('/')?);
            host.eq_ignore_ascii_case("localhost").then_some(path)
        }
        None => rest.starts_with('/').then_some(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_has_one_canonical_form_and_one_that_is_sent() {
        for (text, canonical, sent) in [
            ("note://secret/plan", "note://secret/plan", "note://secret/plan"),
            ("NOTE://%73ecret/plan", "note://secret/plan", "note://secret/plan"),
            ("%4eote://secret/plan", "note://secret/plan", "note://secret/plan"),
            ("Repo://Owner/x", "repo://Owner/x", "repo://Owner/x"),
            ("note://caf\u{e9}/%c3%a9", "note://caf%C3%A9/%C3%A9", "note://caf\u{e9}/%c3%a9"),
            ("note://a/%7Eb{c}|", "note://a/~b%7Bc%7D%7C", "note://a/~b{c}|"),
            ("note://a%2fb?x=%26", "note://a%2Fb?x=%26", "note://a%2fb?x=%26"),
            ("file:/srv/a", "file:///srv/a", "file:/srv/a"),
            ("FILE://LocalHost/srv/%61", "file:///srv/a", "file://LocalHost/srv/a"),
            ("urn:Note:A", "urn:Note:A", "urn:Note:A"),
            ("plain Text", "plain%20Text", "plain Text"),
            ("", "", ""),
        ] {
            let uri = Uri::of(text);
            assert_eq!((uri.as_str(), uri.sent()), (canonical, sent), "{text}");
            assert_eq!(Uri::of(uri.as_str()), uri, "{text}");
            assert_eq!(Uri::of(uri.sent()).as_str(), canonical, "{text}");
        }
        assert_eq!(Uri::of("repo://Owner/X").key(), "repo://owner/X");
        assert_eq!(Uri::of("repo://Owner/X"), Uri::of("repo://owner/X"));
        assert_ne!(Uri::of("repo://Owner/X"), Uri::of("repo://Owner/x"));
        assert_ne!(Uri::of("repo://a/b"), Uri::of("repo://a/bc"));
    }

    #[test]
    fn a_spelling_that_readers_differ_about_has_a_fault_and_stays() {
        for (text, fault) in [
            ("note://a/../b", Some(UriFault::DotSegment)),
            ("note://a/%2E%2e/b", Some(UriFault::DotSegment)),
            ("note://a/.", Some(UriFault::DotSegment)),
            ("note://../b", Some(UriFault::DotSegment)),
            ("mail:..", Some(UriFault::DotSegment)),
            ("note://100%/../b", Some(UriFault::Percent)),
            ("note://a/b..c?x=/../y", None),
            ("note://a\n", Some(UriFault::Control)),
            ("note://a%00b", Some(UriFault::Control)),
            ("note://a%0ab", Some(UriFault::Control)),
            ("note://a b", Some(UriFault::Space)),
            ("note://a\\b", Some(UriFault::Backslash)),
            ("note://a%", Some(UriFault::Percent)),
            ("note://a%2", Some(UriFault::Percent)),
            ("note://a%zz", Some(UriFault::Percent)),
            ("note://a#b", Some(UriFault::Fragment)),
            ("file:///a//b", Some(UriFault::EmptySegment)),
            ("file:////a", Some(UriFault::EmptySegment)),
            ("file:///a/", None),
            ("note://a//b", None),
            ("note://a%20b%5Cc%23", None),
        ] {
            let uri = Uri::of(text);
            assert_eq!(uri.fault(), fault, "{text}");
            assert!(fault.is_none() || uri.sent() == text, "{text}");
        }
    }

    #[test]
    fn encoded_delimiters_have_a_second_reading() {
        for (text, second) in [
            ("note://secret%2Fplan", Some("note://secret/plan")),
            ("note://secret%5cplan", Some("note://secret/plan")),
            ("note://%2573ecret/plan", Some("note://secret/plan")),
            ("note://secret%3Fa%23b", Some("note://secret?a#b")),
            ("note://caf%C3%A9", None),
            ("note://a%20b", None),
        ] {
            assert_eq!(Uri::of(text).second_reading().as_ref().map(Uri::as_str), second, "{text}");
        }
        let dots = Uri::of("note://100%25/..%2Fsecret").second_reading().unwrap();
        assert_eq!(dots.fault(), Some(UriFault::DotSegment));
    }

    #[test]
    fn a_pattern_is_read_as_a_uri_and_compared_without_the_case_of_the_authority() {
        for (pattern, matching, others) in [
            (
                "note://secret/*",
                &["note://secret/plan", "NOTE://SECRET/plan", "note://%73ecret/"][..],
                &["note://secret", "note://public/secret/x"][..],
            ),
            ("NOTE://%73ecret/P*", &["note://secret/Plan"], &["note://secret/plan"]),
            ("https://*.Example.com/A*", &["https://x.example.COM/Ab"], &["https://x.example.com/ab"]),
            ("note://A*B", &["note://a/xB", "note://axb"], &["note://a/xb"]),
            ("*", &["", "note://x"], &[]),
            ("*plan", &["note://secret/plan", "note://PLAN"], &["note://secret/PLAN"]),
            ("note://a*a", &["note://aa", "note://a/a"], &["note://a"]),
            ("file:/srv/*", &["file:///srv/a", "file://localhost/srv/a"], &["file://host/srv/a"]),
            ("note://caf\u{e9}", &["note://caf%c3%a9"], &["note://cafe"]),
            ("", &[""], &["a"]),
        ] {
            let pattern = UriPattern::new(pattern);
            for text in matching {
                assert!(Uri::of(text).matches(&pattern), "{pattern:?} {text}");
            }
            for text in others {
                assert!(!Uri::of(text).matches(&pattern), "{pattern:?} {text}");
            }
        }
    }

    #[test]
    fn limits_are_checked_before_anything_is_read() {
        let long = "n://".to_owned() + &"é".repeat(600);
        assert!(Uri::read(&long, UriLimits::new(2048, 64)).is_err(), "it is longer when it is encoded");
        assert!(Uri::read("n://a/b", UriLimits::new(7, 3)).is_ok());
        assert!(Uri::read("n://a/b", UriLimits::new(7, 2)).is_err());
        assert!(Uri::read("n://a/b", UriLimits::new(6, 3)).is_err());
        assert_eq!(UriLimits::READ.bytes, 8192);
        assert_eq!((UriLimits::WATCHED.bytes, UriLimits::WATCHED.segments), (2048, 64));
        let error = Uri::read("n://a/b", UriLimits::new(6, 2)).unwrap_err();
        assert_eq!(error.to_string(), "uri: it has more than 6 bytes or 2 segments; use a shorter one");
    }

    proptest::proptest! {
        #[test]
        fn the_canonical_form_is_a_fixed_point(text in "[nN%:/.a-cA-C2345eEfF\\\\ é#?]{0,24}") {
            let uri = Uri::of(&text);
            let again = Uri::of(uri.as_str());
            proptest::prop_assert!(uri.as_str().is_ascii());
            proptest::prop_assert_eq!(again.as_str(), uri.as_str());
            let sent = Uri::of(uri.sent());
            proptest::prop_assert_eq!(sent.as_str(), uri.as_str());
        }
    }
}
