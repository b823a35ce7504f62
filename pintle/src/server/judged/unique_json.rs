//! JSON objects whose members are unique at every depth.

use std::fmt;

use pintle_types::JsonObject;
use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

/// Parses the object `noun`. A repeated member is an error: two readers could see two values.
pub(crate) fn parse_object(noun: &str, text: &str) -> Result<JsonObject, String> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = UniqueValue.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    match value {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(format!("the {noun} are not an object: send one with the {noun} by name")),
        Err(error) => Err(format!("the {noun} cannot be judged: {}", pintle_types::plain_error(&error))),
    }
}

/// Reads a value, and refuses repeated members.
struct UniqueValue;

impl<'de> DeserializeSeed<'de> for UniqueValue {
    type Value = Value;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Self)? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = JsonObject::new();
        while let Some(name) = members.next_key::<String>()? {
            if object.contains_key(&name) {
                let shown: String = name.chars().take(80).collect();
                return Err(de::Error::custom(format_args!("`{shown}` is there twice; send it once")));
            }
            let value = members.next_value_seed(Self)?;
            object.insert(name, value);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_read_as_serde_json_reads_them() {
        let text = r#"{"a":[1,-2,2.5,true,null,"x\n",{"b":18446744073709551615}],"c":{"a":1}}"#;
        let expected: Value = serde_json::from_str(text).unwrap();
        assert_eq!(Value::Object(parse_object("arguments", text).unwrap()), expected);
        assert_eq!(parse_object("arguments", "{}").unwrap(), *json!({}).as_object().unwrap());
    }

    #[test]
    fn a_repeated_member_is_refused_at_any_depth() {
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"a":{"b":[{"c":1,"c":2}]}}"#,
            r#"{"a":[[{"":1,"":2}]]}"#,
        ] {
            let refused = parse_object("arguments", text).unwrap_err();
            assert!(refused.contains("there twice"), "{text}: {refused}");
        }
        for text in ["[]", "1", "null", "", "{", "{} {}"] {
            parse_object("arguments", text).unwrap_err();
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        parse_object("arguments", &format!("{{\"a\":{deep}}}")).unwrap_err();
    }
}
