//! The methods of the protocol, with the types of their params and results.

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
/// [`Result`](Self::Result) is the complete result; `resultType` is whether a result is complete.
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
    /// The name of the method.
    const NAME: &'static str;
    /// The type of the params. Absent params are read as `{}`.
    type Params: DeserializeOwned + Serialize;
    /// The type of the result.
    type Result: DeserializeOwned + Serialize;
}

/// A notification method.
pub trait NotificationKind {
    /// The name of the method.
    const NAME: &'static str;
    /// The type of the params. Absent params are read as `{}`.
    type Params: DeserializeOwned + Serialize;
}

/// A row of the method table: what this crate and those above know of a method by its name alone.
///
/// ```
/// use pintle_types::method::{self, Target};
///
/// let call = method::find("tools/call").unwrap();
/// assert_eq!(call.target, Some(Target::Tool));
/// assert!(call.may_ask && !call.cacheable);
/// assert!(method::find("acme/count").is_none());
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct MethodInfo {
    /// The name of the method.
    pub name: &'static str,
    /// The role that sends it.
    pub sender: Sender,
    /// The capability that the receiver has to declare for it.
    pub capability: Option<Capability>,
    /// The kind of entry that its params name.
    pub target: Option<Target>,
    /// Whether the `Mcp-Name` header repeats the name of the target.
    pub named_in_header: bool,
    /// Whether its handler may ask the client for input, so that the result may be `input_required`.
    pub may_ask: bool,
    /// Whether its result has a cache lifetime.
    pub cacheable: bool,
}

impl MethodInfo {
    const fn sent_by(name: &'static str, sender: Sender) -> Self {
        Self {
            name,
            sender,
            capability: None,
            target: None,
            named_in_header: false,
            may_ask: false,
            cacheable: false,
        }
    }
}

/// The role that sends a message.
#[expect(clippy::exhaustive_enums, reason = "there are two roles")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sender {
    /// The client.
    Client,
    /// The server.
    Server,
    /// Either of them.
    Both,
}

/// A capability that a method depends on.
#[expect(clippy::exhaustive_enums, reason = "code that decides what is offered must handle each")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Capability {
    /// `tools` of a server.
    Tools,
    /// `prompts` of a server.
    Prompts,
    /// `resources` of a server.
    Resources,
    /// `resources.subscribe` of a server.
    ResourceSubscriptions,
    /// `completions` of a server.
    Completions,
    /// `logging` of a server.
    Logging,
    /// Any of the capabilities by which a server announces changes.
    Changes,
    /// `tasks`: in the stateless era an extension.
    Tasks,
    /// `sampling` of a client.
    Sampling,
    /// `roots` of a client.
    Roots,
    /// `elicitation` of a client.
    Elicitation,
}

/// The kind of entry that the params of a request name.
#[expect(clippy::exhaustive_enums, reason = "code that protects entries must handle each")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Target {
    /// A tool, by `name`.
    Tool,
    /// A prompt, by `name`.
    Prompt,
    /// A resource, by `uri`.
    Resource,
    /// The prompt or template that an argument is completed for, by `ref`.
    Completed,
    /// Resources to be watched, in `notifications`.
    Watched,
    /// A task, by `taskId`.
    Task,
}

impl Target {
    /// The member of `params` that is the name, where a single string is.
    pub const fn member(self) -> Option<&'static str> {
        match self {
            Self::Tool | Self::Prompt => Some("name"),
            Self::Resource => Some("uri"),
            Self::Task => Some("taskId"),
            Self::Completed | Self::Watched => None,
        }
    }
}

/// Finds the row of a method that some revision of the protocol defines.
pub fn find(name: &str) -> Option<&'static MethodInfo> {
    REQUESTS.iter().chain(NOTIFICATIONS).find(|row| row.name == name)
}

macro_rules! requests {
    ($($name:ident $constant:ident = $method:literal, $params:ty => $result:ty,
        $sender:ident { $($column:ident: $value:expr),* };)*) => {$(
        #[doc = concat!("`", $method, "`.")]
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}
        impl Method for $name {
            const NAME: &'static str = $constant;
            type Params = $params;
            type Result = $result;
        }
        #[doc = concat!("The name `", $method, "`.")]
        pub const $constant: &str = $method;
    )*
        /// The rows of these requests.
        pub static REQUESTS: &[MethodInfo] = &[$(
            MethodInfo { $($column: $value,)* ..MethodInfo::sent_by($constant, Sender::$sender) }
        ),*];
    };
}

macro_rules! notifications {
    ($($name:ident $constant:ident = $method:literal, $params:ty, $sender:ident;)*) => {$(
        #[doc = concat!("`", $method, "`.")]
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}
        impl NotificationKind for $name {
            const NAME: &'static str = $constant;
            type Params = $params;
        }
        #[doc = concat!("The name `", $method, "`.")]
        pub const $constant: &str = $method;
    )*
        /// The rows of these notifications.
        pub static NOTIFICATIONS: &[MethodInfo] = &[$(MethodInfo::sent_by($constant, Sender::$sender)),*];
    };
}

// The most frequent ones come first: they are found first.
requests! {
    CallTool TOOLS_CALL = "tools/call", CallToolParams => CallToolResult,
        Client { capability: Some(Capability::Tools), target: Some(Target::Tool), named_in_header: true, may_ask: true };
    ListTools TOOLS_LIST = "tools/list", ListParams => ListToolsResult,
        Client { capability: Some(Capability::Tools), cacheable: true };
    ReadResource RESOURCES_READ = "resources/read", ReadResourceParams => ReadResourceResult,
        Client { capability: Some(Capability::Resources), target: Some(Target::Resource), named_in_header: true,
            may_ask: true, cacheable: true };
    ListResources RESOURCES_LIST = "resources/list", ListParams => ListResourcesResult,
        Client { capability: Some(Capability::Resources), cacheable: true };
    ListResourceTemplates RESOURCES_TEMPLATES_LIST = "resources/templates/list",
        ListParams => ListResourceTemplatesResult,
        Client { capability: Some(Capability::Resources), cacheable: true };
    GetPrompt PROMPTS_GET = "prompts/get", GetPromptParams => GetPromptResult,
        Client { capability: Some(Capability::Prompts), target: Some(Target::Prompt), named_in_header: true, may_ask: true };
    ListPrompts PROMPTS_LIST = "prompts/list", ListParams => ListPromptsResult,
        Client { capability: Some(Capability::Prompts), cacheable: true };
    Complete COMPLETION_COMPLETE = "completion/complete", CompleteParams => CompleteResult,
        Client { capability: Some(Capability::Completions), target: Some(Target::Completed) };
    Ping PING = "ping", EmptyParams => EmptyResult, Both {};
    Discover SERVER_DISCOVER = "server/discover", EmptyParams => DiscoverResult, Client { cacheable: true };
    Initialize INITIALIZE = "initialize", InitializeParams => InitializeResult, Client {};
    Subscribe RESOURCES_SUBSCRIBE = "resources/subscribe", SubscribeParams => EmptyResult,
        Client { capability: Some(Capability::ResourceSubscriptions), target: Some(Target::Resource) };
    // Whoever gives a subscription up is given nothing, so nothing protects what it names.
    Unsubscribe RESOURCES_UNSUBSCRIBE = "resources/unsubscribe", SubscribeParams => EmptyResult,
        Client { capability: Some(Capability::ResourceSubscriptions) };
    Listen SUBSCRIPTIONS_LISTEN = "subscriptions/listen", SubscriptionsListenParams => SubscriptionsListenResult,
        Client { capability: Some(Capability::Changes), target: Some(Target::Watched) };
    SetLevel LOGGING_SET_LEVEL = "logging/setLevel", SetLevelParams => EmptyResult,
        Client { capability: Some(Capability::Logging) };
    CreateMessage SAMPLING_CREATE_MESSAGE = "sampling/createMessage", CreateMessageParams => CreateMessageResult,
        Server { capability: Some(Capability::Sampling) };
    ListRoots ROOTS_LIST = "roots/list", EmptyParams => ListRootsResult,
        Server { capability: Some(Capability::Roots) };
    Elicit ELICITATION_CREATE = "elicitation/create", ElicitParams => ElicitResult,
        Server { capability: Some(Capability::Elicitation) };
    GetTask TASKS_GET = "tasks/get", TaskParams => Task, Both { capability: Some(Capability::Tasks) };
    GetTaskResult TASKS_RESULT = "tasks/result", TaskParams => JsonObject,
        Both { capability: Some(Capability::Tasks) };
    ListTasks TASKS_LIST = "tasks/list", ListParams => ListTasksResult,
        Both { capability: Some(Capability::Tasks) };
    CancelTask TASKS_CANCEL = "tasks/cancel", TaskParams => Task, Both { capability: Some(Capability::Tasks) };
}

notifications! {
    Progress NOTIFICATIONS_PROGRESS = "notifications/progress", ProgressParams, Both;
    LoggingMessage NOTIFICATIONS_MESSAGE = "notifications/message", LoggingMessageParams, Server;
    Cancelled NOTIFICATIONS_CANCELLED = "notifications/cancelled", CancelledParams, Both;
    Initialized NOTIFICATIONS_INITIALIZED = "notifications/initialized", EmptyParams, Client;
    ToolsListChanged NOTIFICATIONS_TOOLS_LIST_CHANGED = "notifications/tools/list_changed", EmptyParams, Server;
    PromptsListChanged NOTIFICATIONS_PROMPTS_LIST_CHANGED = "notifications/prompts/list_changed", EmptyParams, Server;
    ResourcesListChanged NOTIFICATIONS_RESOURCES_LIST_CHANGED = "notifications/resources/list_changed",
        EmptyParams, Server;
    ResourceUpdated NOTIFICATIONS_RESOURCES_UPDATED = "notifications/resources/updated", ResourceUpdatedParams, Server;
    SubscriptionsAcknowledged NOTIFICATIONS_SUBSCRIPTIONS_ACKNOWLEDGED = "notifications/subscriptions/acknowledged",
        SubscriptionsAcknowledgedParams, Server;
    RootsListChanged NOTIFICATIONS_ROOTS_LIST_CHANGED = "notifications/roots/list_changed", EmptyParams, Client;
    ElicitationComplete NOTIFICATIONS_ELICITATION_COMPLETE = "notifications/elicitation/complete",
        ElicitationCompleteParams, Server;
    TaskStatusChanged NOTIFICATIONS_TASKS_STATUS = "notifications/tasks/status", Task, Both;
}

/// The methods of the tasks extension. Some have the names of session-era methods, but none has their shapes.
pub mod tasks_extension {
    use super::{Capability, Method, MethodInfo, NotificationKind, Sender, Target};
    use crate::schema::{DetailedTask, EmptyResult, TaskParams, UpdateTaskParams};

    /// The name of the extension.
    pub const NAME: &str = "io.modelcontextprotocol/tasks";

    requests! {
        GetTask TASKS_GET = "tasks/get", TaskParams => DetailedTask,
            Client { capability: Some(Capability::Tasks), target: Some(Target::Task), named_in_header: true };
        UpdateTask TASKS_UPDATE = "tasks/update", UpdateTaskParams => EmptyResult,
            Client { capability: Some(Capability::Tasks), target: Some(Target::Task), named_in_header: true };
        CancelTask TASKS_CANCEL = "tasks/cancel", TaskParams => EmptyResult,
            Client { capability: Some(Capability::Tasks), target: Some(Target::Task), named_in_header: true };
    }

    notifications! {
        TaskChanged NOTIFICATIONS_TASKS = "notifications/tasks", DetailedTask, Server;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_method_has_one_row() {
        let names: BTreeSet<_> = REQUESTS.iter().chain(NOTIFICATIONS).map(|row| row.name).collect();
        assert_eq!(names.len(), REQUESTS.len() + NOTIFICATIONS.len());
        for row in REQUESTS.iter().chain(NOTIFICATIONS) {
            assert!(std::ptr::eq(find(row.name).unwrap(), row), "{}", row.name);
            assert!(!row.named_in_header || row.target.and_then(Target::member).is_some(), "{}", row.name);
        }
    }
}
