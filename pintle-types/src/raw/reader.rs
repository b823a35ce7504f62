use std::{borrow::Cow, fmt};

use serde::{
    Deserializer,
    de::{self, DeserializeSeed, MapAccess},
};
use serde_json::value::RawValue;

use super::{ObjectWriter, RawObject};

/// Reads an object from any deserializer. It is copied member by member, without the white space between them; names with
/// escapes are printed anew, so that equal names have equal texts.
pub(crate) struct ObjectSeed;

impl<'de> DeserializeSeed<'de> for ObjectSeed {
    type Value = RawObject;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<RawObject, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> de::Visitor<'de> for ObjectSeed {
    type Value = RawObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawObject, A::Error> {
        let mut writer = ObjectWriter::with_capacity(240);
        while let Some(name) = map.next_key_seed(Name)? {
            let value: &'de RawValue = map.next_value()?;
            writer.push(&name, value.get());
        }
        if let Some(name) = writer.repeated() {
            return Err(de::Error::custom(format_args!("the member `{name}` occurs twice: send it once")));
        }
        if writer.is_too_large() {
            return Err(de::Error::custom("an object of more than 4 GiB"));
        }
        Ok(writer.finish())
    }
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
