use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, MapAccess},
};
use serde_json::Value;

use super::{AudioContent, EmbeddedResource, ImageContent, TextContent, ToolResultContent, ToolUseContent};
use crate::common::wire::{self, Tagged};
use crate::schema::resources::Resource;
use crate::{
    JsonObject,
    raw::{Name, ObjectWriter},
};

/// A block of content, distinguished by its `type`.
///
/// Not every kind is allowed everywhere: tool use and tool results belong to sampling only.
///
/// ```
/// use pintle_types::schema::ContentBlock;
///
/// let block: ContentBlock = serde_json::from_str(r#"{"type":"text","text":"3"}"#)?;
/// assert_eq!(block, ContentBlock::text("3"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub enum ContentBlock {
    /// `text`.
    Text(TextContent),
    /// `image`.
    Image(ImageContent),
    /// `audio`.
    Audio(AudioContent),
    /// `resource_link`: a resource that can be read elsewhere.
    ResourceLink(Resource),
    /// `resource`: a resource with its contents.
    Resource(EmbeddedResource),
    /// `tool_use`: a request of the model to call a tool.
    ToolUse(ToolUseContent),
    /// `tool_result`: the result of a tool use.
    ToolResult(ToolResultContent),
    /// A `type` that this crate does not know, kept whole (`type` included).
    Unknown(JsonObject),
}

impl ContentBlock {
    /// A piece of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// Returns the text, if this is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            _ => None,
        }
    }

    /// Returns an estimate of the printed length. It is generous, because growing a buffer copies it.
    pub(in crate::schema) fn room(&self) -> usize {
        let long = match self {
            Self::Text(TextContent { text, .. }) => text.len() + text.len() / 8,
            Self::Image(ImageContent { data, .. }) | Self::Audio(AudioContent { data, .. }) => data.len(),
            _ => 0,
        };
        long + 128
    }

    /// Prints the value as a piece of a member. Long texts are printed in place.
    pub(in crate::schema) fn write(&self, object: &mut ObjectWriter) -> Result<(), serde_json::Error> {
        match self {
            Self::Text(TextContent { text, annotations: None, meta: None, extra }) if extra.is_empty() => {
                object.write(r#"{"type":"text","text":"#);
                object.write_text(text);
                object.write("}");
            }
            Self::Image(ImageContent { data, mime_type, annotations: None, meta: None, extra })
                if extra.is_empty() =>
            {
                object.write(r#"{"type":"image","data":"#);
                object.write_text(data);
                object.write(r#","mimeType":"#);
                object.write_text(mime_type);
                object.write("}");
            }
            block => object.write(&serde_json::to_string(block)?),
        }
        Ok(())
    }
}

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl Serialize for ContentBlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(body) => Tagged { kind: "text", body }.serialize(serializer),
            Self::Image(body) => Tagged { kind: "image", body }.serialize(serializer),
            Self::Audio(body) => Tagged { kind: "audio", body }.serialize(serializer),
            Self::ResourceLink(body) => Tagged { kind: "resource_link", body }.serialize(serializer),
            Self::Resource(body) => Tagged { kind: "resource", body }.serialize(serializer),
            Self::ToolUse(body) => Tagged { kind: "tool_use", body }.serialize(serializer),
            Self::ToolResult(body) => Tagged { kind: "tool_result", body }.serialize(serializer),
            Self::Unknown(object) => object.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(BlockVisitor)
    }
}

/// Reads a block. A block whose first member is `"type":"text"` is read into its fields, without a tree in between.
struct BlockVisitor;

impl<'de> de::Visitor<'de> for BlockVisitor {
    type Value = ContentBlock;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ContentBlock, A::Error> {
        let mut object = JsonObject::new();
        while let Some(name) = map.next_key_seed(Name)? {
            let value: Value = map.next_value()?;
            if object.is_empty() && name == "type" && value == "text" {
                return text(map).map(ContentBlock::Text);
            }
            object.insert(name.into_owned(), value);
        }
        block(object)
    }
}

fn block<E: de::Error>(object: JsonObject) -> Result<ContentBlock, E> {
    match wire::kind(&object)? {
        "text" => wire::body(object, "text").map(ContentBlock::Text),
        "image" => wire::body(object, "image").map(ContentBlock::Image),
        "audio" => wire::body(object, "audio").map(ContentBlock::Audio),
        "resource_link" => wire::body(object, "resource_link").map(ContentBlock::ResourceLink),
        "resource" => wire::body(object, "resource").map(ContentBlock::Resource),
        "tool_use" => wire::body(object, "tool_use").map(ContentBlock::ToolUse),
        "tool_result" => wire::body(object, "tool_result").map(ContentBlock::ToolResult),
        _ => Ok(ContentBlock::Unknown(object)),
    }
}

/// Reads the rest of a text block.
fn text<'de, A: MapAccess<'de>>(mut map: A) -> Result<TextContent, A::Error> {
    let within = |error: A::Error| de::Error::custom(format_args!("in `text`: {error}"));
    let mut content = TextContent::default();
    let mut text = None;
    while let Some(name) = map.next_key_seed(Name)? {
        match &*name {
            "text" => text = Some(map.next_value().map_err(within)?),
            "annotations" => content.annotations = map.next_value().map_err(within)?,
            "_meta" => content.meta = map.next_value().map_err(within)?,
            "type" => return Err(de::Error::duplicate_field("type")),
            _ => drop(content.extra.insert(name.into_owned(), map.next_value()?)),
        }
    }
    content.text = text.ok_or_else(|| within(de::Error::missing_field("text")))?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn back_and_forth(value: &Value) -> ContentBlock {
        let block: ContentBlock = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(&block).unwrap(), *value);
        block
    }

    #[test]
    fn an_unknown_kind_survives() {
        let block = back_and_forth(&json!({"type": "hologram", "depth": 3, "_meta": {"a/b": null}}));
        assert!(matches!(block, ContentBlock::Unknown(_)));
    }

    #[test]
    fn text_is_read_alike_wherever_its_type_stands() {
        for members in [
            r#""text":"a\nb""#,
            r#""text":"a","annotations":{"priority":1},"_meta":{"a/b":null},"novel":[1,{"x":null}]"#,
            r#""text":"a","annotations":null,"_meta":null"#,
            r#""text":"a","text":"b""#,
            r#""annotations":{}"#,
            r#""text":7"#,
        ] {
            let read = |text: String| {
                serde_json::from_str::<ContentBlock>(&text).map_err(|error| {
                    let message = error.to_string();
                    message.split(" at line").next().unwrap_or_default().to_owned()
                })
            };
            let straight = read(format!(r#"{{"type":"text",{members}}}"#));
            assert_eq!(straight, read(format!(r#"{{{members},"type":"text"}}"#)), "{members}");
        }
        assert!(
            serde_json::from_str::<ContentBlock>(r#"{"type":"text","text":"a","type":"image"}"#).is_err()
        );
    }

    #[test]
    fn unknown_fields_survive_at_every_depth() {
        back_and_forth(&json!({
            "type": "resource", "novel": [1, {"x": null}],
            "resource": {"uri": "a:b", "text": "hi", "novel": 1},
            "annotations": {"audience": ["user"], "priority": 1, "novel": {}},
        }));
        back_and_forth(&json!({"type": "resource_link", "uri": "a:b", "name": "b", "size": 3, "novel": "x"}));
    }

    #[test]
    fn a_null_result_is_not_an_absent_one() {
        for (value, seen) in [
            (json!({"type": "tool_result", "toolUseId": "1", "content": []}), None),
            (
                json!({"type": "tool_result", "toolUseId": "1", "content": [], "structuredContent": null}),
                Some(Value::Null),
            ),
        ] {
            let ContentBlock::ToolResult(result) = back_and_forth(&value) else { panic!() };
            assert_eq!(result.structured_content, seen);
        }
    }

    #[test]
    fn the_type_is_printed_first() {
        assert_eq!(serde_json::to_string(&ContentBlock::text("x")).unwrap(), r#"{"type":"text","text":"x"}"#);
    }

    #[test]
    fn what_is_missing_is_named() {
        for (text, message) in [
            (r#"{"text":"x"}"#, "missing field `type`"),
            (r#"{"type":1}"#, "invalid `type`: expected a string, got 1"),
            (r#"{"type":"text"}"#, "in `text`: missing field `text`"),
            (r#"{"type":"image","data":""}"#, "in `image`: missing field `mimeType`"),
            (
                r#"{"type":"resource","resource":{"uri":"a:b"}}"#,
                "in `resource`: resource contents `a:b` have neither",
            ),
            (
                r#"{"type":"tool_use","id":"1","name":"x","input":[]}"#,
                "in `tool_use`: invalid type: sequence",
            ),
            (r#""hello""#, "invalid type: string \"hello\", expected a map"),
        ] {
            let error = serde_json::from_str::<ContentBlock>(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }

    fn any_object() -> impl Strategy<Value = JsonObject> {
        let leaf =
            prop_oneof![Just(Value::Null), any::<i64>().prop_map(Value::from), ".*".prop_map(Value::from)];
        prop::collection::btree_map("[a-z_]{1,8}", leaf, 0..4).prop_map(|map| map.into_iter().collect())
    }

    // Objects that mostly fit, so that both the typed and the unknown arms are reached.
    fn any_block() -> impl Strategy<Value = Value> {
        let kind = prop_oneof![
            Just("text".to_owned()),
            Just("image".to_owned()),
            Just("resource_link".to_owned()),
            Just("tool_use".to_owned()),
            Just("tool_result".to_owned()),
            "[a-z_]{0,12}",
        ];
        (kind, any_object(), any_object(), ".*").prop_map(|(kind, extra, object, text)| {
            let mut block = extra;
            let known = json!({
                "type": kind, "text": text, "data": text, "mimeType": text, "uri": text, "name": text, "id": text,
                "input": object, "toolUseId": text, "content": [], "structuredContent": object.get("a"),
                "_meta": object, "annotations": {"priority": 1, "novel": text},
            });
            block.extend(known.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
            // Known names with values of the wrong type are another test's matter.
            for key in ["size", "icons", "title", "description", "resource"] {
                block.remove(key);
            }
            Value::Object(block)
        })
    }

    proptest! {
        #[test]
        fn any_block_comes_back(value in any_block()) {
            let block: ContentBlock = serde_json::from_value(value.clone()).unwrap();
            prop_assert_eq!(serde_json::to_value(&block).unwrap(), value.clone());
            let again: ContentBlock = serde_json::from_str(&value.to_string()).unwrap();
            prop_assert_eq!(again, block);
        }
    }
}
