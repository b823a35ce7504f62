//! Calls that another server handles: its questions and notifications, unparsed, and its tasks.

use pintle_proto::{
    inputs::{AskError, Question},
    server::Outcome,
};
use pintle_types::{RawObject, method, plain_error, schema::InputRequest};
use tracing::Instrument as _;

use super::{
    Cx,
    asking::AskingGuard,
    detached::{DetachRequest, DetachedCall, TaskHolder},
    span,
};
use crate::server::core::{driver::sink::CallSink, provider::tasks::outer_task, result_filter};

impl Cx {
    /// Sends the client of a session, or of a task, a question of another server, and returns its answer. No other question of the call
    /// that is open has this key.
    pub(crate) async fn ask_raw(
        &self,
        key: &str,
        method: &str,
        params: &RawObject,
    ) -> Result<RawObject, AskError> {
        self.can_answer(method, params)?;
        if self.is_cancelled() {
            return Err(AskError::CallOver);
        }
        let unprintable = |error: serde_json::Error| AskError::Unprintable { reason: error.to_string() };
        // The answer is for another server, which was not told of the tasks of this client.
        let filtered = result_filter::question(self, params).await;
        let params = filtered.as_ref().unwrap_or(params).without(&["task"]);
        let request = InputRequest::new(method, &params).map_err(unprintable)?;
        let deadline = self.answer_deadline();
        let _asking = AskingGuard::new(self);
        let span = span::of_question(self, method);
        let answer = self.send_request(key, request, deadline).instrument(span).await?;
        self.call().raised_answer(method, answer)
    }

    /// Refuses a question of another server that the client of this request cannot answer.
    pub(crate) fn can_answer(&self, method: &str, params: &RawObject) -> Result<(), AskError> {
        let invalid = |error: &serde_json::Error| AskError::BadQuestion { reason: plain_error(error) };
        let question = match method {
            method::ELICITATION_CREATE => {
                Question::Elicit(Box::new(params.decode().map_err(|error| invalid(&error))?))
            }
            method::SAMPLING_CREATE_MESSAGE => {
                Question::Sample(Box::new(params.decode().map_err(|error| invalid(&error))?))
            }
            method::ROOTS_LIST => Question::Roots,
            // A request of an extension: its client knows whether it can answer.
            _ if self.facts().asks_by_request => return Ok(()),
            method => return Err(AskError::NeedsSession { method: method.to_owned() }),
        };
        self.call().check_capabilities(&question)
    }

    /// Detaches the rest of the call from its request, as a task of the provider that handles it: see [`detach_with`](Self::detach_with).
    /// Clients get the id that the task of a provider has for them. Returns `false`, and the call stays as it is, if no provider handles it.
    pub(crate) async fn detach_to_provider<F, Fut>(&self, adopt: F) -> bool
    where
        F: FnOnce(DetachedCall) -> Fut + Send + 'static,
        Fut: Future<Output = Outcome> + Send + 'static,
    {
        if self.provider().is_none() {
            return false;
        }
        let request = DetachRequest::always(move |call| Box::pin(adopt(call)));
        let outer = outer_task(self, TaskHolder::Provider);
        // The provider may be in several mounted servers, and the task is for clients of the outermost one.
        if !self.clone().unmounted().request_detach_as(request, Some(outer)) {
            return false;
        }
        self.wait_to_be_taken_over().await;
        true
    }

    /// Sets the status of a call that goes on after its response, as another server has it.
    pub(crate) fn report_status(&self, message: String) {
        if let CallSink::Detached(events) = self.sink() {
            events.set_status(message);
        }
    }

    /// Sends a progress notification of another server, if the client requested progress. That of a call that goes on after its response
    /// is its status.
    pub(crate) async fn forward_progress(&self, params: &RawObject) {
        if let CallSink::Detached(events) = self.sink() {
            let number = |name: &str| params.decode_member::<f64>(name).ok().flatten();
            let message: Option<String> = params.decode_member("message").ok().flatten();
            if let Some(done) = number("progress") {
                events.report(done, number("total"), message.as_deref());
            }
            return;
        }
        self.send_notification(self.call().relayed_progress(params)).await;
    }

    /// Sends a log message of another server, unless the client requested none of its level. Where the level is that of a session, that is so
    /// also if that server does not declare that it logs: many do not.
    pub(crate) async fn forward_log(&self, params: &RawObject) {
        let may_log = self.logs() || !self.facts().level_by_call;
        let line = may_log.then(|| self.call().relayed_log(params)).flatten();
        self.send_notification(line).await;
    }
}
