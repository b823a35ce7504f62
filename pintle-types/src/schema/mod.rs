//! The nouns: one type for each, in the newest shape, wide enough for the older ones.
//!
//! All share a manner. Fields are public; `new` takes what is required; a field that is `None` is not printed; what this
//! crate does not know stays in `extra` and is printed again.

mod annotations;
mod base;
mod cancel;
mod capability;
mod completion;
mod content;
mod detailed_task;
mod discover;
mod elicit;
mod elicit_schema;
mod error_data;
mod implementation;
mod initialize;
mod input;
mod logging;
mod one_or_many;
mod primitive_schema;
mod progress;
mod prompt;
mod resource;
mod resource_contents;
mod root;
mod sampling;
mod subscription;
mod task;
mod tool;
mod wire;

pub use annotations::{Annotations, Role};
pub use base::{CacheScope, EmptyParams, EmptyResult, ListParams, ResultType};
pub use cancel::CancelledParams;
pub use capability::{
    ClientCapabilities, ClientTaskRequests, ClientTasksCapability, ElicitationCapability, ElicitationTasks,
    PromptsCapability, ResourcesCapability, RootsCapability, SamplingCapability, SamplingTasks,
    ServerCapabilities, ServerTaskRequests, ServerTasksCapability, ToolTasks, ToolsCapability,
};
pub use completion::{
    CompleteParams, CompleteResult, Completion, CompletionArgument, CompletionContext, CompletionReference,
    PromptReference, ResourceReference,
};
pub use content::{
    AudioContent, ContentBlock, EmbeddedResource, ImageContent, TextContent, ToolResultContent,
    ToolUseContent,
};
pub use detailed_task::{DetailedTask, UpdateTaskParams};
pub use discover::DiscoverResult;
pub use elicit::{
    ElicitAction, ElicitFormParams, ElicitMode, ElicitParams, ElicitResult, ElicitUrlParams,
    ElicitationCompleteParams,
};
pub use elicit_schema::{ElicitSchema, Properties};
pub use error_data::{
    MissingCapabilityData, ResourceNotFoundData, UnsupportedVersionData, UrlElicitationRequiredData,
};
pub use implementation::{Icon, IconTheme, Implementation};
pub use initialize::{InitializeParams, InitializeResult};
pub use input::{InputRequest, InputRequests, InputRequiredResult, InputResponses};
pub use logging::{LoggingLevel, LoggingMessageParams, SetLevelParams, UnknownLevel};
pub use one_or_many::OneOrMany;
pub use primitive_schema::{
    BooleanSchema, EnumItems, EnumOption, EnumSchema, MultiEnumSchema, NumberSchema, PrimitiveSchema,
    StringFormat, StringSchema, TitledEnumItems, TitledEnumSchema, TitledMultiEnumSchema,
};
pub use progress::{ProgressParams, ProgressToken};
pub use prompt::{
    GetPromptParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage,
};
pub use resource::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceParams, ReadResourceResult, Resource,
    ResourceTemplate, ResourceUpdatedParams, SubscribeParams,
};
pub use resource_contents::{ResourceBody, ResourceContents};
pub use root::{ListRootsResult, Root};
pub use sampling::{
    CreateMessageParams, CreateMessageResult, IncludeContext, ModelHint, ModelPreferences, SamplingMessage,
    StopReason, ToolChoice, ToolChoiceMode,
};
pub use subscription::{
    SubscriptionFilter, SubscriptionsAcknowledgedParams, SubscriptionsListenParams, SubscriptionsListenResult,
};
pub use task::{CreateTaskResult, ListTasksResult, RelatedTask, Task, TaskMetadata, TaskParams, TaskStatus};
pub use tool::{
    CallToolParams, CallToolResult, ListToolsResult, TaskSupport, Tool, ToolAnnotations, ToolExecution,
};
