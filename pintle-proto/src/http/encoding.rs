use std::{borrow::Cow, fmt};

use base64::{Engine, prelude::BASE64_STANDARD};

/// Encodes a value for a header: unchanged if it is plain ASCII, else as `=?base64?…?=`.
///
/// ```
/// use pintle_proto::http::{decode_value, encode_value};
///
/// assert_eq!(encode_value("us west 1"), "us west 1");
/// assert_eq!(encode_value("Hello, 世界"), "=?base64?SGVsbG8sIOS4lueVjA==?=");
/// assert_eq!(decode_value("=?base64?SGVsbG8sIOS4lueVjA==?=").unwrap(), "Hello, 世界");
/// ```
pub fn encode_value(value: &str) -> Cow<'_, str> {
    if is_plain(value) {
        return Cow::Borrowed(value);
    }
    let mut text = String::with_capacity(PREFIX.len() + value.len().div_ceil(3) * 4 + SUFFIX.len());
    text.push_str(PREFIX);
    BASE64_STANDARD.encode_string(value, &mut text);
    text.push_str(SUFFIX);
    Cow::Owned(text)
}

/// Decodes the value of a header.
///
/// Text without the exact prefix and suffix is the value itself. Between them only padded standard Base64 of UTF-8 is
/// accepted: a lenient reader and a strict one would see different values.
pub fn decode_value(text: &str) -> Result<Cow<'_, str>, Undecodable> {
    let Some(encoded) = text.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX)) else {
        return Ok(Cow::Borrowed(text));
    };
    let bytes = BASE64_STANDARD.decode(encoded).map_err(|_| Undecodable::Base64)?;
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| Undecodable::Utf8)
}

/// The error for a header value that cannot be decoded.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Undecodable {
    /// The text between the markers is not padded standard Base64.
    Base64,
    /// The decoded bytes are not UTF-8.
    Utf8,
}

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Base64 => "not padded standard Base64 between `=?base64?` and `?=`",
            Self::Utf8 => "Base64 of bytes that are not UTF-8",
        })
    }
}

impl std::error::Error for Undecodable {}

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

fn is_plain(value: &str) -> bool {
    let bytes = value.as_bytes();
    let safe = bytes.iter().all(|byte| (0x20..=0x7e).contains(byte));
    let padded = bytes.first() == Some(&b' ') || bytes.last() == Some(&b' ');
    // Also if prefix and suffix overlap: some readers would take that for an encoded value.
    let sentinel = value.starts_with(PREFIX) && value.ends_with(SUFFIX);
    safe && !padded && !sentinel
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_as_headers() {
        for (value, text) in [
            ("us-west1", "us-west1"),
            ("us west 1", "us west 1"),
            ("", ""),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            (" leading", "=?base64?IGxlYWRpbmc=?="),
            ("trailing ", "=?base64?dHJhaWxpbmcg?="),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("line1\r\nline2", "=?base64?bGluZTENCmxpbmUy?="),
            ("\tindented", "=?base64?CWluZGVudGVk?="),
            ("a\tb", "=?base64?YQli?="),
            ("\u{7f}", "=?base64?fw==?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
            ("=?BASE64?literal?=", "=?BASE64?literal?="),
            ("=?base64?no suffix", "=?base64?no suffix"),
            ("file:///path/to/file%20name.txt", "file:///path/to/file%20name.txt"),
        ] {
            assert_eq!(encode_value(value), text);
            assert_eq!(decode_value(text).unwrap(), value);
        }
    }

    #[test]
    fn literals_and_faults() {
        for (text, value) in [
            ("=?BASE64?SGVsbG8=?=", Ok("=?BASE64?SGVsbG8=?=")),
            ("SGVsbG8=", Ok("SGVsbG8=")),
            ("=?base64?SGVsbG8=", Ok("=?base64?SGVsbG8=")),
            ("=?base64?=", Ok("=?base64?=")),
            ("=?base64??=", Ok("")),
            ("=?base64?SGVsbG8=?=", Ok("Hello")),
            ("=?base64?SGVsbG8?=", Err(Undecodable::Base64)),
            ("=?base64?SGVs!!!bG8=?=", Err(Undecodable::Base64)),
            ("=?base64?SGVsbG8 =?=", Err(Undecodable::Base64)),
            ("=?base64?SGVsbG9=?=", Err(Undecodable::Base64)), // bits after the last byte
            ("=?base64?-_8=?=", Err(Undecodable::Base64)),     // the URL alphabet
            ("=?base64?/w==?=", Err(Undecodable::Utf8)),
        ] {
            assert_eq!(decode_value(text), value.map(Cow::Borrowed), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_value_comes_back(value in any::<String>()) {
            let text = encode_value(&value);
            prop_assert!(http::HeaderValue::from_str(&text).is_ok_and(|header| header.to_str().is_ok()));
            prop_assert_eq!(decode_value(&text).unwrap(), value.as_str());
        }

        #[test]
        fn so_does_one_that_looks_encoded(inner in "[ -~]{0,20}") {
            let value = format!("=?base64?{inner}?=");
            let text = encode_value(&value);
            prop_assert_eq!(decode_value(&text).unwrap(), value.as_str());
        }
    }
}
