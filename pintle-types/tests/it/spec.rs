//! The nouns against the specification's own examples and schema.

use std::{
    collections::BTreeSet,
    env,
    fmt::Debug,
    fs, io,
    path::{Path, PathBuf},
};

use pintle_types::{
    RpcError,
    method::{
        CallTool, Cancelled, Complete, CreateMessage, Discover, Elicit, GetPrompt, ListPrompts,
        ListResourceTemplates, ListResources, ListRoots, ListTools, Listen, LoggingMessage, Method,
        NOTIFICATIONS, NotificationKind, Progress, PromptsListChanged, REQUESTS, ReadResource,
        ResourceUpdated, ResourcesListChanged, SubscriptionsAcknowledged, ToolsListChanged,
    },
    schema::{
        ClientCapabilities, ContentBlock, ElicitParams, InputRequests, InputRequiredResult, InputResponses,
        ListParams, MissingCapabilityData, ModelPreferences, PrimitiveSchema, Resource, ResourceContents,
        ResultType, Root, SamplingMessage, ServerCapabilities, Tool, UnsupportedVersionData,
    },
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::samples::{self, Sample};

const REVISION: &str = "2026-07-28";
const LAST_SESSION_REVISION: &str = "2025-11-25";
const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", LAST_SESSION_REVISION, REVISION];

#[test]
fn every_example_comes_back_and_is_understood() {
    let Some(spec) = spec() else {
        println!("skipped: no specification found; set PINTLE_SPEC_DIR to its folder");
        return;
    };
    let mut seen = 0;
    for folder in children(&spec.join(REVISION).join("examples")).unwrap() {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let check = check_for(&name).unwrap_or_else(|| panic!("no type for the examples of `{name}`"));
        for file in children(&folder).unwrap() {
            let example: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
            check(&example).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            seen += 1;
        }
    }
    assert!(seen > 100, "only {seen} examples");
}

#[test]
fn every_sample_fits_the_schema() {
    let Some(spec) = spec() else {
        println!("skipped: no specification found; set PINTLE_SPEC_DIR to its folder");
        return;
    };
    fits(&spec, REVISION, samples::samples());
    fits(&spec, LAST_SESSION_REVISION, samples::session_samples());
}

#[test]
fn every_noun_of_the_schema_has_a_sample() {
    let Some(spec) = spec() else {
        println!("skipped: no specification found; set PINTLE_SPEC_DIR to its folder");
        return;
    };
    let schema = schema(&spec, REVISION);
    let sampled: BTreeSet<_> = samples::samples().into_iter().map(|sample| sample.definition).collect();
    // What others are made of, not nouns of their own.
    let bases = [
        "BaseMetadata",
        "CacheableResult",
        "Error",
        "Icons",
        "InputResponseRequestParams",
        "PaginatedResult",
        "ResourceContents",
        "ResourceRequestParams",
        "SubscriptionsListenResultMetaObject",
    ];
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        let Some(properties) = definition["properties"].as_object() else { continue };
        let is_envelope = ["jsonrpc", "method", "code"].iter().any(|member| properties.contains_key(*member));
        if !is_envelope && !bases.contains(&name.as_str()) {
            assert!(sampled.contains(name.as_str()), "no sample of `{name}`");
        }
    }
}

#[test]
fn every_method_of_every_revision_is_in_the_table() {
    let Some(spec) = spec() else {
        println!("skipped: no specification found; set PINTLE_SPEC_DIR to its folder");
        return;
    };
    let mut named = BTreeSet::new();
    for revision in REVISIONS {
        let schema = schema(&spec, revision);
        for definition in schema["$defs"].as_object().or(schema["definitions"].as_object()).unwrap().values()
        {
            named.extend(definition["properties"]["method"]["const"].as_str().map(str::to_owned));
        }
    }
    let known: BTreeSet<_> = REQUESTS.iter().chain(NOTIFICATIONS).map(|row| row.name.to_owned()).collect();
    assert_eq!(known.len(), REQUESTS.len() + NOTIFICATIONS.len(), "a name is there twice");
    assert_eq!(named, known);
}

fn fits(spec: &Path, revision: &str, samples: Vec<Sample>) {
    let mut schema = schema(spec, revision);
    for Sample { definition, value } in samples {
        schema["$ref"] = json!(format!("#/$defs/{definition}"));
        let validator = jsonschema::options().should_validate_formats(true).build(&schema).expect("a schema");
        assert!(!validator.is_valid(&json!(7)), "`{definition}` takes anything");
        let errors: Vec<_> = validator
            .iter_errors(&value)
            .map(|error| format!("{error} at `{}`", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "`{definition}`: {errors:?} in {value:#}");
        for (property, _) in schema["$defs"][definition]["properties"].as_object().into_iter().flatten() {
            assert!(value.get(property).is_some(), "the sample of `{definition}` lacks `{property}`");
        }
    }
}

type Check = fn(&Value) -> Result<(), String>;

fn check_for(folder: &str) -> Option<Check> {
    Some(match folder {
        "AudioContent" | "EmbeddedResource" | "ImageContent" | "ResourceLink" | "TextContent"
        | "ToolResultContent" | "ToolUseContent" => same::<ContentBlock>,
        "BlobResourceContents" | "TextResourceContents" => same::<ResourceContents>,
        "BooleanSchema"
        | "NumberSchema"
        | "StringSchema"
        | "TitledMultiSelectEnumSchema"
        | "TitledSingleSelectEnumSchema"
        | "UntitledMultiSelectEnumSchema"
        | "UntitledSingleSelectEnumSchema" => same::<PrimitiveSchema>,
        "ClientCapabilities" => same::<ClientCapabilities>,
        "ServerCapabilities" => same::<ServerCapabilities>,
        "InputRequests" => same::<InputRequests>,
        "InputResponses" => same::<InputResponses>,
        "InputRequiredResult" => same::<InputRequiredResult>,
        "ModelPreferences" => same::<ModelPreferences>,
        "PaginatedRequestParams" => same::<ListParams>,
        "Resource" => same::<Resource>,
        "Root" => same::<Root>,
        "SamplingMessage" => same::<SamplingMessage>,
        "Tool" => same::<Tool>,
        "ElicitRequestFormParams" | "ElicitRequestURLParams" => same::<ElicitParams>,

        "CallToolRequest" => request::<CallTool>,
        "CallToolRequestParams" => same::<<CallTool as Method>::Params>,
        "CallToolResult" => same::<<CallTool as Method>::Result>,
        "CallToolResultResponse" => response::<CallTool>,
        "CompleteRequest" => request::<Complete>,
        "CompleteRequestParams" => same::<<Complete as Method>::Params>,
        "CompleteResult" => same::<<Complete as Method>::Result>,
        "CompleteResultResponse" => response::<Complete>,
        "CreateMessageRequest" => request::<CreateMessage>,
        "CreateMessageRequestParams" => same::<<CreateMessage as Method>::Params>,
        "CreateMessageResult" => same::<<CreateMessage as Method>::Result>,
        "DiscoverRequest" => request::<Discover>,
        "DiscoverResult" => same::<<Discover as Method>::Result>,
        "DiscoverResultResponse" => response::<Discover>,
        "ElicitRequest" => request::<Elicit>,
        "ElicitResult" => same::<<Elicit as Method>::Result>,
        "GetPromptRequest" => request::<GetPrompt>,
        "GetPromptRequestParams" => same::<<GetPrompt as Method>::Params>,
        "GetPromptResult" => same::<<GetPrompt as Method>::Result>,
        "GetPromptResultResponse" => response::<GetPrompt>,
        "ListPromptsRequest" => request::<ListPrompts>,
        "ListPromptsResult" => same::<<ListPrompts as Method>::Result>,
        "ListPromptsResultResponse" => response::<ListPrompts>,
        "ListResourceTemplatesRequest" => request::<ListResourceTemplates>,
        "ListResourceTemplatesResult" => same::<<ListResourceTemplates as Method>::Result>,
        "ListResourceTemplatesResultResponse" => response::<ListResourceTemplates>,
        "ListResourcesRequest" => request::<ListResources>,
        "ListResourcesResult" => same::<<ListResources as Method>::Result>,
        "ListResourcesResultResponse" => response::<ListResources>,
        "ListRootsRequest" => request::<ListRoots>,
        "ListRootsResult" => same::<<ListRoots as Method>::Result>,
        "ListToolsRequest" => request::<ListTools>,
        "ListToolsResult" => same::<<ListTools as Method>::Result>,
        "ListToolsResultResponse" => response::<ListTools>,
        "ReadResourceRequest" => request::<ReadResource>,
        "ReadResourceResult" => same::<<ReadResource as Method>::Result>,
        "ReadResourceResultResponse" => response::<ReadResource>,
        "SubscriptionsListenRequest" => request::<Listen>,
        "SubscriptionsListenResult" => same::<<Listen as Method>::Result>,
        "SubscriptionsListenResultResponse" => response::<Listen>,

        "CancelledNotification" => notification::<Cancelled>,
        "CancelledNotificationParams" => same::<<Cancelled as NotificationKind>::Params>,
        "LoggingMessageNotification" => notification::<LoggingMessage>,
        "LoggingMessageNotificationParams" => same::<<LoggingMessage as NotificationKind>::Params>,
        "ProgressNotification" => notification::<Progress>,
        "ProgressNotificationParams" => same::<<Progress as NotificationKind>::Params>,
        "PromptListChangedNotification" => notification::<PromptsListChanged>,
        "ResourceListChangedNotification" => notification::<ResourcesListChanged>,
        "ResourceUpdatedNotification" => notification::<ResourceUpdated>,
        "ResourceUpdatedNotificationParams" => same::<<ResourceUpdated as NotificationKind>::Params>,
        "SubscriptionsAcknowledgedNotification" => notification::<SubscriptionsAcknowledged>,
        "ToolListChangedNotification" => notification::<ToolsListChanged>,

        "InternalError" | "InvalidParamsError" | "MethodNotFoundError" | "ParseError" => same::<RpcError>,
        "HeaderMismatchError" => |example| same::<RpcError>(&example["error"]),
        "MissingRequiredClientCapabilityError" => error::<MissingCapabilityData>,
        "UnsupportedProtocolVersionError" => error::<UnsupportedVersionData>,
        _ => return None,
    })
}

fn same<T: Debug + DeserializeOwned + Serialize>(example: &Value) -> Result<(), String> {
    let noun: T = serde_json::from_str(&example.to_string()).map_err(|error| error.to_string())?;
    let printed = serde_json::to_value(&noun).map_err(|error| error.to_string())?;
    if printed != *example {
        return Err(format!("came back as {printed:#}"));
    }
    // Nothing is lost even when nothing is understood, so that is to be looked at as well.
    let inside = format!("{noun:?}");
    match ["extra: {\"", "Unknown(", "Other("].iter().find(|sign| inside.contains(**sign)) {
        Some(sign) => Err(format!("`{sign}` in {inside}")),
        None => Ok(()),
    }
}

fn request<M: Method<Params: Debug>>(example: &Value) -> Result<(), String> {
    method::<M::Params>(M::NAME, example)
}

fn notification<N: NotificationKind<Params: Debug>>(example: &Value) -> Result<(), String> {
    method::<N::Params>(N::NAME, example)
}

fn method<P: Debug + DeserializeOwned + Serialize>(name: &str, example: &Value) -> Result<(), String> {
    if example["method"] != name {
        return Err(format!("the method is {}, not `{name}`", example["method"]));
    }
    same::<P>(example.get("params").unwrap_or(&json!({})))
}

fn response<M: Method<Result: Debug>>(example: &Value) -> Result<(), String> {
    let result = &example["result"];
    if result["resultType"] == ResultType::InputRequired.as_str() {
        same::<InputRequiredResult>(result)
    } else {
        same::<M::Result>(result)
    }
}

fn error<D: Debug + DeserializeOwned + Serialize>(example: &Value) -> Result<(), String> {
    same::<RpcError>(&example["error"])?;
    same::<D>(&example["error"]["data"])
}

fn spec() -> Option<PathBuf> {
    let beside = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/spec"));
    let spec = env::var_os("PINTLE_SPEC_DIR").map_or_else(beside, PathBuf::from);
    spec.is_dir().then_some(spec)
}

fn schema(spec: &Path, revision: &str) -> Value {
    let text =
        fs::read(spec.join(revision).join("schema.json")).expect("a schema in the folder of its revision");
    serde_json::from_slice(&text).expect("a schema in JSON")
}

fn children(folder: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
}
