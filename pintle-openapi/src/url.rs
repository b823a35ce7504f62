//! Parts of URLs, as they are sent.

use percent_encoding::{
    AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode_byte, utf8_percent_encode,
};

/// Everything but unreserved characters.
pub(crate) const VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// How often text may be encoded.
const MAX_ENCODED: usize = 4;

/// Encodes a value, so that it is one segment of a path, or the name or value of a pair of a query.
///
/// ```
/// assert_eq!(pintle_openapi::url::encode("a/b c"), "a%2Fb%20c");
/// ```
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, VALUE).to_string()
}

/// Returns whether text has a segment `.` or `..` for any who decodes it, however often.
pub fn has_dots(text: &str) -> bool {
    let mut text = text.as_bytes().to_vec();
    for _ in 0..MAX_ENCODED {
        let mut segments = text.split(|byte| matches!(byte, b'/' | b'\\'));
        if segments.any(|segment| matches!(segment, b"." | b"..")) {
            return true;
        }
        let decoded: Vec<u8> = percent_decode(&text).collect();
        if decoded == text {
            return false;
        }
        text = decoded;
    }
    // What is encoded as often is meant to be read differently.
    true
}

/// Returns text that the author of a URL has written, as it is sent: what is encoded stays so.
///
/// # Errors
///
/// A character that cannot be there.
pub fn literal(text: &str) -> Result<String, char> {
    if let Some(wrong) = text.chars().find(|letter| matches!(letter, '?' | '}' | '\\') || letter.is_control())
    {
        return Err(wrong);
    }
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/%!$&'()*+,;=:@".contains(&byte);
    let mut sent = String::with_capacity(text.len());
    for byte in text.bytes() {
        match keep(byte) {
            true => sent.push(char::from(byte)),
            false => sent.push_str(percent_encode_byte(byte)),
        }
    }
    Ok(sent)
}
