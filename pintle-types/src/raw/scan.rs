use serde::de::{DeserializeSeed, IgnoredAny};

use super::{
    RawObject,
    escape::plain_length,
    members::{Member, Members},
    one_line,
};

/// A position in a JSON text, from which the spans of its values are read. Nothing is decoded.
///
/// Each method returns `None` if the text is not what it expects.
pub(crate) struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the text that has not been read.
    pub(crate) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Goes past some bytes of the rest.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Returns the next byte that is not white space, without going past it.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at)? {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                byte => return Some(*byte),
            }
        }
    }

    /// Goes past white space and this byte.
    #[inline]
    pub(crate) fn token(&mut self, token: u8) -> Option<()> {
        (self.next()? == token).then(|| self.at += 1)
    }

    /// Reads a string. Returns the text between its quotes, and whether that has escapes.
    pub(crate) fn string(&mut self) -> Option<(&'a str, bool)> {
        self.token(b'"')?;
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let (mut end, mut has_escapes) = (0, false);
        loop {
            end += plain_length(bytes.get(end..)?);
            match bytes.get(end)? {
                b'"' => break,
                b'\\' => end += escape_length(bytes.get(end + 1..)?)?,
                // A control character.
                _ => return None,
            }
            has_escapes = true;
        }
        self.at += end + 1;
        Some((rest.get(..end)?, has_escapes))
    }

    /// Reads a value of any kind, and returns its text.
    pub(crate) fn value(&mut self) -> Option<&'a str> {
        self.next()?;
        let start = self.at;
        self.skip()?;
        self.text.get(start..self.at)
    }

    /// Reads an object and the spans of its members. An object with a name that occurs twice is refused.
    pub(crate) fn object(&mut self) -> Option<RawObject> {
        self.next()?;
        let start = self.at;
        let offset = |at: usize| u32::try_from(at - start).ok();
        let mut members = Members::new();
        self.token(b'{')?;
        let mut more = self.next()? != b'}';
        while more {
            let (name, has_escapes) = self.string()?;
            if has_escapes {
                // Equal names must have equal texts, so the names are decoded.
                self.at = start;
                return self.decode(std::marker::PhantomData);
            }
            let name_end = self.at - 1;
            self.token(b':')?;
            let value = self.value()?;
            members.push(Member {
                name: (offset(name_end - name.len())?, offset(name_end)?),
                value: (offset(self.at - value.len())?, offset(self.at)?),
            });
            more = self.next()? == b',';
            self.at += usize::from(more);
        }
        self.token(b'}')?;
        if members.len() == 0 {
            return Some(RawObject::empty());
        }
        let text = self.text.get(start..self.at)?;
        members.repeated(text).is_none().then(|| RawObject { text: one_line(text).into_owned(), members })
    }

    /// Decodes the next value with serde_json.
    pub(crate) fn decode<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Option<T::Value> {
        let mut deserializer = serde_json::Deserializer::from_str(self.rest());
        let value = seed.deserialize(&mut deserializer).ok()?;
        self.at += deserializer.into_iter::<IgnoredAny>().byte_offset();
        Some(value)
    }

    /// Goes past a value. It is not recursive: a peer decides how deep a text is.
    fn skip(&mut self) -> Option<()> {
        let start = self.at;
        // One bit for each open container, the innermost lowest: whether it is an object.
        let (mut objects, mut depth) = (0_u64, 0);
        loop {
            match self.next()? {
                b'"' => drop(self.string()?),
                open @ (b'{' | b'[') => {
                    if depth == u64::BITS {
                        self.at = start;
                        return self.decode(std::marker::PhantomData::<IgnoredAny>).map(drop);
                    }
                    self.at += 1;
                    let is_object = open == b'{';
                    if self.next()? != if is_object { b'}' } else { b']' } {
                        (objects, depth) = (objects << 1 | u64::from(is_object), depth + 1);
                        self.item(is_object)?;
                        continue;
                    }
                    self.at += 1;
                }
                _ => self.at += scalar_length(self.rest().as_bytes())?,
            }
            // The value has ended, and with it perhaps containers that it was the last of.
            loop {
                if depth == 0 {
                    return Some(());
                }
                let is_object = objects & 1 == 1;
                let byte = self.next()?;
                self.at += 1;
                match byte {
                    b',' => break self.item(is_object)?,
                    b'}' if is_object => {}
                    b']' if !is_object => {}
                    _ => return None,
                }
                (objects, depth) = (objects >> 1, depth - 1);
            }
        }
    }

    /// Goes to the next value of a container: past the name, if it is an object.
    fn item(&mut self, is_object: bool) -> Option<()> {
        if is_object {
            self.string()?;
            self.token(b':')?;
        }
        Some(())
    }
}

/// Returns the length of an escape, given what follows its backslash.
fn escape_length(rest: &[u8]) -> Option<usize> {
    match rest {
        [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => Some(2),
        [b'u', digits @ ..] => digits.get(..4)?.iter().all(u8::is_ascii_hexdigit).then_some(6),
        _ => None,
    }
}

/// Returns the length of a number or a literal.
fn scalar_length(text: &[u8]) -> Option<usize> {
    for literal in [&b"true"[..], b"false", b"null"] {
        if text.starts_with(literal) {
            return Some(literal.len());
        }
    }
    let digits = |start: usize| {
        let count = text.get(start..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (count > 0).then_some(start + count)
    };
    let start = usize::from(text.first() == Some(&b'-'));
    let mut end = digits(start)?;
    if text.get(start) == Some(&b'0') && end > start + 1 {
        return None;
    }
    if text.get(end) == Some(&b'.') {
        end = digits(end + 1)?;
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let has_sign = matches!(text.get(end + 1), Some(b'+' | b'-'));
        end = digits(end + 1 + usize::from(has_sign))?;
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Scans a whole text as one value.
    fn scanned(text: &str) -> Option<&str> {
        let mut scan = Scan::new(text);
        let value = scan.value()?;
        scan.next().is_none().then_some(value)
    }

    /// Compares with serde_json, which is what decides.
    fn check(text: &str) {
        let expected = serde_json::from_str::<&serde_json::value::RawValue>(text).ok();
        assert_eq!(scanned(text), expected.map(serde_json::value::RawValue::get), "{text}");
        let decoded = text.parse::<RawObject>().ok();
        let mut scan = Scan::new(text);
        let read = scan.object().filter(|_| scan.next().is_none());
        assert!(
            match (&read, &decoded) {
                (Some(read), Some(decoded)) => read.iter().eq(decoded.iter()),
                (read, decoded) => read.is_none() && decoded.is_none(),
            },
            "{text}: {read:?}, and not {decoded:?}"
        );
    }

    #[test]
    fn values_are_what_serde_json_reads() {
        for text in [
            "",
            " ",
            "0",
            "-0",
            "-",
            "00",
            "01",
            "-01",
            "1.",
            "1.0",
            ".1",
            "1.e1",
            "1e",
            "1e5",
            "1E+5",
            "1e-",
            "1e999",
            "12345678901234567890123",
            "+1",
            "1 2",
            "true",
            "tru",
            "truex",
            "True",
            "false",
            "null",
            "nul",
            "[",
            "]",
            "[]",
            "[ ]",
            "[1,]",
            "[,]",
            "[1 2]",
            "[1,2]",
            " [ 1 , [ ] ] ",
            "[1}",
            "{]",
            "{}",
            "{ }",
            "{,}",
            "{1:2}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\":1 \"b\":2}",
            "{\"a\":1,\"b\":[{\"c\":null}, \"]\"]}",
            "{\"a\":1,\"a\":2}",
            "{\"a\":1,\"\\u0061\":2}",
            "{\"\\u0061\":[1]}",
            "{\"a\":{\"b\":1,\"b\":2}}",
            "[1]]",
            "{}}",
            r#""""#,
            r#"""#,
            r#"" "#,
            r#""\""#,
            r#""\"""#,
            r#""\\""#,
            r#""\\\""#,
            r#""\x""#,
            r#""\u12""#,
            r#""\u123g""#,
            r#""\u12345""#,
            r#""\ud800""#,
            r#""\u""""#,
            r#""\/\b\f\n\r\t""#,
            "\"\u{1f}\"",
            "\"\n\"",
            "\"\u{7f}é😀\"",
            "\u{c}1",
            "\u{feff}1",
            "\"12345678\\\"\"",
            "\"1234567\\\"\"",
            "\"123456\\\\\"\"",
        ] {
            check(text);
        }
    }

    #[test]
    fn a_text_may_be_deeper_than_the_bits() {
        for depth in [63, 64, 65, 66, 200, 100_000] {
            let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            assert_eq!(scanned(&text), Some(&*text), "{depth}");
            assert_eq!(scanned(&text[1..]), None, "{depth}");
            assert_eq!(scanned(&text[..text.len() - 1]), None, "{depth}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn tokens_in_any_order_are_judged_as_serde_json_does(
            tokens in prop::collection::vec(
                prop::sample::select(vec![
                    "{", "}", "[", "]", ",", ":", "\"a\"", "\"b\":", "\"\\\\\\\"\"", "\"", "\\", "1", "-0.5e3", "true", "null",
                    " ", "\n", "\\u00e9", "é",
                ]),
                0..12,
            ),
        ) {
            check(&tokens.concat());
        }

        #[test]
        fn a_valid_text_with_one_byte_changed_is_judged_as_serde_json_does(at in 0_usize..80, byte in 0_u8..128) {
            let text = r#"{"name":"e\"ch\\o","arguments":{"t":[1,-2.5e+7,true,{"u":null}],"é":"\u00e9\n"}}"#;
            let mut bytes = text.as_bytes().to_vec();
            bytes[at] = byte;
            if let Ok(text) = std::str::from_utf8(&bytes) {
                check(text);
            }
        }
    }
}
