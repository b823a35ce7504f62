use std::sync::Arc;

use pintle_proto::{
    http::{HeaderParams, Streams, name_in},
    server::Outcome,
};
use pintle_types::{
    Frame, Message, Notification, RawObject, RawValue, RpcError,
    method::{self, Capability, tasks_extension},
    plain_error,
};
use pintle_uri::nearest;

use super::{
    catalogue::{
        complete, lists,
        options::{CatalogueRoute, RouteOptions},
        source,
    },
    cx::{
        detached::ToolStart,
        routed::{TextArguments, ToolCall},
    },
    driver::run::{HandlerFuture, run_claimed},
    gate::admission::{AccessGrant, AccessRefusal, Used, admit},
    lookup::{EntryOwner, Found, OwnRoute},
    provider::{
        self,
        entry::ProvidedEntry,
        info::ReportPart,
        registry::{FindError, RegisteredProvider},
        subscribing,
    },
    request_uri, result_filter, shown,
    snapshot::Snapshot,
    subscription,
};
use crate::{
    layer::Handling,
    server::{
        Access, Cx, Entry, ListKind, Next, PromptRoute, ResourceRoute, Server, Target, TemplateRoute,
        ToolRoute, access::required::Required,
    },
    uri::{Uri, Vars},
};

/// Finds the route of a call and starts its handler. Its result has nothing that is hidden from the caller.
fn route(cx: &Cx) -> Handling<Outcome> {
    let start = match request_uri::read(cx) {
        Ok(None) => find_route(cx),
        Ok(Some(cx)) => find_route(&cx),
        Err(refused) => Handling::ready(refused),
    };
    match start {
        // Entries of lists are judged one by one.
        Handling::Running(handling)
            if cx.snapshot().hides() && ListKind::of_method(cx.method()).is_none() =>
        {
            let cx = cx.clone();
            Handling::new(async move { result_filter::finish(&cx, handling.await).await })
        }
        start => start,
    }
}

/// Finds the route of a call whose URIs are read.
fn find_route(cx: &Cx) -> Handling<Outcome> {
    if let Some(list) = ListKind::of_method(cx.method()) {
        return Handling::new(provider::list::list(cx.clone(), list));
    }
    let found = match cx.method() {
        method::TOOLS_CALL | method::PROMPTS_GET | method::RESOURCES_READ | method::COMPLETION_COMPLETE => {
            named(cx)
        }
        _ => other_method(cx),
    };
    match found {
        Ok(handling) => handling.into(),
        Err(outcome) => Handling::ready(outcome),
    }
}

/// Starts the handler of a method that the protocol leaves to the server, its extensions or a provider.
fn other_method(cx: &Cx) -> Result<HandlerFuture, Outcome> {
    let (method, snapshot) = (cx.method(), cx.snapshot());
    let custom = snapshot.custom.get(method).cloned();
    if custom.is_none() && cx.call().is_own() {
        return Ok(Box::pin(prepare(cx.clone())));
    }
    if let Some(handling) = provider::tasks::handler(cx, custom.as_ref()) {
        return Ok(handling);
    }
    let unknown = || Outcome::Failed(RpcError::method_not_found(method));
    let arguments = || cx.params().without(&["_meta", "inputResponses", "requestState"]);
    let provider = match custom {
        Some(_) => None,
        None => Some(provider::methods::provider_of(cx, arguments)?),
    };
    let backend = provider.as_ref().map(|provider| provider.info.name.clone());
    if custom.is_some() && is_of_tasks(method) {
        cx.note_passed_mounts();
    }
    let required = custom.as_ref().map_or(Required::NOTHING, |custom| custom.required.clone());
    let handler = move |cx: Cx| match (custom, provider) {
        (Some(custom), _) => custom.run(cx),
        (None, Some(known)) => match provider::tasks::check_id(&cx) {
            Ok(()) => known.provider.handle(cx),
            Err(refused) => Box::pin(std::future::ready(refused)),
        },
        (None, None) => {
            Box::pin(std::future::ready(Outcome::Failed(RpcError::method_not_found(cx.method()))))
        }
    };
    // A task of the server itself belongs to its caller, and the call that became one was judged.
    if required.is_nothing() && backend.is_none() && is_of_tasks(method) {
        return Ok(handler(cx.clone()));
    }
    let arguments = arguments();
    let used = Used::own(&required, Entry::Method(method)).arguments(arguments.as_str());
    let used = Used { backend: backend.as_deref(), ..used };
    let admission = admit(cx, Access::Call, &used).map_err(|refused| refused.or_unknown(unknown))?;
    Ok(admission.run(cx, handler))
}

/// Returns whether a method is one of tasks, in any revision.
fn is_of_tasks(name: &str) -> bool {
    name == tasks_extension::TASKS_UPDATE
        || method::find(name).is_some_and(|row| row.capability == Some(Capability::Tasks))
}

/// Prepares a request that the engine carries out when the layers have let its outcome pass.
async fn prepare(cx: Cx) -> Outcome {
    let permitted = match subscription::permit(&cx).await {
        Ok(params) => subscription::as_listed(&cx, params),
        Err(refused) => return refused,
    };
    let prepared = subscribing::prepare(&cx, permitted.clone()).await.and_then(|accepted| {
        let prepared = cx.snapshot().service.prepare(cx.call(), &accepted.params);
        prepared.map(|(outcome, effect)| (outcome, effect, accepted.held)).map_err(Outcome::Failed)
    });
    let (outcome, effect, held) = match prepared {
        Ok(prepared) => prepared,
        Err(refused) => {
            subscribing::end(&cx, &permitted).await;
            return refused;
        }
    };
    cx.call().set_effect(effect);
    match cx.method() {
        // Both are kept as long as the subscription is open, and of a session until the engine has opened it: what is held watches the
        // resource until then.
        method::SUBSCRIPTIONS_LISTEN | method::RESOURCES_SUBSCRIBE => {
            cx.call().hold((held, tracing::Span::current()));
        }
        method::INITIALIZE | method::SERVER_DISCOVER => return shown::declared(&cx, outcome),
        _ => {}
    }
    outcome
}

/// Returns the innermost part of the layers: the handler of a request or of a notification.
pub(crate) fn innermost() -> Next {
    Next::new(|cx| match cx.is_notification() {
        true => Handling::new(handle_notification(cx)),
        false => route(&cx),
    })
}

/// Runs the handler of a notification, if there is one. A cancellation has taken effect before.
async fn handle_notification(cx: Cx) -> Outcome {
    if cx.method() != method::NOTIFICATIONS_CANCELLED {
        let params = Some(cx.params().clone()).filter(|params| params.as_str() != "{}");
        let notification = Notification::new(cx.method().to_owned(), params);
        cx.server().run_notified(notification, cx.call().known_peer().cloned(), cx.session()).await;
    }
    Outcome::Complete(RawObject::empty().into())
}

/// Returns whether a layer, a handler or a provider wants notifications of a method. For others, nothing is started.
pub(crate) fn wants(server: &Server, snapshot: &Snapshot, method: &str) -> bool {
    snapshot.is_layered || !snapshot.providers.is_empty() || server.notification_handler(method).is_some()
}

/// Runs the handler of a notification inside the layers of the server, within the timeout of calls.
pub(crate) async fn notify(cx: Cx) {
    let (limit, method) = (cx.timeout(), cx.method().to_owned());
    let handling = cx.snapshot().stack.go(cx.clone());
    let outcome = match limit {
        Some(limit) => tokio::time::timeout(limit, handling).await.ok(),
        None => Some(handling.await),
    };
    match outcome {
        Some(Outcome::Failed(error)) => {
            tracing::debug!(method, reason = &*error.message, "a layer refused a notification");
        }
        Some(_) => {}
        None => {
            tracing::warn!(method, "the layers of a notification took longer than {limit:?} and were ended")
        }
    }
}

/// Returns the cancellations among messages, if they are wanted. The engine applies them; layers see them too.
pub(crate) fn cancellations(server: &Server, snapshot: &Snapshot, frame: &Frame) -> Vec<Notification> {
    if !wants(server, snapshot, method::NOTIFICATIONS_CANCELLED) {
        return Vec::new();
    }
    let cancellation = |message: &Message| match message {
        Message::Notification(notification) if notification.method == method::NOTIFICATIONS_CANCELLED => {
            Some(notification.clone())
        }
        _ => None,
    };
    match frame {
        Frame::One(message) => cancellation(message).into_iter().collect(),
        Frame::Batch(items) => items.iter().flatten().filter_map(cancellation).collect(),
    }
}

/// Starts the handler of a route that the caller may use. If the call has a `requestState`, the handler runs once the state
/// is claimed.
fn go(cx: &Cx, options: &RouteOptions) -> HandlerFuture {
    go_after(cx, options, |_| {})
}

/// Starts the handler of a route after something else, which is not done before the state is claimed either.
fn go_after(cx: &Cx, options: &RouteOptions, first: impl FnOnce(&Cx) + Send + 'static) -> HandlerFuture {
    if let Some(timeout) = options.timeout.or_else(|| cx.mount_timeout()) {
        cx.set_timeout(timeout);
    }
    let next = &options.next;
    if !cx.call().returned() {
        first(cx);
        return next.go(cx.clone()).boxed();
    }
    let next = next.clone();
    run_claimed(cx, move |cx| {
        first(&cx);
        next.go(cx).boxed()
    })
}

/// Starts the handler of a request that names an entry.
fn named(cx: &Cx) -> Result<HandlerFuture, Outcome> {
    let target = cx.target().ok_or_else(|| unnamed(cx))?;
    let lookup = cx.snapshot().find_for(cx, &target);
    if !lookup.is_stale() {
        return start(cx, &target, lookup.finish());
    }
    let cx = cx.clone();
    Ok(Box::pin(async move {
        let Some(target) = cx.target() else { return unnamed(&cx) };
        let found = cx.snapshot().lookup(&cx, &target).await;
        match start(&cx, &target, found) {
            Ok(handling) => handling.await,
            Err(refused) => refused,
        }
    }))
}

/// Returns the outcome of a request that has to name an entry, and does not.
fn unnamed(cx: &Cx) -> Outcome {
    let member = match cx.method() {
        method::COMPLETION_COMPLETE => {
            return complete::params(cx).err().unwrap_or_else(complete::unknown_reference);
        }
        method::RESOURCES_READ => "uri",
        _ => "name",
    };
    let method = cx.method();
    let text = cx.params().get(member).map(serde_json::from_str::<String>);
    let reason = match text.and_then(Result::err) {
        None => format!("`{method}` needs `{member}`: send it in `params`"),
        Some(error) => format!("`{member}` of `{method}` is not a string: {}", plain_error(&error)),
    };
    Outcome::Failed(RpcError::invalid_params(reason))
}

/// Starts the handler of an entry that was looked up. Only the best match counts: if the caller does not see it, no other is tried.
fn start(
    cx: &Cx,
    target: &Target<'_>,
    found: Result<Option<Found>, FindError>,
) -> Result<HandlerFuture, Outcome> {
    let Found { entry, owner, .. } = match found {
        Ok(Some(found)) => found,
        Ok(None) => return Err(unknown_entry(cx, target)),
        Err(failed) if failed.is_hidden(cx, target) => return Err(unknown_entry(cx, target)),
        Err(failed) => {
            let uri = matches!(target, Target::Resource(_)).then(|| target.name());
            return Err(failed.error.outcome(cx.method(), uri));
        }
    };
    let route = match owner {
        EntryOwner::Server(route) => route,
        EntryOwner::Provider(known, number) => {
            let target = target.clone().into_owned();
            return Ok(Box::pin(provided(cx.clone(), target, entry, known, number)));
        }
    };
    if cx.method() == method::COMPLETION_COMPLETE {
        return complete::complete(cx, target, &entry, &route);
    }
    let admit = || {
        let admitted = entry.admit(cx, None, target);
        admitted.map_err(|refused| refused.or_unknown(|| unknown_entry(cx, target)))
    };
    match route {
        OwnRoute::Tool(route) => tool(cx, route, admit()?),
        OwnRoute::Prompt(route) => prompt(cx, route, admit()?),
        OwnRoute::Resource(route) => Ok(resource(cx, target, route, admit()?)),
        OwnRoute::Source(route) => {
            cx.set_uri(target.name());
            Ok(source::read(cx.clone(), route))
        }
        OwnRoute::Template(route, Some(vars)) => Ok(template(cx, target, route, vars, admit()?)),
        OwnRoute::Template(_, None) | OwnRoute::Method => Err(unknown_entry(cx, target)),
    }
}

fn tool(cx: &Cx, route: Arc<ToolRoute>, admission: AccessGrant) -> Result<HandlerFuture, Outcome> {
    let arguments = admission.arguments().unwrap_or_else(|| cx.sent_arguments());
    if !arguments.starts_with('{') {
        let message = "`arguments` of `tools/call` is not an object: send one with the arguments by name";
        return Err(Outcome::Failed(RpcError::invalid_params(message)));
    }
    mirrored(cx, &route)?;
    let filled = route.ready.check.check_arguments(arguments).map_err(Outcome::BadArguments)?;
    Ok(admission.run(cx, move |cx| {
        cx.set_tool(ToolCall { tool: route.clone(), filled });
        start_tool(&cx, &route)
    }))
}

/// Starts the handler of a tool, as the extensions decide. The first that decides anything else than to run it decides.
fn start_tool(cx: &Cx, route: &ToolRoute) -> HandlerFuture {
    for interceptor in &cx.snapshot().settings.extensions.interceptors {
        return match interceptor(cx, &route.tool) {
            ToolStart::Run => continue,
            ToolStart::DetachOnWait => go_after(cx, &route.options, Cx::detach_on_wait),
            ToolStart::Refuse(outcome) => Box::pin(std::future::ready(outcome)),
            ToolStart::Detach(request) => go_after(cx, &route.options, |cx| {
                cx.request_detach(request);
            }),
        };
    }
    go(cx, &route.options)
}

/// Checks that the headers that repeat arguments have their values, in revisions that define them. They repeat what the client
/// sent, whatever a layer has made of it.
fn mirrored(cx: &Cx, route: &ToolRoute) -> Result<(), Outcome> {
    if cx.http().is_none() {
        return Ok(());
    }
    let params = cx.sent_params();
    let sent = || cx.snapshot().own(cx.overlay_key(), &Target::Tool(name_in(params, "name")?));
    let named = cx.has_edited_params().then(sent);
    let route = match &named {
        None => route,
        Some(Some(Found { owner: EntryOwner::Server(OwnRoute::Tool(route)), .. })) => route,
        // The client named a tool that does not exist: no header repeats anything.
        Some(_) => return Ok(()),
    };
    if !Streams::of(cx.peer().revision).mirrored {
        return Ok(());
    }
    check_mirrored(cx, &route.ready.mirrored)
}

/// Compares headers with the arguments that the client sent.
fn check_mirrored(cx: &Cx, mirrored: &HeaderParams) -> Result<(), Outcome> {
    let Some(head) = cx.http().filter(|_| !mirrored.is_empty()) else { return Ok(()) };
    let params = cx.sent_params();
    let arguments = params.get("arguments").filter(|text| *text != "null").unwrap_or("{}");
    // Text that is no JSON cannot have come this far.
    let arguments: Option<&RawValue> = serde_json::from_str(arguments).ok();
    mirrored.check(&head.headers, arguments).map_err(|refusal| Outcome::Failed(refusal.error))
}

fn prompt(cx: &Cx, route: Arc<PromptRoute>, admission: AccessGrant) -> Result<HandlerFuture, Outcome> {
    let vars = route.admit(cx).map_err(Outcome::Failed)?;
    Ok(admission.run(cx, move |cx| {
        cx.set_texts(TextArguments::of_prompt(route.clone(), vars));
        go(&cx, &route.options)
    }))
}

fn resource(
    cx: &Cx,
    target: &Target<'_>,
    route: Arc<ResourceRoute>,
    admission: AccessGrant,
) -> HandlerFuture {
    let listed = &*route.resource.uri;
    let cx = match listed == target.name() {
        true => cx.clone(),
        false => cx.clone().with_params(request_uri::with_uri(cx.params(), listed)),
    };
    admission.run(&cx, move |cx| {
        cx.set_uri(&route.resource.uri);
        go(&cx, &route.options)
    })
}

fn template(
    cx: &Cx,
    target: &Target<'_>,
    route: Arc<TemplateRoute>,
    vars: Vars,
    admission: AccessGrant,
) -> HandlerFuture {
    let uri = target.name().to_owned();
    admission.run(cx, move |cx| {
        cx.set_uri(&uri);
        cx.set_texts(TextArguments::of_template(route.clone(), vars, uri));
        go(&cx, &route.options)
    })
}

/// Has the provider that has an entry handle the call, if the caller may use it.
async fn provided(
    cx: Cx,
    target: Target<'static>,
    entry: ProvidedEntry,
    RegisteredProvider { provider, info, .. }: RegisteredProvider,
    number: usize,
) -> Outcome {
    // Readers may differ about this spelling: it is the listed one, or there is no such resource.
    if cx.snapshot().is_misspelled(&target, &entry) {
        return unknown_entry(&cx, &target);
    }
    let unknown = |refused: AccessRefusal| refused.or_unknown(|| unknown_entry(&cx, &target));
    let admission = match entry.admit(&cx, Some(&info.name), &target) {
        Ok(admission) => admission,
        Err(refused) => return unknown(refused),
    };
    if let Err(refused) = entry.count_repeated(&cx, &info.name, &target).await {
        return unknown(refused);
    }
    let listed = match &target {
        Target::Resource(uri) => entry.listed_as(&Uri::of(uri)).filter(|listed| *listed != **uri),
        _ => None,
    };
    let listed = listed.map(|uri| cx.clone().with_params(request_uri::with_uri(cx.params(), &uri)));
    let cx = listed.as_ref().unwrap_or(&cx);
    if let Err(refused) = provided_mirrored(cx, &entry) {
        return refused;
    }
    cx.set_provider(number);
    let (is_asked, claims_state) = (admission.asks(), info.claims_state);
    let handling = admission.run(cx, move |cx| {
        let find = |target: &Target<'_>| provider.find(&cx.scope(), target);
        let cx = match entry.as_judged(&cx, is_asked, find) {
            Ok(cx) => cx,
            Err(refused) => return Box::pin(std::future::ready(refused)),
        };
        match claims_state && cx.call().returned() {
            true => run_claimed(&cx, move |cx| provider.handle(cx)),
            false => provider.handle(cx),
        }
    });
    provider::tasks::readdressed(cx, number, &info, handling.await)
}

/// Checks that the headers that repeat arguments of a provided tool have their values, if its schema is known.
fn provided_mirrored(cx: &Cx, entry: &ProvidedEntry) -> Result<(), Outcome> {
    if cx.method() != method::TOOLS_CALL || cx.http().is_none() || !Streams::of(cx.peer().revision).mirrored {
        return Ok(());
    }
    // A schema that names headers wrongly is the provider's: clients ignore such a tool.
    let schema = entry.input_schema();
    let params = schema.and_then(|schema| HeaderParams::from_object_schema(schema).ok());
    params.map_or(Ok(()), |params| check_mirrored(cx, &params))
}

/// Returns the outcome of a call of something that neither the server nor a provider has.
fn unknown_entry(cx: &Cx, target: &Target<'_>) -> Outcome {
    let catalogue = &cx.snapshot().catalogue;
    match target {
        Target::Resource(uri) if cx.method() == method::RESOURCES_READ => cx.snapshot().unknown_resource(uri),
        Target::Tool(name) if cx.method() == method::TOOLS_CALL => {
            let provided = near_provided(cx, ListKind::Tools, name);
            unknown("tool", name, visible(cx, catalogue.tools.iter()).chain(provided.as_deref()))
        }
        Target::Prompt(name) if cx.method() == method::PROMPTS_GET => {
            let provided = near_provided(cx, ListKind::Prompts, name);
            unknown("prompt", name, visible(cx, catalogue.prompts.iter()).chain(provided.as_deref()))
        }
        _ => complete::unknown_reference(),
    }
}

/// Returns the name of a provided entry that was perhaps meant, as far as names are known without I/O. Hidden ones are left out, and
/// after a few of them nothing is suggested: each is looked at.
fn near_provided(cx: &Cx, list: ListKind, name: &str) -> Option<String> {
    const MAX_HIDDEN: usize = 8;
    let providers = cx.snapshot().providers.iter().filter(|known| known.offers(list));
    // A name that is hidden takes the steps of one that is not there.
    let names = providers.flat_map(|known| known.provider.report(ReportPart::Names(list)));
    let mut names: Vec<String> = names.filter(|other| other != name).collect();
    for _ in 0..MAX_HIDDEN {
        let near = nearest(name, names.iter().map(String::as_str))?.to_owned();
        let target = list.target(near.as_str().into());
        let seen = cx.snapshot().seen(&cx.scope(), &target);
        if seen.is_some_and(|entry| !entry.is_hidden()) {
            return Some(near);
        }
        names.retain(|other| *other != near);
    }
    None
}

/// Returns the names of the routes that the caller sees.
fn visible<'a, R: CatalogueRoute + 'a>(
    cx: &Cx,
    routes: impl Iterator<Item = &'a Arc<R>>,
) -> impl Iterator<Item = &'a str> {
    routes.filter(|route| lists::sees(cx, route)).map(|route| route.key())
}

/// Returns the outcome of a call of something that does not exist, with the name that was perhaps meant.
fn unknown<'a>(kind: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Outcome {
    let shown: String = name.chars().take(128).collect();
    let mut message = format!("no such {kind}: `{shown}`");
    if let Some(near) = nearest(name, known) {
        message += &format!("; did you mean `{near}`?");
    }
    Outcome::Failed(RpcError::invalid_params(message))
}
