use std::sync::Arc;

use crate::JsonObject;
use crate::common::{
    Icon, object,
    wire::{self, words},
};
use crate::schema::base::list_result;

object! {
    /// A tool as listed by a server.
    ///
    /// ```
    /// use pintle_types::{JsonObject, schema::Tool};
    ///
    /// let schema: JsonObject =
    ///     serde_json::from_str(r#"{"type":"object","properties":{"city":{"type":"string"}}}"#)?;
    /// let mut weather = Tool::new("weather", schema);
    /// weather.description = Some("The weather of a city".into());
    /// assert_eq!(weather.display_name(), "weather");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[derive(Debug, Default)]
    Tool {
        /// The name of the tool.
        name: String,
        /// The name to display.
        title?: String,
        /// The description for the model.
        description?: String,
        /// The JSON Schema of the arguments, with `"type": "object"`. Tools with the same arguments can share it.
        #[serde(deserialize_with = "wire::shared", serialize_with = "wire::of_shared")]
        input_schema: Arc<JsonObject>,
        /// The JSON Schema of the structured content.
        #[serde(default, deserialize_with = "wire::optional_shared", serialize_with = "wire::of_optional_shared")]
        output_schema?: Arc<JsonObject>,
        /// Hints about the effects of a call.
        annotations?: ToolAnnotations,
        /// The ways in which the tool may be run. One session-era revision only.
        execution?: ToolExecution,
        /// Icons.
        icons?: Vec<Icon>,
        ..meta
    }
    /// Creates a tool whose arguments `input_schema` describes.
    new(name: impl Into<String>, input_schema: impl Into<Arc<JsonObject>>)
}

impl Tool {
    /// Returns the name to display: `title`, else the title in `annotations`, else `name`.
    pub fn display_name(&self) -> &str {
        let annotated = || self.annotations.as_ref()?.title.as_deref();
        self.title.as_deref().or_else(annotated).unwrap_or(&self.name)
    }
}

object! {
    /// Hints about the effects of calling a tool. They are trusted only if the server is.
    #[derive(Debug, Default)]
    ToolAnnotations {
        /// The name to display.
        title?: String,
        /// Whether the tool changes nothing. Absent means false.
        read_only_hint?: bool,
        /// Whether the tool may destroy something. Absent means true.
        destructive_hint?: bool,
        /// Whether calling the tool twice has the effect of calling it once. Absent means false.
        idempotent_hint?: bool,
        /// Whether the tool interacts with an open world, such as the web. Absent means true.
        open_world_hint?: bool,
        ..
    }
    /// Creates an empty set of hints.
    new()
}

object! {
    /// The ways in which a tool may be run.
    #[derive(Debug, Default)]
    ToolExecution {
        /// Whether the tool may be called as a task. Absent means [`TaskSupport::Forbidden`].
        task_support?: TaskSupport,
        ..
    }
    /// Creates a value without members.
    new()
}

words! {
    /// Whether a tool may be called as a task.
    TaskSupport {
        /// The tool must not be called as a task.
        Forbidden = "forbidden",
        /// The tool may be called as a task.
        Optional = "optional",
        /// The tool must be called as a task.
        Required = "required",
    }
}

list_result! {
    /// The result of `tools/list`: one page.
    ListToolsResult {
        /// The tools.
        tools: Tool
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_later_revision_adds_comes_back() {
        let text = r#"{"name":"x","inputSchema":{"$defs":{},"type":"object","x-novel":1},"execution":{"taskSupport":"encouraged"},"novel":{"a":[null]}}"#;
        let tool: Tool = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&tool).unwrap(), text);
    }

    #[test]
    fn what_is_missing_is_named() {
        for (text, message) in [
            (r#"{"inputSchema":{}}"#, "missing field `name`"),
            (r#"{"name":"x"}"#, "missing field `inputSchema`"),
            (r#"{"name":"x","inputSchema":null}"#, "invalid type: null, expected a map"),
        ] {
            let error = serde_json::from_str::<Tool>(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn the_title_is_shown_first() {
        let mut tool = Tool::new("x", JsonObject::new());
        assert_eq!(tool.display_name(), "x");
        tool.annotations = Some(ToolAnnotations { title: Some("X!".into()), ..ToolAnnotations::new() });
        assert_eq!(tool.display_name(), "X!");
        tool.title = Some("Ex".into());
        assert_eq!(tool.display_name(), "Ex");
    }
}
