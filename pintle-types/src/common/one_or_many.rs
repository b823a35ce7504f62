use std::{fmt, marker::PhantomData, slice};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, value::MapAccessDeserializer, value::SeqAccessDeserializer},
};

/// One item or a list of items. It is printed in the form in which it was read.
///
/// ```
/// use pintle_types::schema::{ContentBlock, OneOrMany};
///
/// let content: OneOrMany<ContentBlock> = serde_json::from_str(r#"{"type":"text","text":"hi"}"#)?;
/// assert_eq!(content.as_slice(), [ContentBlock::text("hi")]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[expect(clippy::exhaustive_enums, reason = "there is no third")]
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    /// A single item, not in a list.
    One(T),
    /// Any number of items, in a list.
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    /// Returns the items as a slice, whatever the form.
    pub fn as_slice(&self) -> &[T] {
        match self {
            Self::One(one) => slice::from_ref(one),
            Self::Many(many) => many,
        }
    }

    /// Returns the items as a slice, whatever the form.
    pub fn into_vec(self) -> Vec<T> {
        match self {
            Self::One(one) => vec![one],
            Self::Many(many) => many,
        }
    }
}

impl<T> From<T> for OneOrMany<T> {
    fn from(one: T) -> Self {
        Self::One(one)
    }
}

impl<T> From<Vec<T>> for OneOrMany<T> {
    fn from(many: Vec<T>) -> Self {
        Self::Many(many)
    }
}

// By hand: `untagged` would hide what is wrong inside.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrManyVisitor(PhantomData))
    }
}

struct OneOrManyVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> de::Visitor<'de> for OneOrManyVisitor<T> {
    type Value = OneOrMany<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or a list of objects")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(OneOrMany::One)
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(seq)).map(OneOrMany::Many)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::ContentBlock;

    type Content = OneOrMany<ContentBlock>;

    #[test]
    fn the_form_is_kept() {
        for (text, count) in [
            (r#"{"type":"text","text":"a"}"#, 1),
            (r#"[{"type":"text","text":"a"}]"#, 1),
            (r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#, 2),
            ("[]", 0),
        ] {
            let content: Content = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&content).unwrap(), text);
            assert_eq!(content.as_slice().len(), count);
            assert_eq!(content.into_vec().len(), count);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, message) in [
            (r#""a""#, "invalid type: string \"a\", expected an object or a list of objects"),
            (r#"{"type":"text"}"#, "in `text`: missing field `text`"),
            (r#"[{"type":"text"}]"#, "in `text`: missing field `text`"),
        ] {
            let error = serde_json::from_str::<Content>(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
