use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Number, Value};

use crate::JsonObject;
use crate::common::{
    object,
    wire::{self, Tagged, words},
};

/// The schema of one field of a form.
///
/// ```
/// use pintle_types::schema::{EnumSchema, PrimitiveSchema};
///
/// let colour = PrimitiveSchema::Enum(EnumSchema::new(vec!["red".into(), "blue".into()]));
/// assert_eq!(serde_json::to_string(&colour)?, r#"{"type":"string","enum":["red","blue"]}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub enum PrimitiveSchema {
    /// Text.
    String(StringSchema),
    /// A number.
    Number(NumberSchema),
    /// A whole number.
    Integer(NumberSchema),
    /// A boolean.
    Boolean(BooleanSchema),
    /// One of several values.
    Enum(EnumSchema),
    /// One of several values that have titles.
    TitledEnum(TitledEnumSchema),
    /// Some of several values.
    MultiEnum(MultiEnumSchema),
    /// Some of several values that have titles.
    TitledMultiEnum(TitledMultiEnumSchema),
    /// Any other schema, kept whole.
    Unknown(JsonObject),
}

impl Serialize for PrimitiveSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::String(body) => Tagged { kind: "string", body }.serialize(serializer),
            Self::Number(body) => Tagged { kind: "number", body }.serialize(serializer),
            Self::Integer(body) => Tagged { kind: "integer", body }.serialize(serializer),
            Self::Boolean(body) => Tagged { kind: "boolean", body }.serialize(serializer),
            Self::Enum(body) => Tagged { kind: "string", body }.serialize(serializer),
            Self::TitledEnum(body) => Tagged { kind: "string", body }.serialize(serializer),
            Self::MultiEnum(body) => Tagged { kind: "array", body }.serialize(serializer),
            Self::TitledMultiEnum(body) => Tagged { kind: "array", body }.serialize(serializer),
            Self::Unknown(object) => object.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for PrimitiveSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = JsonObject::deserialize(deserializer)?;
        let offers = |key| object.get("items").is_some_and(|items| items.get(key).is_some());
        match object.get("type").and_then(Value::as_str) {
            Some("string") if object.contains_key("oneOf") => {
                wire::body(object, "string").map(Self::TitledEnum)
            }
            Some("string") if object.contains_key("enum") => wire::body(object, "string").map(Self::Enum),
            Some("string") => wire::body(object, "string").map(Self::String),
            Some("number") => wire::body(object, "number").map(Self::Number),
            Some("integer") => wire::body(object, "integer").map(Self::Integer),
            Some("boolean") => wire::body(object, "boolean").map(Self::Boolean),
            Some("array") if offers("anyOf") => wire::body(object, "array").map(Self::TitledMultiEnum),
            Some("array") if offers("enum") => wire::body(object, "array").map(Self::MultiEnum),
            _ => Ok(Self::Unknown(object)),
        }
    }
}

object! {
    /// A text field.
    #[derive(Debug, Default)]
    StringSchema {
        /// The name to display.
        title?: String,
        /// The description.
        description?: String,
        /// The minimum length in characters.
        #[serde(default, deserialize_with = "wire::optional_integer")]
        min_length?: i64,
        /// The maximum length in characters.
        #[serde(default, deserialize_with = "wire::optional_integer")]
        max_length?: i64,
        /// The format of the text.
        format?: StringFormat,
        /// The default value.
        default?: String,
        ..
    }
    /// Creates a field for any text.
    new()
}

object! {
    /// A number field.
    #[derive(Debug, Default)]
    NumberSchema {
        /// The name to display.
        title?: String,
        /// The description.
        description?: String,
        /// The minimum.
        minimum?: Number,
        /// The maximum.
        maximum?: Number,
        /// The default value.
        default?: Number,
        ..
    }
    /// Creates a field for any number.
    new()
}

object! {
    /// A boolean field.
    #[derive(Debug, Default)]
    BooleanSchema {
        /// The name to display.
        title?: String,
        /// The description.
        description?: String,
        /// The default value.
        default?: bool,
        ..
    }
    /// A boolean.
    new()
}

object! {
    /// A choice of one, shown by value; with `enumNames`, the older way to show titles.
    #[derive(Debug, Default)]
    EnumSchema {
        /// The name to display.
        title?: String,
        /// The description.
        description?: String,
        /// The values to choose from.
        #[serde(rename = "enum")]
        values: Vec<String>,
        /// Titles of the values, in the same order. Superseded by [`TitledEnumSchema`].
        enum_names?: Vec<String>,
        /// The default choice.
        default?: String,
        ..
    }
    /// Creates a choice of one of `values`.
    new(values: Vec<String>)
}

object! {
    /// A choice of one, shown by title.
    #[derive(Debug, Default)]
    TitledEnumSchema {
        /// The name to display.
        title?: String,
        /// The description.
        description?: String,
        /// The values to choose from.
        one_of: Vec<EnumOption>,
        /// The default choice.
        default?: String,
        ..
    }
    /// Creates a choice of one of `one_of`.
    new(one_of: Vec<EnumOption>)
}

object! {
    /// A choice of several, shown by value.
    #[derive(Debug)]
    MultiEnumSchema {
        /// The name to display.
        title?: String,
        /// The description.
        description?: String,
        /// The smallest number of choices.
        #[serde(default, deserialize_with = "wire::optional_integer")]
        min_items?: i64,
        /// The largest number of choices.
        #[serde(default, deserialize_with = "wire::optional_integer")]
        max_items?: i64,
        /// The values to choose from.
        items: EnumItems,
        /// The default choice.
        default?: Vec<String>,
        ..
    }
    /// Creates a choice of several of `items`.
    new(items: EnumItems)
}

object! {
    /// The values of a choice of several.
    #[derive(Debug)]
    EnumItems {
        /// The type, always `string`.
        #[serde(rename = "type")]
        kind: String,
        /// The values.
        #[serde(rename = "enum")]
        values: Vec<String>,
        ..
    }
}

object! {
    /// A choice of several, shown by title.
    #[derive(Debug, Default)]
    TitledMultiEnumSchema {
        /// The name to display.
        title?: String,
        /// The description.
        description?: String,
        /// The smallest number of choices.
        #[serde(default, deserialize_with = "wire::optional_integer")]
        min_items?: i64,
        /// The largest number of choices.
        #[serde(default, deserialize_with = "wire::optional_integer")]
        max_items?: i64,
        /// The values to choose from.
        items: TitledEnumItems,
        /// The default choice.
        default?: Vec<String>,
        ..
    }
    /// Creates a choice of several of `items`.
    new(items: TitledEnumItems)
}

impl EnumItems {
    /// Creates items.
    pub fn new(values: Vec<String>) -> Self {
        Self { kind: "string".to_owned(), values, extra: JsonObject::new() }
    }
}

object! {
    /// The values of a choice of several, with titles.
    #[derive(Debug, Default)]
    TitledEnumItems {
        /// The values and their titles.
        any_of: Vec<EnumOption>,
        ..
    }
    /// Creates items.
    new(any_of: Vec<EnumOption>)
}

object! {
    /// A value and its title.
    #[derive(Debug, Default)]
    EnumOption {
        /// The value.
        #[serde(rename = "const")]
        value: String,
        /// The title.
        title: String,
        ..
    }
    /// Creates an option with a title.
    new(value: impl Into<String>, title: impl Into<String>)
}

words! {
    /// The format of a text field.
    StringFormat {
        /// An email address.
        Email = "email",
        /// A URI.
        Uri = "uri",
        /// A date.
        Date = "date",
        /// A date and time.
        DateTime = "date-time",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_distinguished_and_comes_back() {
        for (text, is) in [
            (
                r#"{"type":"string","minLength":1,"format":"email"}"#,
                (|schema| matches!(schema, PrimitiveSchema::String(_))) as fn(&PrimitiveSchema) -> bool,
            ),
            (r#"{"type":"number","minimum":0,"maximum":0.5}"#, |it| matches!(it, PrimitiveSchema::Number(_))),
            (r#"{"type":"integer","maximum":9007199254740993,"default":1}"#, |it| {
                matches!(it, PrimitiveSchema::Integer(_))
            }),
            (r#"{"type":"boolean","default":true}"#, |it| matches!(it, PrimitiveSchema::Boolean(_))),
            (r#"{"type":"string","enum":["a"],"enumNames":["A"]}"#, |it| {
                matches!(it, PrimitiveSchema::Enum(_))
            }),
            (r#"{"type":"string","oneOf":[{"const":"a","title":"A"}]}"#, |it| {
                matches!(it, PrimitiveSchema::TitledEnum(_))
            }),
            (
                r#"{"type":"array","minItems":1,"items":{"type":"string","enum":["a"]},"default":["a"]}"#,
                |it| matches!(it, PrimitiveSchema::MultiEnum(_)),
            ),
            (r#"{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}"#, |it| {
                matches!(it, PrimitiveSchema::TitledMultiEnum(_))
            }),
            (r#"{"properties":{},"type":"object"}"#, |it| matches!(it, PrimitiveSchema::Unknown(_))),
            (r#"{"type":["string","null"]}"#, |it| matches!(it, PrimitiveSchema::Unknown(_))),
        ] {
            let schema: PrimitiveSchema = serde_json::from_str(text).unwrap();
            assert!(is(&schema), "{schema:?}");
            assert_eq!(serde_json::to_string(&schema).unwrap(), text);
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let error =
            serde_json::from_str::<PrimitiveSchema>(r#"{"type":"string","minLength":"x"}"#).unwrap_err();
        assert!(error.to_string().starts_with("in `string`: invalid type: string \"x\""), "{error}");
    }
}
