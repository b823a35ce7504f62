use std::any::Any;

use pintle_proto::server::Outcome;
use pintle_types::{
    JsonObject, RawObject, RpcError, plain_error,
    schema::{CompleteParams, CompleteResult, Completion, CompletionReference},
};
use serde_json::Value;

use super::completion::{Completer, caught, fixed};
use crate::{
    server::{
        Cx, Partial, ProvidedEntry, RequestError, Target,
        core::{driver::run::HandlerFuture, lookup::OwnRoute},
    },
    suggestion::MAX_VALUES,
};

/// Answers `completion/complete` for an entry of the server itself.
///
/// If a completer fails, the result has no values and the error is logged.
pub(crate) fn complete(
    cx: &Cx,
    target: &Target<'_>,
    entry: &ProvidedEntry,
    own: &OwnRoute,
) -> Result<HandlerFuture, Outcome> {
    let refuse = |reason: String| Outcome::Failed(RpcError::invalid_params(reason));
    let params = params(cx)?;
    if let CompletionReference::Unknown(other) = &params.reference {
        let is_tool = other.get("type").and_then(Value::as_str) == Some("ref/tool");
        if !is_tool || !cx.snapshot().settings.capabilities.tool_completion {
            return Err(unknown_reference());
        }
    }
    // The values of an argument may reveal as much as the route itself.
    entry.admit(cx, None, target).map_err(|refused| refused.or_unknown(unknown_reference))?;
    let name = params.argument.name.clone();
    let completer = completer(own, &name).map_err(refuse)?;
    let (cx, partial) = (cx.clone(), Partial::new(cx, params));
    Ok(Box::pin(async move {
        let values = match completer {
            Some(completer) => caught(move || completer(cx, partial))
                .await
                .unwrap_or_else(|panic| Err(RequestError::new(panic_message(&*panic)))),
            None => Ok(Default::default()),
        };
        let values = values.unwrap_or_else(|error| {
            tracing::warn!(argument = name, error = error.describe(), "a completer failed");
            Default::default()
        });
        let found = values.values.len();
        let total = values.total.unwrap_or(found as u64).max(found as u64);
        let mut completion = Completion::new(values.values.into_iter().take(MAX_VALUES).collect());
        completion.total = i64::try_from(total).ok();
        completion.has_more = Some(total > found.min(MAX_VALUES) as u64);
        let mut result = CompleteResult::new(completion);
        result.meta = values.meta;
        match RawObject::from_serialize(&result) {
            Ok(result) => Outcome::Complete(result.into()),
            Err(error) => Outcome::Failed(RpcError::internal(error.to_string())),
        }
    }))
}

/// Decodes the params of a completion.
pub(crate) fn params(cx: &Cx) -> Result<CompleteParams, Outcome> {
    let unreadable = |error: serde_json::Error| format!("`completion/complete`: {}", plain_error(&error));
    cx.params().decode().map_err(|error| Outcome::Failed(RpcError::invalid_params(unreadable(error))))
}

/// Returns the outcome of a completion for an entry that does not exist.
pub(crate) fn unknown_reference() -> Outcome {
    Outcome::Failed(RpcError::invalid_params("`ref` names nothing that this server has"))
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let message =
        panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", message.unwrap_or("?"))
}

/// Returns the completer of an argument. An unknown argument is an error.
fn completer(own: &OwnRoute, argument: &str) -> Result<Option<Completer>, String> {
    let unknown = |kind: &str, name: &str| {
        let shown: String = argument.chars().take(80).collect();
        format!("the {kind} `{name}` has no argument `{shown}`")
    };
    match own {
        OwnRoute::Prompt(route) => match route.completers.get(argument) {
            Some(completer) => Ok(Some(completer)),
            None if route.prompt.arguments.iter().flatten().any(|known| known.name == argument) => Ok(None),
            None => Err(unknown("prompt", &route.prompt.name)),
        },
        OwnRoute::Template(route, _) => match route.completers.get(argument) {
            Some(completer) => Ok(Some(completer)),
            None if route
                .template
                .iter()
                .flat_map(|template| template.names())
                .any(|name| name == argument) =>
            {
                Ok(None)
            }
            None => Err(unknown("resource template", &route.resource_template.uri_template)),
        },
        OwnRoute::Tool(route) => {
            let schema = &route.tool.input_schema;
            let property = schema.get("properties").and_then(|known| known.get(argument));
            match (route.completers.get(argument), property) {
                (Some(completer), _) => Ok(Some(completer)),
                (None, Some(property)) => Ok(allowed(schema, property, 8).map(fixed)),
                (None, None) => Err(unknown("tool", &route.tool.name)),
            }
        }
        _ => Err("`ref` names nothing that has arguments".to_owned()),
    }
}

/// Returns the values that a schema allows, if it lists them. `depth` limits how many references are followed.
pub(crate) fn allowed(root: &JsonObject, schema: &Value, depth: u8) -> Option<Vec<String>> {
    let depth = depth.checked_sub(1)?;
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    };
    if let Some(value) = schema.get("const") {
        return text(value).map(|value| vec![value]);
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        return Some(values.iter().filter_map(text).collect());
    }
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let name = name.strip_prefix("#/$defs/").or_else(|| name.strip_prefix("#/definitions/"))?;
        let defined = root.get("$defs").or_else(|| root.get("definitions"))?.get(name)?;
        return allowed(root, defined, depth);
    }
    for keyword in ["oneOf", "anyOf", "allOf"] {
        if let Some(Value::Array(parts)) = schema.get(keyword) {
            let values: Vec<_> =
                parts.iter().filter_map(|part| allowed(root, part, depth)).flatten().collect();
            return (!values.is_empty()).then_some(values);
        }
    }
    let is = |kind: &str| match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|found| found == kind),
        Some(found) => found == kind,
        None => false,
    };
    if is("boolean") {
        return Some(vec!["true".to_owned(), "false".to_owned()]);
    }
    schema.get("items").and_then(|items| allowed(root, items, depth))
}
