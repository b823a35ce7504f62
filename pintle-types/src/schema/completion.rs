use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::base::ResultType;
use crate::common::wire::{self, Tagged};
use crate::{JsonObject, Meta};

/// The params of `completion/complete`.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct CompleteParams {
    /// The prompt or resource template of the argument.
    #[serde(rename = "ref")]
    pub reference: CompletionReference,
    /// The argument and its current value.
    pub argument: CompletionArgument,
    /// Values of other arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<CompletionContext>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl CompleteParams {
    /// Creates params without context.
    pub fn new(reference: CompletionReference, argument: CompletionArgument) -> Self {
        Self { reference, argument, context: None, meta: None, extra: JsonObject::new() }
    }
}

/// The owner of an argument, distinguished by its `type`.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub enum CompletionReference {
    /// `ref/prompt`: an argument of a prompt.
    Prompt(PromptReference),
    /// `ref/resource`: a variable of a resource template.
    Resource(ResourceReference),
    /// A `type` that this crate does not know, kept whole (`type` included).
    Unknown(JsonObject),
}

impl Serialize for CompletionReference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Prompt(body) => Tagged { kind: "ref/prompt", body }.serialize(serializer),
            Self::Resource(body) => Tagged { kind: "ref/resource", body }.serialize(serializer),
            Self::Unknown(object) => object.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for CompletionReference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = JsonObject::deserialize(deserializer)?;
        match wire::kind(&object)? {
            "ref/prompt" => wire::body(object, "ref/prompt").map(Self::Prompt),
            "ref/resource" => wire::body(object, "ref/resource").map(Self::Resource),
            _ => Ok(Self::Unknown(object)),
        }
    }
}

/// A reference to a prompt by its name.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct PromptReference {
    /// The name of the prompt.
    pub name: String,
    /// The name to display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl PromptReference {
    /// Creates a reference to the prompt `name`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

/// A reference to a resource template by its pattern, or to a resource by its URI.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ResourceReference {
    /// The URI or pattern.
    pub uri: String,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ResourceReference {
    /// Creates a reference to the resource or template `uri`.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), ..Self::default() }
    }
}

/// An argument and its current value.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct CompletionArgument {
    /// The name of the argument.
    pub name: String,
    /// The current value.
    pub value: String,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl CompletionArgument {
    /// Creates an argument `name` whose value starts with `value`.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into(), ..Self::default() }
    }
}

/// Values that are known in addition to the argument.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct CompletionContext {
    /// Values of arguments that are already resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<BTreeMap<String, String>>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl CompletionContext {
    /// Creates a context without arguments.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The result of `completion/complete`.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompleteResult {
    /// The proposals.
    pub completion: Completion,
    /// The type of the result. Absent means [`ResultType::Complete`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl CompleteResult {
    /// The proposals.
    pub fn new(completion: Completion) -> Self {
        Self { completion, ..Self::default() }
    }
}

/// Completion values, in order of relevance.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Completion {
    /// At most 100.
    pub values: Vec<String>,
    /// The total number of values, including those in `values`.
    #[serde(default, deserialize_with = "wire::optional_integer", skip_serializing_if = "Option::is_none")]
    pub total: Option<i64>,
    /// Whether there are more than `values`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl Completion {
    /// Creates a completion without a total.
    pub fn new(values: Vec<String>) -> Self {
        Self { values, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_come_back() {
        for text in [
            r#"{"type":"ref/prompt","name":"x","title":"X"}"#,
            r#"{"type":"ref/resource","uri":"file:///{path}","novel":1}"#,
            r#"{"name":"x","type":"ref/tool"}"#,
        ] {
            let reference: CompletionReference = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&reference).unwrap(), text);
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        for (text, said) in [
            (r#"{"argument":{"name":"a","value":""}}"#, "missing field `ref`"),
            (r#"{"ref":{"name":"x"},"argument":{"name":"a","value":""}}"#, "missing field `type`"),
            (r#"{"ref":{"type":"ref/prompt"}}"#, "in `ref/prompt`: missing field `name`"),
            (r#"{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a"}}"#, "missing field `value`"),
        ] {
            let error = serde_json::from_str::<CompleteParams>(text).unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }
}
