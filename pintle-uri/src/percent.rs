use std::borrow::Cow;

/// A set of ASCII characters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Set(u128);

impl Set {
    pub(super) const UNRESERVED: Self =
        Self::of(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~");
    pub(super) const RESERVED: Self = Self::of(b":/?#[]@!$&'()*+,;=");
    pub(super) const ANY: Self = Self::UNRESERVED.and(Self::RESERVED);

    pub(super) const fn of(bytes: &[u8]) -> Self {
        let (mut set, mut i) = (0, 0);
        while i < bytes.len() {
            set |= 1 << bytes[i];
            i += 1;
        }
        Self(set)
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) const fn contains(self, byte: u8) -> bool {
        byte < 128 && self.0 & (1 << byte) != 0
    }
}

/// Normalises the percent-encoding of a URI or a part of one: unreserved characters are decoded, characters that are not
/// allowed are encoded, and hexadecimal digits are in upper case. The result is ASCII.
///
/// Returns `None` if a `%` is not followed by two hexadecimal digits.
///
/// ```
/// assert_eq!(pintle_uri::normalise("a%2eb/é%2f").as_deref(), Some("a.b/%C3%A9%2F"));
/// assert_eq!(pintle_uri::normalise("100%"), None);
/// ```
pub fn normalise(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut i = 0;
    while let Some(&byte) = bytes.get(i) {
        if byte == b'%' {
            let decoded = triplet(bytes, i)?;
            if Set::UNRESERVED.contains(decoded) {
                out.push(char::from(decoded))
            } else {
                push(&mut out, decoded)
            }
            i += 3;
        } else {
            if Set::ANY.contains(byte) {
                out.push(char::from(byte))
            } else {
                push(&mut out, byte)
            }
            i += 1;
        }
    }
    Some(out)
}

/// Percent-encodes one segment of a path: everything but unreserved characters.
pub fn encode_segment(bytes: &[u8]) -> String {
    encode_bytes(bytes, Set::UNRESERVED)
}

/// Percent-encodes every byte that is not in `allowed`.
pub(super) fn encode_bytes(bytes: &[u8], allowed: Set) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        if allowed.contains(byte) { out.push(char::from(byte)) } else { push(&mut out, byte) }
    }
    out
}

/// Appends `text` and percent-encodes it, except for bytes in `allowed` and, with `keep_encoded`, what is encoded already.
pub(super) fn encode_into(out: &mut String, text: &str, allowed: Set, keep_encoded: bool) {
    let bytes = text.as_bytes();
    for (i, &byte) in bytes.iter().enumerate() {
        if allowed.contains(byte) || (keep_encoded && byte == b'%' && triplet(bytes, i).is_some()) {
            out.push(char::from(byte));
        } else {
            push(out, byte);
        }
    }
}

/// Decodes percent-encoding once. A `%` that is not followed by two hexadecimal digits is kept.
pub fn decode_bytes(text: &str) -> Cow<'_, [u8]> {
    percent_encoding::percent_decode_str(text).into()
}

/// Returns the byte that is percent-encoded at `i`, if there is one.
pub(super) fn triplet(bytes: &[u8], i: usize) -> Option<u8> {
    let &[b'%', high, low] = bytes.get(i..i + 3)? else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

/// Returns the length in bytes of the character at `i`, percent-encoded or not. `None` at the end, and if it is not UTF-8.
///
/// `text` has to be normalised.
pub(super) fn character(text: &str, i: usize, set: Set) -> Option<usize> {
    let bytes = text.as_bytes();
    let &first = bytes.get(i)?;
    if first != b'%' {
        return set.contains(first).then_some(1);
    }
    let mut utf8 = [0; 4];
    utf8[0] = triplet(bytes, i)?;
    let width = match utf8[0] {
        0..=0x7F => 1,
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => return None,
    };
    for (n, byte) in utf8.iter_mut().enumerate().take(width).skip(1) {
        *byte = triplet(bytes, i + 3 * n)?;
    }
    str::from_utf8(&utf8[..width]).is_ok().then_some(3 * width)
}

pub(super) fn push(out: &mut String, byte: u8) {
    out.push_str(percent_encoding::percent_encode_byte(byte));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_way_to_write_a_uri() {
        for (text, canonical) in [
            ("a%2eb", "a.b"),
            ("a%2fb", "a%2Fb"),
            ("%252e", "%252e"),
            ("a b", "a%20b"),
            ("é", "%C3%A9"),
            ("%c3%a9", "%C3%A9"),
            ("[x]?#", "[x]?#"),
        ] {
            assert_eq!(normalise(text).as_deref(), Some(canonical), "{text}");
        }
        for text in ["%", "a%2", "%zz", "%+1", "%é"] {
            assert_eq!(normalise(text), None, "{text}");
        }
    }

    #[test]
    fn a_character_is_whole_or_none() {
        for (text, width) in [
            ("a", Some(1)),
            ("%C3%A9x", Some(6)),
            ("%F0%9F%A6%80", Some(12)),
            ("%C3", None),
            ("%FF", None),
            ("/", None),
        ] {
            assert_eq!(character(text, 0, Set::UNRESERVED), width, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn normalising_twice_changes_nothing(text in ".{0,40}") {
            if let Some(once) = normalise(&text) {
                proptest::prop_assert_eq!(normalise(&once), Some(once.clone()));
                proptest::prop_assert!(once.is_ascii());
            }
        }
    }
}
