use std::{any::Any, sync::Arc};

use pintle_proto::server::Outcome;
use pintle_types::{
    JsonObject, RawObject, RpcError, plain_error,
    schema::{CompleteParams, CompleteResult, Completion, CompletionReference},
};
use serde_json::Value;

use super::{
    completion::{Completer, caught, fixed},
    options::CatalogueRoute as _,
    overlay::Overlay,
};
use crate::{
    server::{
        Access, Cx, Partial, PromptRoute, RequestError, Target, TemplateRoute, ToolRoute,
        call::run::HandlerFuture,
        gate::admission::{AccessRefusal, Used, admit},
    },
    suggestion::MAX_VALUES,
    uri::Uri,
};

/// Answers `completion/complete`.
///
/// If a completer fails, the result has no values and the error is logged.
pub(crate) fn complete(cx: &Cx) -> Result<HandlerFuture, Outcome> {
    let refuse = |reason: String| Outcome::Failed(RpcError::invalid_params(reason));
    let params: CompleteParams = cx
        .params()
        .decode()
        .map_err(|error| refuse(format!("`completion/complete`: {}", plain_error(&error))))?;
    let target = CompletionTarget::find(cx, &params.reference).ok_or_else(unknown_reference)?;
    // The values of an argument may reveal as much as the route itself.
    target.admit(cx).map_err(|refused| refused.or_unknown(unknown_reference))?;
    let name = params.argument.name.clone();
    let completer = target.completer(&name).map_err(refuse)?;
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

/// Returns the outcome of a completion for an entry that does not exist.
pub(crate) fn unknown_reference() -> Outcome {
    Outcome::Failed(RpcError::invalid_params("`ref` names nothing that this server has"))
}

/// Returns whether a completion may be one for a provider: the server has no entry of this name itself.
pub(crate) fn is_provided(cx: &Cx) -> bool {
    let snapshot = cx.snapshot();
    let catalogue = &snapshot.catalogue;
    !snapshot.providers.is_empty()
        && match cx.target() {
            Some(Target::Prompt(name)) => catalogue.prompts.get(&name).is_none(),
            // One that only matches the URI may be less literal than that of a provider.
            Some(Target::Template(uri)) => catalogue.templates.get(&uri).is_none(),
            Some(Target::Tool(name)) => {
                let own = Overlay::of(cx).and_then(|overlay| overlay.tool(&name));
                own.is_none() && catalogue.tools.get(&name).is_none()
            }
            _ => false,
        }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let message =
        panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", message.unwrap_or("?"))
}

/// The route whose argument is completed.
enum CompletionTarget {
    Prompt(Arc<PromptRoute>),
    /// A template, and the URI that it was named by, if it was not by its text.
    Template(Arc<TemplateRoute>, Option<String>),
    Tool(Arc<ToolRoute>),
}

impl CompletionTarget {
    fn find(cx: &Cx, reference: &CompletionReference) -> Option<Self> {
        let catalogue = &cx.snapshot().catalogue;
        match reference {
            CompletionReference::Prompt(prompt) => {
                catalogue.prompts.get(&prompt.name).map(|route| Self::Prompt(route.clone()))
            }
            CompletionReference::Resource(resource) => {
                let (named, uri) = (catalogue.templates.get(&resource.uri), Uri::of(&resource.uri));
                if let Some(route) = named {
                    return Some(Self::Template(route.clone(), None));
                }
                // Readers may differ about this spelling.
                let is_clear = !cx.snapshot().refuses_spelling(&uri);
                let (route, _) = catalogue.template(&uri).filter(|_| is_clear)?;
                Some(Self::Template(route.clone(), Some(resource.uri.clone())))
            }
            CompletionReference::Unknown(other) if cx.snapshot().settings.capabilities.tool_completion => {
                let named = |key: &str| other.get(key).and_then(Value::as_str);
                let name = named("name").filter(|_| named("type") == Some("ref/tool"))?;
                let own = Overlay::of(cx).and_then(|overlay| overlay.tool(name));
                let route = own.as_ref().or_else(|| catalogue.tools.get(name))?;
                Some(Self::Tool(route.clone()))
            }
            _ => None,
        }
    }

    /// Decides whether the caller may complete arguments of the route.
    fn admit(&self, cx: &Cx) -> Result<(), AccessRefusal> {
        let used = match self {
            Self::Prompt(route) => Used::own(&route.options.required, route.entry()),
            Self::Template(route, uri) => {
                Used { uri: uri.as_deref(), ..Used::own(&route.options.required, route.entry()) }
            }
            Self::Tool(route) => Used::own(&route.options.required, route.entry()),
        };
        admit(cx, Access::Complete, &used).map(drop)
    }

    /// Returns the completer of an argument. An unknown argument is an error.
    fn completer(&self, argument: &str) -> Result<Option<Completer>, String> {
        let unknown = |kind: &str, name: &str| {
            let shown: String = argument.chars().take(80).collect();
            format!("the {kind} `{name}` has no argument `{shown}`")
        };
        match self {
            Self::Prompt(route) => match route.completers.get(argument) {
                Some(completer) => Ok(Some(completer)),
                None if route.prompt.arguments.iter().flatten().any(|known| known.name == argument) => {
                    Ok(None)
                }
                None => Err(unknown("prompt", &route.prompt.name)),
            },
            Self::Template(route, _) => match route.completers.get(argument) {
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
            Self::Tool(route) => {
                let schema = &route.tool.input_schema;
                let property = schema.get("properties").and_then(|known| known.get(argument));
                match (route.completers.get(argument), property) {
                    (Some(completer), _) => Ok(Some(completer)),
                    (None, Some(property)) => Ok(allowed(schema, property, 8).map(fixed)),
                    (None, None) => Err(unknown("tool", &route.tool.name)),
                }
            }
        }
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
