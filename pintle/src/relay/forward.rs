//! One call, from a client of either era to a server of either era.

use std::{collections::BTreeMap, future::poll_fn, pin::Pin, sync::Arc, task::Poll, time::Duration};

use pintle_proto::{
    client::{InputRequest, InputRequired, Rounds},
    server::{Outcome, RelayedRound},
};
use pintle_types::{
    ErrorCode, RawObject, RawValue, RpcError, keys, method,
    schema::{self, ElicitAction, ElicitResult, MissingCapabilityData},
};
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;
use tokio::time::sleep;

use super::{
    Relay,
    attempts::Attempts,
    declared::DeclaredCapabilities,
    hops,
    meta::{with_meta, without_members, without_meta},
    parked::ParkedCall,
    polled_task,
    pool::RETRY_AFTER_MS,
    question::{RunningQuestions, input_required, offered_answer, refusal},
    session_task::TaskFallback,
    upstream_call::{CallProgress, OpenQuestion, UpstreamCall, UpstreamRequest, deliver},
};
use crate::{
    Error,
    client::{Hints, Repetition},
    question_key,
    server::Cx,
};

/// The state of a call between two rounds, if the server behind has sessions. It is sealed into that of this server.
#[derive(Deserialize, Serialize)]
enum RelayState {
    /// The id of a parked call.
    #[serde(rename = "p")]
    Parked(Box<str>),
    /// The server requires the user to open URLs before the call is repeated. The error, if the user does not.
    #[serde(rename = "u")]
    Urls(RpcError),
}

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
    let stateless = relay.inner.upstream.primary().connection.revision().is_stateless();
    match (cx.call().is_in_session(), stateless) {
        (true, true) => repeat(relay, cx).await,
        (true, false) => ask_in_session(relay, cx).await,
        (false, true) => pass(relay, cx).await,
        (false, false) => park(relay, cx).await,
    }
}

/// Whether a call may be sent again, although the server may have received it.
fn may_repeat(relay: &Relay, cx: &Cx) -> bool {
    if !relay.inner.upstream.can_reopen() || cx.call().returned() {
        return false;
    }
    match Repetition::of(cx.method()) {
        Repetition::Safe => true,
        Repetition::SafeIfIdempotent => {
            let name: Option<String> = cx.params().decode_member("name").ok().flatten();
            let tool = name.and_then(|name| {
                let of_client = relay.inner.upstream.last_catalogue(cx, relay.options.links.sharing);
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
    if let Some(state) = cx.call().relayed_state() {
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

/// Makes a call for a client with a session to a server without sessions: asks the client what the server asks, and repeats the call.
async fn repeat(relay: &Relay, cx: &Cx) -> Result<Outcome, Failure> {
    let params = upstream_params(cx);
    let limit = cx.snapshot().service.bounds().rounds;
    let mut rounds = Rounds::new(params.clone(), limit);
    let mut next = params;
    let mut declared = upstream_capabilities(relay, cx);
    loop {
        let result = match call_as(relay, cx, (cx.method(), next.clone()), &declared).await {
            // A client with a session has no tasks of the extension: the relay waits for this one.
            Err(Failure::Error(error)) if polled_task::is_needed(&error, &declared.capabilities) => {
                declared = polled_task::declare(&declared.capabilities);
                call_as(relay, cx, (cx.method(), next), &declared).await?
            }
            result => result?,
        };
        if result.get("resultType") == Some(polled_task::RESULT_TYPE) {
            let polled = Box::pin(polled_task::result(relay, cx, &declared.capabilities, &result)).await?;
            return Ok(complete(relay, cx, polled));
        }
        if result.get("resultType") != Some("\"input_required\"") {
            return Ok(complete(relay, cx, result));
        }
        let asked = read_questions(relay, &result)?;
        let answers = ask_all(cx, &asked).await?;
        let round = rounds.next(&asked, answers).map_err(|error| RpcError::internal(error.to_string()))?;
        sleep(Duration::from_millis(round.wait_ms)).await;
        next = round.params;
    }
}

/// Sends a round to a server without sessions.
async fn call(relay: &Relay, cx: &Cx, params: RawObject) -> Result<RawObject, Failure> {
    call_as(relay, cx, (cx.method(), params), &upstream_capabilities(relay, cx)).await
}

/// Sends a request to a server without sessions, for a client with these capabilities.
pub(super) async fn call_as(
    relay: &Relay,
    cx: &Cx,
    request: (&str, RawObject),
    declared: &DeclaredCapabilities,
) -> Result<RawObject, Failure> {
    let mut call = start_as(relay, cx, request, declared).await?;
    loop {
        match call.next().await {
            CallProgress::Notification(notification) => deliver(cx, notification).await,
            // Such a server sends no requests.
            CallProgress::Question(_) => {}
            CallProgress::Done(result) => return result.map_err(|error| failed(relay, error)),
        }
    }
}

/// Makes a call for a client with a session to a server with sessions.
async fn ask_in_session(relay: &Relay, cx: &Cx) -> Result<Outcome, Failure> {
    let mut call = start(relay, cx, upstream_params(cx)).await?;
    let mut questions = RunningQuestions::default();
    loop {
        let next = poll_fn(|task| {
            questions.poll(task);
            call.poll_next(task)
        });
        match next.await {
            CallProgress::Notification(notification) => deliver(cx, notification).await,
            CallProgress::Question(question) => questions.ask(cx, question),
            CallProgress::Done(Ok(result)) => return Ok(complete(relay, cx, result)),
            CallProgress::Done(Err(error)) => return Err(failed(relay, error)),
        }
    }
}

/// Makes a call for a client without a session to a server with sessions, or goes on with the one that waits for the answers of the
/// client.
async fn park(relay: &Relay, cx: &Cx) -> Result<Outcome, Failure> {
    let mut waiting = match cx.call().relayed_state() {
        None => None,
        Some(state) => match serde_json::from_str(state.get()).map_err(|_| replaced())? {
            RelayState::Parked(id) => Some(resume(relay, cx, &id)?),
            RelayState::Urls(error) => {
                if !pages_opened(cx, &error)? {
                    return Err(error.into());
                }
                None
            }
        },
    };
    let call = match waiting.take() {
        Some(call) => call,
        None => {
            ParkedCall { call: start(relay, cx, upstream_params(cx)).await?, questions: Vec::new(), asked: 0 }
        }
    };
    wait(relay, cx, call).await
}

/// Waits for the result of a call, or for a question of it, which ends the round.
async fn wait(relay: &Relay, cx: &Cx, mut call: ParkedCall) -> Result<Outcome, Failure> {
    loop {
        match call.call.next().await {
            CallProgress::Notification(notification) => deliver(cx, notification).await,
            CallProgress::Question(question) => {
                call.add(cx, question);
                while let Some(more) = call.call.take_question() {
                    call.add(cx, more);
                }
                if !call.questions.is_empty() {
                    return Ok(end_round(relay, cx, call)?);
                }
            }
            CallProgress::Done(Ok(result)) => return Ok(complete(relay, cx, result)),
            CallProgress::Done(Err(Error::Rpc(error)))
                if error.code == ErrorCode::URL_ELICITATION_REQUIRED && cx.can_elicit_url() =>
            {
                return Ok(require_urls(error)?);
            }
            CallProgress::Done(Err(error)) => return Err(failed(relay, error)),
        }
    }
}

impl ParkedCall {
    /// Adds a question to those of the round, or refuses it if the client cannot answer it.
    fn add(&mut self, cx: &Cx, question: OpenQuestion) {
        let OpenQuestion { mut question, answer } = question;
        if let Err(error) = cx.can_answer(&question.method, &question.params) {
            let _ = answer.send(Err(refusal(&question.method, error)));
            return;
        }
        self.asked += 1;
        // In the stateless era a page has no id, and a task of the relay has none for its client.
        question.params = without_meta(question.params, &[question_key::META, keys::RELATED_TASK])
            .without(&["elicitationId"]);
        let key = question.key.as_deref().filter(|key| self.questions.iter().all(|(other, _)| other != key));
        let key = key.map_or_else(|| format!("question-{}", self.asked), str::to_owned);
        self.questions.push((key, OpenQuestion { question, answer }));
    }
}

/// Ends the round with the questions of a call, which is parked.
fn end_round(relay: &Relay, cx: &Cx, call: ParkedCall) -> Result<Outcome, RpcError> {
    let questions = call
        .questions
        .iter()
        .map(|(key, open)| (key.as_str(), open.question.method.as_str(), &open.question.params));
    let result = input_required(questions).map_err(|error| RpcError::internal(error.to_string()))?;
    cx.call().set_answer_timeout_ms(u64::try_from(lifetime(cx).as_millis()).unwrap_or(u64::MAX));
    let id = relay.inner.parked.insert(call, cx, lifetime(cx))?;
    relayed(result, &RelayState::Parked(id))
}

/// Ends the round with a result, and a state that this server claims in the next one.
fn relayed(result: RawObject, state: &RelayState) -> Result<Outcome, RpcError> {
    let state = to_raw_value(state).map_err(|error| RpcError::internal(error.to_string()))?;
    let mut round = RelayedRound::new(result, Some(state));
    round.claimed = true;
    Ok(Outcome::Relayed(round))
}

/// Takes out the parked call, and sends the answers of the client to the server.
fn resume(relay: &Relay, cx: &Cx, id: &str) -> Result<ParkedCall, RpcError> {
    let lost = || {
        RpcError::invalid_params(
            "the call no longer waits for its answers, because it took too long or the server was restarted: start the call again",
        )
    };
    let mut call = relay.inner.parked.take(id, cx.principal()).ok_or_else(lost)?;
    let answers = call.questions.iter().map(|(key, open)| offered_answer(cx, key, &open.question.method));
    match answers.collect::<Result<Vec<_>, _>>() {
        Ok(answers) => {
            for ((_, open), answer) in call.questions.drain(..).zip(answers) {
                // The server no longer waits if it has withdrawn the question.
                let _ = open.answer.send(Ok(answer));
            }
            Ok(call)
        }
        Err(error) => {
            // The client may correct its answers, so the call goes on waiting, and the state can be used again.
            relay.inner.parked.put_back(id, call, cx, lifetime(cx));
            cx.note_refusal(&error);
            Err(error.into())
        }
    }
}

/// Returns how long a call waits for answers: as long as its state can be used.
fn lifetime(cx: &Cx) -> Duration {
    let state = Duration::from_millis(cx.snapshot().service.bounds().state_ttl_ms);
    state.min(cx.snapshot().settings.question)
}

/// The data of an error that requires the user to open URLs.
#[derive(Deserialize)]
struct RequiredUrls {
    elicitations: Vec<RawObject>,
}

/// Ends the round with the URLs that the user has to open before the call is repeated.
fn require_urls(error: RpcError) -> Result<Outcome, RpcError> {
    let Some(RequiredUrls { elicitations }) = error.data_as() else { return Err(error) };
    let urls: Vec<_> = elicitations
        .iter()
        .enumerate()
        // In the stateless era they have no id.
        .map(|(at, params)| (url_key(at), params.without(&["elicitationId"])))
        .collect();
    let questions = urls.iter().map(|(key, params)| (key.as_str(), method::ELICITATION_CREATE, params));
    match input_required(questions) {
        Ok(result) => relayed(result, &RelayState::Urls(error)),
        Err(_) => Err(error),
    }
}

fn url_key(at: usize) -> String {
    format!("url-{}", at + 1)
}

/// Returns whether the user has agreed to open all URLs that an error requires.
fn pages_opened(cx: &Cx, error: &RpcError) -> Result<bool, RpcError> {
    let count = error.data_as::<RequiredUrls>().map_or(0, |urls| urls.elicitations.len());
    for at in 0..count {
        let answer = offered_answer(cx, &url_key(at), method::ELICITATION_CREATE)?;
        if !answer.decode::<ElicitResult>().is_ok_and(|answer| answer.action == ElicitAction::Accept) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Sends a call over the connection that it uses.
async fn start(relay: &Relay, cx: &Cx, params: RawObject) -> Result<UpstreamCall, RpcError> {
    start_as(relay, cx, (cx.method(), params), &upstream_capabilities(relay, cx)).await
}

/// Sends a request over the connection of a call, for a client with these capabilities.
async fn start_as(
    relay: &Relay,
    cx: &Cx,
    (method, params): (&str, RawObject),
    declared: &DeclaredCapabilities,
) -> Result<UpstreamCall, RpcError> {
    let params = hops::pass(relay, cx, &params)?;
    let link = relay.inner.upstream.lease(cx, &declared.capabilities, relay.options.links).await?;
    link.settle().await;
    let logs = link.want_logs(cx.peer().log_level).await;
    let capabilities = declared.printed.clone();
    let method = method.to_owned();
    if !link.connection.revision().has_method(&method) {
        return Err(RpcError::method_not_found(&method));
    }
    let tasks = link.has_tasks().then(|| TaskFallback::of(relay, cx, &method)).flatten();
    if tasks.is_some() {
        link.want_pushes();
    }
    Ok(UpstreamCall::start(link, UpstreamRequest { method, params, capabilities, logs, tasks, cx }))
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
fn complete(relay: &Relay, cx: &Cx, result: RawObject) -> Outcome {
    let foreign: &[&str] = match relay.inner.upstream.primary().connection.revision().is_stateless() {
        // Lowering the result would do the same, and decode all of it.
        true if cx.call().is_in_session() && result.get("resultType") == Some("\"complete\"") => {
            &["resultType"]
        }
        true => &[],
        // Members that mean something to clients without a session, and nothing to a server that has one.
        false => &["resultType", "ttlMs", "cacheScope"],
    };
    // This server adds its own name.
    Outcome::Complete(without_members(result, foreign, &[keys::SERVER_INFO]).into())
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
            Ok((question.key.clone(), cx.ask_raw(&question.method, &params).await?))
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
    if !question_key::is_wanted(cx.peer().capabilities.extensions.as_ref()) {
        return params.clone();
    }
    with_meta(params, question_key::META, &key)
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
        error => {
            let lost = matches!(error, Error::Closed(_));
            let error = RpcError::internal(format!(
                "`{}`, the server behind this one, did not answer: {error}; call again later",
                relay.backend()
            ));
            if lost { Failure::Lost(error) } else { Failure::Error(error) }
        }
    }
}

fn replaced() -> RpcError {
    RpcError::invalid_params(
        "`requestState` is of another version of the server behind this one: start the call again",
    )
}
