//! What the arguments of a call have at the paths that headers repeat.

use std::{borrow::Cow, fmt, ops::Range};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use super::{BadArgument, HeaderParam};

/// What is at the path of each param, in one pass that reads nothing else into memory.
///
/// The params are in the order of their paths.
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

/// What the arguments have where a header repeats them.
#[derive(Clone, Debug)]
pub(super) enum Scalar<'de> {
    Absent,
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'de, str>),
    /// An object or an array, which no header repeats.
    Other,
}

impl Scalar<'_> {
    /// What a header says for it, if there is anything to say.
    pub(super) fn to_text(&self, param: &HeaderParam) -> Result<Option<Cow<'_, str>>, BadArgument> {
        let argument = || param.path.join(".");
        match self {
            Self::Absent | Self::Null => Ok(None),
            Self::Bool(value) => Ok(Some(if *value { "true" } else { "false" }.into())),
            Self::Text(text) => Ok(Some(Cow::Borrowed(text))),
            Self::Number(number) => match exact(number) {
                Some(integer) => Ok(Some(integer.to_string().into())),
                None => Err(BadArgument::Inexact { argument: argument() }),
            },
            Self::Other => Err(BadArgument::NotAScalar { argument: argument() }),
        }
    }

    /// Whether a header's decoded text says this.
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
            Self::Absent | Self::Null | Self::Other => false,
        }
    }
}

impl fmt::Display for Scalar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent | Self::Null => f.write_str("null"),
            Self::Bool(value) => value.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::Other => f.write_str("an object or array"),
        }
    }
}

/// The largest integer that every reader of JSON keeps.
const LARGEST: i64 = (1 << 53) - 1;

/// The integer that a number is, `42.0` included, if every reader sees the same one.
fn exact(number: &Number) -> Option<i64> {
    let whole = |float: f64| (float.fract() == 0.0 && float.abs() <= LARGEST as f64).then_some(float as i64);
    number
        .as_i64()
        .or_else(|| number.as_f64().and_then(whole))
        .filter(|integer| (-LARGEST..=LARGEST).contains(integer))
}

/// Reads the value that `depth` names lead to, for params whose paths all start with these names.
struct Wanted<'w, 'de> {
    params: &'w [HeaderParam],
    depth: usize,
    values: &'w mut [Scalar<'de>],
}

impl<'de> Wanted<'_, 'de> {
    /// How many of the params, none or the first, are about this very value.
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
        self.set(Scalar::Null)
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
        let number = Number::from_f64(value).ok_or_else(|| E::custom("a number that is none"))?;
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
            // Of a name that comes twice the last one counts, as it does for those who read the whole.
            values.fill(Scalar::Absent);
            map.next_value_seed(Wanted { params: &params[range], depth: self.depth + 1, values })?;
        }
        Ok(())
    }
}

/// Finds the params whose paths go on with the key that is read.
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
