use serde::{Deserialize, Serialize};

use super::ResourceContents;
use crate::schema::{
    base::{CacheScope, InputResponses, ResultType},
    common::{Annotations, Icon, wire},
};
use crate::{JsonObject, Meta, RawObject, raw::Builder};

/// A thing that can be read.
///
/// As content it is a link: [`ContentBlock::ResourceLink`](crate::schema::ContentBlock::ResourceLink).
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// Where it is.
    pub uri: String,
    /// The name that programs use.
    pub name: String,
    /// The name that people see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is, for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its media type, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its size in bytes before base64, if known.
    #[serde(default, deserialize_with = "wire::optional_integer", skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// Whom it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Pictures of it.
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
    /// A resource with a name.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: name.into(), ..Self::default() }
    }
}

/// A family of resources, by a pattern of their URIs.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplate {
    /// The pattern, as in RFC 6570.
    pub uri_template: String,
    /// The name that programs use.
    pub name: String,
    /// The name that people see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What they are, for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Their media type, if all have the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Whom they are for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Pictures of them.
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
    /// A template with a name.
    pub fn new(uri_template: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri_template: uri_template.into(), name: name.into(), ..Self::default() }
    }
}

/// One page of `resources/list`.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListResourcesResult {
    /// The resources.
    pub resources: Vec<Resource>,
    /// What to ask the next page with. Absent means that this is the last; an empty string is a cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// For how many milliseconds it may be cached. Absent or negative means not at all.
    #[serde(default, deserialize_with = "wire::optional_integer", skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<i64>,
    /// Who may share it; absent means nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// What kind of result it is; absent means [`ResultType::Complete`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ListResourcesResult {
    /// The only page.
    pub fn new(resources: Vec<Resource>) -> Self {
        Self { resources, ..Self::default() }
    }
}

/// One page of `resources/templates/list`.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListResourceTemplatesResult {
    /// The templates.
    pub resource_templates: Vec<ResourceTemplate>,
    /// What to ask the next page with. Absent means that this is the last; an empty string is a cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// For how many milliseconds it may be cached. Absent or negative means not at all.
    #[serde(default, deserialize_with = "wire::optional_integer", skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<i64>,
    /// Who may share it; absent means nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// What kind of result it is; absent means [`ResultType::Complete`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ListResourceTemplatesResult {
    /// The only page.
    pub fn new(resource_templates: Vec<ResourceTemplate>) -> Self {
        Self { resource_templates, ..Self::default() }
    }
}

/// Which resource is to be read.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadResourceParams {
    /// Where it is.
    pub uri: String,
    /// Answers to the questions of the round before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// The `requestState` of the round before, exactly as it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ReadResourceParams {
    /// A first try.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), ..Self::default() }
    }
}

/// What was read.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadResourceResult {
    /// The parts; often one.
    pub contents: Vec<ResourceContents>,
    /// For how many milliseconds it may be cached. Absent or negative means not at all.
    #[serde(default, deserialize_with = "wire::optional_integer", skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<i64>,
    /// Who may share it; absent means nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// What kind of result it is; absent means [`ResultType::Complete`].
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
    /// The contents, not to be cached.
    pub fn new(contents: Vec<ResourceContents>) -> Self {
        Self { contents, ..Self::default() }
    }

    /// Prints it. The same text as [`RawObject::from_serialize`] gives, and cheaper if the contents are long.
    ///
    /// # Errors
    ///
    /// A part of it cannot be printed.
    pub fn to_raw(&self) -> Result<RawObject, serde_json::Error> {
        let Self { contents, ttl_ms, cache_scope, result_type, meta, extra } = self;
        // With room for what is written around it later.
        let room: usize = contents.iter().map(ResourceContents::room).sum();
        let mut object = Builder::with_capacity(room + 256);
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
        Ok(object.finish_printed())
    }
}

/// Which resource is to be watched, or no longer: `resources/subscribe` and `resources/unsubscribe`.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct SubscribeParams {
    /// Where it is.
    pub uri: String,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl SubscribeParams {
    /// Watch `uri`.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), ..Self::default() }
    }
}

/// Which resource has changed.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ResourceUpdatedParams {
    /// Where it is; may lie below what was subscribed.
    pub uri: String,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ResourceUpdatedParams {
    /// `uri` has changed.
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
