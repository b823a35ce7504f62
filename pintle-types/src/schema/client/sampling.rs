use serde::{Deserialize, Serialize};

use crate::common::{
    OneOrMany, Role,
    wire::{self, words},
};
use crate::schema::{content::ContentBlock, tasks::TaskMetadata, tools::Tool};
use crate::{JsonObject, Meta};

/// The params of `sampling/createMessage`.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateMessageParams {
    /// The conversation so far.
    pub messages: Vec<SamplingMessage>,
    /// Preferences for the choice of a model. They are advice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// The system prompt. The client may change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The context to include for the model. Absent means none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// The sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "wire::optional_number")]
    pub temperature: Option<f64>,
    /// The maximum number of tokens to generate.
    #[serde(deserialize_with = "wire::integer")]
    pub max_tokens: i64,
    /// Sequences that stop the generation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<String>>,
    /// Metadata for the provider of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<JsonObject>,
    /// Tools that the model may use for this request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// Whether the model may or must use tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Requests a task instead of an answer. One session-era revision only.
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
    /// Creates params without preferences.
    pub fn new(messages: Vec<SamplingMessage>, max_tokens: i64) -> Self {
        Self { messages, max_tokens, ..Self::default() }
    }
}

/// One message of the conversation.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct SamplingMessage {
    /// The role of the speaker.
    pub role: Role,
    /// The content.
    pub content: OneOrMany<ContentBlock>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl SamplingMessage {
    /// Creates a message of one or several blocks.
    pub fn new(role: Role, content: impl Into<OneOrMany<ContentBlock>>) -> Self {
        Self { role, content: content.into(), meta: None, extra: JsonObject::new() }
    }
}

/// Preferences for the choice of a model. They are advice.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelPreferences {
    /// Models by name, in order of preference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hints: Option<Vec<ModelHint>>,
    /// The importance of cost, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "wire::optional_number")]
    pub cost_priority: Option<f64>,
    /// The importance of speed, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "wire::optional_number")]
    pub speed_priority: Option<f64>,
    /// The importance of intelligence, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "wire::optional_number")]
    pub intelligence_priority: Option<f64>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ModelPreferences {
    /// Creates preferences without a preference.
    pub fn new() -> Self {
        Self::default()
    }
}

/// A model, by name or part of its name.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ModelHint {
    /// The name of a model, or a part of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ModelHint {
    /// Creates a hint at any model whose name contains `name`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::default() }
    }
}

/// Whether the model may or must use tools.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ToolChoice {
    /// The mode. Absent means [`ToolChoiceMode::Auto`].
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
    /// Whether the model may or must use tools.
    ToolChoiceMode {
        /// The model may use tools.
        Auto = "auto",
        /// The model must use at least one tool.
        Required = "required",
        /// None.
        None = "none",
    }
}

words! {
    /// The servers whose context the client adds.
    IncludeContext {
        /// None.
        None = "none",
        /// The context of the server that asks.
        ThisServer = "thisServer",
        /// The context of all connected servers.
        AllServers = "allServers",
    }
}

/// The result of `sampling/createMessage`.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateMessageResult {
    /// The role of the speaker, usually the assistant.
    pub role: Role,
    /// The content.
    pub content: OneOrMany<ContentBlock>,
    /// The name of the model.
    pub model: String,
    /// The reason for which the model stopped, if known.
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
    /// Creates a message of the assistant, generated by `model`.
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

    /// Returns the text of the message, without tool uses.
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
    /// The reason for which a model stopped.
    StopReason {
        /// The model finished its turn.
        EndTurn = "endTurn",
        /// A stop sequence was generated.
        StopSequence = "stopSequence",
        /// The limit `maxTokens` was reached.
        MaxTokens = "maxTokens",
        /// The model wants to use a tool.
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
