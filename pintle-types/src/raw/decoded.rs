//! The strings of a member that were decoded while the object was read.
//!
//! To find the end of a long string with escapes takes nearly as long as to decode it, so that is done in one pass.

use std::{
    borrow::Cow,
    iter::Zip,
    marker::PhantomData,
    mem, slice,
    sync::{Mutex, PoisonError},
    vec,
};

use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor,
        value::{BorrowedStrDeserializer, MapAccessDeserializer},
    },
    forward_to_deserialize_any,
};

use super::{
    members::{Member, slice as part},
    reader::Name,
    scan::{Named, Scan},
};

/// A member that is an object, with its own members and the decoded strings among them.
pub(super) struct DecodedMember {
    name: &'static str,
    members: Vec<Member>,
    /// One for each member, until they are taken.
    strings: Mutex<Vec<Option<String>>>,
}

impl DecodedMember {
    /// The length of a text from which on it is worth while.
    pub(super) const LONG: usize = 4 * 1024;
    /// The number of members above which nothing is kept: they take more memory than their text.
    const MEMBERS: usize = 64;
    /// The length of a string from which on it is kept.
    const KEPT: usize = 256;

    /// Reads the object that is the value of the member `name`. Returns `Some(None)` if no string is worth keeping. Spans
    /// count from `start`.
    pub(super) fn read(scan: &mut Scan<'_>, name: &'static str, start: usize) -> Option<Option<Self>> {
        let (mut members, mut strings) = (Vec::new(), Vec::new());
        let (mut is_known, mut is_kept) = (true, false);
        scan.members(|scan| {
            let Named { span: name, .. } = scan.name(start)?;
            let mut text = None;
            let value = scan.span(start, |scan| {
                if scan.next()? == b'"' {
                    text = scan.value(Name);
                    // A string of half a surrogate pair is JSON, but no text.
                    is_known &= text.is_some();
                }
                if text.is_some() { Some(()) } else { scan.value(PhantomData::<IgnoredAny>).map(drop) }
            })?;
            let text = match text {
                Some(Cow::Owned(text)) if text.len() >= Self::KEPT => Some(text),
                _ => None,
            };
            is_kept |= text.is_some();
            match name {
                Some(name) if members.len() < Self::MEMBERS => {
                    members.push(Member { name, value });
                    strings.push(text);
                }
                _ => is_known = false,
            }
            Some(())
        })?;
        Some((is_known && is_kept).then(|| Self { name, members, strings: Mutex::new(strings) }))
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.name == name
    }

    /// Decodes the member, which is part of `text`. The strings are moved, so that this succeeds once.
    ///
    /// # Errors
    ///
    /// The member is not a `T`, only its text shows what it is ([`DecodedString`]), or the strings were taken before.
    pub(super) fn decode<'a, T: Deserialize<'a>>(&'a self, text: &'a str) -> Result<T, serde_json::Error> {
        let strings = mem::take(&mut *self.strings.lock().unwrap_or_else(PoisonError::into_inner));
        if strings.is_empty() {
            return Err(serde_json::Error::custom("the strings were taken before"));
        }
        let members = self.members.iter().zip(strings);
        T::deserialize(MapAccessDeserializer::new(Access { text, members, value: None }))
    }
}

/// Access to the members of a decoded member, one after the other.
struct Access<'a> {
    text: &'a str,
    members: Zip<slice::Iter<'a, Member>, vec::IntoIter<Option<String>>>,
    value: Option<(&'a Member, Option<String>)>,
}

impl<'de> MapAccess<'de> for Access<'de> {
    type Error = serde_json::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Self::Error> {
        self.value = self.members.next();
        let Some((member, _)) = &self.value else { return Ok(None) };
        let name: BorrowedStrDeserializer<'de, Self::Error> =
            BorrowedStrDeserializer::new(part(self.text, member.name));
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Self::Error> {
        match self.value.take() {
            Some((_, Some(string))) => seed.deserialize(DecodedString(string)),
            Some((member, None)) => {
                seed.deserialize(&mut serde_json::Deserializer::from_str(part(self.text, member.value)))
            }
            None => Err(Self::Error::custom("a value without its name")),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.members.len())
    }
}

/// A decoded string. What is not read from a string as such fails, and is decoded from the text instead.
struct DecodedString(String);

impl<'de> Deserializer<'de> for DecodedString {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_string(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(Self::Error::custom("bytes are read from the text"))
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.deserialize_bytes(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string unit unit_struct seq tuple tuple_struct map
        struct enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;
    use crate::{JsonObject, Message, RawObject};

    /// A text with escapes that is long enough to be kept.
    fn long() -> String {
        "a \"quoted\" line\n".repeat(400)
    }

    /// Reads a call with these arguments.
    fn params(arguments: &str) -> RawObject {
        let text = format!(
            " {{ \"jsonrpc\" : \"2.0\",\"params\" :\n{{ \"name\":\"x\" , \"arguments\" : {arguments} , \"_meta\":{{ }} }} ,\"id\":7,\"method\":\"tools/call\"}} "
        );
        match Message::parse(text.as_bytes()) {
            Ok(Message::Request(request)) => request.params.unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn is_kept(params: &RawObject) -> bool {
        params.members.decoded("arguments").is_some()
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Fields {
        plain: String,
        escaped: String,
        #[serde(default)]
        perhaps: Option<String>,
        #[serde(default)]
        wrapped: Option<Wrapped>,
        number: u8,
        #[serde(flatten)]
        others: JsonObject,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Wrapped(String);

    #[test]
    fn arguments_are_what_their_text_says() {
        let escaped = serde_json::to_string(&long()).unwrap();
        for arguments in [
            format!(r#"{{"plain":"é","escaped":{escaped},"number":1}}"#),
            format!(r#"{{ "number" : 2 ,"plain":"","escaped":"\n","perhaps":{escaped}, "x":[{escaped}] }}"#),
            format!(r#"{{"plain":"","escaped":"\n","wrapped":{escaped},"perhaps":null,"number":3}}"#),
            format!(r#"{{"plain":{escaped},"escaped":{escaped},"other":{escaped},"number":4}}"#),
        ] {
            let params = params(&arguments);
            assert!(is_kept(&params), "{arguments}");
            let member = params.members.decoded("arguments").unwrap();
            let decoded: Fields = member.decode(params.as_str()).unwrap();
            assert_eq!(decoded, serde_json::from_str(&arguments).unwrap());
            assert!(member.decode::<Fields>(params.as_str()).is_err(), "the strings are moved");
            assert_eq!(params.decode_member("arguments").unwrap(), Some(decoded));
            assert_eq!(params.get("arguments"), Some(arguments.as_str()));
            assert_eq!(params.decode_member::<String>("name").unwrap().as_deref(), Some("x"));
        }
    }

    #[test]
    fn what_is_no_plain_string_is_decoded_from_the_text() {
        #[derive(Debug, Deserialize)]
        struct Raw<'a> {
            #[serde(borrow)]
            text: &'a RawValue,
        }
        let escaped = serde_json::to_string(&long()).unwrap();
        let params = params(&format!(r#"{{"text":{escaped}}}"#));
        assert!(is_kept(&params));
        let raw: Raw<'_> = params.decode_member("arguments").unwrap().unwrap();
        assert_eq!(raw.text.get(), escaped);

        #[derive(Debug, Deserialize)]
        struct Number {
            #[serde(rename = "text")]
            _text: u8,
        }
        let wrong = params.decode_member::<Number>("arguments").unwrap_err().to_string();
        let direct = serde_json::from_str::<Number>(params.get("arguments").unwrap()).unwrap_err();
        assert_eq!(wrong, direct.to_string());
    }

    #[test]
    fn only_long_strings_with_escapes_are_kept() {
        let escaped = serde_json::to_string(&long()).unwrap();
        let many = |count: usize| {
            let numbers: String = (0..count).map(|n| format!(r#","n{n}":{n}"#)).collect();
            format!(r#"{{"text":{escaped}{numbers}}}"#)
        };
        assert!(is_kept(&params(&many(DecodedMember::MEMBERS - 1))));
        for arguments in [
            "{}".to_owned(),
            r#"{"text":"\n"}"#.to_owned(),
            format!(r#"{{"text":"{}"}}"#, "x".repeat(DecodedMember::LONG)),
            format!(r#"{{"text":{escaped},"\u0061":1}}"#),
            format!(r#"{{"text":{escaped},"half":"\ud800"}}"#),
            format!("[{escaped}]"),
            "null".to_owned(),
            many(DecodedMember::MEMBERS),
        ] {
            let params = params(&arguments);
            assert!(!is_kept(&params), "{arguments}");
            assert_eq!(params.get("arguments"), Some(arguments.as_str()));
        }
    }

    #[test]
    fn a_copy_keeps_no_decoded_strings() {
        let escaped = serde_json::to_string(&long()).unwrap();
        let params = params(&format!(r#"{{"text":{escaped}}}"#));
        let copy = params.clone();
        assert!(is_kept(&params) && !is_kept(&copy));
        let text = |params: &RawObject| params.decode_member::<JsonObject>("arguments").unwrap().unwrap();
        assert_eq!(text(&copy), text(&params));
    }

    #[test]
    fn a_broken_string_is_refused_wherever_it_is() {
        for arguments in [
            format!(r#"{{"text":"{}\x"}}"#, "y".repeat(5000)),
            format!(r#"{{"text":"{}"#, "\\n".repeat(5000)),
            format!("{{\"text\":\"{}\n\"}}", "\\n".repeat(5000)),
        ] {
            let text =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"arguments":{arguments}}}}}"#);
            let _ = Message::parse(text.as_bytes()).unwrap_err();
        }
    }
}
