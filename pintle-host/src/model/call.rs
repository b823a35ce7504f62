use pintle::types::{
    JsonObject,
    schema::{CallToolResult, ContentBlock},
};
use serde_json::Value;

use super::{ModelApi, ModelTools, restore};
use crate::group::Group;

/// A call of a tool that a model wants. From [`ModelTools::calls`].
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The id that the result has to name. Gemini does not always have one.
    pub id: Option<String>,
    /// The tool's own name, or the model's if there is no such tool.
    pub name: String,
    /// The arguments, as the tool's schema describes them; or why they cannot be read, for the model.
    pub arguments: Result<JsonObject, String>,
    /// The name that the model used.
    pub(super) called: String,
}

impl ModelTools {
    /// The calls in a model's answer: in a whole response, or in its message.
    ///
    /// A call of a tool that does not exist, or with arguments that are no JSON object, is among them: the model has to be answered.
    pub fn calls(&self, response: &Value) -> Vec<ToolCall> {
        let (found, parts): (Option<&Value>, CallParts) = match self.api {
            ModelApi::OpenAiChat => {
                let message = response.pointer("/choices/0/message").unwrap_or(response);
                (message.get("tool_calls"), chat_call)
            }
            ModelApi::OpenAiResponses => (Some(response.get("output").unwrap_or(response)), response_call),
            ModelApi::Anthropic => (Some(response.get("content").unwrap_or(response)), tool_use),
            ModelApi::Gemini => {
                let content = response.pointer("/candidates/0/content").unwrap_or(response);
                (content.get("parts"), function_call)
            }
        };
        let found = found.and_then(Value::as_array).into_iter().flatten();
        found.filter_map(parts).map(|(id, name, arguments)| self.call(id, name, arguments)).collect()
    }

    /// A call, for those who take apart a model's answer themselves: a stream of it, for example.
    ///
    /// The arguments are an object, or the text of one.
    ///
    /// ```
    /// use pintle::types::schema::Tool;
    /// use pintle_host::model::{ModelApi, ModelTools};
    /// use serde_json::json;
    ///
    /// let tools = ModelTools::new(ModelApi::OpenAiChat, []);
    /// let call = tools.call(Some("call_1"), &json!("git__log"), &json!(r#"{"limit": 3}"#));
    /// assert_eq!(call.arguments.unwrap()["limit"], 3);
    /// ```
    pub fn call(&self, id: Option<&str>, name: &Value, arguments: &Value) -> ToolCall {
        let called = name.as_str().unwrap_or_default();
        let mut arguments = read(arguments);
        let mut name = called.to_owned();
        if let Some((tool, form)) = self.find(called) {
            name.clone_from(&tool.own_name);
            if let Ok(arguments) = &mut arguments {
                restore::restore(&tool.arguments, arguments, form);
            }
        }
        ToolCall { id: id.map(str::to_owned), name, arguments, called: called.to_owned() }
    }
}

/// Takes a call apart: its id, name and arguments; `None` if it is something else.
type CallParts = fn(&Value) -> Option<(Option<&str>, &Value, &Value)>;

fn chat_call(call: &Value) -> Option<(Option<&str>, &Value, &Value)> {
    let function = call.get("function")?;
    Some((call["id"].as_str(), &function["name"], &function["arguments"]))
}

fn response_call(item: &Value) -> Option<(Option<&str>, &Value, &Value)> {
    let is_call = item["type"] == "function_call";
    is_call.then(|| (item["call_id"].as_str(), &item["name"], &item["arguments"]))
}

fn tool_use(block: &Value) -> Option<(Option<&str>, &Value, &Value)> {
    let is_call = block["type"] == "tool_use";
    is_call.then(|| (block["id"].as_str(), &block["name"], &block["input"]))
}

fn function_call(part: &Value) -> Option<(Option<&str>, &Value, &Value)> {
    let call = part.get("functionCall")?;
    Some((call["id"].as_str(), &call["name"], &call["args"]))
}

/// Reads arguments. None at all are an empty object.
fn read(arguments: &Value) -> Result<JsonObject, String> {
    match arguments {
        Value::Null => Ok(JsonObject::new()),
        Value::Object(arguments) => Ok(arguments.clone()),
        Value::String(text) if text.trim().is_empty() => Ok(JsonObject::new()),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Object(arguments)) => Ok(arguments),
            Ok(_) => {
                Err("the arguments are not a JSON object: send an object with the tool's properties"
                    .to_owned())
            }
            Err(error) => {
                Err(format!("the arguments are not valid JSON: {error}: send them again, complete"))
            }
        },
        _ => Err("the arguments are not a JSON object: send an object with the tool's properties".to_owned()),
    }
}

impl Group {
    /// Runs a call of a model. What goes wrong becomes a result with `is_error`, for the model: every call has to be answered.
    pub async fn run(&self, call: &ToolCall) -> CallToolResult {
        let result = match &call.arguments {
            Ok(arguments) => self.call_tool(&call.name, arguments).await.map_err(|error| error.to_string()),
            Err(reason) => Err(reason.clone()),
        };
        result.unwrap_or_else(|reason| {
            let mut failed = CallToolResult::new(vec![ContentBlock::text(reason)]);
            failed.is_error = Some(true);
            failed
        })
    }
}
