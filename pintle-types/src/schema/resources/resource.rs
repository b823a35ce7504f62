use super::ResourceContents;
use crate::common::{Annotations, Icon, object, wire};
use crate::schema::base::{CacheScope, InputResponses, ResultType, list_result, redacted_debug};
use crate::{RawObject, raw::ObjectWriter};

object! {
    /// A resource that can be read.
    ///
    /// As content it is a link: [`ContentBlock::ResourceLink`](crate::schema::ContentBlock::ResourceLink).
    #[derive(Debug, Default)]
    Resource {
        /// The URI.
        uri: String,
        /// The name for programs.
        name: String,
        /// The name to display.
        title?: String,
        /// The description for the model.
        description?: String,
        /// The media type, if known.
        mime_type?: String,
        /// The size in bytes before base64, if known.
        #[serde(default, deserialize_with = "wire::optional_integer")]
        size?: i64,
        /// The annotations.
        annotations?: Annotations,
        /// Icons.
        icons?: Vec<Icon>,
        ..meta
    }
    /// Creates a resource.
    new(uri: impl Into<String>, name: impl Into<String>)
}

object! {
    /// A family of resources, given by a pattern of their URIs.
    #[derive(Debug, Default)]
    ResourceTemplate {
        /// The pattern, as in RFC 6570.
        uri_template: String,
        /// The name for programs.
        name: String,
        /// The name to display.
        title?: String,
        /// The description for the model.
        description?: String,
        /// The media type, if all resources have the same.
        mime_type?: String,
        /// The annotations.
        annotations?: Annotations,
        /// Icons.
        icons?: Vec<Icon>,
        ..meta
    }
    /// Creates a template.
    new(uri_template: impl Into<String>, name: impl Into<String>)
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

object! {
    /// The params of `resources/read`.
    #[derive(Default)]
    ReadResourceParams {
        /// The URI.
        uri: String,
        /// Responses to the input requests of the previous round.
        input_responses?: InputResponses,
        /// The `requestState` of the previous round, unchanged.
        request_state?: String,
        ..meta
    }
    /// Creates params for a first request.
    new(uri: impl Into<String>)
}

redacted_debug!(ReadResourceParams { uri, meta, extra; input_responses, request_state });

object! {
    /// The result of `resources/read`.
    #[derive(Debug, Default)]
    ReadResourceResult {
        /// The contents, often a single part.
        contents: Vec<ResourceContents>,
        /// How long the result may be cached, in milliseconds. Absent or negative means not at all.
        #[serde(default, deserialize_with = "wire::optional_integer")]
        ttl_ms?: i64,
        /// The audience that may share the cached result. Absent means none.
        cache_scope?: CacheScope,
        /// The type of the result. Absent means [`ResultType::Complete`].
        result_type?: ResultType,
        ..meta
    }
    /// Creates a result that may not be cached.
    new(contents: Vec<ResourceContents>)
}

impl ReadResourceResult {
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

object! {
    /// The params of `resources/subscribe` and `resources/unsubscribe`.
    #[derive(Debug, Default)]
    SubscribeParams {
        /// The URI.
        uri: String,
        ..meta
    }
    /// Creates params for `uri`.
    new(uri: impl Into<String>)
}

object! {
    /// The params of `notifications/resources/updated`.
    #[derive(Debug, Default)]
    ResourceUpdatedParams {
        /// The URI. It may be below the subscribed one.
        uri: String,
        ..meta
    }
    /// Creates params for `uri`.
    new(uri: impl Into<String>)
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
