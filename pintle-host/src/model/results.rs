use pintle::types::schema::CallToolResult;
use serde_json::{Value, json};

use super::{
    ModelApi, ModelTools, ToolCall,
    content::{ContentPart, omitted, parts},
};

impl ModelTools {
    /// The messages that answer a model's calls, to be added after its own message. All calls of one message are answered together.
    ///
    /// | API | text | images | `is_error` |
    /// |---|---|---|---|
    /// | chat completions | a `tool` message each | in a `user` message after them | `Error: ` before the text |
    /// | responses | a `function_call_output` each | within | `Error: ` before the text |
    /// | Anthropic | one `user` message with a `tool_result` each | within | `is_error` |
    /// | Gemini | one `user` content with a `functionResponse` each | as `inlineData` after it, sounds too | `error` instead of `output` |
    ///
    /// Structured content is used for Gemini, and elsewhere if there is no other. What an API does not take is described in words.
    pub fn results(&self, results: &[(ToolCall, CallToolResult)]) -> Vec<Value> {
        if results.is_empty() {
            return Vec::new();
        }
        match self.api {
            ModelApi::OpenAiChat => chat(results),
            ModelApi::OpenAiResponses => results.iter().map(response).collect(),
            ModelApi::Anthropic => {
                let blocks: Vec<Value> = results.iter().map(tool_result).collect();
                vec![json!({"role": "user", "content": blocks})]
            }
            ModelApi::Gemini => {
                let parts: Vec<Value> = results.iter().flat_map(function_response).collect();
                vec![json!({"role": "user", "parts": parts})]
            }
        }
    }
}

fn failed(result: &CallToolResult) -> bool {
    result.is_error == Some(true)
}

/// The text of a result, and its images.
fn text_and_images(result: &CallToolResult) -> (String, Vec<ContentPart>) {
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for part in parts(result) {
        match part.into_text() {
            Ok(text) => texts.push(text),
            Err(image) => images.push(image),
        }
    }
    let text = texts.join("\n");
    (if failed(result) { format!("Error: {text}") } else { text }, images)
}

fn data_url(part: &ContentPart) -> Option<String> {
    match part {
        ContentPart::Image { mime_type, data } => Some(format!("data:{mime_type};base64,{data}")),
        _ => None,
    }
}

fn chat(results: &[(ToolCall, CallToolResult)]) -> Vec<Value> {
    let (mut messages, mut shown) = (Vec::new(), Vec::new());
    for (call, result) in results {
        let (text, images) = text_and_images(result);
        messages.push(json!({"role": "tool", "tool_call_id": call.id, "content": text}));
        let urls: Vec<String> = images.iter().filter_map(data_url).collect();
        if !urls.is_empty() {
            shown.push(json!({"type": "text", "text": format!("Images of `{}`:", call.called)}));
            shown.extend(urls.iter().map(|url| json!({"type": "image_url", "image_url": {"url": url}})));
        }
    }
    if !shown.is_empty() {
        messages.push(json!({"role": "user", "content": shown}));
    }
    messages
}

fn response((call, result): &(ToolCall, CallToolResult)) -> Value {
    let (text, images) = text_and_images(result);
    let mut output = Value::from(text.as_str());
    if !images.is_empty() {
        let images = images.iter().filter_map(data_url);
        let images = images.map(|url| json!({"type": "input_image", "image_url": url}));
        let text = (!text.is_empty()).then(|| json!({"type": "input_text", "text": text}));
        output = text.into_iter().chain(images).collect();
    }
    json!({"type": "function_call_output", "call_id": call.id, "output": output})
}

fn tool_result((call, result): &(ToolCall, CallToolResult)) -> Value {
    let block = |part| match part {
        ContentPart::Image { mime_type, data } => Some(
            json!({"type": "image", "source": {"type": "base64", "media_type": mime_type, "data": data}}),
        ),
        // Its API refuses a text that is empty.
        ContentPart::Text(text) if text.is_empty() => None,
        ContentPart::Text(text) => Some(json!({"type": "text", "text": text})),
        ContentPart::Audio { mime_type, data } => {
            Some(json!({"type": "text", "text": omitted("a sound", &mime_type, &data)}))
        }
    };
    let blocks: Vec<Value> = parts(result).into_iter().filter_map(block).collect();
    let mut printed = json!({"type": "tool_result", "tool_use_id": call.id, "content": blocks});
    if failed(result) {
        printed["is_error"] = true.into();
    }
    printed
}

fn function_response((call, result): &(ToolCall, CallToolResult)) -> Vec<Value> {
    let (mut texts, mut others) = (Vec::new(), Vec::new());
    for part in parts(result) {
        match part {
            ContentPart::Text(text) => texts.push(text),
            ContentPart::Image { mime_type, data } | ContentPart::Audio { mime_type, data } => {
                others.push(json!({"inlineData": {"mimeType": mime_type, "data": data}}));
            }
        }
    }
    let text = texts.join("\n");
    let response = match &result.structured_content {
        _ if failed(result) => json!({"error": text}),
        Some(content @ Value::Object(_)) => content.clone(),
        Some(content) => json!({"output": content}),
        None => json!({"output": text}),
    };
    let mut answer = json!({"name": call.called, "response": response});
    if let Some(id) = &call.id {
        answer["id"] = id.as_str().into();
    }
    let mut answered = vec![json!({"functionResponse": answer})];
    answered.extend(others);
    answered
}
