//! Tools in the form that model APIs take, and the way back: the calls of a model, and results for it.
//!
//! Nothing here sends anything: values go in and out.
//!
//! ```
//! use pintle::{Client, Server, server::tool};
//! use pintle_host::{Group, model::{ModelApi, ModelTools}};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> pintle::Result<()> {
//! let clock = Server::new("clock", "1.0.0").tool(tool("now", || async { "noon" }));
//! let group = Group::new();
//! group.add("clock", Client::new("demo", "0.1.0").connect(clock.in_process()?).await?)?;
//!
//! let tools = ModelTools::new(ModelApi::Anthropic, group.tools().await.iter());
//! let request = json!({"model": "..", "tools": tools.to_json(), "messages": [{"role": "user", "content": "What time is it?"}]});
//! assert_eq!(request["tools"][0]["name"], "clock__now");
//!
//! // What the model answers:
//! let response = json!({"content": [{"type": "tool_use", "id": "toolu_1", "name": "clock__now", "input": {}}]});
//! let mut results = Vec::new();
//! for call in tools.calls(&response) {
//!     let result = group.run(&call).await;
//!     results.push((call, result));
//! }
//! // To be added to the messages, after the model's own.
//! let messages = tools.results(&results);
//! assert_eq!(messages[0]["content"][0]["content"][0]["text"], "noon");
//! # Ok(()) }
//! ```

mod call;
mod content;
mod print;
mod reader;
mod restore;
mod results;
mod shape;

use std::collections::HashMap;

use pintle::types::schema::Tool;
use serde_json::{Value, json};

pub use call::ToolCall;

use crate::group::Naming;
use restore::ArgumentForm;
use shape::ObjectShape;

/// The longest description of a function that OpenAI takes, in characters.
const MAX_DESCRIPTION: usize = 1024;

/// An API of a model that calls functions.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ModelApi {
    /// OpenAI's chat completions, which many others have too.
    OpenAiChat,
    /// OpenAI's responses.
    OpenAiResponses,
    /// Anthropic's messages.
    Anthropic,
    /// Google's Gemini (`generateContent`).
    Gemini,
}

/// Tools for a model: their schemas, its calls, and results for it.
///
/// Schemas are put into a form that the API takes:
///
/// - References are replaced by what they refer to. One that would be replaced within itself accepts anything, with a note in its
///   description; so does what is more than 32 levels deep or comes after 5000 schemas.
/// - A list of types is `anyOf`, and a type or null is nullable; `oneOf` is `anyOf`, `const` is `enum`, `allOf` is merged.
/// - Formats that the API does not know, and limits that it does not have, are in the description.
/// - `if`, `not`, `patternProperties` and the like are left out: the server checks the arguments anyway.
/// - For Gemini, values of enums are texts, and what has no type or no properties is JSON text. [`calls`](Self::calls) undoes that.
///
/// Names that the API does not take are replaced as in [`Naming`]; [`ToolCall::name`] is the tool's own again.
#[derive(Clone, Debug)]
pub struct ModelTools {
    api: ModelApi,
    strict: bool,
    tools: Vec<ModelTool>,
    by_name: HashMap<String, usize>,
}

#[derive(Clone, Debug)]
struct ModelTool {
    /// The tool's own name.
    own_name: String,
    name: String,
    description: Option<String>,
    arguments: ObjectShape,
}

impl ModelTools {
    /// Tools for an API.
    pub fn new<'a>(api: ModelApi, tools: impl IntoIterator<Item = &'a Tool>) -> Self {
        let tools: Vec<&Tool> = tools.into_iter().collect();
        let pairs: Vec<_> = tools.iter().map(|tool| ("", tool.name.as_str())).collect();
        let names = Naming::unprefixed().names(&pairs);
        let named = tools.iter().zip(names).filter_map(|(tool, name)| Some((tool, name?)));
        let tools: Vec<ModelTool> = named
            .map(|(tool, name)| ModelTool {
                own_name: tool.name.clone(),
                name,
                description: tool.description.clone().or_else(|| tool.title.clone()),
                arguments: reader::read(&tool.input_schema),
            })
            .collect();
        let by_name = tools.iter().enumerate().map(|(at, tool)| (tool.name.clone(), at)).collect();
        Self { api, strict: false, tools, by_name }
    }

    /// Uses the strict mode of OpenAI, in which arguments always match the schema: all properties are required, and those that are
    /// optional may be null, which [`calls`](Self::calls) removes. Tools whose schema it cannot express, such as those with free-form
    /// objects, are not strict. Other APIs are not affected.
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// The tools, as the member `tools` of a request.
    ///
    /// ```
    /// use pintle::types::schema::Tool;
    /// use pintle_host::model::{ModelApi, ModelTools};
    /// use serde_json::json;
    ///
    /// let schema = json!({"type": "object", "properties": {"city": {"type": ["string", "null"]}}});
    /// let tool = Tool::new("weather", schema.as_object().unwrap().clone());
    /// let tools = ModelTools::new(ModelApi::Gemini, [&tool]).to_json();
    /// assert_eq!(
    ///     tools,
    ///     json!([{"functionDeclarations": [{
    ///         "name": "weather",
    ///         "parameters": {"type": "OBJECT", "properties": {"city": {"type": "STRING", "nullable": true}}},
    ///     }]}])
    /// );
    /// ```
    pub fn to_json(&self) -> Value {
        let tools: Vec<Value> = self.tools.iter().map(|tool| self.tool_json(tool)).collect();
        match self.api {
            // It refuses an empty list.
            ModelApi::Gemini if tools.is_empty() => json!([]),
            ModelApi::Gemini => json!([{"functionDeclarations": tools}]),
            _ => tools.into(),
        }
    }

    fn tool_json(&self, tool: &ModelTool) -> Value {
        let strict = self.is_strict(tool);
        let mut printed = json!({"name": tool.name});
        if let Some(description) = &tool.description {
            printed["description"] = match self.api {
                ModelApi::OpenAiChat | ModelApi::OpenAiResponses => cut(description, MAX_DESCRIPTION).into(),
                _ => description.as_str().into(),
            };
        }
        match self.api {
            ModelApi::Anthropic => printed["input_schema"] = print::json_schema(&tool.arguments, false),
            ModelApi::Gemini => {
                if let Some(parameters) = print::gemini(&tool.arguments) {
                    printed["parameters"] = parameters;
                }
            }
            ModelApi::OpenAiChat | ModelApi::OpenAiResponses => {
                printed["parameters"] = print::json_schema(&tool.arguments, strict);
                printed["strict"] = strict.into();
            }
        }
        match self.api {
            ModelApi::OpenAiChat => json!({"type": "function", "function": printed}),
            ModelApi::OpenAiResponses => {
                printed["type"] = "function".into();
                printed
            }
            _ => printed,
        }
    }

    fn is_strict(&self, tool: &ModelTool) -> bool {
        let has_mode = matches!(self.api, ModelApi::OpenAiChat | ModelApi::OpenAiResponses);
        self.strict && has_mode && print::fits_strict(&tool.arguments)
    }

    /// The tool of a name that the model uses, and how its arguments differ from the tool's own.
    fn find(&self, name: &str) -> Option<(&ModelTool, ArgumentForm)> {
        let tool = &self.tools[*self.by_name.get(name)?];
        let form = match self.api {
            ModelApi::Gemini => ArgumentForm::Gemini,
            _ if self.is_strict(tool) => ArgumentForm::Strict,
            _ => ArgumentForm::Plain,
        };
        Some((tool, form))
    }
}

/// The first so many characters.
fn cut(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    text.chars().take(limit - 1).chain(['…']).collect()
}
