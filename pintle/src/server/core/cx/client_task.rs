//! Questions whose answers run as tasks of the client, in the one revision that has them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pintle_proto::{TaskKind, inputs::AskError};
use pintle_types::{
    RawObject, method, plain_error,
    schema::{CreateTaskResult, InputRequest, Task, TaskMetadata, TaskParams, TaskStatus},
};
use serde::Serialize;
use serde_json::value::to_raw_value;
use tokio::{
    runtime::Handle,
    time::{Instant, sleep, timeout},
};

use super::Cx;

/// The limits of the interval between two polls, whatever the client recommends.
const MIN_INTERVAL: Duration = Duration::from_millis(10);
const MAX_INTERVAL: Duration = Duration::from_secs(60);
/// The interval if the client recommends none.
const USUAL_INTERVAL: Duration = Duration::from_secs(1);
/// The time to cancel a task that nobody waits for.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

impl Cx {
    /// Asks later questions of this call as tasks of the client, which it keeps for `ttl`: the client replies at once, and is polled
    /// for the answer. So no request stays open while a model or a user thinks.
    ///
    /// Only clients of 2025-11-25 that declare it run tasks, as those with `Client::answer_tasks` do. Others are asked as
    /// before, and so is everyone once the call itself is a task. Dropping the future of a question cancels its task.
    ///
    /// ```
    /// use std::time::Duration;
    /// use pintle::server::{Cx, ToolError};
    /// use pintle::types::schema::{ContentBlock, CreateMessageParams, Role, SamplingMessage};
    ///
    /// async fn write(cx: Cx) -> Result<String, ToolError> {
    ///     cx.ask_as_tasks(Duration::from_secs(3600));
    ///     let question = SamplingMessage::new(Role::User, ContentBlock::text("Write a novel."));
    ///     Ok(cx.sample("novel", CreateMessageParams::new(vec![question], 100_000)).await?.text())
    /// }
    /// # let _ = pintle::server::tool("write", write);
    /// ```
    pub fn ask_as_tasks(&self, ttl: Duration) {
        let ttl = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX);
        self.0.questions.ttl_ms.store(ttl.unsigned_abs().max(1), Ordering::Relaxed);
    }

    /// Returns whether a question might be asked as a task.
    pub(super) fn may_be_task(&self, request: &InputRequest) -> bool {
        self.0.questions.ttl_ms.load(Ordering::Relaxed) > 0
            || request.params.as_deref().is_some_and(|params| params.get().contains("\"task\""))
    }

    /// Sends a question, as a task if that is wanted and the client runs such tasks, and waits for the answer.
    pub(super) async fn send_question(
        &self,
        key: &str,
        request: InputRequest,
        deadline: (Option<Instant>, Duration),
    ) -> Result<RawObject, AskError> {
        if !self.may_be_task(&request) {
            return self.send_request(key, request, deadline).await;
        }
        let params: RawObject = request.params_as().map_err(unprintable)?;
        if self.is_detached() || !self.runs_tasks_of(&request.method) {
            let plain = InputRequest::new(request.method, &params.without(&["task"])).map_err(unprintable)?;
            return self.send_request(key, plain, deadline).await;
        }
        let params = match (params.get("task"), self.0.questions.ttl_ms.load(Ordering::Relaxed)) {
            (None, ttl) if ttl > 0 => {
                let mut task = TaskMetadata::new();
                task.ttl = i64::try_from(ttl).ok();
                params.with("task", &to_raw_value(&task).map_err(unprintable)?)
            }
            _ => params,
        };
        let request = InputRequest::new(request.method, &params).map_err(unprintable)?;
        let answer = self.send_request(key, request, deadline).await?;
        match answer.get("task") {
            // The client has answered at once.
            None => Ok(answer),
            Some(_) => {
                let CreateTaskResult { task, .. } = read(key, &answer)?;
                self.poll_task(key, task, deadline).await
            }
        }
    }

    /// Polls a task of the client to its end, and returns its result.
    async fn poll_task(
        &self,
        key: &str,
        mut task: Task,
        deadline: (Option<Instant>, Duration),
    ) -> Result<RawObject, AskError> {
        let id: Arc<str> = task.task_id.as_str().into();
        let guard = AbandonedTaskGuard { cx: self, id: id.clone(), is_over: AtomicBool::new(false) };
        let params = TaskParams::new(&*id);
        // A task that waits for input of this server would get it with the request for its result.
        while !task.status.is_terminal() && task.status != TaskStatus::InputRequired {
            let interval = task.poll_interval.and_then(|interval| u64::try_from(interval).ok());
            let interval = interval.map_or(USUAL_INTERVAL, Duration::from_millis);
            sleep(interval.clamp(MIN_INTERVAL, MAX_INTERVAL)).await;
            if let (Some(end), limit) = deadline
                && end <= Instant::now()
            {
                let after_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
                return Err(AskError::TimedOut { after_ms });
            }
            let polled = self.send_request(key, request(method::TASKS_GET, &params)?, deadline).await?;
            task = read(key, &polled)?;
        }
        let result = self.send_request(key, request(method::TASKS_RESULT, &params)?, deadline).await;
        if !matches!(result, Err(AskError::TimedOut { .. })) {
            guard.is_over.store(true, Ordering::Relaxed);
        }
        result
    }

    /// Returns whether the client runs tasks of this method.
    fn runs_tasks_of(&self, method: &str) -> bool {
        let peer = self.peer();
        if self.facts().tasks != TaskKind::Protocol {
            return false;
        }
        let requests = peer.capabilities.tasks.as_ref().and_then(|tasks| tasks.requests.as_ref());
        requests.is_some_and(|requests| match method {
            method::SAMPLING_CREATE_MESSAGE => {
                requests.sampling.as_ref().is_some_and(|sampling| sampling.create_message.is_some())
            }
            method::ELICITATION_CREATE => {
                requests.elicitation.as_ref().is_some_and(|elicitation| elicitation.create.is_some())
            }
            _ => false,
        })
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn unprintable(error: serde_json::Error) -> AskError {
    AskError::Unprintable { reason: error.to_string() }
}

fn request(method: &str, params: &impl Serialize) -> Result<InputRequest, AskError> {
    InputRequest::new(method, params).map_err(unprintable)
}

fn read<T: serde::de::DeserializeOwned>(key: &str, answer: &RawObject) -> Result<T, AskError> {
    answer.decode().map_err(|error| AskError::BadAnswer { key: key.to_owned(), reason: plain_error(&error) })
}

/// Cancels a task of the client on drop, unless it has ended.
struct AbandonedTaskGuard<'a> {
    cx: &'a Cx,
    id: Arc<str>,
    is_over: AtomicBool,
}

impl Drop for AbandonedTaskGuard<'_> {
    fn drop(&mut self) {
        if self.is_over.load(Ordering::Relaxed) {
            return;
        }
        let Ok(cancel) = request(method::TASKS_CANCEL, &TaskParams::new(&*self.id)) else { return };
        if let (Some(session), Ok(runtime)) = (self.cx.session(), Handle::try_current()) {
            drop(crate::runtime::spawn_on(&runtime, async move {
                if let Ok(Err(error)) = timeout(CANCEL_TIMEOUT, session.forward_request(cancel)).await {
                    tracing::debug!(%error, "an abandoned task of the client was not cancelled");
                }
            }));
        }
    }
}
