use serde::{Deserialize, Serialize};

use crate::JsonObject;

/// What a client offers.
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
    /// It has roots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roots: Option<RootsCapability>,
    /// It has a model that may be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingCapability>,
    /// It has a user who may be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationCapability>,
    /// It runs requests as tasks. One session-era revision only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<ClientTasksCapability>,
    /// Things of no standard, by name.
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
    /// Nothing offered yet.
    pub fn new() -> Self {
        Self::default()
    }
}

/// How a client offers roots.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RootsCapability {
    /// Whether it tells of changes. Session era only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl RootsCapability {
    /// Roots, without news of changes.
    pub fn new() -> Self {
        Self::default()
    }
}

/// How a client offers its model.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct SamplingCapability {
    /// It can add the context of servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<JsonObject>,
    /// Its model can use tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<JsonObject>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl SamplingCapability {
    /// A plain model.
    pub fn new() -> Self {
        Self::default()
    }
}

/// How a client offers its user. With neither mode named, forms are meant.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ElicitationCapability {
    /// It can show a form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<JsonObject>,
    /// It can send the user to a URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<JsonObject>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ElicitationCapability {
    /// Forms, without saying so.
    pub fn new() -> Self {
        Self::default()
    }
}

/// What a client can run as tasks.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ClientTasksCapability {
    /// It answers `tasks/list`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<JsonObject>,
    /// It answers `tasks/cancel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel: Option<JsonObject>,
    /// Which requests may be tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<ClientTaskRequests>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ClientTasksCapability {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }
}

/// Which requests to a client may be tasks.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ClientTaskRequests {
    /// Of sampling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingTasks>,
    /// Of elicitation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationTasks>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ClientTaskRequests {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }
}

/// Which sampling requests may be tasks.
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
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }
}

/// Which elicitation requests may be tasks.
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
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }
}

/// What a server offers.
///
/// A capability is offered by being there, even when it is `{}`.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ServerCapabilities {
    /// It has tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolsCapability>,
    /// It has resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesCapability>,
    /// It has prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts: Option<PromptsCapability>,
    /// It completes arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completions: Option<JsonObject>,
    /// It sends log messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logging: Option<JsonObject>,
    /// It runs requests as tasks. One session-era revision only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<ServerTasksCapability>,
    /// Things of no standard, by name.
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
    /// Nothing offered yet.
    pub fn new() -> Self {
        Self::default()
    }
}

/// How a server offers tools.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolsCapability {
    /// Whether it tells of changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ToolsCapability {
    /// Tools, without news of changes.
    pub fn new() -> Self {
        Self::default()
    }
}

/// How a server offers prompts.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptsCapability {
    /// Whether it tells of changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl PromptsCapability {
    /// Prompts, without news of changes.
    pub fn new() -> Self {
        Self::default()
    }
}

/// How a server offers resources.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourcesCapability {
    /// Whether single resources can be watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscribe: Option<bool>,
    /// Whether it tells of changes of the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ResourcesCapability {
    /// Resources, without news of changes.
    pub fn new() -> Self {
        Self::default()
    }
}

/// What a server can run as tasks.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ServerTasksCapability {
    /// It answers `tasks/list`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<JsonObject>,
    /// It answers `tasks/cancel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel: Option<JsonObject>,
    /// Which requests may be tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<ServerTaskRequests>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ServerTasksCapability {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }
}

/// Which requests to a server may be tasks.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ServerTaskRequests {
    /// Of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolTasks>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ServerTaskRequests {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }
}

/// Which tool requests may be tasks.
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
    /// None yet.
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
