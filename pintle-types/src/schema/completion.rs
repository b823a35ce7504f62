use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::base::ResultType;
use crate::JsonObject;
use crate::common::{
    object,
    wire::{self, Tagged},
};

object! {
    /// The params of `completion/complete`.
    #[derive(Debug)]
    CompleteParams {
        /// The prompt or resource template of the argument.
        #[serde(rename = "ref")]
        reference: CompletionReference,
        /// The argument and its current value.
        argument: CompletionArgument,
        /// Values of other arguments.
        context?: CompletionContext,
        ..meta
    }
    /// Creates params without context.
    new(reference: CompletionReference, argument: CompletionArgument)
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

object! {
    /// A reference to a prompt by its name.
    #[derive(Debug, Default)]
    PromptReference {
        /// The name of the prompt.
        name: String,
        /// The name to display.
        title?: String,
        ..
    }
    /// Creates a reference to the prompt `name`.
    new(name: impl Into<String>)
}

object! {
    /// A reference to a resource template by its pattern, or to a resource by its URI.
    #[derive(Debug, Default)]
    ResourceReference {
        /// The URI or pattern.
        uri: String,
        ..
    }
    /// Creates a reference to the resource or template `uri`.
    new(uri: impl Into<String>)
}

object! {
    /// An argument and its current value.
    #[derive(Debug, Default)]
    CompletionArgument {
        /// The name of the argument.
        name: String,
        /// The current value.
        value: String,
        ..
    }
    /// Creates an argument `name` whose value starts with `value`.
    new(name: impl Into<String>, value: impl Into<String>)
}

object! {
    /// Values that are known in addition to the argument.
    #[derive(Debug, Default)]
    CompletionContext {
        /// Values of arguments that are already resolved.
        arguments?: BTreeMap<String, String>,
        ..
    }
    /// Creates a context without arguments.
    new()
}

object! {
    /// The result of `completion/complete`.
    #[derive(Debug, Default)]
    CompleteResult {
        /// The proposals.
        completion: Completion,
        /// The type of the result. Absent means [`ResultType::Complete`].
        result_type?: ResultType,
        ..meta
    }
    /// The proposals.
    new(completion: Completion)
}

object! {
    /// Completion values, in order of relevance.
    #[derive(Debug, Default)]
    Completion {
        /// At most 100.
        values: Vec<String>,
        /// The total number of values, including those in `values`.
        #[serde(default, deserialize_with = "wire::optional_integer")]
        total?: i64,
        /// Whether there are more than `values`.
        has_more?: bool,
        ..
    }
    /// Creates a completion without a total.
    new(values: Vec<String>)
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
        for (text, message) in [
            (r#"{"argument":{"name":"a","value":""}}"#, "missing field `ref`"),
            (r#"{"ref":{"name":"x"},"argument":{"name":"a","value":""}}"#, "missing field `type`"),
            (r#"{"ref":{"type":"ref/prompt"}}"#, "in `ref/prompt`: missing field `name`"),
            (r#"{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a"}}"#, "missing field `value`"),
        ] {
            let error = serde_json::from_str::<CompleteParams>(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
