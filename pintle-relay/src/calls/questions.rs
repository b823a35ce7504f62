//! Questions of the server behind a relay, and their answers.

use std::{
    collections::BTreeMap,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use pintle::{
    forward::{Downstream, InputRequired, question_keys},
    server::{AskError, Cx},
    types::{
        JsonObject, RawObject, RawValue, RpcError, keys, method, plain_error,
        schema::{CreateMessageResult, ElicitResult, InputRequest, ListRootsResult, RelatedTask},
    },
};
use serde::Serialize;

use crate::{
    link_state::calls::OpenQuestion,
    meta::{with_meta, without_meta},
};

/// A question that is being asked.
type RunningQuestion = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Questions that are being asked at the same time.
#[derive(Default)]
pub(crate) struct RunningQuestions {
    /// Those without an answer, by key.
    running: Vec<(Arc<str>, RunningQuestion)>,
    /// The number of questions so far.
    asked: u64,
}

impl RunningQuestions {
    /// Asks the client of a session, or of a task, a question, and returns its answer to the server behind.
    pub(crate) fn ask(&mut self, cx: &Cx, question: OpenQuestion) {
        self.asked += 1;
        let is_free = |key: &Arc<str>| self.running.iter().all(|(other, _)| other != key);
        let key = question.question.key.clone().filter(is_free);
        let key = key.unwrap_or_else(|| format!("question-{}", self.asked).into());
        let (cx, known_as) = (cx.clone(), key.clone());
        let asking = Box::pin(async move {
            let OpenQuestion { question, mut answer } = question;
            let mut params = with_task(&cx, without_key(&cx, &question.params));
            if !Downstream::of(&cx).has_elicitation_ids() {
                params = params.without(&["elicitationId"]);
            }
            let answered = {
                let mut asking = pin!(Downstream::of(&cx).ask(&key, &question.method, &params));
                let mut withdrawn = pin!(answer.closed());
                poll_fn(|task| match withdrawn.as_mut().poll(task) {
                    Poll::Ready(()) => Poll::Ready(None),
                    Poll::Pending => asking.as_mut().poll(task).map(Some),
                })
                .await
            };
            if let Some(answered) = answered {
                let _ = answer.send(answered.map_err(|error| refusal(&question.method, error)));
            }
        });
        self.running.push((known_as, asking));
    }

    /// Polls all questions. The tasks of those that wait are woken.
    pub(crate) fn poll(&mut self, task: &mut Context<'_>) {
        self.running.retain_mut(|(_, asking)| asking.as_mut().poll(task).is_pending());
    }
}

/// Asks the client of a session all questions of a round at once, and returns the answers by key.
pub(crate) async fn ask_all(cx: &Cx, asked: &InputRequired) -> Result<Vec<(Box<str>, RawObject)>, RpcError> {
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

/// Returns the error that the server behind gets for a question without an answer.
pub(crate) fn refusal(method: &str, error: AskError) -> RpcError {
    match error {
        // As the client itself would refuse it.
        AskError::Refused(error) => error,
        AskError::CannotAnswer { .. } => RpcError::method_not_found(method),
        error => error.into(),
    }
}

/// Removes the key of a question from its metadata, unless the client has declared to want it.
fn without_key(cx: &Cx, params: &RawObject) -> RawObject {
    if question_keys::is_wanted(cx.peer().capabilities.extensions.as_ref()) {
        return params.clone();
    }
    without_meta(params.clone(), &[question_keys::META])
}

/// Writes the id that the client has for the task of a question.
fn with_task(cx: &Cx, params: RawObject) -> RawObject {
    let meta: Option<RawObject> = params.decode_member("_meta").ok().flatten();
    if meta.is_none_or(|meta| meta.get(keys::RELATED_TASK).is_none()) {
        return params;
    }
    match Downstream::of(cx).sent_params().decode_member::<String>("taskId") {
        Ok(Some(id)) => with_meta(&params, keys::RELATED_TASK, &RelatedTask::new(id)),
        _ => without_meta(params, &[keys::RELATED_TASK]),
    }
}

/// Returns the `input_required` result with these questions.
pub(crate) fn input_required<'a>(
    questions: impl IntoIterator<Item = (&'a str, &'a str, &'a RawObject)>,
) -> Result<RawObject, serde_json::Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct InputRequired {
        result_type: &'static str,
        input_requests: BTreeMap<String, InputRequest>,
    }
    let questions = questions.into_iter().map(|(key, method, params)| {
        let request = match (method, params.is_empty()) {
            (method::ROOTS_LIST, true) => InputRequest::new(method, &JsonObject::new()),
            _ => InputRequest::new(method, params),
        };
        Ok((key.to_owned(), request?))
    });
    let input_requests = questions.collect::<Result<_, serde_json::Error>>()?;
    RawObject::from_serialize(&InputRequired { result_type: "input_required", input_requests })
}

/// Returns the answer with this key that a client sent with its call, in canonical shapes.
pub(crate) fn offered_answer(cx: &Cx, key: &str, method: &str) -> Result<RawObject, AskError> {
    let bad = |reason: &str| AskError::BadAnswer { key: key.to_owned(), reason: reason.to_owned() };
    let answers: Option<BTreeMap<String, Box<RawValue>>> =
        cx.params().decode_member("inputResponses").ok().flatten();
    let answer = answers.as_ref().and_then(|answers| answers.get(key));
    let answer = answer.ok_or_else(|| bad("it is missing; answer all questions"))?;
    let answer: RawObject = answer.get().parse().map_err(|_| bad("not an object"))?;
    let answer = Downstream::of(cx).raised_answer(method, answer)?;
    let readable = match method {
        method::ELICITATION_CREATE => answer.decode::<ElicitResult>().map(drop),
        method::SAMPLING_CREATE_MESSAGE => answer.decode::<CreateMessageResult>().map(drop),
        _ => answer.decode::<ListRootsResult>().map(drop),
    };
    readable.map_err(|error| bad(&plain_error(&error)))?;
    Ok(answer)
}
