use std::{borrow::Cow, fmt};

use serde::{
    Deserializer,
    de::{self, DeserializeSeed, MapAccess},
};
use serde_json::value::RawValue;

use super::{
    ObjectWriter, RawObject,
    members::{Member, Members},
    one_line,
};

/// Reads an object and the spans of its members, in one pass over the text.
#[derive(Clone, Copy)]
pub(crate) struct ObjectSeed<'a> {
    text: Option<&'a str>,
}

impl<'a> ObjectSeed<'a> {
    /// An object in `text`, which is the whole input of the deserializer. It is copied in one piece.
    pub(crate) fn within(text: &'a str) -> Self {
        Self { text: Some(text) }
    }

    /// An object in an input that is not at hand. It is copied member by member, without the white space between them.
    pub(super) fn anywhere() -> Self {
        Self { text: None }
    }

    /// Reads the object that the text consists of.
    pub(super) fn read(self) -> Result<RawObject, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_str(self.text.unwrap_or_default());
        let object = self.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(object)
    }
}

impl<'de> DeserializeSeed<'de> for ObjectSeed<'de> {
    type Value = RawObject;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<RawObject, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> de::Visitor<'de> for ObjectSeed<'_> {
    type Value = RawObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawObject, A::Error> {
        let mut reading = match self.text {
            Some(text) => Reading::InPlace(text, Members::new()),
            None => Reading::Copied(ObjectWriter::with_capacity(240)),
        };
        while let Some(name) = map.next_key_seed(Name)? {
            let value: &'de RawValue = map.next_value()?;
            reading.push(&name, value.get());
        }
        reading.finish().map_err(de::Error::custom)
    }
}

/// An object of which some members have been read.
enum Reading<'a> {
    /// The spans of the members in the text, which will be copied in one piece.
    InPlace(&'a str, Members),
    /// The members so far, copied. Names with escapes are printed anew, so that equal names have equal texts.
    Copied(ObjectWriter),
}

impl Reading<'_> {
    #[inline]
    fn push(&mut self, name: &str, value: &str) {
        if let Self::InPlace(text, members) = self {
            // A name with escapes was decoded elsewhere and does not lie in the text.
            if let Some(member) = Member::within(text, name, value) {
                return members.push(member);
            }
            let mut writer = ObjectWriter::with_capacity(text.len());
            members.iter().for_each(|member| {
                let (name, value) = member.parts(text);
                writer.push_printed(name, &one_line(value));
            });
            *self = Self::Copied(writer);
        }
        if let Self::Copied(writer) = self {
            writer.push(name, value);
        }
    }

    fn finish(self) -> Result<RawObject, Cow<'static, str>> {
        let repeated = match &self {
            Self::InPlace(text, members) => members.repeated(text),
            Self::Copied(writer) => writer.repeated(),
        };
        if let Some(name) = repeated {
            return Err(format!("the member `{name}` occurs twice: send it once").into());
        }
        match self {
            Self::InPlace(text, members) => cut(text, members).ok_or("not an object".into()),
            Self::Copied(writer) if writer.is_too_large() => Err("an object of more than 4 GiB".into()),
            Self::Copied(writer) => Ok(writer.finish()),
        }
    }
}

/// Copies the object with these members out of the text that it was read from.
fn cut(text: &str, members: Members) -> Option<RawObject> {
    let mut spans = members.iter();
    let Some(first) = spans.next() else { return Some(RawObject::empty()) };
    let last = spans.last().unwrap_or(first);
    // Between the first quote and the opening brace, as between the last value and the closing one, is white space.
    let before = text.get(..(first.name.0 as usize).checked_sub(1)?)?;
    let start = before.trim_ascii_end().len().checked_sub(1)?;
    let end = text.len() - text.get(last.value.1 as usize..)?.trim_ascii_start().len() + 1;
    let text = one_line(text.get(start..end)?).into_owned();
    Some(RawObject { text, members: members.shifted(start as u32) })
}

/// Reads a string, borrowed if it has no escapes.
pub(crate) struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> de::Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}
