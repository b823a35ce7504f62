use std::borrow::Cow;

use pintle_proto::{http::Streams, server::Outcome};
use pintle_types::{RawValue, RpcError, method};

use super::{cx::Called, replay, run::HandlerFuture};
use crate::server::{
    Cx, Entry, Next, Principal, ToolRoute,
    access::required::Required,
    catalogue::{complete, lists, source, texts::Given},
};

/// What a request led to.
pub(crate) enum Start {
    /// Its end: nothing had to be waited for.
    Done(Outcome),
    /// A handler that runs.
    Run(HandlerFuture),
}

/// Finds who answers, through the layers if there are any.
pub(crate) fn start(cx: &Cx) -> Start {
    match &cx.state().layered {
        Some(layered) => Start::Run(layered.go(cx.clone())),
        None => route(cx),
    }
}

/// The end of every way: a list, a handler, or nobody.
pub(crate) fn route(cx: &Cx) -> Start {
    let found = match cx.method() {
        method::TOOLS_CALL => tool(cx),
        method::PROMPTS_GET => prompt(cx),
        method::RESOURCES_READ => resource(cx),
        method::COMPLETION_COMPLETE => complete::complete(cx),
        method::TOOLS_LIST => return Start::Done(lists::tools(cx)),
        method::PROMPTS_LIST => return Start::Done(lists::prompts(cx)),
        method::RESOURCES_LIST if !cx.state().catalogue.sources.is_empty() => {
            Ok(Box::pin(source::list(cx.clone())) as HandlerFuture)
        }
        method::RESOURCES_LIST => return Start::Done(lists::resources(cx)),
        method::RESOURCES_TEMPLATES_LIST => return Start::Done(lists::templates(cx)),
        method => match cx.state().custom.get(method).cloned() {
            None => Err(Outcome::Failed(RpcError::method_not_found(method))),
            Some(custom) => {
                let running = (custom.0)(cx.clone());
                Ok(Box::pin(async move {
                    match running.await {
                        Ok(result) => Outcome::Complete(result.into()),
                        Err(error) => Outcome::Failed(error),
                    }
                }) as HandlerFuture)
            }
        },
    };
    match found {
        Ok(handling) => Start::Run(handling),
        Err(outcome) => Start::Done(outcome),
    }
}

/// Runs a handler: nothing of it before the state that the call came with is the call's own. Whether the caller may have
/// it has been decided.
fn go(cx: &Cx, next: &Next) -> HandlerFuture {
    if !cx.call().returned() {
        return next.go(cx.clone());
    }
    let next = next.clone();
    replay::enter(cx, move |cx| next.go(cx))
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

fn tool(cx: &Cx) -> Result<HandlerFuture, Outcome> {
    let name = text(cx, "name")?;
    let route = cx.state().catalogue.tools.get(&name);
    match route.filter(|route| lists::sees(cx, route)) {
        Some(route) => {
            permitted(cx, &route.options.required, &name)?;
            let arguments = sent(cx);
            if !arguments.starts_with('{') {
                let said =
                    "`arguments` of `tools/call` is not an object: send one with the arguments by name";
                return Err(Outcome::Failed(RpcError::invalid_params(said)));
            }
            mirrored(cx, route)?;
            let filled = route.ready.check.check_arguments(arguments).map_err(Outcome::BadArguments)?;
            cx.call_tool(Called { route: route.clone(), filled });
            Ok(go(cx, &route.options.next))
        }
        None => Err(unknown("tool", &name)),
    }
}

/// Over HTTP this was decided before, with an answer that says how to get more. Everywhere else it is decided here, and
/// here once more: against the same state that runs the call.
pub(crate) fn permitted(cx: &Cx, required: &Required, name: &str) -> Result<(), Outcome> {
    if required.is_met(cx.left()) {
        return Ok(());
    }
    let shown: String = name.chars().take(128).collect();
    let mut said = format!("`{shown}` needs more than the caller may");
    if cx.identity() == Principal::Anonymous {
        said += ", and nobody has checked who is calling";
    }
    Err(Outcome::Failed(RpcError::invalid_request(said)))
}

/// Headers that repeat arguments must say the same, where a revision has them.
fn mirrored(cx: &Cx, route: &ToolRoute) -> Result<(), Outcome> {
    let Some(head) = cx.http() else { return Ok(()) };
    if route.ready.mirrored.is_empty() || !Streams::of(cx.peer().revision).mirrored {
        return Ok(());
    }
    // Text that is no JSON cannot have come this far.
    let arguments: Option<&RawValue> = serde_json::from_str(sent(cx)).ok();
    route.ready.mirrored.check(&head.headers, arguments).map_err(|refusal| Outcome::Failed(refusal.error))
}

/// The arguments of a tool call, as text, with defaults for what was left out.
pub(crate) fn arguments(cx: &Cx) -> &str {
    cx.tool().and_then(|called| called.filled.as_deref()).unwrap_or_else(|| sent(cx))
}

/// The arguments as they came. None at all, and `null`, are an empty object.
fn sent(cx: &Cx) -> &str {
    cx.params().get("arguments").filter(|text| *text != "null").unwrap_or("{}")
}

fn prompt(cx: &Cx) -> Result<HandlerFuture, Outcome> {
    let name = text(cx, "name")?;
    let route = cx.state().catalogue.prompts.get(&name);
    match route.filter(|route| lists::sees(cx, route)) {
        Some(route) => {
            permitted(cx, &route.options.required, &name)?;
            cx.give(Given::Prompt(route.clone(), route.admit(cx).map_err(Outcome::Failed)?));
            Ok(go(cx, &route.options.next))
        }
        None => Err(unknown("prompt", &name)),
    }
}

fn unknown(kind: &str, name: &str) -> Outcome {
    let shown: String = name.chars().take(128).collect();
    Outcome::Failed(RpcError::invalid_params(format!("no such {kind}: `{shown}`")))
}

/// What fits a URI best decides: if the caller does not see that, what fits less is no way around it.
fn resource(cx: &Cx) -> Result<HandlerFuture, Outcome> {
    let uri = text(cx, "uri")?;
    let catalogue = &cx.state().catalogue;
    let found = if let Some(route) = catalogue.resources.get(&uri) {
        let sees = lists::sees(cx, route);
        sees.then(|| permitted(cx, &route.options.required, &uri).map(|()| go(cx, &route.options.next)))
            .transpose()?
    } else if let Some((source, resource)) = catalogue.sources.find(&uri) {
        lists::passes_filters(cx, Entry::Resource(&resource)).then(|| match cx.call().returned() {
            true => replay::enter(cx, |cx| source.read(cx)),
            false => source.read(cx.clone()),
        })
    } else if let Some((route, vars)) = catalogue.template(&uri) {
        let sees = lists::sees(cx, route);
        if sees {
            permitted(cx, &route.options.required, &uri)?;
            cx.give(Given::Template(route.clone(), vars, uri.to_string()));
        }
        sees.then(|| go(cx, &route.options.next))
    } else {
        None
    };
    found.ok_or_else(|| Outcome::NotFound { uri: uri.into_owned() })
}
