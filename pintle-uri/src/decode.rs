use std::{error::Error, fmt};

use serde::{
    Deserializer, de,
    de::{DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor},
    forward_to_deserialize_any,
};

use super::vars::{Found, Vars};
use crate::near::nearest;

/// The error for variables that cannot be deserialized.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DecodeError {
    variable: Option<String>,
    message: String,
}

impl DecodeError {
    /// Returns the name of the variable at fault, if there is one.
    pub fn variable(&self) -> Option<&str> {
        self.variable.as_deref()
    }

    fn new(message: String) -> Self {
        Self { variable: None, message }
    }

    fn of(mut self, variable: &str) -> Self {
        self.variable.get_or_insert_with(|| variable.to_owned());
        self
    }

    /// Returns the error of a text that is not the expected one.
    fn other(text: &str, expected: &str) -> Self {
        if text.is_empty() {
            return Self::new(format!("it is empty and should be {expected}"));
        }
        Self::new(format!("`{}` is not {expected}", shown(text)))
    }

    /// Returns the message without the name of the variable.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// Shortens a text for an error.
fn shown(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.variable {
            Some(name) => write!(f, "variable `{name}`: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl Error for DecodeError {}

impl de::Error for DecodeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new("is absent".to_owned()).of(field)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let known: Vec<_> = expected.iter().map(|name| format!("`{name}`")).collect();
        let mut error = Self::other(variant, &known.join(" or "));
        if let Some(near) = nearest(variant, expected.iter().copied()) {
            error.message.push_str(&format!(": did you mean `{near}`?"));
        }
        error
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let message = match nearest(field, expected.iter().copied()) {
            Some(near) => format!("is not known: did you mean `{near}`?"),
            None => "is not known: leave it out".to_owned(),
        };
        Self::new(message).of(&shown(field))
    }
}

/// Deserializes all variables.
pub(super) struct VarsDeserializer<'a>(pub(super) &'a Vars);

impl<'a> VarsDeserializer<'a> {
    fn only(&self) -> Result<VarDeserializer<'a>, DecodeError> {
        match self.0.all.as_slice() {
            [(name, found)] => Ok(VarDeserializer { name, found: found.as_ref().into() }),
            all => Err(DecodeError::new(format!(
                "the template has {} variables; take them as a struct, a tuple or a map",
                all.len()
            ))),
        }
    }
}

macro_rules! only {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
            self.only()?.$method(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for VarsDeserializer<'_> {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_map(VarMap { left: &self.0.all, value: None })
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_unit()
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, DecodeError> {
        if length != self.0.all.len() {
            let have = self.0.all.len();
            return Err(DecodeError::new(format!(
                "the template has {have} variables, but {length} are asked for"
            )));
        }
        visitor.visit_seq(VarSeq { left: &self.0.all })
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.deserialize_tuple(length, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.only()?.deserialize_enum(name, variants, visitor)
    }

    only! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32
        deserialize_f64 deserialize_char deserialize_str deserialize_string deserialize_bytes
        deserialize_byte_buf deserialize_option deserialize_seq
    }

    forward_to_deserialize_any! { map struct identifier ignored_any }
}

struct VarMap<'a> {
    left: &'a [(String, Option<Found>)],
    value: Option<VarDeserializer<'a>>,
}

impl<'de> MapAccess<'de> for VarMap<'_> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, DecodeError> {
        while let [(name, found), left @ ..] = self.left {
            self.left = left;
            if let Some(found) = found {
                self.value = Some(VarDeserializer { name, found: Some(found).into() });
                return seed.deserialize(name.as_str().into_deserializer()).map(Some);
            }
        }
        Ok(None)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, DecodeError> {
        let Some(one) = self.value.take() else {
            return Err(DecodeError::new("no variable left".to_owned()));
        };
        let name = one.name;
        seed.deserialize(one).map_err(|error| error.of(name))
    }
}

struct VarSeq<'a> {
    left: &'a [(String, Option<Found>)],
}

impl<'de> SeqAccess<'de> for VarSeq<'_> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DecodeError> {
        let [(name, found), left @ ..] = self.left else { return Ok(None) };
        self.left = left;
        seed.deserialize(VarDeserializer { name, found: found.as_ref().into() })
            .map_err(|error| error.of(name))
            .map(Some)
    }
}

/// Deserializes one variable, or one item of a list.
#[derive(Clone, Copy)]
struct VarDeserializer<'a> {
    name: &'a str,
    found: Text<'a>,
}

#[derive(Clone, Copy)]
enum Text<'a> {
    Absent,
    Found(&'a Found),
    Item(&'a str),
}

impl<'a> From<Option<&'a Found>> for Text<'a> {
    fn from(found: Option<&'a Found>) -> Self {
        found.map_or(Self::Absent, Self::Found)
    }
}

impl<'a> VarDeserializer<'a> {
    fn text(self) -> Result<&'a str, DecodeError> {
        match self.found {
            Text::Absent => Err(DecodeError::new("is absent".to_owned()).of(self.name)),
            Text::Found(found) => Ok(&found.text),
            Text::Item(text) => Ok(text),
        }
    }

    fn parse<T: std::str::FromStr>(self, what: &str) -> Result<T, DecodeError> {
        let text = self.text()?;
        text.parse().map_err(|_| DecodeError::other(text, what).of(self.name))
    }
}

macro_rules! parsed {
    ($($method:ident $visit:ident $what:literal)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
            visitor.$visit(self.parse($what)?)
        }
    )*};
}

impl<'de> Deserializer<'de> for VarDeserializer<'_> {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.found {
            Text::Found(found) if found.list => self.deserialize_seq(visitor),
            _ => visitor.visit_str(self.text()?),
        }
    }

    parsed! {
        deserialize_bool visit_bool "`true` or `false`"
        deserialize_i8 visit_i8 "a whole number from -128 to 127"
        deserialize_i16 visit_i16 "a whole number of 16 bits"
        deserialize_i32 visit_i32 "a whole number of 32 bits"
        deserialize_i64 visit_i64 "a whole number of 64 bits"
        deserialize_i128 visit_i128 "a whole number of 128 bits"
        deserialize_u8 visit_u8 "a whole number from 0 to 255"
        deserialize_u16 visit_u16 "a whole number from 0 to 65535"
        deserialize_u32 visit_u32 "a whole number of 32 bits, from 0"
        deserialize_u64 visit_u64 "a whole number of 64 bits, from 0"
        deserialize_u128 visit_u128 "a whole number of 128 bits, from 0"
        deserialize_f32 visit_f32 "a number"
        deserialize_f64 visit_f64 "a number"
        deserialize_char visit_char "one character"
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_str(self.text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_str(self.text()?)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_bytes(self.text()?.as_bytes())
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_bytes(self.text()?.as_bytes())
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.found {
            Text::Absent => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let Text::Found(found) = self.found else {
            return Err(DecodeError::new(format!("`{}` is not a list", self.text()?)).of(self.name));
        };
        visitor.visit_seq(ItemSeq { name: self.name, left: &found.items })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_enum(self.text()?.into_deserializer()).map_err(|error: DecodeError| error.of(self.name))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { unit unit_struct map struct identifier }
}

struct ItemSeq<'a> {
    name: &'a str,
    left: &'a [String],
}

impl<'de> SeqAccess<'de> for ItemSeq<'_> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DecodeError> {
        let [item, left @ ..] = self.left else { return Ok(None) };
        self.left = left;
        seed.deserialize(VarDeserializer { name: self.name, found: Text::Item(item) }).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.len())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::{Deserialize, de::DeserializeOwned};

    use super::*;
    use crate::Template;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Open,
        Closed,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Id(u32);

    #[derive(Debug, Deserialize, PartialEq)]
    struct Issue {
        id: Id,
        kind: Kind,
        exact: Option<bool>,
        #[serde(default)]
        tags: Vec<String>,
        pages: Option<Vec<u8>>,
    }

    const ISSUE: &str = "issue://{id}/{kind}{?exact,tags*,pages}";

    fn decode<T: DeserializeOwned>(template: &str, uri: &str) -> Result<T, String> {
        let vars = Template::parse(template).unwrap().matches(uri).unwrap();
        vars.decode().map_err(|error: DecodeError| error.to_string())
    }

    #[test]
    fn into_a_struct() {
        assert_eq!(
            decode(ISSUE, "issue://7/open?pages=1,2&tags=a&exact=true&tags=b%2Cc"),
            Ok(Issue {
                id: Id(7),
                kind: Kind::Open,
                exact: Some(true),
                tags: vec!["a".into(), "b,c".into()],
                pages: Some(vec![1, 2])
            })
        );
        assert_eq!(
            decode(ISSUE, "issue://7/closed"),
            Ok(Issue { id: Id(7), kind: Kind::Closed, exact: None, tags: vec![], pages: None })
        );
    }

    #[test]
    fn into_other_shapes() {
        assert_eq!(decode("a://{x}", "a://7"), Ok(7_u64));
        assert_eq!(decode("a://{x}", "a://-7"), Ok(-7_i8));
        assert_eq!(decode("a://{x}", "a://1.5"), Ok(1.5_f64));
        assert_eq!(decode("a://{x}", "a://%C3%A9"), Ok('é'));
        assert_eq!(decode("a://{x}", "a://7"), Ok("7".to_owned()));
        assert_eq!(decode("a://{x}", "a://open"), Ok(Kind::Open));
        assert_eq!(decode("a://{x}", "a://7"), Ok(Id(7)));
        assert_eq!(decode("a:/{/x*}", "a://b/c"), Ok(vec!["b".to_owned(), "c".to_owned()]));
        assert_eq!(decode("a://{x}", "a://1,2"), Ok(vec![1, 2]));
        assert_eq!(decode("a://{x}{?y}", "a://1"), Ok((1, None::<u8>)));
        assert_eq!(decode("a://{x}{?y}", "a://1?y=2"), Ok((1, Some(2_u8))));
        assert_eq!(
            decode("a://{x}{?y,z}", "a://1?z=2"),
            Ok(BTreeMap::from([("x".to_owned(), "1".to_owned()), ("z".to_owned(), "2".to_owned())]))
        );
        assert_eq!(decode("a://{x}", "a://1"), Ok(()));
    }

    #[test]
    fn an_error_names_the_variable() {
        for (uri, error) in [
            ("issue://x/open", "variable `id`: `x` is not a whole number of 32 bits, from 0"),
            ("issue://7/lost", "variable `kind`: `lost` is not `open` or `closed`"),
            ("issue://7/opne", "variable `kind`: `opne` is not `open` or `closed`: did you mean `open`?"),
            ("issue://7/open?exact=maybe", "variable `exact`: `maybe` is not `true` or `false`"),
            ("issue://7/open?pages=1,x", "variable `pages`: `x` is not a whole number from 0 to 255"),
            ("issue://7/open?pages=256", "variable `pages`: `256` is not a whole number from 0 to 255"),
        ] {
            assert_eq!(decode::<Issue>(ISSUE, uri).unwrap_err(), error);
        }
        assert_eq!(decode::<(u8, u8)>("a://{x}{?y}", "a://1").unwrap_err(), "variable `y`: is absent");
        assert_eq!(decode::<Issue>("a://{id}", "a://1").unwrap_err(), "variable `kind`: is absent");
        assert_eq!(
            decode::<u8>("a://{x}{?y}", "a://1").unwrap_err(),
            "the template has 2 variables; take them as a struct, a tuple or a map"
        );
        assert_eq!(
            decode::<(u8,)>("a://{x}{?y}", "a://1").unwrap_err(),
            "the template has 2 variables, but 1 are asked for"
        );
    }
}
