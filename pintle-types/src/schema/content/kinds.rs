use serde_json::Value;

use super::ContentBlock;
use crate::common::{Annotations, object, wire};
use crate::schema::resources::ResourceContents;
use crate::{JsonObject, Meta};

object! {
    /// Text.
    #[derive(Debug, Default)]
    TextContent {
        /// The text.
        text: String,
        /// The annotations.
        annotations?: Annotations,
        ..meta
    }
    /// Creates text without annotations.
    new(text: impl Into<String>)
}

object! {
    /// An image.
    #[derive(Debug, Default)]
    ImageContent {
        /// The bytes, in base64.
        data: String,
        /// The media type.
        mime_type: String,
        /// The annotations.
        annotations?: Annotations,
        ..meta
    }
    /// Creates content from base64 and its media type.
    new(data: impl Into<String>, mime_type: impl Into<String>)
}

object! {
    /// Audio.
    #[derive(Debug, Default)]
    AudioContent {
        /// The bytes, in base64.
        data: String,
        /// The media type.
        mime_type: String,
        /// The annotations.
        annotations?: Annotations,
        ..meta
    }
    /// Creates content from base64 and its media type.
    new(data: impl Into<String>, mime_type: impl Into<String>)
}

object! {
    /// A resource with its contents.
    #[derive(Debug)]
    EmbeddedResource {
        /// The contents.
        resource: ResourceContents,
        /// The annotations.
        annotations?: Annotations,
        ..meta
    }
    /// Creates an embedded resource without annotations.
    new(resource: ResourceContents)
}

object! {
    /// A request of the model to call a tool.
    #[derive(Debug, Default)]
    ToolUseContent {
        /// The id, which the result repeats.
        id: String,
        /// The tool.
        name: String,
        /// The arguments.
        input: JsonObject,
        /// Metadata, to be kept when the message is sent again.
        #[serde(rename = "_meta")]
        meta?: Meta,
        ..
    }
    /// Creates a call of the tool `name` with `input`.
    new(id: impl Into<String>, name: impl Into<String>, input: JsonObject)
}

object! {
    /// The result of a [`ToolUseContent`].
    #[derive(Debug, Default)]
    ToolResultContent {
        /// The `id` of the tool use it answers.
        tool_use_id: String,
        /// The content.
        content: Vec<ContentBlock>,
        /// The structured result. `Some(Null)` is a value and differs from `None`.
        #[serde(default, deserialize_with = "wire::present")]
        structured_content?: Value,
        /// Whether the tool failed.
        is_error?: bool,
        /// Metadata, to be kept when the message is sent again.
        #[serde(rename = "_meta")]
        meta?: Meta,
        ..
    }
    /// Creates a result of the tool use `tool_use_id`.
    new(tool_use_id: impl Into<String>, content: Vec<ContentBlock>)
}
