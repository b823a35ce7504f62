//! Calls that another server handles: its questions and notifications, unparsed.

use pintle_proto::inputs::{AskError, Question};
use pintle_types::{RawObject, method, plain_error, schema::InputRequest};
use tracing::Instrument as _;

use super::{Cx, asking::AskingGuard, span};

impl Cx {
    /// Sends the client of a session a question of another server, and returns its answer.
    pub(crate) async fn ask_raw(&self, method: &str, params: &RawObject) -> Result<RawObject, AskError> {
        self.can_answer(method, params)?;
        if self.is_cancelled() {
            return Err(AskError::CallOver);
        }
        let unprintable = |error: serde_json::Error| AskError::Unprintable { reason: error.to_string() };
        // The answer is for another server, which was not told of the tasks of this client.
        let request = InputRequest::new(method, &params.without(&["task"])).map_err(unprintable)?;
        let deadline = self.answer_deadline();
        let _asking = AskingGuard::new(self);
        let span = span::of_question(self, method);
        let answer = self.send_request(method, request, deadline).instrument(span).await?;
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
            _ if self.call().is_in_session() => return Ok(()),
            method => return Err(AskError::NeedsSession { method: method.to_owned() }),
        };
        self.call().check_capabilities(&question)
    }

    /// Sends a progress notification of another server, if the client requested progress.
    pub(crate) async fn forward_progress(&self, params: &RawObject) {
        self.send_notification(self.call().relayed_progress(params)).await;
    }

    /// Sends a log message of another server, if the client requested messages of its level.
    pub(crate) async fn forward_log(&self, params: &RawObject) {
        let line = self.logs().then(|| self.call().relayed_log(params)).flatten();
        self.send_notification(line).await;
    }
}
