//! Helpers for reading and printing where `derive` alone would lose something.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use crate::JsonObject;

/// Reads a field that is present, so that `null` is a value and only a missing field is `None`.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Reads an integer, also one that a peer printed as `12.0`.
pub(crate) fn integer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    Integer::deserialize(deserializer).map(|integer| integer.0)
}

/// Reads an integer or `null`. Without `default` the field has to be present.
pub(crate) fn optional_integer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    Option::<Integer>::deserialize(deserializer).map(|integer| integer.map(|integer| integer.0))
}

/// Reads an object that others may share. The feature `rc` of serde would let every program read an `Arc` of anything.
pub(crate) fn shared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<JsonObject>, D::Error> {
    JsonObject::deserialize(deserializer).map(Arc::new)
}

/// [`shared`] for an object that may be absent.
pub(crate) fn optional_shared<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Arc<JsonObject>>, D::Error> {
    Option::<JsonObject>::deserialize(deserializer).map(|object| object.map(Arc::new))
}

/// Prints what [`shared`] reads.
pub(crate) fn of_shared<S: Serializer>(object: &Arc<JsonObject>, serializer: S) -> Result<S::Ok, S::Error> {
    JsonObject::serialize(object, serializer)
}

/// Prints what [`optional_shared`] reads.
pub(crate) fn of_optional_shared<S: Serializer>(
    object: &Option<Arc<JsonObject>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    object.as_deref().serialize(serializer)
}

/// Prints a whole number without a fraction, as JavaScript does, so that `50` stays `50`.
pub(crate) fn number<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    // Above 2^53 an integer would show digits that the float does not have.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < EXACT {
        serializer.serialize_i64(*number as i64)
    } else {
        serializer.serialize_f64(*number)
    }
}

/// [`number`] for a field that may be absent (and is then skipped).
pub(crate) fn optional_number<S: Serializer>(field: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match field {
        Some(value) => number(value, serializer),
        None => serializer.serialize_none(),
    }
}

/// A body and its `type`, printed as one object.
#[derive(Serialize)]
pub(crate) struct Tagged<'a, T> {
    #[serde(rename = "type")]
    pub(crate) kind: &'a str,
    #[serde(flatten)]
    pub(crate) body: &'a T,
}

/// Returns the `type` of an object.
pub(crate) fn kind<E: de::Error>(object: &JsonObject) -> Result<&str, E> {
    match object.get("type") {
        Some(Value::String(kind)) => Ok(kind),
        Some(other) => Err(E::custom(format_args!("invalid `type`: expected a string, got {other}"))),
        None => Err(E::missing_field("type")),
    }
}

/// Decodes an object whose `type` is already known. The error names the type.
pub(crate) fn body<T: de::DeserializeOwned, E: de::Error>(
    mut object: JsonObject,
    kind: &str,
) -> Result<T, E> {
    object.shift_remove("type");
    T::deserialize(Value::Object(object)).map_err(|error| E::custom(format_args!("in `{kind}`: {error}")))
}

struct Integer(i64);

impl<'de> Deserialize<'de> for Integer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IntegerVisitor)
    }
}

struct IntegerVisitor;

impl de::Visitor<'_> for IntegerVisitor {
    type Value = Integer;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a 64-bit integer")
    }

    fn visit_i64<E>(self, number: i64) -> Result<Integer, E> {
        Ok(Integer(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Integer, E> {
        i64::try_from(number)
            .map(Integer)
            .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Integer, E> {
        // `as` saturates, so a float beyond 64 bits does not come back equal.
        if (number as i64) as f64 == number && number.abs() < i64::MAX as f64 {
            Ok(Integer(number as i64))
        } else {
            Err(E::invalid_value(de::Unexpected::Float(number), &self))
        }
    }
}

/// Defines an enum of known words, with a variant that keeps an unknown word unchanged.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$about])*
        #[non_exhaustive]
        #[derive(Clone, Debug, Eq, Hash, PartialEq)]
        pub enum $name {
            $($(#[$doc])* $variant,)+
            /// A word that this crate does not know, unchanged.
            Other(String),
        }

        impl $name {
            /// Returns the word used in messages.
            pub fn as_str(&self) -> &str {
                match self { $(Self::$variant => $text,)+ Self::Other(text) => text }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text { $($text => Self::$variant,)+ _ => Self::Other(text.to_owned()) }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text: std::borrow::Cow<'de, str> = serde::Deserialize::deserialize(deserializer)?;
                Ok(Self::from(&*text))
            }
        }
    };
}
pub(crate) use words;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::StopReason;

    #[derive(Debug, Deserialize, Serialize)]
    struct Numbers {
        #[serde(default, deserialize_with = "optional_integer")]
        size: Option<i64>,
        #[serde(serialize_with = "number")]
        share: f64,
    }

    #[test]
    fn an_unknown_word_comes_back() {
        for text in ["endTurn", "refusal", ""] {
            let reason: StopReason = serde_json::from_value(json!(text)).unwrap();
            assert_eq!(serde_json::to_value(&reason).unwrap(), json!(text));
        }
        assert_eq!(StopReason::from("endTurn"), StopReason::EndTurn);
        assert_eq!(StopReason::from("refusal").to_string(), "refusal");
    }

    #[test]
    fn whole_numbers_have_no_fraction() {
        for (text, printed) in [
            (r#"{"size":12.0,"share":50}"#, r#"{"size":12,"share":50}"#),
            (r#"{"size":null,"share":0.25}"#, r#"{"size":null,"share":0.25}"#),
            (r#"{"share":1e300}"#, r#"{"size":null,"share":1e+300}"#),
        ] {
            let numbers: Numbers = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&numbers).unwrap(), printed);
        }
    }

    #[test]
    fn what_is_no_integer_is_named() {
        for text in ["1.5", "1e30", "-1e30", "9223372036854775808", "true"] {
            let error =
                serde_json::from_str::<Numbers>(&format!(r#"{{"size":{text},"share":1}}"#)).unwrap_err();
            assert!(error.to_string().contains("expected a 64-bit integer"), "{error}");
        }
    }
}
