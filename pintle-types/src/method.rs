//! Methods by name: what goes with a request, what comes back, what goes with a notification.

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    JsonObject,
    schema::{
        CallToolParams, CallToolResult, CancelledParams, CompleteParams, CompleteResult, CreateMessageParams,
        CreateMessageResult, DiscoverResult, ElicitParams, ElicitResult, ElicitationCompleteParams,
        EmptyParams, EmptyResult, GetPromptParams, GetPromptResult, InitializeParams, InitializeResult,
        ListParams, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListRootsResult,
        ListTasksResult, ListToolsResult, LoggingMessageParams, ProgressParams, ReadResourceParams,
        ReadResourceResult, ResourceUpdatedParams, SetLevelParams, SubscribeParams,
        SubscriptionsAcknowledgedParams, SubscriptionsListenParams, SubscriptionsListenResult, Task,
        TaskParams,
    },
};

/// A request method.
///
/// [`Result`](Self::Result) is the complete result; whether a result is one, its `resultType` says.
///
/// ```
/// use pintle_types::method::{CallTool, Method};
///
/// fn read<M: Method>(result: &str) -> serde_json::Result<M::Result> {
///     serde_json::from_str(result)
/// }
/// let result = read::<CallTool>(r#"{"content":[{"type":"text","text":"3"}]}"#)?;
/// assert_eq!(result.content[0].as_text(), Some("3"));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub trait Method {
    /// The name on the wire.
    const NAME: &'static str;
    /// What goes with it. Absent params read as `{}`.
    type Params: DeserializeOwned + Serialize;
    /// What comes back.
    type Result: DeserializeOwned + Serialize;
}

/// A notification method.
pub trait NotificationKind {
    /// The name on the wire.
    const NAME: &'static str;
    /// What goes with it. Absent params read as `{}`.
    type Params: DeserializeOwned + Serialize;
}

macro_rules! requests {
    ($($name:ident = $method:literal, $params:ty => $result:ty;)*) => {$(
        #[doc = concat!("`", $method, "`.")]
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}
        impl Method for $name {
            const NAME: &'static str = $method;
            type Params = $params;
            type Result = $result;
        }
    )*
        /// The names of these requests.
        pub const REQUESTS: &[&str] = &[$($method),*];
    };
}

macro_rules! notifications {
    ($($name:ident = $method:literal, $params:ty;)*) => {$(
        #[doc = concat!("`", $method, "`.")]
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}
        impl NotificationKind for $name {
            const NAME: &'static str = $method;
            type Params = $params;
        }
    )*
        /// The names of these notifications.
        pub const NOTIFICATIONS: &[&str] = &[$($method),*];
    };
}

requests! {
    // To either side.
    Ping = "ping", EmptyParams => EmptyResult;
    GetTask = "tasks/get", TaskParams => Task;
    GetTaskResult = "tasks/result", TaskParams => JsonObject;
    ListTasks = "tasks/list", ListParams => ListTasksResult;
    CancelTask = "tasks/cancel", TaskParams => Task;
    // To the server.
    Initialize = "initialize", InitializeParams => InitializeResult;
    Discover = "server/discover", EmptyParams => DiscoverResult;
    ListTools = "tools/list", ListParams => ListToolsResult;
    CallTool = "tools/call", CallToolParams => CallToolResult;
    ListResources = "resources/list", ListParams => ListResourcesResult;
    ListResourceTemplates = "resources/templates/list", ListParams => ListResourceTemplatesResult;
    ReadResource = "resources/read", ReadResourceParams => ReadResourceResult;
    Subscribe = "resources/subscribe", SubscribeParams => EmptyResult;
    Unsubscribe = "resources/unsubscribe", SubscribeParams => EmptyResult;
    Listen = "subscriptions/listen", SubscriptionsListenParams => SubscriptionsListenResult;
    ListPrompts = "prompts/list", ListParams => ListPromptsResult;
    GetPrompt = "prompts/get", GetPromptParams => GetPromptResult;
    Complete = "completion/complete", CompleteParams => CompleteResult;
    SetLevel = "logging/setLevel", SetLevelParams => EmptyResult;
    // To the client.
    CreateMessage = "sampling/createMessage", CreateMessageParams => CreateMessageResult;
    ListRoots = "roots/list", EmptyParams => ListRootsResult;
    Elicit = "elicitation/create", ElicitParams => ElicitResult;
}

notifications! {
    // To either side.
    Cancelled = "notifications/cancelled", CancelledParams;
    Progress = "notifications/progress", ProgressParams;
    TaskStatusChanged = "notifications/tasks/status", Task;
    // To the server.
    Initialized = "notifications/initialized", EmptyParams;
    RootsListChanged = "notifications/roots/list_changed", EmptyParams;
    // To the client.
    LoggingMessage = "notifications/message", LoggingMessageParams;
    ToolsListChanged = "notifications/tools/list_changed", EmptyParams;
    PromptsListChanged = "notifications/prompts/list_changed", EmptyParams;
    ResourcesListChanged = "notifications/resources/list_changed", EmptyParams;
    ResourceUpdated = "notifications/resources/updated", ResourceUpdatedParams;
    SubscriptionsAcknowledged = "notifications/subscriptions/acknowledged", SubscriptionsAcknowledgedParams;
    ElicitationComplete = "notifications/elicitation/complete", ElicitationCompleteParams;
}

/// The methods of the tasks extension: some have the names of the session era's, and none has its shapes.
pub mod tasks_extension {
    use super::{Method, NotificationKind};
    use crate::schema::{DetailedTask, EmptyResult, TaskParams, UpdateTaskParams};

    requests! {
        GetTask = "tasks/get", TaskParams => DetailedTask;
        UpdateTask = "tasks/update", UpdateTaskParams => EmptyResult;
        CancelTask = "tasks/cancel", TaskParams => EmptyResult;
    }

    notifications! {
        TaskChanged = "notifications/tasks", DetailedTask;
    }
}
