use serde::{Deserialize, Serialize};

use crate::schema::{
    common::{
        OneOrMany, Role,
        wire::{self, words},
    },
    content::ContentBlock,
    tasks::TaskMetadata,
    tools::Tool,
};
use crate::{JsonObject, Meta};

/// What a server asks the client's model.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateMessageParams {
    /// The conversation so far.
    pub messages: Vec<SamplingMessage>,
    /// Which model would suit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// What the model is told beforehand. The client may change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// What else to tell the model; absent means nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// How freely the model may choose.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "wire::optional_number")]
    pub temperature: Option<f64>,
    /// How much it may say at most.
    #[serde(deserialize_with = "wire::integer")]
    pub max_tokens: i64,
    /// Texts that end it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<String>>,
    /// Whatever the model's provider takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<JsonObject>,
    /// Tools for this request only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// Whether to use them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Asks for a task instead of an answer. One session-era revision only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl CreateMessageParams {
    /// A question without preferences.
    pub fn new(messages: Vec<SamplingMessage>, max_tokens: i64) -> Self {
        Self { messages, max_tokens, ..Self::default() }
    }
}

/// One message of the conversation.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct SamplingMessage {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: OneOrMany<ContentBlock>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl SamplingMessage {
    /// A message of one block or several.
    pub fn new(role: Role, content: impl Into<OneOrMany<ContentBlock>>) -> Self {
        Self { role, content: content.into(), meta: None, extra: JsonObject::new() }
    }
}

/// Which model would suit; advice, no more.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelPreferences {
    /// Models by name, the best first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hints: Option<Vec<ModelHint>>,
    /// How much cost matters, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "wire::optional_number")]
    pub cost_priority: Option<f64>,
    /// How much speed matters, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "wire::optional_number")]
    pub speed_priority: Option<f64>,
    /// How much ability matters, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "wire::optional_number")]
    pub intelligence_priority: Option<f64>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ModelPreferences {
    /// No preference yet.
    pub fn new() -> Self {
        Self::default()
    }
}

/// A model, by name or part of its name.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ModelHint {
    /// The name or part of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ModelHint {
    /// Any model with `name` in its name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::default() }
    }
}

/// Whether the model is to use tools.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ToolChoice {
    /// Absent means [`ToolChoiceMode::Auto`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolChoiceMode>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ToolChoice {
    /// The model decides.
    pub fn new() -> Self {
        Self::default()
    }
}

words! {
    /// Whether the model is to use tools.
    ToolChoiceMode {
        /// As it likes.
        Auto = "auto",
        /// At least one.
        Required = "required",
        /// None.
        None = "none",
    }
}

words! {
    /// Which servers' context the client is to add.
    IncludeContext {
        /// None.
        None = "none",
        /// That of the server that asks.
        ThisServer = "thisServer",
        /// That of all servers.
        AllServers = "allServers",
    }
}

/// What the model said.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateMessageResult {
    /// Who speaks; the assistant, as a rule.
    pub role: Role,
    /// What is said.
    pub content: OneOrMany<ContentBlock>,
    /// Which model it was.
    pub model: String,
    /// Why it ended, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl CreateMessageResult {
    /// What `model` said as the assistant.
    pub fn new(model: impl Into<String>, content: impl Into<OneOrMany<ContentBlock>>) -> Self {
        Self {
            role: Role::Assistant,
            content: content.into(),
            model: model.into(),
            stop_reason: None,
            meta: None,
            extra: JsonObject::new(),
        }
    }

    /// The text of what was said, without the tools that the model wants to use.
    ///
    /// ```
    /// use pintle_types::schema::{ContentBlock, CreateMessageResult};
    ///
    /// let said = CreateMessageResult::new("some-model", ContentBlock::text("Hello."));
    /// assert_eq!(said.text(), "Hello.");
    /// ```
    pub fn text(&self) -> String {
        self.content.as_slice().iter().filter_map(ContentBlock::as_text).collect()
    }
}

words! {
    /// Why a model stopped.
    StopReason {
        /// It had said all.
        EndTurn = "endTurn",
        /// It came to a stop sequence.
        StopSequence = "stopSequence",
        /// It was at `maxTokens`.
        MaxTokens = "maxTokens",
        /// It wants a tool to be called.
        ToolUse = "toolUse",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_comes_back_in_its_form() {
        for text in [
            r#"{"role":"assistant","content":{"type":"text","text":"Paris"},"model":"m","stopReason":"endTurn"}"#,
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"x","input":{}}],"model":"m","stopReason":"refusal"}"#,
        ] {
            let result: CreateMessageResult = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&result).unwrap(), text);
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let error =
            serde_json::from_str::<CreateMessageParams>(r#"{"messages":[]}"#).unwrap_err().to_string();
        assert!(error.starts_with("missing field `maxTokens`"), "{error}");
    }
}
