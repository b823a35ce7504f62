use serde::{
    Deserializer,
    de::{DeserializeOwned, Visitor, value::Error},
    forward_to_deserialize_any,
};

/// The names of a struct's fields as its author wrote them one after the other. A schema sorts them.
///
/// Empty for what is no struct, or hides its fields from serde as `flatten` does.
pub(crate) fn of<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut fields: &[&str] = &[];
    // Nothing is read, so there is always an error.
    let _ = T::deserialize(Probe(&mut fields));
    fields
}

/// Something to read from that only looks at what is asked for.
struct Probe<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(serde::de::Error::custom("there is nothing to read"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its fields are looked at")]
    struct Letter {
        to: String,
        #[serde(rename = "from")]
        sender: Option<String>,
        about: u8,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its fields are looked at")]
    struct Wrapped(Letter);

    #[test]
    fn fields_come_in_the_order_of_the_source() {
        assert_eq!(of::<Letter>(), ["to", "from", "about"]);
        assert_eq!(of::<Wrapped>(), ["to", "from", "about"]);
        assert!(of::<BTreeMap<String, String>>().is_empty());
    }
}
