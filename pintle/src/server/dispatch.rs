use std::{borrow::Cow, sync::Arc};

use pintle_proto::server::Outcome;
use pintle_types::{
    RawObject, RpcError,
    schema::{CompleteParams, CompleteResult, Completion, CompletionReference},
};

use super::{Cx, Entry, Partial, completion::Completers, lists, run::Handling};

/// What a request led to.
pub(crate) enum Start {
    /// Its end: nothing had to be waited for.
    Done(Outcome),
    /// A handler that runs.
    Run(Handling),
}

/// Finds who answers, through the layers if there are any.
pub(crate) fn start(cx: Cx) -> Start {
    match cx.state().layered.clone() {
        Some(layered) => Start::Run(layered.go(cx)),
        None => route(cx),
    }
}

/// The end of every way: a list, a handler, or nobody.
pub(crate) fn route(cx: Cx) -> Start {
    let found = match cx.method() {
        "tools/call" => tool(&cx),
        "prompts/get" => prompt(&cx),
        "resources/read" => resource(&cx),
        "completion/complete" => complete(&cx),
        "tools/list" => return Start::Done(lists::tools(&cx)),
        "prompts/list" => return Start::Done(lists::prompts(&cx)),
        "resources/list" => return Start::Done(lists::resources(&cx)),
        "resources/templates/list" => return Start::Done(lists::templates(&cx)),
        method => match cx.state().custom.get(method).cloned() {
            None => Err(Outcome::Failed(RpcError::method_not_found(method))),
            Some(custom) => {
                let running = (custom.0)(cx.clone());
                Ok(Box::pin(async move {
                    match running.await {
                        Ok(result) => Outcome::Complete(result.into()),
                        Err(error) => Outcome::Failed(error),
                    }
                }) as Handling)
            }
        },
    };
    match found {
        Ok(handling) => Start::Run(handling),
        Err(outcome) => Start::Done(outcome),
    }
}

/// The text of a member that must be a string.
fn text<'a>(cx: &'a Cx, name: &str) -> Result<Cow<'a, str>, Outcome> {
    let method = cx.method();
    let refuse = |said: String| Outcome::Failed(RpcError::invalid_params(said));
    let Some(raw) = cx.params().get(name) else {
        return Err(refuse(format!("`{method}` needs `{name}`: send it in `params`")));
    };
    if let Some(inner) = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'))
        && !inner.contains('\\')
    {
        return Ok(Cow::Borrowed(inner));
    }
    serde_json::from_str(raw)
        .map(Cow::Owned)
        .map_err(|error| refuse(format!("`{name}` of `{method}` is not a string: {error}")))
}

fn tool(cx: &Cx) -> Result<Handling, Outcome> {
    let name = text(cx, "name")?;
    let route = cx.state().catalogue.tools.get(&name);
    match route.filter(|route| lists::sees(cx, Entry::Tool(&route.tool))) {
        Some(route) => Ok(route.next.go(cx.clone())),
        None => Err(unknown("tool", &name)),
    }
}

fn prompt(cx: &Cx) -> Result<Handling, Outcome> {
    let name = text(cx, "name")?;
    let route = cx.state().catalogue.prompts.get(&name);
    match route.filter(|route| lists::sees(cx, Entry::Prompt(&route.prompt))) {
        Some(route) => Ok(route.next.go(cx.clone())),
        None => Err(unknown("prompt", &name)),
    }
}

fn unknown(kind: &str, name: &str) -> Outcome {
    let shown: String = name.chars().take(128).collect();
    Outcome::Failed(RpcError::invalid_params(format!("no such {kind}: `{shown}`")))
}

fn resource(cx: &Cx) -> Result<Handling, Outcome> {
    let uri = text(cx, "uri")?;
    let catalogue = &cx.state().catalogue;
    let fixed =
        catalogue.resources.get(&uri).filter(|route| lists::sees(cx, Entry::Resource(&route.resource)));
    if let Some(route) = fixed {
        return Ok(route.next.go(cx.clone()));
    }
    let sees = |route: &&Arc<super::TemplateRoute>| lists::sees(cx, Entry::Template(&route.described));
    match catalogue.template(&uri).filter(sees) {
        Some(route) => Ok(route.next.go(cx.clone())),
        None => Err(Outcome::NotFound { uri: uri.into_owned() }),
    }
}

/// Values that complete what is being typed, at most a hundred.
fn complete(cx: &Cx) -> Result<Handling, Outcome> {
    let refuse = |said: String| Outcome::Failed(RpcError::invalid_params(said));
    let params: CompleteParams =
        cx.params().decode().map_err(|error| refuse(format!("`completion/complete`: {error}")))?;
    let completers = completers(cx, &params.reference)
        .ok_or_else(|| refuse("`ref` names nothing that this server has".to_owned()))?;
    let completer = completers.get(&params.argument.name);
    let partial = Partial {
        value: params.argument.value,
        context: params.context.and_then(|context| context.arguments).unwrap_or_default(),
        principal: cx.principal().map(str::to_owned),
    };
    Ok(Box::pin(async move {
        let mut values = match completer {
            Some(completer) => completer(partial).await,
            None => Vec::new(),
        };
        let total = values.len();
        values.truncate(MOST);
        let mut completion = Completion::new(values);
        completion.total = i64::try_from(total).ok();
        completion.has_more = Some(total > MOST);
        match RawObject::from_serialize(&CompleteResult::new(completion)) {
            Ok(result) => Outcome::Complete(result.into()),
            Err(error) => Outcome::Failed(RpcError::internal(error.to_string())),
        }
    }))
}

/// As many as the protocol allows.
const MOST: usize = 100;

fn completers(cx: &Cx, reference: &CompletionReference) -> Option<Completers> {
    let catalogue = &cx.state().catalogue;
    match reference {
        CompletionReference::Prompt(prompt) => {
            let route = catalogue.prompts.get(&prompt.name)?;
            lists::sees(cx, Entry::Prompt(&route.prompt)).then(|| route.completers.clone())
        }
        CompletionReference::Resource(resource) => {
            let route =
                catalogue.templates.get(&resource.uri).or_else(|| catalogue.template(&resource.uri))?;
            lists::sees(cx, Entry::Template(&route.described)).then(|| route.completers.clone())
        }
        CompletionReference::Unknown(other) if cx.state().settings.tool_completion => {
            let named = |key: &str| other.get(key).and_then(serde_json::Value::as_str);
            let route = catalogue.tools.get(named("name").filter(|_| named("type") == Some("ref/tool"))?)?;
            lists::sees(cx, Entry::Tool(&route.tool)).then(|| route.completers.clone())
        }
        _ => None,
    }
}
