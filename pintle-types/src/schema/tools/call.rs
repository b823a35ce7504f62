use serde_json::Value;

use crate::common::{object, wire};
use crate::schema::{
    base::{InputResponses, ResultType, redacted_debug},
    content::ContentBlock,
    tasks::TaskMetadata,
};
use crate::{JsonObject, Meta, RawObject, raw::ObjectWriter};

object! {
    /// The params of `tools/call`.
    #[derive(Default)]
    CallToolParams {
        /// The tool.
        name: String,
        /// The arguments. Absent and `{}` are distinguished.
        arguments?: JsonObject,
        /// Requests a task instead of an answer. One session-era revision only.
        task?: TaskMetadata,
        /// Responses to the input requests of the previous round.
        input_responses?: InputResponses,
        /// The `requestState` of the previous round, unchanged.
        request_state?: String,
        ..meta
    }
    /// Creates a call without arguments.
    new(name: impl Into<String>)
}

redacted_debug!(CallToolParams { name, arguments, task, meta, extra; input_responses, request_state });

object! {
    /// The result of `tools/call`.
    ///
    /// ```
    /// use pintle_types::schema::{CallToolResult, ContentBlock};
    ///
    /// let mut result = CallToolResult::new(vec![ContentBlock::text("no such city")]);
    /// result.is_error = Some(true);
    /// # assert!(result.structured_content.is_none());
    /// ```
    #[derive(Debug, Default)]
    CallToolResult {
        /// The content for the model. Some servers leave it out.
        #[serde(default)]
        content: Vec<ContentBlock>,
        /// The structured result. `Some(Null)` is a value and differs from `None`.
        #[serde(default, deserialize_with = "wire::present")]
        structured_content?: Value,
        /// Whether the tool failed. The reason is in `content`.
        is_error?: bool,
        /// The type of the result. Absent means [`ResultType::Complete`].
        result_type?: ResultType,
        ..meta
    }
    /// Creates a result that is not an error.
    new(content: Vec<ContentBlock>)
}

impl CallToolResult {
    /// Returns the text of all text blocks, separated by line breaks.
    ///
    /// ```
    /// use pintle_types::schema::{CallToolResult, ContentBlock};
    ///
    /// let result = CallToolResult::new(vec![ContentBlock::text("one"), ContentBlock::text("two")]);
    /// assert_eq!(result.text(), "one\ntwo");
    /// ```
    pub fn text(&self) -> String {
        let mut texts = self.content.iter().filter_map(ContentBlock::as_text);
        let mut all = texts.next().unwrap_or_default().to_owned();
        texts.for_each(|text| all.extend(["\n", text]));
        all
    }

    /// Decodes a result, as [`RawObject::decode`] does, at less cost: its members are known.
    ///
    /// `meta` reads `_meta`, which a server repeats with every result; what it does not read is read here.
    ///
    /// ```
    /// use pintle_types::{RawObject, schema::CallToolResult};
    ///
    /// let raw: RawObject = r#"{"content":[{"type":"text","text":"3"}]}"#.parse()?;
    /// assert_eq!(CallToolResult::from_raw(&raw, |_| None)?.text(), "3");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// It is none.
    pub fn from_raw(
        raw: &RawObject,
        meta: impl FnOnce(&str) -> Option<Meta>,
    ) -> Result<Self, serde_json::Error> {
        // `decode` has the message for what is wrong.
        Self::from_members(raw, meta).map_or_else(|| raw.decode(), Ok)
    }

    /// Decodes a result that has only members which this crate knows, member by member.
    fn from_members(raw: &RawObject, read: impl FnOnce(&str) -> Option<Meta>) -> Option<Self> {
        let (mut content, mut structured_content, mut is_error) = (None, None, None);
        let (mut result_type, mut meta, mut read) = (None, None, Some(read));
        for (name, text) in raw.iter() {
            match name {
                "content" => content = Some(blocks(text)?),
                "structuredContent" => structured_content = Some(serde_json::from_str(text).ok()?),
                "isError" => is_error = serde_json::from_str(text).ok()?,
                "resultType" if text == "\"complete\"" => result_type = Some(ResultType::Complete),
                "_meta" => meta = Some(read.take()?(text).or_else(|| serde_json::from_str(text).ok())?),
                _ => return None,
            }
        }
        let extra = JsonObject::new();
        Some(Self { content: content?, structured_content, is_error, result_type, meta, extra })
    }

    /// Prints the result: the text of [`RawObject::from_serialize`], at less cost.
    ///
    /// ```
    /// use pintle_types::schema::{CallToolResult, ContentBlock};
    ///
    /// let result = CallToolResult::new(vec![ContentBlock::text("3")]);
    /// assert_eq!(result.to_raw()?.as_str(), r#"{"content":[{"type":"text","text":"3"}]}"#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A part of it cannot be printed.
    pub fn to_raw(&self) -> Result<RawObject, serde_json::Error> {
        let Self { content, structured_content, is_error, result_type, meta, extra } = self;
        // With room for what is written around it later.
        let room: usize = content.iter().map(ContentBlock::room).sum();
        let mut object = ObjectWriter::with_capacity(room + 256);
        object.begin("content");
        for (at, block) in content.iter().enumerate() {
            object.write(if at == 0 { "[" } else { "," });
            block.write(&mut object)?;
        }
        object.write(if content.is_empty() { "[]" } else { "]" });
        object.end();
        object.optional("structuredContent", structured_content.as_ref())?;
        object.optional("isError", is_error.as_ref())?;
        object.optional("resultType", result_type.as_ref())?;
        object.optional("_meta", meta.as_ref())?;
        for (name, value) in extra {
            object.json(name, value)?;
        }
        Ok(object.finish())
    }

    /// Prints the result that consists of a single text block.
    ///
    /// ```
    /// use pintle_types::schema::CallToolResult;
    ///
    /// assert_eq!(CallToolResult::raw_text("3").as_str(), r#"{"content":[{"type":"text","text":"3"}]}"#);
    /// ```
    pub fn raw_text(text: &str) -> RawObject {
        // As much as above.
        let mut object = ObjectWriter::with_capacity(text.len() + text.len() / 8 + 384);
        object.begin("content");
        object.write(r#"[{"type":"text","text":"#);
        object.write_text(text);
        object.write("}]");
        object.end();
        object.finish()
    }
}

/// Reads the content of a result. Of a single text block, only the text has to be read.
fn blocks(text: &str) -> Option<Vec<ContentBlock>> {
    let only = text.strip_prefix(r#"[{"type":"text","text":"#).and_then(|text| text.strip_suffix("}]"));
    match only.and_then(|text| serde_json::from_str::<String>(text).ok()) {
        Some(text) => Some(vec![ContentBlock::text(text)]),
        None => serde_json::from_str(text).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_a_structured_result() {
        for (text, seen) in
            [(r#"{"content":[]}"#, None), (r#"{"content":[],"structuredContent":null}"#, Some(Value::Null))]
        {
            let result: CallToolResult = serde_json::from_str(text).unwrap();
            assert_eq!(result.structured_content, seen);
            assert_eq!(serde_json::to_string(&result).unwrap(), text);
        }
    }

    #[test]
    fn a_result_is_printed_as_serde_prints_it() {
        let all = r#"{"content":[
            {"type":"text","text":"say \"ä\"\n\u0001"},
            {"type":"text","text":"x","annotations":{"priority":1}},
            {"type":"text","text":"x","novel":1},
            {"type":"image","data":"AA==","mimeType":"image/png"},
            {"type":"image","data":"AA==","mimeType":"image/png","_meta":{}},
            {"type":"novel","a":[1]}
        ],"structuredContent":{"a":[1]},"isError":true,"resultType":"complete","_meta":{"a/b":1},"no\"vel":null}"#;
        for text in [all, r#"{"content":[]}"#, r#"{"content":[],"isError":false}"#] {
            let result: CallToolResult = serde_json::from_str(text).unwrap();
            let printed = result.to_raw().unwrap();
            assert_eq!(printed.as_str(), serde_json::to_string(&result).unwrap());
            let read: RawObject = printed.as_str().parse().unwrap();
            assert!(printed.iter().eq(read.iter()), "{printed:?}");
        }
    }

    #[test]
    fn a_result_is_read_as_serde_reads_it() {
        let one = r#"{"resultType":"complete","content":[{"type":"text","text":"a\"}]\n"}],"isError":true}"#;
        for text in [
            one,
            r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"_meta":{"a/b":1}}"#,
            r#"{"content":[{"type":"text","text":"a","novel":1}],"structuredContent":null}"#,
            r#"{"content":[{"type":"text","text":"a"} ],"isError":null}"#,
            r#"{"content":[{"type":"text","text":"a","text":"b"}]}"#,
            r#"{"content":[],"_meta":null}"#,
            r#"{"content":[],"novel":1,"resultType":"task"}"#,
            r#"{"content":[{"type":"text","text":7}]}"#,
            r#"{"content":[{"type":"text","text":"\ud800"}]}"#,
            r#"{"content":[],"_meta":[]}"#,
            r#"{"isError":true}"#,
        ] {
            let raw: RawObject = text.parse().unwrap();
            let read = CallToolResult::from_raw(&raw, |_| None).map_err(|error| error.to_string());
            assert_eq!(read, raw.decode().map_err(|error| error.to_string()), "{text}");
        }
        let raw: RawObject = r#"{"content":[],"_meta":{"a/b":1}}"#.parse().unwrap();
        let mut known = Meta::new();
        known.insert("a/b", 2);
        let read = CallToolResult::from_raw(&raw, |_| Some(known.clone())).unwrap();
        assert_eq!(read.meta, Some(known));
    }

    #[test]
    fn a_result_without_content_has_none() {
        for text in ["{}", r#"{"structuredContent":{"a":1}}"#, r#"{"acme/x":1}"#] {
            let raw: RawObject = text.parse().unwrap();
            assert_eq!(CallToolResult::from_raw(&raw, |_| None).unwrap().content, [], "{text}");
        }
    }

    #[test]
    fn a_text_is_printed_as_the_result_that_has_only_it() {
        for text in ["", "short", "\"", "\"_meta\"\n"] {
            let result = CallToolResult::new(vec![ContentBlock::text(text)]);
            assert_eq!(CallToolResult::raw_text(text), result.to_raw().unwrap());
        }
    }

    #[test]
    fn no_arguments_are_not_empty_arguments() {
        for (text, seen) in
            [(r#"{"name":"x"}"#, None), (r#"{"name":"x","arguments":{}}"#, Some(JsonObject::new()))]
        {
            let params: CallToolParams = serde_json::from_str(text).unwrap();
            assert_eq!(params.arguments, seen);
            assert_eq!(serde_json::to_string(&params).unwrap(), text);
        }
    }
}
