//! One call, from a client of either era to a server of either era.

use std::{collections::BTreeMap, future::poll_fn, pin::Pin, sync::Arc, task::Poll, time::Duration};

use pintle::{
    Error,
    client::Hints,
    forward::{Downstream, Repetition, question_keys},
    server::Cx,
};
use pintle_proto::{
    client::{InputRequest, InputRequired, Rounds},
    server::{Outcome, RelayedRound},
};
use pintle_types::{
    ErrorCode, RawObject, RawValue, RpcError, keys, method,
    schema::{self, MissingCapabilityData},
};
use tokio::time::sleep;

use super::{
    Relay,
    attempts::Attempts,
    declared::DeclaredCapabilities,
    hops,
    meta::{with_meta, without_meta},
    own_tasks::RequestedTask,
    polled_task,
    pool::RETRY_AFTER_MS,
    question::RunningQuestions,
    rounds,
    tasks::{
        self,
        session::{SessionTaskCall, TaskReport, TaskUse},
    },
    upstream_call::{CallProgress, UpstreamCall, UpstreamRequest, deliver},
};

/// The reason why a call has no outcome.
pub(super) enum Failure {
    /// The error for the client.
    Error(RpcError),
    /// The connection was lost. The error for the client, if the call is not repeated.
    Lost(RpcError),
}

impl From<RpcError> for Failure {
    fn from(error: RpcError) -> Self {
        Self::Error(error)
    }
}

impl From<Failure> for RpcError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Error(error) | Failure::Lost(error) => error,
        }
    }
}

/// Forwards a call, and returns its outcome. If its connection is lost and it is safe to repeat, it is sent again.
pub(super) async fn forward(relay: &Relay, cx: &Cx) -> Outcome {
    let mut attempts = Attempts::default();
    loop {
        match attempt_forward(relay, cx).await {
            Ok(outcome) => return outcome,
            Err(Failure::Lost(error)) => {
                if !may_repeat(relay, cx) || !attempts.wait().await {
                    return Outcome::Failed(error);
                }
            }
            Err(Failure::Error(error)) => return Outcome::Failed(error),
        }
    }
}

async fn attempt_forward(relay: &Relay, cx: &Cx) -> Result<Outcome, Failure> {
    let behind = relay.inner.upstream.primary();
    let sharing = relay.options.links.sharing;
    match (cx.facts().keeps_session, relay.inner.upstream.has_session_for(cx, sharing)) {
        (true, false) => {
            let task = RequestedTask::of(cx, &behind);
            drop(behind);
            repeat(relay, cx, task).await
        }
        (true, true) => ask_in_session(relay, cx).await,
        (false, false) => pass(relay, cx).await,
        (false, true) => {
            let follows = relay.follows_tasks(cx, &behind);
            drop(behind);
            // Boxed, because its future is the largest: there would be room for it in that of every call.
            Box::pin(rounds::park(relay, cx, follows)).await
        }
    }
}

/// Whether a call may be sent again, although the server may have received it.
fn may_repeat(relay: &Relay, cx: &Cx) -> bool {
    if !relay.inner.upstream.can_reopen() || Downstream::of(cx).has_returned() {
        return false;
    }
    match Repetition::of(cx.method()) {
        Repetition::Safe => true,
        Repetition::SafeIfIdempotent => {
            let name: Option<String> = cx.params().decode_member("name").ok().flatten();
            let tool = name.and_then(|name| {
                let of_client = relay.inner.upstream.last_catalogue(&cx.scope(), relay.options.links.sharing);
                let of_client = of_client.and_then(|catalogue| catalogue.tool(&name));
                of_client.or_else(|| relay.inner.known.tool(&name))
            });
            tool.is_some_and(|tool| Hints::of(&tool).idempotent)
        }
        Repetition::Unsafe => false,
    }
}

/// Passes a round of a client without a session to a server without sessions. Questions and answers are not looked at.
async fn pass(relay: &Relay, cx: &Cx) -> Result<Outcome, Failure> {
    let mut params = upstream_params(cx);
    let answers: Option<Box<RawValue>> = cx.params().decode_member("inputResponses").ok().flatten();
    if let Some(answers) = answers {
        params = params.with("inputResponses", &answers);
    }
    if let Some(state) = Downstream::of(cx).state() {
        if !state.get().starts_with('"') {
            return Err(replaced().into());
        }
        params = params.with("requestState", &state);
    }
    let result = call(relay, cx, params).await?;
    if result.get("resultType") != Some("\"input_required\"") {
        return Ok(complete(relay, cx, result));
    }
    let state = result.decode_member("requestState").ok().flatten();
    Ok(Outcome::Relayed(RelayedRound::new(without_meta(result, &[keys::SERVER_INFO]), state)))
}

/// Makes a call for a client with a session to a server without sessions: asks the client what the server asks, and repeats the call. If
/// the client requests a task, it gets one at once, whatever the server makes of the call.
async fn repeat(relay: &Relay, cx: &Cx, task: Option<RequestedTask>) -> Result<Outcome, Failure> {
    let mut params = upstream_params(cx);
    let mut declared = upstream_capabilities(relay, cx);
    if let Some(task) = task {
        params = params.without(&["task"]);
        if relay.detach(cx, task.ttl).await {
            declared = polled_task::declare(&declared.capabilities);
        }
    }
    // Most calls have one round.
    let mut rounds: Option<Rounds> = None;
    let mut next = params;
    loop {
        let result = match call_as(relay, cx, (cx.method(), &next), &declared).await {
            // A client with a session has no tasks of the extension: the relay waits for this one.
            Err(Failure::Error(error)) if polled_task::is_needed(&error, &declared.capabilities) => {
                declared = polled_task::declare(&declared.capabilities);
                Box::pin(call_as(relay, cx, (cx.method(), &next), &declared)).await?
            }
            result => result?,
        };
        if result.get("resultType") == Some(tasks::RESULT_TYPE) {
            let polled = Box::pin(polled_task::result(relay, cx, &declared.capabilities, &result)).await?;
            return Ok(complete(relay, cx, polled));
        }
        if result.get("resultType") != Some("\"input_required\"") {
            return Ok(complete(relay, cx, result));
        }
        let asked = read_questions(relay, &result)?;
        let answers = ask_all(cx, &asked).await?;
        let limit = || Downstream::of(cx).max_rounds();
        let rounds = rounds.get_or_insert_with(|| Rounds::new(next.clone(), limit()));
        let round = rounds.next(&asked, answers).map_err(|error| RpcError::internal(error.to_string()))?;
        sleep(Duration::from_millis(round.wait_ms)).await;
        next = round.params;
    }
}

/// Sends a round to a server without sessions.
async fn call(relay: &Relay, cx: &Cx, params: RawObject) -> Result<RawObject, Failure> {
    call_as(relay, cx, (cx.method(), &params), &upstream_capabilities(relay, cx)).await
}

/// Sends a request to a server without sessions, for a client with these capabilities.
pub(super) async fn call_as(
    relay: &Relay,
    cx: &Cx,
    request: (&str, &RawObject),
    declared: &DeclaredCapabilities,
) -> Result<RawObject, Failure> {
    let mut call = start_as(relay, cx, request, declared, TaskUse::IfRequired).await?;
    loop {
        match call.next().await {
            CallProgress::Notification(notification) => Box::pin(deliver(cx, notification)).await,
            // Such a server sends no requests, and its tasks are results.
            CallProgress::Question(_) | CallProgress::Task(_) => {}
            CallProgress::Done(result) => return result.map_err(|error| failed(relay, error)),
        }
    }
}

/// Makes a call for a client with a session to a server with sessions.
async fn ask_in_session(relay: &Relay, cx: &Cx) -> Result<Outcome, Failure> {
    let call = start(relay, cx, upstream_params(cx), TaskUse::IfRequired).await?;
    drive(relay, cx, call).await
}

/// Waits for the result of a call to a server with sessions. Its questions are asked at once: its client has a session, or follows the
/// call as a task.
pub(super) async fn drive(relay: &Relay, cx: &Cx, mut call: UpstreamCall) -> Result<Outcome, Failure> {
    let mut questions = RunningQuestions::default();
    loop {
        let next = poll_fn(|task| {
            questions.poll(task);
            call.poll_next(task)
        });
        match next.await {
            CallProgress::Notification(notification) => Box::pin(deliver(cx, notification)).await,
            CallProgress::Task(TaskReport::Status(message)) => Downstream::of(cx).status(message),
            CallProgress::Task(TaskReport::Created(_)) => {}
            CallProgress::Question(question) => questions.ask(cx, question),
            CallProgress::Done(Ok(result)) => return Ok(complete(relay, cx, result)),
            CallProgress::Done(Err(error)) => return Err(failed(relay, error)),
        }
    }
}

/// Sends a call over the connection that it uses.
pub(super) async fn start(
    relay: &Relay,
    cx: &Cx,
    params: RawObject,
    tasks: TaskUse,
) -> Result<UpstreamCall, RpcError> {
    start_as(relay, cx, (cx.method(), &params), &upstream_capabilities(relay, cx), tasks).await
}

/// Sends a request over the connection of a call, for a client with these capabilities.
async fn start_as(
    relay: &Relay,
    cx: &Cx,
    (method, params): (&str, &RawObject),
    declared: &DeclaredCapabilities,
    tasks: TaskUse,
) -> Result<UpstreamCall, RpcError> {
    let params = hops::pass(relay, cx, params)?;
    let link = relay.inner.upstream.lease(cx, &declared.capabilities, relay.options.links).await?;
    link.settle().await;
    let logs = link.want_logs(cx.peer().log_level).await;
    let capabilities = declared.printed.clone();
    let method = method.to_owned();
    if !link.connection.revision().has_method(&method) {
        return Err(RpcError::method_not_found(&method));
    }
    let creates_task = tasks == TaskUse::Followed || (method == method::TOOLS_CALL && cx.is_detached());
    let tasks = link
        .has_session_tasks()
        .then(|| SessionTaskCall::of(&relay.inner.known, cx, &method, tasks))
        .flatten();
    if tasks.is_some() {
        link.want_pushes();
    }
    Ok(UpstreamCall::start(
        link,
        UpstreamRequest { method, params, capabilities, logs, tasks, creates_task, cx },
    ))
}

/// Returns the capabilities of the client that the server behind may use.
pub(super) fn upstream_capabilities(relay: &Relay, cx: &Cx) -> Arc<DeclaredCapabilities> {
    relay.inner.last_declared.of(&cx.peer().capabilities)
}

/// Returns the params of a call without what belongs to the connection of the client.
pub(super) fn upstream_params(cx: &Cx) -> RawObject {
    let params = cx.params();
    let own = ["inputResponses", "requestState"];
    let params =
        if own.iter().any(|name| params.get(name).is_some()) { params.without(&own) } else { params.clone() };
    without_meta(params, &OF_CONNECTION)
}

/// The metadata of a request that belongs to its connection.
const OF_CONNECTION: [&str; 5] =
    ["progressToken", keys::PROTOCOL_VERSION, keys::CLIENT_INFO, keys::CLIENT_CAPABILITIES, keys::LOG_LEVEL];

/// Returns the outcome of a call that was completed.
pub(super) fn complete(relay: &Relay, cx: &Cx, result: RawObject) -> Outcome {
    let foreign: &[&str] = match relay.inner.upstream.has_session_for(cx, relay.options.links.sharing) {
        // Lowering the result would do the same, and decode all of it.
        false if !cx.facts().result_types && result.get("resultType") == Some("\"complete\"") => {
            &["resultType"]
        }
        false => &[],
        // Members that mean something to clients without a session, and nothing to a server that has one.
        true => &["resultType", "ttlMs", "cacheScope"],
    };
    // This server adds its own name.
    Outcome::Complete(relay.inner.last_meta.without_server(result, foreign).into())
}

/// Reads the questions of an `input_required` result.
pub(super) fn read_questions(relay: &Relay, result: &RawObject) -> Result<InputRequired, RpcError> {
    let unreadable = |error: serde_json::Error| {
        RpcError::internal(format!("the questions of `{}` cannot be read: {error}", relay.backend()))
    };
    let questions: Option<BTreeMap<String, schema::InputRequest>> =
        result.decode_member("inputRequests").map_err(unreadable)?;
    let state = result.decode_member("requestState").map_err(unreadable)?;
    let requests = questions.into_iter().flatten().map(|(key, request)| {
        let params = request.params_as::<RawObject>()?;
        Ok(InputRequest::new(key, request.method, params))
    });
    let requests = requests.collect::<Result<_, _>>().map_err(unreadable)?;
    Ok(InputRequired::new(requests, state, relay.inner.upstream.primary().connection.revision()))
}

/// Asks the client of a session all questions of a round at once, and returns the answers by key.
pub(super) async fn ask_all(cx: &Cx, asked: &InputRequired) -> Result<Vec<(Box<str>, RawObject)>, RpcError> {
    type Asking<'a> = Pin<Box<dyn Future<Output = Result<(Box<str>, RawObject), RpcError>> + Send + 'a>>;
    let mut asking: Vec<Asking<'_>> = Vec::with_capacity(asked.requests.len());
    for question in &asked.requests {
        asking.push(Box::pin(async move {
            let params = with_key(cx, &question.key, &question.params);
            Ok((
                question.key.clone(),
                Downstream::of(cx).ask(&question.key, &question.method, &params).await?,
            ))
        }));
    }
    let mut answers = Vec::with_capacity(asking.len());
    poll_fn(|task| {
        let mut failed = None;
        asking.retain_mut(|ask| match ask.as_mut().poll(task) {
            Poll::Pending => true,
            Poll::Ready(Ok(answer)) => {
                answers.push(answer);
                false
            }
            Poll::Ready(Err(error)) => {
                failed.get_or_insert(error);
                false
            }
        });
        match failed {
            Some(error) => Poll::Ready(Err(error)),
            None if asking.is_empty() => Poll::Ready(Ok(())),
            None => Poll::Pending,
        }
    })
    .await?;
    Ok(answers)
}

/// Adds the key of a question to its metadata, for a client that has declared to want it.
fn with_key(cx: &Cx, key: &str, params: &RawObject) -> RawObject {
    if !question_keys::is_wanted(cx.peer().capabilities.extensions.as_ref()) {
        return params.clone();
    }
    with_meta(params, question_keys::META, &key)
}

/// Returns the failure of a call. An error of the server behind is unchanged.
pub(super) fn failed(relay: &Relay, error: Error) -> Failure {
    match error {
        // The session era has no code of its own for it.
        Error::Rpc(mut error)
            if error.code == ErrorCode::INVALID_REQUEST
                && error.data_as::<MissingCapabilityData>().is_some() =>
        {
            error.code = ErrorCode::MISSING_CLIENT_CAPABILITY;
            Failure::Error(error)
        }
        Error::Rpc(error) => Failure::Error(error),
        Error::Failed(failed) if failed.is_local => {
            Failure::Error(RpcError::overloaded(failed.message, RETRY_AFTER_MS))
        }
        Error::Failed(failed) if failed.is_too_long => Failure::Error(too_long(&relay.backend())),
        error => {
            let lost = matches!(error, Error::Closed(_));
            let helps = match &error {
                Error::Closed(_) | Error::Timeout(_) | Error::Io(_) => true,
                // It would be refused again.
                Error::Failed(failed) => failed
                    .status
                    .is_none_or(|status| !(300..500).contains(&status) || matches!(status, 408 | 425 | 429)),
                _ => false,
            };
            let later = if helps { "; call again later" } else { "" };
            let error = RpcError::internal(format!(
                "`{}`, the server behind this one, did not answer: {error}{later}",
                relay.backend()
            ));
            if lost { Failure::Lost(error) } else { Failure::Error(error) }
        }
    }
}

/// Returns the error of an answer that is longer than a message may be. It does not name the setting: clients cannot change it.
pub(super) fn too_long(backend: &str) -> RpcError {
    RpcError::internal(format!(
        "the answer of `{backend}`, the server behind this one, is longer than what is passed on: ask for less, or raise the limit of \
         messages here"
    ))
}

pub(super) fn replaced() -> RpcError {
    RpcError::invalid_params(
        "`requestState` is of another version of the server behind this one: start the call again",
    )
}
