//! Every noun of `pintle-types` with all its fields set, lowered to every revision of the session era and held against
//! that revision's own schema.

#[path = "../../../../pintle-types/tests/it/samples/mod.rs"]
mod samples;

use std::collections::{BTreeMap, BTreeSet};

use pintle_proto::{Part, Revision};
use serde_json::{Value, json};

use samples::Sample;

use super::schema::{Schema, message, schema};

/// A noun in a payload that can carry it: lowering knows payloads, not their parts.
struct Carrier {
    part: Part<'static>,
    /// What the payload is called in the schema. Of params, the request or notification.
    whole: &'static str,
    /// Where the noun is in it; empty if it is the payload.
    place: &'static str,
    payload: Value,
}

fn carrier(definition: &str, noun: Value) -> Carrier {
    let carrier = |part, whole, place, payload| Carrier { part, whole, place, payload };
    let params = |method, whole, noun| carrier(Part::Params(method), whole, "", noun);
    let result = |method, whole, noun| carrier(Part::Result(method), whole, "", noun);
    let in_tool = |place, member: &str, noun: Value| {
        let mut tool = json!({"name": "t", "inputSchema": {"type": "object"}});
        tool[member] = noun;
        carrier(Part::Result("tools/list"), "ListToolsResult", place, json!({"tools": [tool]}))
    };
    let in_sampling = |place, member: &str, noun: Value| {
        let text = json!({"role": "user", "content": {"type": "text", "text": "hi"}});
        let mut asked = json!({"maxTokens": 9, "messages": [text]});
        asked[member] = noun;
        carrier(Part::Params("sampling/createMessage"), "CreateMessageRequest", place, asked)
    };
    let in_call = |place, member: &str, noun: Value| {
        let mut call = json!({"name": "t"});
        call[member] = noun;
        carrier(Part::Params("tools/call"), "CallToolRequest", place, call)
    };
    let completing = |noun| {
        let asked = json!({"ref": noun, "argument": {"name": "a", "value": "v"}});
        carrier(Part::Params("completion/complete"), "CompleteRequest", "/ref", asked)
    };
    match definition {
        "Icon" => in_tool("/tools/0/icons/0", "icons", json!([noun])),
        "Tool" => {
            carrier(Part::Result("tools/list"), "ListToolsResult", "/tools/0", json!({"tools": [noun]}))
        }
        "ToolAnnotations" => in_tool("/tools/0/annotations", "annotations", noun),
        "ToolExecution" => in_tool("/tools/0/execution", "execution", noun),
        "MetaObject" => in_tool("/tools/0/_meta", "_meta", noun),
        "Prompt" => carrier(
            Part::Result("prompts/list"),
            "ListPromptsResult",
            "/prompts/0",
            json!({"prompts": [noun]}),
        ),
        "PromptArgument" => carrier(
            Part::Result("prompts/list"),
            "ListPromptsResult",
            "/prompts/0/arguments/0",
            json!({"prompts": [{"name": "p", "arguments": [noun]}]}),
        ),
        "PromptMessage" => carrier(
            Part::Result("prompts/get"),
            "GetPromptResult",
            "/messages/0",
            json!({"messages": [noun]}),
        ),
        "Resource" => carrier(
            Part::Result("resources/list"),
            "ListResourcesResult",
            "/resources/0",
            json!({"resources": [noun]}),
        ),
        "ResourceTemplate" => carrier(
            Part::Result("resources/templates/list"),
            "ListResourceTemplatesResult",
            "/resourceTemplates/0",
            json!({"resourceTemplates": [noun]}),
        ),
        "TextResourceContents" | "BlobResourceContents" => carrier(
            Part::Result("resources/read"),
            "ReadResourceResult",
            "/contents/0",
            json!({"contents": [noun]}),
        ),
        "TextContent" | "ImageContent" | "AudioContent" | "ResourceLink" | "EmbeddedResource" => {
            carrier(Part::Result("tools/call"), "CallToolResult", "/content/0", json!({"content": [noun]}))
        }
        "Annotations" => carrier(
            Part::Result("tools/call"),
            "CallToolResult",
            "/content/0/annotations",
            json!({"content": [{"type": "text", "text": "t", "annotations": noun}]}),
        ),
        "ResultMetaObject" => carrier(
            Part::Result("tools/call"),
            "CallToolResult",
            "/_meta",
            json!({"content": [], "_meta": noun}),
        ),
        "RelatedTaskMetadata" => carrier(
            Part::Result("tools/call"),
            "CallToolResult",
            "/_meta/io.modelcontextprotocol~1related-task",
            json!({"content": [], "_meta": {"io.modelcontextprotocol/related-task": noun}}),
        ),
        "RequestMetaObject" => in_call("/_meta", "_meta", noun),
        "TaskMetadata" => in_call("/task", "task", noun),
        "InputResponses" => in_call("/inputResponses", "inputResponses", noun),
        "NotificationMetaObject" => carrier(
            Part::Params("notifications/tools/list_changed"),
            "ToolListChangedNotification",
            "/_meta",
            json!({"_meta": noun}),
        ),
        "Implementation" => carrier(
            Part::Result("initialize"),
            "InitializeResult",
            "/serverInfo",
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": noun}),
        ),
        "ClientCapabilities" => carrier(
            Part::Params("initialize"),
            "InitializeRequest",
            "/capabilities",
            json!({"protocolVersion": "2025-11-25", "capabilities": noun,
                "clientInfo": {"name": "c", "version": "1"}}),
        ),
        "ServerCapabilities" => carrier(
            Part::Result("initialize"),
            "InitializeResult",
            "/capabilities",
            json!({"protocolVersion": "2025-11-25", "capabilities": noun,
                "serverInfo": {"name": "s", "version": "1"}}),
        ),
        "PromptReference" | "ResourceTemplateReference" => completing(noun),
        "SamplingMessage" => in_sampling("/messages/0", "messages", json!([noun])),
        "ToolUseContent" => {
            let text = json!({"role": "assistant", "content": [noun]});
            in_sampling("/messages/0/content/0", "messages", json!([text]))
        }
        "ToolResultContent" => {
            in_sampling("/messages/0/content/0", "messages", json!([{"role": "user", "content": [noun]}]))
        }
        "ModelPreferences" => in_sampling("/modelPreferences", "modelPreferences", noun),
        "ModelHint" => in_sampling("/modelPreferences/hints/0", "modelPreferences", json!({"hints": [noun]})),
        "ToolChoice" => in_sampling("/toolChoice", "toolChoice", noun),
        "Root" => {
            carrier(Part::Result("roots/list"), "ListRootsResult", "/roots/0", json!({"roots": [noun]}))
        }
        "StringSchema"
        | "NumberSchema"
        | "BooleanSchema"
        | "LegacyTitledEnumSchema"
        | "UntitledSingleSelectEnumSchema"
        | "TitledSingleSelectEnumSchema"
        | "UntitledMultiSelectEnumSchema"
        | "TitledMultiSelectEnumSchema" => carrier(
            Part::Params("elicitation/create"),
            "ElicitRequest",
            "/requestedSchema/properties/field",
            json!({"message": "?", "requestedSchema": {"type": "object", "properties": {"field": noun}}}),
        ),
        "Task" => {
            carrier(Part::Result("tasks/list"), "ListTasksResult", "/tasks/0", json!({"tasks": [noun]}))
        }
        "InputRequests" => carrier(
            Part::Result("tools/call"),
            "InputRequiredResult",
            "/inputRequests",
            json!({"resultType": "input_required", "inputRequests": noun}),
        ),
        "SubscriptionFilter" => carrier(
            Part::Params("subscriptions/listen"),
            "SubscriptionsListenRequest",
            "/notifications",
            json!({"notifications": noun}),
        ),

        "RequestParams" => params("ping", "PingRequest", noun),
        "Result" => result("ping", "EmptyResult", noun),
        "PaginatedRequestParams" => params("tools/list", "ListToolsRequest", noun),
        "ListToolsResult" => result("tools/list", "ListToolsResult", noun),
        "ListPromptsResult" => result("prompts/list", "ListPromptsResult", noun),
        "ListResourcesResult" => result("resources/list", "ListResourcesResult", noun),
        "ListResourceTemplatesResult" => {
            result("resources/templates/list", "ListResourceTemplatesResult", noun)
        }
        "DiscoverResult" => result("server/discover", "DiscoverResult", noun),
        "CallToolRequestParams" => params("tools/call", "CallToolRequest", noun),
        "CallToolResult" => result("tools/call", "CallToolResult", noun),
        "InputRequiredResult" => result("tools/call", "InputRequiredResult", noun),
        "CreateTaskResult" => result("tools/call", "CreateTaskResult", noun),
        "GetPromptRequestParams" => params("prompts/get", "GetPromptRequest", noun),
        "GetPromptResult" => result("prompts/get", "GetPromptResult", noun),
        "ReadResourceRequestParams" => params("resources/read", "ReadResourceRequest", noun),
        "ReadResourceResult" => result("resources/read", "ReadResourceResult", noun),
        "CompleteRequestParams" => params("completion/complete", "CompleteRequest", noun),
        "CompleteResult" => result("completion/complete", "CompleteResult", noun),
        "CreateMessageRequestParams" => params("sampling/createMessage", "CreateMessageRequest", noun),
        "CreateMessageResult" => result("sampling/createMessage", "CreateMessageResult", noun),
        "ElicitRequestFormParams" | "ElicitRequestURLParams" => {
            params("elicitation/create", "ElicitRequest", noun)
        }
        "ElicitResult" => result("elicitation/create", "ElicitResult", noun),
        "ListRootsResult" => result("roots/list", "ListRootsResult", noun),
        "CancelledNotificationParams" => params("notifications/cancelled", "CancelledNotification", noun),
        "ProgressNotificationParams" => params("notifications/progress", "ProgressNotification", noun),
        "LoggingMessageNotificationParams" => {
            params("notifications/message", "LoggingMessageNotification", noun)
        }
        "ResourceUpdatedNotificationParams" => {
            params("notifications/resources/updated", "ResourceUpdatedNotification", noun)
        }
        "NotificationParams" => {
            params("notifications/prompts/list_changed", "PromptListChangedNotification", noun)
        }
        "SubscriptionsListenRequestParams" => {
            params("subscriptions/listen", "SubscriptionsListenRequest", noun)
        }
        "SubscriptionsAcknowledgedNotificationParams" => {
            params("notifications/subscriptions/acknowledged", "SubscriptionsAcknowledgedNotification", noun)
        }
        "SubscriptionsListenResult" => result("subscriptions/listen", "SubscriptionsListenResult", noun),
        "InitializeRequestParams" => params("initialize", "InitializeRequest", noun),
        "InitializeResult" => result("initialize", "InitializeResult", noun),
        "SetLevelRequestParams" => params("logging/setLevel", "SetLevelRequest", noun),
        "SubscribeRequestParams" => params("resources/subscribe", "SubscribeRequest", noun),
        "UnsubscribeRequestParams" => params("resources/unsubscribe", "UnsubscribeRequest", noun),
        "GetTaskResult" => result("tasks/get", "GetTaskResult", noun),
        "TaskStatusNotificationParams" => {
            params("notifications/tasks/status", "TaskStatusNotification", noun)
        }
        "ListTasksResult" => result("tasks/list", "ListTasksResult", noun),
        other => panic!("no payload is known that carries `{other}`: add it"),
    }
}

/// What becomes of a noun in a revision.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Fate {
    /// It is there, and fits.
    Fits,
    /// The revision has no name for it: its payload fits without it, or with something else in its place.
    Nameless,
    /// The revision has no such payload.
    NoPayload,
    /// The payload was refused: it cannot be said.
    Unsayable,
}

/// Lowers a noun and holds it, and the payload that carries it, against the schema.
fn fate(revision: Revision, schema: &Schema, Sample { definition, value }: Sample) -> Fate {
    let Carrier { part, whole, place, mut payload } = carrier(definition, value);
    let about = format!("`{definition}` for {revision}");
    if !schema.has(whole) {
        return Fate::NoPayload;
    }
    adjust(definition, revision, &mut payload);
    if revision.lower(part, &mut payload).is_err() {
        return Fate::Unsayable;
    }
    let noun = payload.pointer(place).cloned();
    let message = message(part, payload);
    schema.validates(whole, &message, &about);
    schema.lists_every_member(whole, &message, &about);
    if place.is_empty() {
        return Fate::Fits;
    }
    let Some(noun) = noun.filter(|_| schema.has(definition)) else { return Fate::Nameless };
    schema.validates(definition, &noun, &about);
    schema.lists_every_member(definition, &noun, &about);
    Fate::Fits
}

/// What the engine sees to, and what could not happen.
fn adjust(definition: &str, revision: Revision, payload: &mut Value) {
    match definition {
        // The newest revision has no such id; the engine gives one to a question that it sends in a session.
        "ElicitRequestURLParams" if payload.get("elicitationId").is_none() => {
            payload["elicitationId"] = json!("elicitation-1");
        }
        // One type stands for a task and for the result that brings one; only the result has `_meta`.
        "Task" | "CreateTaskResult" | "ListTasksResult" => {
            for place in ["/task", "/tasks/0"] {
                payload.pointer_mut(place).and_then(Value::as_object_mut).map(|task| task.remove("_meta"));
            }
        }
        // Nobody could have asked for several choices there.
        "ElicitResult" if revision.as_str() == "2025-06-18" => {
            payload["content"].as_object_mut().map(|content| content.remove("likes"));
        }
        _ => {}
    }
}

/// All that does not fit, for each revision. What is new here is a gap, and what is gone was one.
#[rustfmt::skip]
const GAPS: &[(&str, Fate, &[&str])] = &[
    ("2024-11-05", Fate::Nameless, &[
        "Annotations", "AudioContent", "Icon", "InputResponses", "MetaObject", "NotificationMetaObject",
        "RelatedTaskMetadata", "RequestMetaObject", "ResourceLink", "ResourceTemplateReference",
        "ResultMetaObject", "TaskMetadata", "ToolAnnotations", "ToolChoice", "ToolExecution",
    ]),
    ("2024-11-05", Fate::NoPayload, &[
        "BooleanSchema", "CreateTaskResult", "DiscoverResult", "ElicitRequestFormParams",
        "ElicitRequestURLParams", "ElicitResult", "GetTaskResult", "InputRequests", "InputRequiredResult",
        "LegacyTitledEnumSchema", "ListTasksResult", "NumberSchema", "StringSchema", "SubscriptionFilter",
        "SubscriptionsAcknowledgedNotificationParams", "SubscriptionsListenRequestParams",
        "SubscriptionsListenResult", "Task", "TaskStatusNotificationParams", "TitledMultiSelectEnumSchema",
        "TitledSingleSelectEnumSchema", "UntitledMultiSelectEnumSchema", "UntitledSingleSelectEnumSchema",
    ]),
    ("2024-11-05", Fate::Unsayable, &[
        "CreateMessageRequestParams", "CreateMessageResult", "ToolResultContent", "ToolUseContent",
    ]),
    ("2025-03-26", Fate::Nameless, &[
        "Icon", "InputResponses", "MetaObject", "NotificationMetaObject", "RelatedTaskMetadata",
        "RequestMetaObject", "ResourceLink", "ResourceTemplateReference", "ResultMetaObject",
        "TaskMetadata", "ToolChoice", "ToolExecution",
    ]),
    ("2025-03-26", Fate::NoPayload, &[
        "BooleanSchema", "CreateTaskResult", "DiscoverResult", "ElicitRequestFormParams",
        "ElicitRequestURLParams", "ElicitResult", "GetTaskResult", "InputRequests", "InputRequiredResult",
        "LegacyTitledEnumSchema", "ListTasksResult", "NumberSchema", "StringSchema", "SubscriptionFilter",
        "SubscriptionsAcknowledgedNotificationParams", "SubscriptionsListenRequestParams",
        "SubscriptionsListenResult", "Task", "TaskStatusNotificationParams", "TitledMultiSelectEnumSchema",
        "TitledSingleSelectEnumSchema", "UntitledMultiSelectEnumSchema", "UntitledSingleSelectEnumSchema",
    ]),
    ("2025-03-26", Fate::Unsayable, &[
        "CreateMessageRequestParams", "CreateMessageResult", "ToolResultContent", "ToolUseContent",
    ]),
    ("2025-06-18", Fate::Nameless, &[
        "Icon", "InputResponses", "LegacyTitledEnumSchema", "MetaObject", "NotificationMetaObject",
        "RelatedTaskMetadata", "RequestMetaObject", "ResultMetaObject", "TaskMetadata",
        "TitledSingleSelectEnumSchema", "ToolChoice", "ToolExecution", "UntitledSingleSelectEnumSchema",
    ]),
    ("2025-06-18", Fate::NoPayload, &[
        "CreateTaskResult", "DiscoverResult", "GetTaskResult", "InputRequests", "InputRequiredResult",
        "ListTasksResult", "SubscriptionFilter", "SubscriptionsAcknowledgedNotificationParams",
        "SubscriptionsListenRequestParams", "SubscriptionsListenResult", "Task",
        "TaskStatusNotificationParams",
    ]),
    ("2025-06-18", Fate::Unsayable, &[
        "CreateMessageRequestParams", "CreateMessageResult", "ElicitRequestFormParams",
        "ElicitRequestURLParams", "TitledMultiSelectEnumSchema", "ToolResultContent", "ToolUseContent",
        "UntitledMultiSelectEnumSchema",
    ]),
    ("2025-11-25", Fate::Nameless, &[
        "InputResponses", "MetaObject", "NotificationMetaObject", "RequestMetaObject", "ResultMetaObject",
    ]),
    ("2025-11-25", Fate::NoPayload, &[
        "DiscoverResult", "InputRequests", "InputRequiredResult", "SubscriptionFilter",
        "SubscriptionsAcknowledgedNotificationParams", "SubscriptionsListenRequestParams",
        "SubscriptionsListenResult",
    ]),
];

#[test]
fn every_noun_fits_the_schema_of_every_revision_or_is_a_known_gap() {
    for revision in Revision::all().filter(|revision| *revision != Revision::LATEST) {
        let Some(schema) = schema(revision) else { return };
        let mut fates: BTreeMap<Fate, BTreeSet<&str>> = BTreeMap::new();
        for sample in samples::samples().into_iter().chain(samples::session_samples()) {
            let definition = sample.definition;
            fates.entry(fate(revision, &schema, sample)).or_default().insert(definition);
        }
        let fitting = fates.remove(&Fate::Fits).unwrap_or_default();
        assert!(fitting.len() > 40, "only {} nouns fit {revision}", fitting.len());
        let known = GAPS.iter().filter(|(name, ..)| *name == revision.as_str());
        let known = known.map(|(_, fate, nouns)| (*fate, nouns.iter().copied().collect())).collect();
        assert_eq!(fates, known, "{revision}");
    }
}
