use std::time::Duration;

use pintle_proto::{
    inputs::{AskError, Question},
    ledger::{Ceiling, Charge, Held, Owner},
    server::Outcome,
};
use pintle_types::{RawObject, RawValue, method, plain_error, schema::InputRequest};
use tracing::Instrument as _;

use crate::server::{
    Cx, DetachRequest, DetachedCall,
    core::{
        cx::{asking::AskingGuard, caller_key::CallerKey, detached::TaskHolder, span},
        driver::sink::CallSink,
        provider::tasks::outer_task,
        result_filter,
    },
};

/// The client side of a call that is forwarded: its questions and notifications, unparsed, and its task.
///
/// ```
/// use pintle::{forward::Downstream, server::Cx, types::RawObject};
///
/// /// Passes on the progress that another server has reported.
/// async fn pass_on(cx: &Cx, progress: &RawObject) {
///     Downstream::of(cx).progress(progress).await;
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Downstream<'a>(&'a Cx);

impl<'a> Downstream<'a> {
    /// Returns the client side of a call.
    pub fn of(cx: &'a Cx) -> Self {
        Self(cx)
    }

    /// Sends the client of a session, or of a task, a question of another server, and returns its answer in canonical shapes. No other
    /// question of the call that is open may have this key.
    ///
    /// # Errors
    ///
    /// The client cannot answer it, refuses to, or answers with something else; or the call is over.
    pub async fn ask(self, key: &str, method: &str, params: &RawObject) -> Result<RawObject, AskError> {
        let cx = self.0;
        self.can_answer(method, params)?;
        if cx.is_cancelled() {
            return Err(AskError::CallOver);
        }
        let unprintable = |error: serde_json::Error| AskError::Unprintable { reason: error.to_string() };
        // The answer is for another server, which was not told of the tasks of this client.
        let filtered = result_filter::question(cx, params).await;
        let params = filtered.as_ref().unwrap_or(params).without(&["task"]);
        let request = InputRequest::new(method, &params).map_err(unprintable)?;
        let deadline = cx.answer_deadline();
        let _asking = AskingGuard::new(cx);
        let span = span::of_question(cx, method);
        let answer = cx.send_request(key, request, deadline).instrument(span).await?;
        self.raised_answer(method, answer)
    }

    /// Checks whether the client of this request can answer a question of another server.
    ///
    /// # Errors
    ///
    /// It has not declared the capability, or the question cannot be read.
    pub fn can_answer(self, method: &str, params: &RawObject) -> Result<(), AskError> {
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
            _ if self.0.facts().asks_by_request => return Ok(()),
            method => return Err(AskError::NeedsSession { method: method.to_owned() }),
        };
        self.0.call().check_capabilities(&question)
    }

    /// Returns an answer of the client in canonical shapes.
    ///
    /// # Errors
    ///
    /// The answer is no answer to a question of this method.
    pub fn raised_answer(self, method: &str, answer: RawObject) -> Result<RawObject, AskError> {
        self.0.call().raised_answer(method, answer)
    }

    /// Returns whether pages that the client is asked to open have an id.
    pub fn has_elicitation_ids(self) -> bool {
        self.0.call().has_elicitation_ids()
    }

    /// Sends a progress notification of another server, if the client requested progress. That of a call that goes on after its response
    /// is its status.
    pub async fn progress(self, params: &RawObject) {
        if let CallSink::Detached(events) = self.0.sink() {
            let number = |name: &str| params.decode_member::<f64>(name).ok().flatten();
            let message: Option<String> = params.decode_member("message").ok().flatten();
            if let Some(done) = number("progress") {
                events.report(done, number("total"), message.as_deref());
            }
            return;
        }
        self.0.send_notification(self.0.call().relayed_progress(params)).await;
    }

    /// Sends a log message of another server, unless the client requested none of its level. Where the level is that of a session, that is so
    /// also if that server does not declare that it logs: many do not.
    pub async fn log(self, params: &RawObject) {
        let may_log = self.0.logs() || !self.0.facts().level_by_call;
        let line = may_log.then(|| self.0.call().relayed_log(params)).flatten();
        self.0.send_notification(line).await;
    }

    /// Sets the status of a call that goes on after its response, as another server has it.
    pub fn status(self, message: String) {
        if let CallSink::Detached(events) = self.0.sink() {
            events.set_status(message);
        }
    }

    /// Detaches the rest of the call from its request, as a task of the provider that handles it. Clients get the id that the task of a
    /// provider has for them. Returns `false`, and the call stays as it is, if no provider handles it.
    pub async fn detach<F, Fut>(self, adopt: F) -> bool
    where
        F: FnOnce(DetachedCall) -> Fut + Send + 'static,
        Fut: Future<Output = Outcome> + Send + 'static,
    {
        let cx = self.0;
        if cx.provider().is_none() {
            return false;
        }
        let request = DetachRequest::always(move |call| Box::pin(adopt(call)));
        let outer = outer_task(cx, TaskHolder::Provider);
        // The provider may be in several mounted servers, and the task is for clients of the outermost one.
        if !cx.clone().unmounted().request_detach_as(request, Some(outer)) {
            return false;
        }
        cx.wait_to_be_taken_over().await;
        true
    }

    /// Returns the call as one of the server of the connection, whatever servers are mounted between it and the provider.
    pub fn outermost(self) -> Cx {
        self.0.clone().unmounted()
    }

    /// Marks the result of the call as one that has the names that clients of the server of the connection see.
    pub fn set_outermost_result(self) {
        self.0.set_passed_mounts();
    }

    /// Returns the state of the other server from the round before: that of a [`RelayedRound`](super::RelayedRound).
    pub fn state(self) -> Option<Box<RawValue>> {
        self.0.call().relayed_state()
    }

    /// Sets the time that the client has for the answers of this round.
    pub fn set_answer_timeout(self, timeout: Duration) {
        self.0.call().set_answer_timeout_ms(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
    }

    /// Returns whether the request has a state of an earlier round.
    pub fn has_returned(self) -> bool {
        self.0.call().returned()
    }

    /// Returns the params as the client has sent them, before rules and transforms.
    pub fn sent_params(self) -> &'a RawObject {
        self.0.call().params()
    }

    /// Returns whether a gate on the way of the call decides by an argument of this name.
    pub fn is_judged_by(self, argument: &str) -> bool {
        self.0.is_judged_by(argument)
    }

    /// Returns the caller that something is counted for; `None` is the local user, whom no other caller competes with.
    pub fn caller(self) -> Option<CallerKey> {
        CallerKey::of(self.0)
    }

    /// Returns a charge for what the server holds for the caller until its next request.
    pub fn charge(self) -> Charge {
        let owner = self.caller().map_or(Owner::Local, |caller| caller.owner());
        Charge::new(self.0.outermost_snapshot().service.ledger().account(&owner), Held::Waiting)
    }

    /// Reports an answer as refused. If the call fails because of it, its state can be used again.
    pub fn refused_answer(self, error: &AskError) {
        self.0.note_refusal(error);
    }

    /// Returns how long the call may wait for the answers of its client between two rounds.
    pub fn answer_time(self) -> Duration {
        let snapshot = self.0.snapshot();
        let state = Duration::from_millis(snapshot.service.bounds().state_ttl_ms);
        state.min(snapshot.settings.timeouts.question)
    }

    /// Ends the round if others need the room of a charge.
    #[cfg_attr(
        not(feature = "http-server"),
        expect(unused_variables, reason = "only HTTP requests give way")
    )]
    pub fn give_way(self, charge: &Charge) {
        #[cfg(feature = "http-server")]
        self.0.give_way(charge);
    }

    /// Returns the limit of the rounds of a call.
    pub fn max_rounds(self) -> u32 {
        self.0.snapshot().service.bounds().rounds
    }

    /// Returns the limit of such charges.
    pub fn ceiling(self) -> Ceiling {
        self.0.outermost_snapshot().service.bounds().ceiling(Held::Waiting)
    }
}
