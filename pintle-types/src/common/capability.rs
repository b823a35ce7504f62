use serde::{Deserialize, Serialize};

use crate::JsonObject;

/// The capabilities of a client.
///
/// A capability is offered by being there, even when it is `{}`.
///
/// ```
/// use pintle_types::schema::{ClientCapabilities, ElicitationCapability};
///
/// let mut offered = ClientCapabilities::new();
/// offered.elicitation = Some(ElicitationCapability::new());
/// assert_eq!(serde_json::to_string(&offered)?, r#"{"elicitation":{}}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ClientCapabilities {
    /// Support for roots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roots: Option<RootsCapability>,
    /// Support for sampling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingCapability>,
    /// Support for elicitation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationCapability>,
    /// Support for tasks. One session-era revision only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<ClientTasksCapability>,
    /// Experimental capabilities, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experimental: Option<JsonObject>,
    /// Settings of extensions, by identifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extensions: Option<JsonObject>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ClientCapabilities {
    /// Creates capabilities without any support.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The roots capability of a client.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RootsCapability {
    /// Whether changes of the list are notified. Session era only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl RootsCapability {
    /// Creates the capability without notifications of changes.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The sampling capability of a client.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct SamplingCapability {
    /// Support for including the context of servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<JsonObject>,
    /// Support for tools in sampling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<JsonObject>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl SamplingCapability {
    /// Creates the capability of a model without tools or context.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The elicitation capability of a client. If no mode is named, forms are meant.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ElicitationCapability {
    /// Support for forms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<JsonObject>,
    /// Support for URLs to open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<JsonObject>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ElicitationCapability {
    /// Creates the capability without modes, which means forms.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The tasks capability of a client.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ClientTasksCapability {
    /// Support for `tasks/list`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<JsonObject>,
    /// Support for `tasks/cancel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel: Option<JsonObject>,
    /// The requests that may be run as tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<ClientTaskRequests>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ClientTasksCapability {
    /// Creates a value without members.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The requests to a client that may be run as tasks.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ClientTaskRequests {
    /// Sampling requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingTasks>,
    /// Elicitation requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationTasks>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ClientTaskRequests {
    /// Creates the capability without options.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The sampling requests that may be run as tasks.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SamplingTasks {
    /// `sampling/createMessage`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create_message: Option<JsonObject>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl SamplingTasks {
    /// Creates the capability without options.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The elicitation requests that may be run as tasks.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ElicitationTasks {
    /// `elicitation/create`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create: Option<JsonObject>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ElicitationTasks {
    /// Creates the capability without options.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The capabilities of a server.
///
/// A capability is offered by being there, even when it is `{}`.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ServerCapabilities {
    /// Support for tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolsCapability>,
    /// Support for resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesCapability>,
    /// Support for prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts: Option<PromptsCapability>,
    /// Support for completing arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completions: Option<JsonObject>,
    /// Support for log messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logging: Option<JsonObject>,
    /// Support for tasks. One session-era revision only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<ServerTasksCapability>,
    /// Experimental capabilities, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experimental: Option<JsonObject>,
    /// Settings of extensions, by identifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extensions: Option<JsonObject>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ServerCapabilities {
    /// Creates capabilities without any support.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The tools capability of a server.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolsCapability {
    /// Whether changes of the list are notified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ToolsCapability {
    /// Creates the capability without notifications of changes.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The prompts capability of a server.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptsCapability {
    /// Whether changes of the list are notified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl PromptsCapability {
    /// Creates the capability without notifications of changes.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The resources capability of a server.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourcesCapability {
    /// Whether clients can subscribe to single resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscribe: Option<bool>,
    /// Whether changes of the list are notified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ResourcesCapability {
    /// Creates the capability without notifications of changes.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The tasks capability of a server.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ServerTasksCapability {
    /// Support for `tasks/list`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<JsonObject>,
    /// Support for `tasks/cancel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel: Option<JsonObject>,
    /// The requests that may be run as tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<ServerTaskRequests>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ServerTasksCapability {
    /// Creates a value without members.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The requests to a server that may be run as tasks.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ServerTaskRequests {
    /// Tool requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolTasks>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ServerTaskRequests {
    /// Creates the capability without options.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The tool requests that may be run as tasks.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ToolTasks {
    /// `tools/call`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<JsonObject>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ToolTasks {
    /// Creates the capability without options.
    pub fn new() -> Self {
        Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_comes_back() {
        for text in [
            "{}",
            r#"{"roots":{"listChanged":true},"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}},"tasks":{"cancel":{},"requests":{"sampling":{"createMessage":{}},"elicitation":{"create":{}}}}}"#,
            r#"{"experimental":{"x":true},"extensions":{"com.example/a":{"b":1}},"telepathy":{"range":3}}"#,
        ] {
            let capabilities: ClientCapabilities = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&capabilities).unwrap(), text);
        }
        let text = r#"{"tools":{"listChanged":false},"resources":{"subscribe":true,"novel":1},"prompts":{},"completions":{},"logging":{},"tasks":{"list":{},"requests":{"tools":{"call":{}}}}}"#;
        let capabilities: ServerCapabilities = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&capabilities).unwrap(), text);
    }
}
