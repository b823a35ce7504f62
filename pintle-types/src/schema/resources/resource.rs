use serde::{Deserialize, Serialize};

use super::ResourceContents;
use crate::common::{Annotations, Icon, wire};
use crate::schema::base::{CacheScope, InputResponses, ResultType, list_result, redacted_debug};
use crate::{JsonObject, Meta, RawObject, raw::ObjectWriter};

/// A resource that can be read.
///
/// As content it is a link: [`ContentBlock::ResourceLink`](crate::schema::ContentBlock::ResourceLink).
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// The URI.
    pub uri: String,
    /// The name for programs.
    pub name: String,
    /// The name to display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The size in bytes before base64, if known.
    #[serde(default, deserialize_with = "wire::optional_integer", skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// The annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Icons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl Resource {
    /// Creates a resource.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: name.into(), ..Self::default() }
    }
}

/// A family of resources, given by a pattern of their URIs.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplate {
    /// The pattern, as in RFC 6570.
    pub uri_template: String,
    /// The name for programs.
    pub name: String,
    /// The name to display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type, if all resources have the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Icons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ResourceTemplate {
    /// Creates a template.
    pub fn new(uri_template: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri_template: uri_template.into(), name: name.into(), ..Self::default() }
    }
}

list_result! {
    /// The result of `resources/list`: one page.
    ListResourcesResult {
        /// The resources.
        resources: Resource
    }
}

list_result! {
    /// The result of `resources/templates/list`: one page.
    ListResourceTemplatesResult {
        /// The templates.
        resource_templates: ResourceTemplate
    }
}

/// The params of `resources/read`.
#[non_exhaustive]
#[derive(Clone, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadResourceParams {
    /// The URI.
    pub uri: String,
    /// Responses to the input requests of the previous round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// The `requestState` of the previous round, unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

redacted_debug!(ReadResourceParams { uri, meta, extra; input_responses, request_state });

impl ReadResourceParams {
    /// Creates params for a first request.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), ..Self::default() }
    }
}

/// The result of `resources/read`.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadResourceResult {
    /// The contents, often a single part.
    pub contents: Vec<ResourceContents>,
    /// How long the result may be cached, in milliseconds. Absent or negative means not at all.
    #[serde(default, deserialize_with = "wire::optional_integer", skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<i64>,
    /// The audience that may share the cached result. Absent means none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
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

impl ReadResourceResult {
    /// Creates a result that may not be cached.
    pub fn new(contents: Vec<ResourceContents>) -> Self {
        Self { contents, ..Self::default() }
    }

    /// Prints the result: the text of [`RawObject::from_serialize`], at less cost if the contents are long.
    ///
    /// # Errors
    ///
    /// A part of it cannot be printed.
    pub fn to_raw(&self) -> Result<RawObject, serde_json::Error> {
        let Self { contents, ttl_ms, cache_scope, result_type, meta, extra } = self;
        // With room for what is written around it later.
        let room: usize = contents.iter().map(ResourceContents::room).sum();
        let mut object = ObjectWriter::with_capacity(room + 256);
        object.begin("contents");
        for (at, part) in contents.iter().enumerate() {
            object.write(if at == 0 { "[" } else { "," });
            part.write(&mut object)?;
        }
        object.write(if contents.is_empty() { "[]" } else { "]" });
        object.end();
        object.optional("ttlMs", ttl_ms.as_ref())?;
        object.optional("cacheScope", cache_scope.as_ref())?;
        object.optional("resultType", result_type.as_ref())?;
        object.optional("_meta", meta.as_ref())?;
        for (name, value) in extra {
            object.json(name, value)?;
        }
        Ok(object.finish())
    }
}

/// The params of `resources/subscribe` and `resources/unsubscribe`.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct SubscribeParams {
    /// The URI.
    pub uri: String,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl SubscribeParams {
    /// Creates params for `uri`.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), ..Self::default() }
    }
}

/// The params of `notifications/resources/updated`.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ResourceUpdatedParams {
    /// The URI. It may be below the subscribed one.
    pub uri: String,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ResourceUpdatedParams {
    /// Creates params for `uri`.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_is_printed_as_serde_prints_it() {
        let all = r#"{"contents":[
            {"uri":"a:\"b\"","mimeType":"text/plain","text":"ä\n"},
            {"uri":"a:b","blob":"AA=="},
            {"uri":"a:b","text":"x","_meta":{}},
            {"uri":"a:b","text":"x","novel":1}
        ],"ttlMs":5,"cacheScope":"public","resultType":"complete","_meta":{"a/b":1},"novel":[]}"#;
        for text in [all, r#"{"contents":[]}"#] {
            let result: ReadResourceResult = serde_json::from_str(text).unwrap();
            let printed = result.to_raw().unwrap();
            assert_eq!(printed.as_str(), serde_json::to_string(&result).unwrap());
            let read: RawObject = printed.as_str().parse().unwrap();
            assert!(printed.iter().eq(read.iter()), "{printed:?}");
        }
    }
}
