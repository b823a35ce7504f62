//! One sample of every noun with all its fields set, under the name that the newest schema gives it.

mod nouns;

use pintle_types::{
    JsonObject,
    schema::{
        AudioContent, CallToolParams, CallToolResult, CancelledParams, CompleteParams, CompleteResult,
        Completion, CompletionArgument, CompletionContext, CompletionReference, ContentBlock,
        CreateMessageResult, CreateTaskResult, DiscoverResult, ElicitAction, ElicitResult, ElicitUrlParams,
        EmbeddedResource, EmptyParams, EmptyResult, GetPromptParams, GetPromptResult, ImageContent,
        InitializeParams, InitializeResult, InputRequiredResult, ListParams, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListRootsResult, ListTasksResult, ListToolsResult,
        LoggingLevel, LoggingMessageParams, ModelHint, ProgressParams, PromptMessage, PromptReference,
        ReadResourceParams, ReadResourceResult, RelatedTask, ResourceContents, ResourceReference,
        ResourceUpdatedParams, ResultType, Role, SetLevelParams, StopReason, SubscribeParams,
        SubscriptionsAcknowledgedParams, SubscriptionsListenParams, SubscriptionsListenResult, Task,
        TaskSupport,
    },
};
use serde::Serialize;
use serde_json::{Value, json};

use nouns::{
    annotations, answers, boolean_field, client_capabilities, client_tasks, create_message, ending,
    enum_field, filter, form, icon, implementation, legacy_enum_field, meta, model_preferences,
    multi_enum_field, notification_meta, number_field, object, page, prompt, prompt_argument, questions,
    request_meta, resource, responses, result_meta, root, sampling_message, server_capabilities,
    server_tasks, string_field, task, task_metadata, template, text, text_contents, titled_enum_field,
    titled_multi_enum_field, tool, tool_annotations, tool_choice, tool_result, tool_use, url,
};

/// A noun as it is printed.
#[derive(Debug)]
pub(crate) struct Sample {
    /// Its name under `$defs` of the schema.
    pub(crate) definition: &'static str,
    /// What is printed.
    pub(crate) value: Value,
}

/// All nouns of the newest revision.
pub(crate) fn samples() -> Vec<Sample> {
    let all = [parts(), content(), catalogue(), calls(), asking(), form_fields(), notifications()];
    all.into_iter().flatten().collect()
}

/// The nouns that only the session era has, under the names that the schema of its last revision gives them.
pub(crate) fn session_samples() -> Vec<Sample> {
    let mut opening = InitializeParams::new("2025-11-25", client_capabilities(), implementation());
    opening.meta = Some(meta());
    opening.capabilities.roots.get_or_insert_default().list_changed = Some(true);
    opening.capabilities.tasks = Some(client_tasks());
    let mut opened = InitializeResult::new("2025-11-25", server_capabilities(), implementation());
    (opened.instructions, opened.meta) = (Some("Ask for a city.".into()), Some(meta()));
    opened.capabilities.tasks = Some(server_tasks());
    let mut level = SetLevelParams::new(LoggingLevel::Notice);
    level.meta = Some(meta());
    let mut subscribe = SubscribeParams::new("file:///notes.txt");
    subscribe.meta = Some(meta());
    let mut created = CreateTaskResult::new(task());
    created.meta = Some(meta());
    let mut tasks = ListTasksResult::new(vec![task(), Task::new("task-2", "2025-11-25T10:30:00Z")]);
    (tasks.next_cursor, tasks.meta) = (Some("page-2".into()), Some(meta()));
    let mut call = CallToolParams::new("weather");
    (call.arguments, call.task, call.meta) = (Some(JsonObject::new()), Some(task_metadata()), Some(meta()));
    let mut slow = tool();
    let execution = slow.execution.get_or_insert_default();
    execution.task_support = Some(TaskSupport::Optional);
    let execution = execution.clone();
    let mut page = ElicitUrlParams::new("Please sign in", "https://example.com/sign-in");
    (page.elicitation_id, page.task, page.meta) =
        (Some("sign-in".into()), Some(task_metadata()), Some(meta()));
    vec![
        sample("ClientCapabilities", &opening.capabilities),
        sample("ServerCapabilities", &opened.capabilities),
        sample("InitializeRequestParams", opening),
        sample("InitializeResult", opened),
        sample("SetLevelRequestParams", level),
        sample("SubscribeRequestParams", &subscribe),
        sample("UnsubscribeRequestParams", subscribe),
        sample("Task", task()),
        sample("GetTaskResult", task()),
        sample("TaskStatusNotificationParams", task()),
        sample("CreateTaskResult", created),
        sample("ListTasksResult", tasks),
        sample("TaskMetadata", task_metadata()),
        sample("RelatedTaskMetadata", RelatedTask::new("task-1")),
        sample("CallToolRequestParams", call),
        sample("Tool", slow),
        sample("ToolExecution", execution),
        sample("ElicitRequestURLParams", page),
    ]
}

fn sample<T: Serialize>(definition: &'static str, noun: T) -> Sample {
    Sample { definition, value: serde_json::to_value(noun).expect("nouns can be printed") }
}

fn parts() -> Vec<Sample> {
    vec![
        sample("Icon", icon()),
        sample("Implementation", implementation()),
        sample("Annotations", annotations()),
        sample("ClientCapabilities", client_capabilities()),
        sample("ServerCapabilities", server_capabilities()),
        sample("MetaObject", meta()),
        sample("RequestMetaObject", request_meta()),
        sample("ResultMetaObject", result_meta()),
        sample("NotificationMetaObject", notification_meta()),
        sample("RequestParams", {
            let mut params = EmptyParams::new();
            params.meta = Some(request_meta());
            params
        }),
        sample("Result", {
            let mut result = EmptyResult::new();
            result.result_type = Some(ResultType::Complete);
            result.meta = Some(result_meta());
            result
        }),
        sample("PaginatedRequestParams", {
            let mut params = ListParams::new();
            params.cursor = Some(String::new());
            params.meta = Some(request_meta());
            params
        }),
    ]
}

fn content() -> Vec<Sample> {
    let mut image = ImageContent::new("iVBORw0KGgo=", "image/png");
    (image.annotations, image.meta) = (Some(annotations()), Some(meta()));
    let mut audio = AudioContent::new("UklGRg==", "audio/wav");
    (audio.annotations, audio.meta) = (Some(annotations()), Some(meta()));
    let mut embedded = EmbeddedResource::new(text_contents());
    (embedded.annotations, embedded.meta) = (Some(annotations()), Some(meta()));
    vec![
        sample("TextContent", text()),
        sample("ImageContent", ContentBlock::Image(image)),
        sample("AudioContent", ContentBlock::Audio(audio)),
        sample("ResourceLink", ContentBlock::ResourceLink(resource())),
        sample("EmbeddedResource", ContentBlock::Resource(embedded)),
        sample("ToolUseContent", tool_use()),
        sample("ToolResultContent", tool_result()),
        sample("TextResourceContents", text_contents()),
        sample("BlobResourceContents", {
            let mut contents = ResourceContents::blob("file:///logo.png", "iVBORw0KGgo=");
            (contents.mime_type, contents.meta) = (Some("image/png".into()), Some(meta()));
            contents
        }),
    ]
}

fn catalogue() -> Vec<Sample> {
    let mut tools = ListToolsResult::new(vec![tool()]);
    (tools.next_cursor, tools.ttl_ms, tools.cache_scope) = page();
    (tools.result_type, tools.meta) = ending();
    let mut prompts = ListPromptsResult::new(vec![prompt()]);
    (prompts.next_cursor, prompts.ttl_ms, prompts.cache_scope) = page();
    (prompts.result_type, prompts.meta) = ending();
    let mut resources = ListResourcesResult::new(vec![resource()]);
    (resources.next_cursor, resources.ttl_ms, resources.cache_scope) = page();
    (resources.result_type, resources.meta) = ending();
    let mut templates = ListResourceTemplatesResult::new(vec![template()]);
    (templates.next_cursor, templates.ttl_ms, templates.cache_scope) = page();
    (templates.result_type, templates.meta) = ending();
    let mut discovered = DiscoverResult::new(vec!["2026-07-28".into()], server_capabilities());
    discovered.instructions = Some("Ask for a city.".into());
    (_, discovered.ttl_ms, discovered.cache_scope) = page();
    (discovered.result_type, discovered.meta) = ending();
    vec![
        sample("Tool", tool()),
        sample("ToolAnnotations", tool_annotations()),
        sample("Prompt", prompt()),
        sample("PromptArgument", prompt_argument()),
        sample("Resource", resource()),
        sample("ResourceTemplate", template()),
        sample("ListToolsResult", tools),
        sample("ListPromptsResult", prompts),
        sample("ListResourcesResult", resources),
        sample("ListResourceTemplatesResult", templates),
        sample("DiscoverResult", discovered),
    ]
}

fn calls() -> Vec<Sample> {
    let mut call = CallToolParams::new("weather");
    call.arguments = Some(object(json!({"city": "Oslo"})));
    (call.input_responses, call.request_state, call.meta) = answers();
    let mut called = CallToolResult::new(vec![text(), ContentBlock::ResourceLink(resource())]);
    (called.structured_content, called.is_error) = (Some(json!({"celsius": -3.5})), Some(false));
    (called.result_type, called.meta) = ending();
    let mut get = GetPromptParams::new("greet");
    get.arguments = Some([("name".to_owned(), "Ada".to_owned())].into());
    (get.input_responses, get.request_state, get.meta) = answers();
    let mut got = GetPromptResult::new(vec![PromptMessage::new(Role::User, text())]);
    got.description = Some("A greeting".into());
    (got.result_type, got.meta) = ending();
    let mut read = ReadResourceParams::new("file:///notes.txt");
    (read.input_responses, read.request_state, read.meta) = answers();
    let mut contents = ReadResourceResult::new(vec![text_contents()]);
    (_, contents.ttl_ms, contents.cache_scope) = page();
    (contents.result_type, contents.meta) = ending();
    let mut prompt = PromptReference::new("greet");
    prompt.title = Some("Greet".into());
    let reference = CompletionReference::Prompt(prompt);
    let mut complete = CompleteParams::new(reference.clone(), CompletionArgument::new("name", "A"));
    let mut context = CompletionContext::new();
    context.arguments = Some([("tone".to_owned(), "warm".to_owned())].into());
    (complete.context, complete.meta) = (Some(context), Some(request_meta()));
    let mut completion = Completion::new(vec!["Ada".into()]);
    (completion.total, completion.has_more) = (Some(2), Some(true));
    let mut completed = CompleteResult::new(completion);
    (completed.result_type, completed.meta) = ending();
    vec![
        sample("CallToolRequestParams", call),
        sample("CallToolResult", called),
        sample("GetPromptRequestParams", get),
        sample("GetPromptResult", got),
        sample("PromptMessage", PromptMessage::new(Role::Assistant, text())),
        sample("ReadResourceRequestParams", read),
        sample("ReadResourceResult", contents),
        sample("PromptReference", reference),
        sample(
            "ResourceTemplateReference",
            CompletionReference::Resource(ResourceReference::new("file:///{path}")),
        ),
        sample("CompleteRequestParams", complete),
        sample("CompleteResult", completed),
    ]
}

fn asking() -> Vec<Sample> {
    let mut required = InputRequiredResult::new();
    required.input_requests = Some(questions());
    (required.request_state, required.meta) = (Some("sealed".into()), Some(result_meta()));
    let mut accepted = ElicitResult::new(ElicitAction::Accept);
    accepted.content = Some(object(json!({"name": "Ada", "age": 36, "member": true, "likes": ["tea"]})));
    let mut detail = CreateMessageResult::new("some-model", vec![text(), tool_use()]);
    (detail.stop_reason, detail.meta) = (Some(StopReason::ToolUse), Some(meta()));
    vec![
        sample("CreateMessageRequestParams", create_message()),
        sample("CreateMessageResult", detail),
        sample("SamplingMessage", sampling_message()),
        sample("ModelPreferences", model_preferences()),
        sample("ModelHint", ModelHint::new("haiku")),
        sample("ToolChoice", tool_choice()),
        sample("ElicitRequestFormParams", form()),
        sample("ElicitRequestURLParams", url()),
        sample("ElicitResult", accepted),
        sample("Root", root()),
        sample("ListRootsResult", ListRootsResult::new(vec![root()])),
        sample("InputRequests", questions()),
        sample("InputResponses", responses()),
        sample("InputRequiredResult", required),
    ]
}

fn form_fields() -> Vec<Sample> {
    vec![
        sample("StringSchema", string_field()),
        sample("NumberSchema", number_field()),
        sample("BooleanSchema", boolean_field()),
        sample("LegacyTitledEnumSchema", legacy_enum_field()),
        sample("UntitledSingleSelectEnumSchema", enum_field()),
        sample("TitledSingleSelectEnumSchema", titled_enum_field()),
        sample("UntitledMultiSelectEnumSchema", multi_enum_field()),
        sample("TitledMultiSelectEnumSchema", titled_multi_enum_field()),
    ]
}

fn notifications() -> Vec<Sample> {
    let mut cancelled = CancelledParams::new("7");
    (cancelled.reason, cancelled.meta) = (Some("the user left".into()), Some(notification_meta()));
    let mut progress = ProgressParams::new("load-1", 50.0);
    (progress.total, progress.message) = (Some(100.0), Some("halfway".into()));
    progress.meta = Some(notification_meta());
    let mut message = LoggingMessageParams::new(LoggingLevel::Warning, json!({"disk": "full"}));
    (message.logger, message.meta) = (Some("store".into()), Some(notification_meta()));
    let mut updated = ResourceUpdatedParams::new("file:///notes.txt");
    updated.meta = Some(notification_meta());
    let mut changed = EmptyParams::new();
    changed.meta = Some(notification_meta());
    let mut listen = SubscriptionsListenParams::new(filter());
    listen.meta = Some(request_meta());
    let mut acknowledged = SubscriptionsAcknowledgedParams::new(filter());
    acknowledged.meta = Some(notification_meta());
    let mut ended = SubscriptionsListenResult::new(&"listen-1".into());
    ended.result_type = Some(ResultType::Complete);
    if let Some(meta) = &mut ended.meta {
        meta.set_server_info(&implementation());
    }
    vec![
        sample("CancelledNotificationParams", cancelled),
        sample("ProgressNotificationParams", progress),
        sample("LoggingMessageNotificationParams", message),
        sample("ResourceUpdatedNotificationParams", updated),
        sample("NotificationParams", changed),
        sample("SubscriptionFilter", filter()),
        sample("SubscriptionsListenRequestParams", listen),
        sample("SubscriptionsAcknowledgedNotificationParams", acknowledged),
        sample("SubscriptionsListenResult", ended),
    ]
}
