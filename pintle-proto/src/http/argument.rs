//! Reads the arguments of a call that are mirrored in headers.

use std::{borrow::Cow, fmt, ops::Range};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use super::{BadArgument, HeaderParam};

/// Reads the value at the path of each param, in one pass that keeps nothing else in memory.
///
/// The params are sorted by path.
pub(super) fn read<'de, D: Deserializer<'de>>(
    params: &[HeaderParam],
    arguments: D,
) -> Result<Vec<Scalar<'de>>, D::Error> {
    let mut values = vec![Scalar::Absent; params.len()];
    if !params.is_empty() {
        Wanted { params, depth: 0, values: &mut values }.deserialize(arguments)?;
    }
    Ok(values)
}

/// The value of a mirrored argument.
#[derive(Clone, Debug)]
pub(super) enum Scalar<'de> {
    /// Missing or `null`.
    Absent,
    Bool(bool),
    Number(Number),
    Text(Cow<'de, str>),
    /// An object or an array, which cannot be mirrored.
    Other,
}

impl Scalar<'_> {
    /// Returns the header text for the value, if it is present.
    pub(super) fn to_text(&self, param: &HeaderParam) -> Result<Option<Cow<'_, str>>, BadArgument> {
        let argument = || param.path.join(".");
        match self {
            Self::Absent => Ok(None),
            Self::Bool(value) => Ok(Some(if *value { "true" } else { "false" }.into())),
            Self::Text(text) => Ok(Some(Cow::Borrowed(text))),
            Self::Number(number) => match exact(number) {
                Some(integer) => Ok(Some(integer.to_string().into())),
                None => Err(BadArgument::Inexact { argument: argument() }),
            },
            Self::Other => Err(BadArgument::NotAScalar { argument: argument() }),
        }
    }

    /// Returns whether a header's decoded text stands for this value.
    pub(super) fn is(&self, text: &str) -> bool {
        match self {
            Self::Text(value) => value == text,
            Self::Bool(value) => text == if *value { "true" } else { "false" },
            Self::Number(number) => {
                serde_json::from_str::<Number>(text).is_ok_and(|sent| match (exact(&sent), exact(number)) {
                    (Some(sent), Some(number)) => sent == number,
                    _ => sent == *number,
                })
            }
            Self::Absent | Self::Other => false,
        }
    }
}

impl fmt::Display for Scalar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("null"),
            Self::Bool(value) => value.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::Other => f.write_str("an object or array"),
        }
    }
}

/// The largest integer that every JSON parser represents exactly.
const MAX_SAFE_INTEGER: i64 = (1 << 53) - 1;

/// Returns the integer that a number stands for, including `42.0`, if every JSON parser reads the same one.
fn exact(number: &Number) -> Option<i64> {
    let whole =
        |float: f64| (float.fract() == 0.0 && float.abs() <= MAX_SAFE_INTEGER as f64).then_some(float as i64);
    number
        .as_i64()
        .or_else(|| number.as_f64().and_then(whole))
        .filter(|integer| (-MAX_SAFE_INTEGER..=MAX_SAFE_INTEGER).contains(integer))
}

/// Reads the value at depth `depth`, for params whose paths all start with the names that lead to it.
struct Wanted<'w, 'de> {
    params: &'w [HeaderParam],
    depth: usize,
    values: &'w mut [Scalar<'de>],
}

impl<'de> Wanted<'_, 'de> {
    /// Returns how many of the params, none or the first, end at this value.
    fn here(&self) -> usize {
        self.params.first().is_some_and(|param| param.path.len() == self.depth).into()
    }

    fn set<E>(self, value: Scalar<'de>) -> Result<(), E> {
        if self.here() == 1 {
            self.values[0] = value;
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Wanted<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Wanted<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.set(Scalar::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.set(Scalar::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.set(Scalar::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("a number that is not finite"))?;
        self.set(Scalar::Number(number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<(), E> {
        self.set(Scalar::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.set(Scalar::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        self.set(Scalar::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let here = self.here();
        let (own, values) = self.values.split_at_mut(here);
        own.fill(Scalar::Other);
        let params = &self.params[here..];
        while let Some(range) = map.next_key_seed(Find { params, depth: self.depth })? {
            if range.is_empty() {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let values = &mut values[range.clone()];
            // The last of duplicate names counts, as it does for serde_json.
            values.fill(Scalar::Absent);
            map.next_value_seed(Wanted { params: &params[range], depth: self.depth + 1, values })?;
        }
        Ok(())
    }
}

/// Finds the params whose paths continue with the key being read.
struct Find<'w> {
    params: &'w [HeaderParam],
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Find<'_> {
    type Value = Range<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Find<'_> {
    type Value = Range<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        let start = self.params.partition_point(|param| param.path[self.depth].as_str() < key);
        let count = self.params[start..].partition_point(|param| param.path[self.depth] == key);
        Ok(start..start + count)
    }
}
