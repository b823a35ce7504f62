//! The nouns that samples are made of.

use pintle_types::{
    JsonObject, Meta,
    schema::{
        Annotations, BooleanSchema, CacheScope, ClientCapabilities, ClientTaskRequests,
        ClientTasksCapability, ContentBlock, CreateMessageParams, CreateMessageResult, ElicitAction,
        ElicitFormParams, ElicitParams, ElicitResult, ElicitSchema, ElicitUrlParams, ElicitationCapability,
        ElicitationTasks, EnumItems, EnumOption, EnumSchema, Icon, IconTheme, Implementation, IncludeContext,
        InputRequest, InputRequests, InputResponses, ListRootsResult, LoggingLevel, ModelHint,
        ModelPreferences, MultiEnumSchema, NumberSchema, PrimitiveSchema, Prompt, PromptArgument,
        PromptsCapability, Resource, ResourceContents, ResourceTemplate, ResourcesCapability, ResultType,
        Role, Root, RootsCapability, SamplingCapability, SamplingMessage, SamplingTasks, ServerCapabilities,
        ServerTaskRequests, ServerTasksCapability, StringFormat, StringSchema, SubscriptionFilter, Task,
        TaskMetadata, TextContent, TitledEnumItems, TitledEnumSchema, TitledMultiEnumSchema, Tool,
        ToolAnnotations, ToolChoice, ToolChoiceMode, ToolResultContent, ToolTasks, ToolUseContent,
        ToolsCapability,
    },
};
use serde_json::{Value, json};

pub(super) fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

pub(super) fn page() -> (Option<String>, Option<i64>, Option<CacheScope>) {
    (Some("page-2".into()), Some(60_000), Some(CacheScope::Public))
}

pub(super) fn ending() -> (Option<ResultType>, Option<Meta>) {
    (Some(ResultType::Complete), Some(result_meta()))
}

pub(super) fn answers() -> (Option<InputResponses>, Option<String>, Option<Meta>) {
    (Some(responses()), Some("sealed".into()), Some(request_meta()))
}

pub(super) fn icon() -> Icon {
    let mut icon = Icon::new("https://example.com/icon.png");
    icon.mime_type = Some("image/png".into());
    icon.sizes = Some(vec!["48x48".into()]);
    icon.theme = Some(IconTheme::Dark);
    icon
}

pub(super) fn implementation() -> Implementation {
    let mut implementation = Implementation::new("sampler", "1.0.0");
    implementation.title = Some("The sampler".into());
    implementation.description = Some("Says everything once".into());
    implementation.website_url = Some("https://example.com/".into());
    implementation.icons = Some(vec![icon()]);
    implementation
}

pub(super) fn annotations() -> Annotations {
    let mut annotations = Annotations::new();
    annotations.audience = Some(vec![Role::User, Role::Assistant]);
    annotations.priority = Some(0.5);
    annotations.last_modified = Some("2025-01-12T15:00:58Z".into());
    annotations
}

pub(super) fn meta() -> Meta {
    let mut meta = Meta::new();
    meta.insert("com.example/tenant", "blue");
    meta
}

pub(super) fn request_meta() -> Meta {
    let mut meta = meta();
    meta.set_protocol_version("2026-07-28");
    meta.set_client_capabilities(&client_capabilities());
    meta.set_client_info(&implementation());
    meta.set_log_level(LoggingLevel::Info);
    meta.set_progress_token("load-1");
    meta
}

pub(super) fn result_meta() -> Meta {
    let mut meta = meta();
    meta.set_server_info(&implementation());
    meta
}

pub(super) fn notification_meta() -> Meta {
    let mut meta = meta();
    meta.set_subscription_id(&"listen-1".into());
    meta
}

pub(super) fn client_capabilities() -> ClientCapabilities {
    let mut sampling = SamplingCapability::new();
    (sampling.context, sampling.tools) = (Some(JsonObject::new()), Some(JsonObject::new()));
    let mut elicitation = ElicitationCapability::new();
    (elicitation.form, elicitation.url) = (Some(JsonObject::new()), Some(JsonObject::new()));
    let mut capabilities = ClientCapabilities::new();
    capabilities.roots = Some(RootsCapability::new());
    capabilities.sampling = Some(sampling);
    capabilities.elicitation = Some(elicitation);
    capabilities.experimental = Some(object(json!({"com.example/telepathy": {}})));
    capabilities.extensions = Some(object(json!({"io.modelcontextprotocol/tasks": {}})));
    capabilities
}

pub(super) fn server_capabilities() -> ServerCapabilities {
    let mut tools = ToolsCapability::new();
    tools.list_changed = Some(true);
    let mut prompts = PromptsCapability::new();
    prompts.list_changed = Some(true);
    let mut resources = ResourcesCapability::new();
    (resources.subscribe, resources.list_changed) = (Some(true), Some(true));
    let mut capabilities = ServerCapabilities::new();
    capabilities.tools = Some(tools);
    capabilities.prompts = Some(prompts);
    capabilities.resources = Some(resources);
    capabilities.completions = Some(JsonObject::new());
    capabilities.logging = Some(JsonObject::new());
    capabilities.experimental = Some(object(json!({"com.example/telepathy": {}})));
    capabilities.extensions = Some(object(json!({"io.modelcontextprotocol/tasks": {}})));
    capabilities
}

pub(super) fn text() -> ContentBlock {
    let mut text = TextContent::new("It is cold.");
    (text.annotations, text.meta) = (Some(annotations()), Some(meta()));
    ContentBlock::Text(text)
}

pub(super) fn tool_use() -> ContentBlock {
    let mut tool_use = ToolUseContent::new("use-1", "weather", object(json!({"city": "Oslo"})));
    tool_use.meta = Some(meta());
    ContentBlock::ToolUse(tool_use)
}

pub(super) fn tool_result() -> ContentBlock {
    let mut result = ToolResultContent::new("use-1", vec![text()]);
    result.structured_content = Some(json!({"celsius": -3.5}));
    (result.is_error, result.meta) = (Some(false), Some(meta()));
    ContentBlock::ToolResult(result)
}

pub(super) fn text_contents() -> ResourceContents {
    let mut contents = ResourceContents::text("file:///notes.txt", "milk");
    (contents.mime_type, contents.meta) = (Some("text/plain".into()), Some(meta()));
    contents
}

pub(super) fn resource() -> Resource {
    let mut resource = Resource::new("file:///notes.txt", "notes");
    resource.title = Some("Notes".into());
    resource.description = Some("What to buy".into());
    resource.mime_type = Some("text/plain".into());
    resource.size = Some(4);
    resource.annotations = Some(annotations());
    resource.icons = Some(vec![icon()]);
    resource.meta = Some(meta());
    resource
}

pub(super) fn template() -> ResourceTemplate {
    let mut template = ResourceTemplate::new("file:///{path}", "files");
    template.title = Some("Files".into());
    template.description = Some("All files".into());
    template.mime_type = Some("text/plain".into());
    template.annotations = Some(annotations());
    template.icons = Some(vec![icon()]);
    template.meta = Some(meta());
    template
}

pub(super) fn tool_annotations() -> ToolAnnotations {
    let mut annotations = ToolAnnotations::new();
    annotations.title = Some("Weather".into());
    annotations.read_only_hint = Some(true);
    annotations.destructive_hint = Some(false);
    annotations.idempotent_hint = Some(true);
    annotations.open_world_hint = Some(true);
    annotations
}

pub(super) fn tool() -> Tool {
    let city = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let celsius = json!({"type": "object", "properties": {"celsius": {"type": "number"}}});
    let mut tool = Tool::new("weather", object(city));
    tool.title = Some("Weather".into());
    tool.description = Some("The weather of a city".into());
    tool.output_schema = Some(object(celsius).into());
    tool.annotations = Some(tool_annotations());
    tool.icons = Some(vec![icon()]);
    tool.meta = Some(meta());
    tool
}

pub(super) fn prompt_argument() -> PromptArgument {
    let mut argument = PromptArgument::new("name");
    argument.title = Some("Name".into());
    argument.description = Some("Whom to greet".into());
    argument.required = Some(true);
    argument
}

pub(super) fn prompt() -> Prompt {
    let mut prompt = Prompt::new("greet");
    prompt.title = Some("Greet".into());
    prompt.description = Some("A greeting".into());
    prompt.arguments = Some(vec![prompt_argument()]);
    prompt.icons = Some(vec![icon()]);
    prompt.meta = Some(meta());
    prompt
}

pub(super) fn filter() -> SubscriptionFilter {
    let mut filter = SubscriptionFilter::new();
    filter.tools_list_changed = Some(true);
    filter.prompts_list_changed = Some(true);
    filter.resources_list_changed = Some(false);
    filter.resource_subscriptions = Some(vec!["file:///notes.txt".into()]);
    filter
}

pub(super) fn model_preferences() -> ModelPreferences {
    let mut preferences = ModelPreferences::new();
    preferences.hints = Some(vec![ModelHint::new("haiku")]);
    preferences.cost_priority = Some(1.0);
    preferences.speed_priority = Some(0.5);
    preferences.intelligence_priority = Some(0.0);
    preferences
}

pub(super) fn tool_choice() -> ToolChoice {
    let mut choice = ToolChoice::new();
    choice.mode = Some(ToolChoiceMode::Auto);
    choice
}

pub(super) fn sampling_message() -> SamplingMessage {
    let mut message = SamplingMessage::new(Role::User, text());
    message.meta = Some(meta());
    message
}

pub(super) fn create_message() -> CreateMessageParams {
    let results = SamplingMessage::new(Role::User, vec![tool_result()]);
    let mut params = CreateMessageParams::new(vec![sampling_message(), results], 100);
    params.model_preferences = Some(model_preferences());
    params.system_prompt = Some("Be brief.".into());
    params.include_context = Some(IncludeContext::None);
    params.temperature = Some(0.7);
    params.stop_sequences = Some(vec!["END".into()]);
    params.metadata = Some(object(json!({"trace": 1})));
    params.tools = Some(vec![tool()]);
    params.tool_choice = Some(tool_choice());
    params
}

pub(super) fn root() -> Root {
    let mut root = Root::new("file:///home/ada");
    (root.name, root.meta) = (Some("Home".into()), Some(meta()));
    root
}

pub(super) fn questions() -> InputRequests {
    let question = |method, params: Value| InputRequest::new(method, &params).expect("values can be printed");
    [
        ("name".to_owned(), question("elicitation/create", json!(form()))),
        ("page".to_owned(), question("elicitation/create", json!(url()))),
        ("model".to_owned(), question("sampling/createMessage", json!(create_message()))),
        ("roots".to_owned(), question("roots/list", json!({}))),
    ]
    .into()
}

pub(super) fn responses() -> InputResponses {
    [
        ("name".to_owned(), json!(ElicitResult::new(ElicitAction::Decline))),
        ("model".to_owned(), json!(CreateMessageResult::new("some-model", text()))),
        ("roots".to_owned(), json!(ListRootsResult::new(vec![root()]))),
    ]
    .into()
}

pub(super) fn url() -> ElicitParams {
    ElicitParams::Url(ElicitUrlParams::new("Please sign in", "https://example.com/sign-in"))
}

pub(super) fn form() -> ElicitParams {
    let mut schema = ElicitSchema::new();
    schema.dialect = Some("https://json-schema.org/draft/2020-12/schema".into());
    schema.properties.insert("name", string_field());
    schema.properties.insert("age", number_field());
    schema.properties.insert("member", boolean_field());
    schema.properties.insert("tone", legacy_enum_field());
    schema.properties.insert("colour", enum_field());
    schema.properties.insert("size", titled_enum_field());
    schema.properties.insert("likes", multi_enum_field());
    schema.properties.insert("days", titled_multi_enum_field());
    schema.required = Some(vec!["name".into()]);
    ElicitParams::Form(ElicitFormParams::new("Who are you?", schema))
}

pub(super) fn string_field() -> PrimitiveSchema {
    let mut schema = StringSchema::new();
    (schema.title, schema.description) = (Some("Mail".into()), Some("Your address".into()));
    (schema.min_length, schema.max_length) = (Some(3), Some(80));
    (schema.format, schema.default) = (Some(StringFormat::Email), Some("ada@example.com".into()));
    PrimitiveSchema::String(schema)
}

pub(super) fn number_field() -> PrimitiveSchema {
    let mut schema = NumberSchema::new();
    (schema.title, schema.description) = (Some("Age".into()), Some("In years".into()));
    (schema.minimum, schema.maximum, schema.default) = (Some(0.into()), Some(150.into()), Some(36.into()));
    PrimitiveSchema::Integer(schema)
}

pub(super) fn boolean_field() -> PrimitiveSchema {
    let mut schema = BooleanSchema::new();
    (schema.title, schema.description) = (Some("Member".into()), Some("Whether you are one".into()));
    schema.default = Some(true);
    PrimitiveSchema::Boolean(schema)
}

pub(super) fn legacy_enum_field() -> PrimitiveSchema {
    let mut schema = EnumSchema::new(vec!["warm".into(), "cold".into()]);
    (schema.title, schema.description) = (Some("Tone".into()), Some("How to speak".into()));
    schema.enum_names = Some(vec!["Warm".into(), "Cold".into()]);
    schema.default = Some("warm".into());
    PrimitiveSchema::Enum(schema)
}

pub(super) fn enum_field() -> PrimitiveSchema {
    let mut schema = EnumSchema::new(vec!["red".into(), "blue".into()]);
    (schema.title, schema.description) = (Some("Colour".into()), Some("Which you like".into()));
    schema.default = Some("red".into());
    PrimitiveSchema::Enum(schema)
}

pub(super) fn titled_enum_field() -> PrimitiveSchema {
    let mut schema =
        TitledEnumSchema::new(vec![EnumOption::new("s", "Small"), EnumOption::new("l", "Large")]);
    (schema.title, schema.description) = (Some("Size".into()), Some("Which you wear".into()));
    schema.default = Some("s".into());
    PrimitiveSchema::TitledEnum(schema)
}

pub(super) fn multi_enum_field() -> PrimitiveSchema {
    let mut schema = MultiEnumSchema::new(EnumItems::new(vec!["tea".into(), "milk".into()]));
    (schema.title, schema.description) = (Some("Likes".into()), Some("What you drink".into()));
    (schema.min_items, schema.max_items) = (Some(1), Some(2));
    schema.default = Some(vec!["tea".into()]);
    PrimitiveSchema::MultiEnum(schema)
}

pub(super) fn titled_multi_enum_field() -> PrimitiveSchema {
    let mut schema = TitledMultiEnumSchema::new(TitledEnumItems::new(vec![EnumOption::new("mo", "Monday")]));
    (schema.title, schema.description) = (Some("Days".into()), Some("When you come".into()));
    (schema.min_items, schema.max_items) = (Some(0), Some(1));
    schema.default = Some(vec!["mo".into()]);
    PrimitiveSchema::TitledMultiEnum(schema)
}

pub(super) fn client_tasks() -> ClientTasksCapability {
    let mut sampling = SamplingTasks::new();
    sampling.create_message = Some(JsonObject::new());
    let mut elicitation = ElicitationTasks::new();
    elicitation.create = Some(JsonObject::new());
    let mut requests = ClientTaskRequests::new();
    (requests.sampling, requests.elicitation) = (Some(sampling), Some(elicitation));
    let mut tasks = ClientTasksCapability::new();
    (tasks.list, tasks.cancel) = (Some(JsonObject::new()), Some(JsonObject::new()));
    tasks.requests = Some(requests);
    tasks
}

pub(super) fn server_tasks() -> ServerTasksCapability {
    let mut tools = ToolTasks::new();
    tools.call = Some(JsonObject::new());
    let mut requests = ServerTaskRequests::new();
    requests.tools = Some(tools);
    let mut tasks = ServerTasksCapability::new();
    (tasks.list, tasks.cancel) = (Some(JsonObject::new()), Some(JsonObject::new()));
    tasks.requests = Some(requests);
    tasks
}

pub(super) fn task_metadata() -> TaskMetadata {
    let mut metadata = TaskMetadata::new();
    metadata.ttl = Some(60_000);
    metadata
}

pub(super) fn task() -> Task {
    let mut task = Task::new("task-1", "2025-11-25T10:30:00Z");
    task.status_message = Some("under way".into());
    task.ttl = Some(60_000);
    task.poll_interval = Some(5_000);
    task.meta = Some(meta());
    task
}
