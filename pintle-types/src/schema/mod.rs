//! The params, results and objects of the protocol, in the newest shape, wide enough for the older ones.
//!
//! All share a manner. Fields are public; `new` takes what is required; a field that is `None` is not printed; what this
//! crate does not know stays in `extra` and is printed again.

mod base;
mod cancel;
mod client;
mod completion;
mod content;
mod discover;
mod error_data;
mod initialize;
mod logging;
mod progress;
mod prompt;
mod resources;
mod subscription;
mod tasks;
mod tools;

pub use crate::common::{
    Annotations, ClientCapabilities, ClientTaskRequests, ClientTasksCapability, ElicitationCapability,
    ElicitationTasks, Icon, IconTheme, Implementation, LoggingLevel, OneOrMany, ProgressToken,
    PromptsCapability, RelatedTask, ResourcesCapability, Role, RootsCapability, SamplingCapability,
    SamplingTasks, ServerCapabilities, ServerTaskRequests, ServerTasksCapability, ToolTasks, ToolsCapability,
    UnknownLevel,
};
pub use base::{
    CacheScope, EmptyParams, EmptyResult, InputRequest, InputRequests, InputRequiredResult, InputResponses,
    ListParams, ResultType,
};
pub use cancel::CancelledParams;
pub use client::{
    BooleanSchema, CreateMessageParams, CreateMessageResult, ElicitAction, ElicitFormParams, ElicitMode,
    ElicitParams, ElicitResult, ElicitSchema, ElicitUrlParams, ElicitationCompleteParams, EnumItems,
    EnumOption, EnumSchema, IncludeContext, ListRootsResult, ModelHint, ModelPreferences, MultiEnumSchema,
    NumberSchema, PrimitiveSchema, Properties, Root, SamplingMessage, StopReason, StringFormat, StringSchema,
    TitledEnumItems, TitledEnumSchema, TitledMultiEnumSchema, ToolChoice, ToolChoiceMode,
};
pub use completion::{
    CompleteParams, CompleteResult, Completion, CompletionArgument, CompletionContext, CompletionReference,
    PromptReference, ResourceReference,
};
pub use content::{
    AudioContent, ContentBlock, EmbeddedResource, ImageContent, TextContent, ToolResultContent,
    ToolUseContent,
};
pub use discover::DiscoverResult;
pub use error_data::{
    MissingCapabilityData, ResourceNotFoundData, UnsupportedVersionData, UrlElicitationRequiredData,
};
pub use initialize::{InitializeParams, InitializeResult};
pub use logging::{LoggingMessageParams, SetLevelParams};
pub use progress::ProgressParams;
pub use prompt::{
    GetPromptParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage,
};
pub use resources::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceParams, ReadResourceResult, Resource,
    ResourceBody, ResourceContents, ResourceTemplate, ResourceUpdatedParams, SubscribeParams,
};
pub use subscription::{
    SubscriptionFilter, SubscriptionsAcknowledgedParams, SubscriptionsListenParams, SubscriptionsListenResult,
};
pub use tasks::{
    CreateTaskResult, DetailedTask, ListTasksResult, Task, TaskMetadata, TaskParams, TaskStatus,
    UpdateTaskParams,
};
pub use tools::{
    CallToolParams, CallToolResult, ListToolsResult, TaskSupport, Tool, ToolAnnotations, ToolExecution,
};
