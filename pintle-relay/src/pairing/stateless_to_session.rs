use pintle::{
    Error,
    forward::{Downstream, RelayedRound, question_keys},
    server::{Cx, Outcome},
    types::{
        ErrorCode, RawObject, RpcError, keys, method,
        schema::{ElicitAction, ElicitResult},
    },
};
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;

use crate::calls::parked::ParkedCall;
use crate::{
    calls::{
        questions::{input_required, offered_answer, refusal},
        upstream_call::{CallProgress, deliver},
    },
    link_state::calls::OpenQuestion,
    meta::without_meta,
    request::RelayedRequest,
    tasks::session::{TaskReport, TaskUse},
    upstream::failure::{Failure, replaced},
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

/// A call of a client without a session to a server with sessions: a question ends the round, and the call waits in the relay until the
/// next one brings the answers. If the client follows tasks and the tool runs as one, so does the call.
pub(super) struct StatelessToSession<'a> {
    pub(super) request: RelayedRequest<'a>,
    pub(super) follows_tasks: bool,
}

impl StatelessToSession<'_> {
    pub(super) async fn forward(self) -> Result<Outcome, Failure> {
        let Self { request, follows_tasks } = self;
        let state = request.downstream().state();
        let state: Option<RelayState> =
            state.map(|state| serde_json::from_str(state.get())).transpose().map_err(|_| replaced())?;
        match state {
            Some(RelayState::Parked(id)) => return Self::wait(request, resume(request, &id)?).await,
            Some(RelayState::Urls(error)) if !pages_opened(request.cx, &error)? => return Err(error.into()),
            Some(RelayState::Urls(_)) | None => {}
        }
        // Boxed, because its future is large and few calls need it.
        let tasks = match follows_tasks && Box::pin(request.relay.supports_tasks(request.cx)).await {
            true => TaskUse::Followed,
            false => TaskUse::IfRequired,
        };
        let call = request.start(tasks).await?;
        Self::wait(request, ParkedCall::new(call, request.cx)).await
    }

    /// Waits for the result of a call, or for a question of it, which ends the round, or until it goes on as a task.
    async fn wait(request: RelayedRequest<'_>, mut call: ParkedCall) -> Result<Outcome, Failure> {
        let cx = request.cx;
        loop {
            match call.call.next().await {
                CallProgress::Notification(notification) => deliver(cx, notification).await,
                CallProgress::Task(TaskReport::Created(ttl)) => {
                    if request.relay.detach(cx, Some(ttl)).await {
                        return request.finish(call.call).await;
                    }
                }
                CallProgress::Task(TaskReport::Status(_)) => {}
                CallProgress::Question(question) => {
                    call.add(cx, question);
                    while let Some(more) = call.call.take_question() {
                        call.add(cx, more);
                    }
                    if !call.questions.is_empty() {
                        return Ok(end_round(request, call)?);
                    }
                }
                CallProgress::Done(Ok(result)) => return Ok(request.complete(result)),
                CallProgress::Done(Err(Error::Rpc(error)))
                    if error.code == ErrorCode::URL_ELICITATION_REQUIRED && cx.can_elicit_url() =>
                {
                    return Ok(require_urls(error)?);
                }
                CallProgress::Done(Err(error)) => return Err(request.failed(error)),
            }
        }
    }
}

impl ParkedCall {
    /// Adds a question to those of the round, or refuses it if the client cannot answer it.
    fn add(&mut self, cx: &Cx, question: OpenQuestion) {
        let OpenQuestion { mut question, answer } = question;
        if let Err(error) = Downstream::of(cx).can_answer(&question.method, &question.params) {
            let _ = answer.send(Err(refusal(&question.method, error)));
            return;
        }
        self.asked += 1;
        // In the stateless era a page has no id, and a task of the relay has none for its client.
        question.params = without_meta(question.params, &[question_keys::META, keys::RELATED_TASK])
            .without(&["elicitationId"]);
        let key = question.key.as_deref().filter(|key| self.questions.iter().all(|(other, _)| other != key));
        let key = key.map_or_else(|| format!("question-{}", self.asked), str::to_owned);
        self.questions.push((key, OpenQuestion { question, answer }));
    }
}

/// Ends the round with the questions of a call, which is parked.
fn end_round(request: RelayedRequest<'_>, call: ParkedCall) -> Result<Outcome, RpcError> {
    let questions = call
        .questions
        .iter()
        .map(|(key, open)| (key.as_str(), open.question.method.as_str(), &open.question.params));
    let result = input_required(questions).map_err(|error| RpcError::internal(error.to_string()))?;
    let time = request.downstream().answer_time();
    request.downstream().set_answer_timeout(time);
    let id = request.relay.inner.parked.insert(call, request.cx, time)?;
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
fn resume(request: RelayedRequest<'_>, id: &str) -> Result<ParkedCall, RpcError> {
    let RelayedRequest { relay, cx } = request;
    let lost = || {
        RpcError::invalid_params(
            "the call no longer waits for its answers, because it took too long, the server was restarted, or its memory was needed: start the call again",
        )
    };
    let mut call = relay.inner.parked.take(id, cx.principal()).ok_or_else(lost)?;
    let answers = call.questions.iter().map(|(key, open)| offered_answer(cx, key, &open.question.method));
    match answers.collect::<Result<Vec<_>, _>>() {
        Ok(answers) => {
            // It is in no table any more: if others need its room, this round ends.
            request.downstream().give_way(&call.charge);
            for ((_, open), answer) in call.questions.drain(..).zip(answers) {
                // The server no longer waits if it has withdrawn the question.
                let _ = open.answer.send(Ok(answer));
            }
            Ok(call)
        }
        Err(error) => {
            // The client may correct its answers, so the call goes on waiting, and the state can be used again.
            relay.inner.parked.put_back(id, call, cx, request.downstream().answer_time());
            request.downstream().refused_answer(&error);
            Err(error.into())
        }
    }
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
