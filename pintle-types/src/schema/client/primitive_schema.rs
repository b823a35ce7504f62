use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Number, Value};

use crate::JsonObject;
use crate::common::wire::{self, Tagged, words};

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

/// A text field.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StringSchema {
    /// The name to display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The minimum length in characters.
    #[serde(default, deserialize_with = "wire::optional_integer", skip_serializing_if = "Option::is_none")]
    pub min_length: Option<i64>,
    /// The maximum length in characters.
    #[serde(default, deserialize_with = "wire::optional_integer", skip_serializing_if = "Option::is_none")]
    pub max_length: Option<i64>,
    /// The format of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<StringFormat>,
    /// The default value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl StringSchema {
    /// Creates a field for any text.
    pub fn new() -> Self {
        Self::default()
    }
}

/// A number field.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct NumberSchema {
    /// The name to display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The minimum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<Number>,
    /// The maximum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum: Option<Number>,
    /// The default value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Number>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl NumberSchema {
    /// Creates a field for any number.
    pub fn new() -> Self {
        Self::default()
    }
}

/// A boolean field.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct BooleanSchema {
    /// The name to display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The default value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<bool>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl BooleanSchema {
    /// A boolean.
    pub fn new() -> Self {
        Self::default()
    }
}

/// A choice of one, shown by value; with `enumNames`, the older way to show titles.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnumSchema {
    /// The name to display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The values to choose from.
    #[serde(rename = "enum")]
    pub values: Vec<String>,
    /// Titles of the values, in the same order. Superseded by [`TitledEnumSchema`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enum_names: Option<Vec<String>>,
    /// The default choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl EnumSchema {
    /// Creates a choice of one of `values`.
    pub fn new(values: Vec<String>) -> Self {
        Self { values, ..Self::default() }
    }
}

/// A choice of one, shown by title.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TitledEnumSchema {
    /// The name to display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The values to choose from.
    pub one_of: Vec<EnumOption>,
    /// The default choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl TitledEnumSchema {
    /// Creates a choice of one of `one_of`.
    pub fn new(one_of: Vec<EnumOption>) -> Self {
        Self { one_of, ..Self::default() }
    }
}

/// A choice of several, shown by value.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MultiEnumSchema {
    /// The name to display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The smallest number of choices.
    #[serde(default, deserialize_with = "wire::optional_integer", skip_serializing_if = "Option::is_none")]
    pub min_items: Option<i64>,
    /// The largest number of choices.
    #[serde(default, deserialize_with = "wire::optional_integer", skip_serializing_if = "Option::is_none")]
    pub max_items: Option<i64>,
    /// The values to choose from.
    pub items: EnumItems,
    /// The default choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Vec<String>>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl MultiEnumSchema {
    /// Creates a choice of several of `items`.
    pub fn new(items: EnumItems) -> Self {
        Self {
            title: None,
            description: None,
            min_items: None,
            max_items: None,
            items,
            default: None,
            extra: JsonObject::new(),
        }
    }
}

/// The values of a choice of several.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct EnumItems {
    /// The type, always `string`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The values.
    #[serde(rename = "enum")]
    pub values: Vec<String>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

/// A choice of several, shown by title.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TitledMultiEnumSchema {
    /// The name to display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The smallest number of choices.
    #[serde(default, deserialize_with = "wire::optional_integer", skip_serializing_if = "Option::is_none")]
    pub min_items: Option<i64>,
    /// The largest number of choices.
    #[serde(default, deserialize_with = "wire::optional_integer", skip_serializing_if = "Option::is_none")]
    pub max_items: Option<i64>,
    /// The values to choose from.
    pub items: TitledEnumItems,
    /// The default choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Vec<String>>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl TitledMultiEnumSchema {
    /// Creates a choice of several of `items`.
    pub fn new(items: TitledEnumItems) -> Self {
        Self { items, ..Self::default() }
    }
}

impl EnumItems {
    /// Creates items.
    pub fn new(values: Vec<String>) -> Self {
        Self { kind: "string".to_owned(), values, extra: JsonObject::new() }
    }
}

/// The values of a choice of several, with titles.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TitledEnumItems {
    /// The values and their titles.
    pub any_of: Vec<EnumOption>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl TitledEnumItems {
    /// Creates items.
    pub fn new(any_of: Vec<EnumOption>) -> Self {
        Self { any_of, ..Self::default() }
    }
}

/// A value and its title.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct EnumOption {
    /// The value.
    #[serde(rename = "const")]
    pub value: String,
    /// The title.
    pub title: String,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl EnumOption {
    /// Creates an option with a title.
    pub fn new(value: impl Into<String>, title: impl Into<String>) -> Self {
        Self { value: value.into(), title: title.into(), ..Self::default() }
    }
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
    fn every_form_is_told_apart_and_comes_back() {
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
