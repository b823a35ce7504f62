use std::{
    any::Any,
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use pintle_types::{
    JsonObject, RawObject, RawValue, RequestId, RpcError, method,
    schema::{ElicitationCompleteParams, InputRequest, LoggingLevel},
};
use serde::Serialize;
use serde_json::value::to_raw_value;

use super::{Finished, Outcome, Service, Ticket, batch::BatchId, effect::Action, finish, print};
use crate::{
    Part, Peer, Revision,
    inputs::{Answer, Ask, AskError, Binding, CallRecord, Inputs, Kind, Once, Question, StateUse},
    ledger::{Account, Charge, Owner},
    revision::ReshapeError,
};

/// An admitted request: what its handler may know of it, and the means to answer it.
///
/// Cloning is cheap. A call does not depend on its connection.
///
/// ```
/// use pintle_proto::server::{Arrival, Inbound, Outcome, Service};
/// use pintle_types::{Message, schema::{Implementation, ServerCapabilities, ToolsCapability}};
///
/// let mut capabilities = ServerCapabilities::default();
/// capabilities.tools = Some(ToolsCapability::default());
/// let service = Service::new(Implementation::new("adder", "1.0.0"), capabilities);
///
/// let Ok(Message::Request(request)) = Message::parse(
///     br#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"add","_meta":{"progressToken":7,
///     "io.modelcontextprotocol/protocolVersion":"2026-07-28",
///     "io.modelcontextprotocol/clientCapabilities":{}}}}"#,
/// ) else { panic!("a request") };
/// let Ok(Inbound::Call(call)) = service.admit(request, &Arrival::at(0)) else { panic!("admitted") };
///
/// assert_eq!(call.params().get("name"), Some(r#""add""#));
/// assert!(call.progress(0.5, None, Some("half way")).is_some());
/// assert!(call.progress(0.5, None, Some("still there")).is_none(), "not more than before");
/// let finished = call.finish(&service, Outcome::BadArguments("`a` is missing: send a number".into()), 0);
/// assert_eq!(finished.error, None, "the model is to read it");
/// ```
#[derive(Clone)]
pub struct Call(Arc<CallInner>);

pub(super) struct CallInner {
    pub(super) id: RequestId,
    pub(super) method: Cow<'static, str>,
    pub(super) params: RawObject,
    pub(super) peer: Arc<Peer>,
    pub(super) principal: Option<Box<str>>,
    pub(super) progress: Option<RequestId>,
    pub(super) inputs: Inputs,
    pub(super) ticket: Option<Ticket>,
    pub(super) batch: Option<BatchId>,
    pub(super) done: Mutex<Option<f64>>,
    /// A value that is dropped with the call.
    pub(super) held: Mutex<Option<Box<dyn Any + Send>>>,
    /// The members of a filter that the driver grants.
    pub(super) granted: Mutex<Option<Box<JsonObject>>>,
    /// The action of the engine if the call ends without an error.
    pub(super) action: Mutex<Option<Action>>,
    pub(super) origin: Origin,
    /// The params, if they are long.
    pub(super) charge: Charge,
}

/// The kind of message that a call was received as.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Origin {
    Request,
    /// `known` is whether there was a handshake before it.
    Notification {
        known: bool,
    },
}

impl Call {
    #[inline]
    pub(super) fn new(inner: CallInner) -> Self {
        Self(Arc::new(inner))
    }

    pub(super) fn inner(&self) -> &CallInner {
        &self.0
    }

    /// Returns the request's id.
    pub fn id(&self) -> &RequestId {
        &self.0.id
    }

    /// Returns the method.
    pub fn method(&self) -> &str {
        &self.0.method
    }

    /// Returns the params, in canonical shapes.
    pub fn params(&self) -> &RawObject {
        &self.0.params
    }

    /// Returns the client.
    pub fn peer(&self) -> &Arc<Peer> {
        &self.0.peer
    }

    /// Returns the principal, if the transport authenticated one.
    pub fn principal(&self) -> Option<&str> {
        self.0.principal.as_deref()
    }

    /// Returns what the call is charged for: its params, if they are long, until its last clone is dropped.
    pub fn charge(&self) -> &Charge {
        &self.0.charge
    }

    /// Returns the account of the sender.
    pub(super) fn account(&self, service: &Service) -> Account {
        self.0.charge.account().cloned().unwrap_or_else(|| service.ledger().account(&Owner::Local))
    }

    /// Returns the ticket of the call on its connection, if it has one.
    pub fn ticket(&self) -> Option<Ticket> {
        self.0.ticket
    }

    /// Returns whether the client requested progress notifications.
    pub fn wants_progress(&self) -> bool {
        self.0.progress.is_some()
    }

    /// Returns a progress notification for the client.
    ///
    /// Returns `None` if the client did not request progress, if `progress` has not increased, or if a number is not
    /// finite.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) -> Option<Vec<u8>> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct ProgressParams<'a> {
            progress_token: &'a RequestId,
            progress: f64,
            #[serde(skip_serializing_if = "Option::is_none")]
            total: Option<f64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            message: Option<&'a str>,
        }
        let inputs = &self.0.inputs;
        let progress_token =
            self.0.progress.as_ref().filter(|_| !inputs.is_over() && !inputs.is_detached())?;
        if !progress.is_finite() || total.is_some_and(|total| !total.is_finite()) {
            return None;
        }
        if !self.advance(progress) {
            return None;
        }
        Some(print::notification(
            self.0.peer.revision,
            method::NOTIFICATIONS_PROGRESS,
            &ProgressParams { progress_token, progress, total, message },
        ))
    }

    /// Returns the notification for a log message, if the client requested messages of this level.
    pub fn log(&self, level: LoggingLevel, logger: Option<&str>, data: &impl Serialize) -> Option<Vec<u8>> {
        #[derive(Serialize)]
        struct LogParams<'a> {
            level: LoggingLevel,
            #[serde(skip_serializing_if = "Option::is_none")]
            logger: Option<&'a str>,
            data: Box<RawValue>,
        }
        let wanted = self.0.peer.log_level?;
        if level < wanted || self.0.inputs.is_over() || self.0.inputs.is_detached() {
            return None;
        }
        // A value of the user's may fail to serialize.
        let data = to_raw_value(data)
            .or_else(|error| to_raw_value(&format!("a log message that cannot be serialized: {error}")))
            .ok()?;
        let params = LogParams { level, logger, data };
        Some(print::notification(self.0.peer.revision, method::NOTIFICATIONS_MESSAGE, &params))
    }

    /// Records progress. Returns whether it has increased.
    pub(super) fn advance(&self, progress: f64) -> bool {
        let mut done = self.0.done.lock().unwrap_or_else(PoisonError::into_inner);
        if done.is_some_and(|done| progress <= done) {
            return false;
        }
        *done = Some(progress);
        true
    }

    /// Forgets the answer to a question of a session, so that it is asked again: it may have changed, as roots do. Without a session
    /// it stays, because it belongs to the call.
    pub fn forget_answer(&self, key: &str) {
        self.0.inputs.forget_answer(key);
    }

    /// Returns whether elicitations with a URL have an id in the client's revision, and the client is notified of their
    /// completion (ELI-13).
    pub fn has_elicitation_ids(&self) -> bool {
        self.0.peer.revision.dialect().url_elicitation_error
    }

    /// Returns the notification that what the user was asked to do at a URL is done, if the client's revision has it.
    pub fn elicitation_complete(&self, elicitation_id: &str) -> Option<Vec<u8>> {
        if !self.has_elicitation_ids() || self.0.inputs.is_over() {
            return None;
        }
        let params = ElicitationCompleteParams::new(elicitation_id);
        Some(print::notification(self.0.peer.revision, method::NOTIFICATIONS_ELICITATION_COMPLETE, &params))
    }

    /// Returns whether the client declared the capability to answer this question.
    pub fn can_ask(&self, question: &Question) -> bool {
        question.fits(&self.0.peer)
    }

    /// Returns an error that names what the client did not declare, if it cannot answer this question.
    pub fn check_capabilities(&self, question: &Question) -> Result<(), AskError> {
        match self.can_ask(question) {
            true => Ok(()),
            false => Err(AskError::CannotAnswer { required: Box::new(question.required()) }),
        }
    }

    /// Asks the client a question. `key` identifies the question in every round of the call.
    pub fn ask(&self, service: &Service, key: &str, question: &Question) -> Result<Ask, AskError> {
        // No other call can be repeated with an answer (MRTR-1). Sessions are restricted too, so that a handler does
        // not work for old clients only.
        if !method::find(self.method()).is_some_and(|row| row.may_ask) {
            return Err(AskError::NotHere { method: self.method().to_owned() });
        }
        self.0.inputs.ask(key, question, &self.0.peer, service.bounds())
    }

    /// Accepts the answer to a question that was sent, in the shapes of the client's revision.
    pub fn settle(&self, key: &str, kind: Kind, answer: &RawObject) -> Result<Answer, AskError> {
        self.0.inputs.settle(key, kind, self.0.peer.revision, answer.as_str())
    }

    /// Returns the open questions, by key.
    pub fn open_questions(&self) -> BTreeMap<String, InputRequest> {
        self.0.inputs.open()
    }

    /// Returns whether the request has a state of an earlier round.
    pub fn returned(&self) -> bool {
        self.0.inputs.returned()
    }

    /// Returns the state that the request has, to check before the handler runs that each state is used once. The
    /// answers sent with it are valid, or the call would not have been admitted.
    pub fn state_use(&self) -> Option<StateUse> {
        self.0.inputs.state_use()
    }

    /// Starts an action that must not be repeated in the rounds of this call, unless it was started before.
    pub fn begin_once(&self, key: &str) -> Once {
        self.0.inputs.begin_once(key)
    }

    /// Records that an action was completed, and its value, for later rounds.
    pub fn remember(&self, key: &str, value: Box<RawValue>) {
        self.0.inputs.remember(key, value);
    }

    /// Records that an action was started and that its result is unknown.
    pub fn lose(&self, key: &str) {
        self.0.inputs.lose(key);
    }

    /// Forgets an action that [`begin_once`](Self::begin_once) started, and that was not performed after all.
    pub fn undo_once(&self, key: &str) {
        self.0.inputs.undo_once(key);
    }

    /// Returns whether an action is in progress.
    pub fn is_acting(&self) -> bool {
        self.0.inputs.is_acting()
    }

    /// Returns a key that identifies the call to other systems, the same in all its rounds. `make` creates it on first
    /// use; it has to be unique.
    pub fn call_key(&self, make: impl FnOnce() -> String) -> String {
        self.0.inputs.call_key(make)
    }

    /// Returns the actions of this round that its state does not contain, for [`resume`](Self::resume) of the next call
    /// with the same state. `None` if there are none. It is the server's own data: no client may see or change it.
    pub fn progress_so_far(&self) -> Option<Vec<u8>> {
        self.0.inputs.progress()
    }

    /// Restores the actions of an earlier use of the same state. Returns `false` if they cannot be read; the call must
    /// not run then.
    #[must_use]
    pub fn resume(&self, progress: &[u8]) -> bool {
        self.0.inputs.resume(progress)
    }

    /// Returns the answers and actions of the call so far, for [`restore_state`](Self::restore_state) of the call that takes its place in
    /// another process. It is the server's own data: no client may see or change it.
    pub fn recorded_state(&self) -> Box<RawValue> {
        self.0.inputs.recorded()
    }

    /// Restores the answers and actions of an earlier run of the same call, before it runs. Returns `false` if they cannot be read; the
    /// call must not run then.
    #[must_use]
    pub fn restore_state(&self, recorded: &RawValue) -> bool {
        self.0.inputs.restore(recorded.get())
    }

    /// Returns whether the request came in a batch.
    pub fn is_batched(&self) -> bool {
        self.inner().batch.is_some()
    }

    /// Returns the record of the call as it is now, for [`restore`](Self::restore) in another process.
    pub fn record(&self, service: &Service) -> CallRecord {
        let inner = self.inner();
        let params = inner.params.without(&["inputResponses", "requestState"]);
        let names = (&*service.info().name, &*inner.method);
        let mut record = CallRecord::new(names, params, inner.id.clone(), inner.peer.revision, &inner.inputs);
        record.client.clone_from(&inner.peer.info);
        record.capabilities.clone_from(&inner.peer.capabilities);
        record.principal = inner.principal.as_deref().map(str::to_owned);
        record
    }

    /// Restores a call that is to run again, from the top. `answers` are those to its open questions, in the shapes of the client's
    /// revision, that came after it was recorded. It has no connection: [detach](Self::detach) it before it runs.
    ///
    /// # Errors
    ///
    /// The record is that of another service, or has a format or a revision that this service does not know.
    pub fn restore(
        service: &Service,
        record: &CallRecord,
        answers: Option<RawObject>,
    ) -> Result<Self, RpcError> {
        record.check(&service.info().name)?;
        let spoken = |stateless| service.spoken(&record.revision, stateless);
        let revision = spoken(true).or_else(|| spoken(false)).ok_or_else(|| {
            RpcError::internal(format!(
                "the call was made in the revision `{}`, which this server does not support: call again",
                record.revision
            ))
        })?;
        let peer = Peer {
            revision,
            info: record.client.clone(),
            capabilities: record.capabilities.clone(),
            log_level: None,
        };
        Ok(Self::new(CallInner {
            id: record.id.clone(),
            method: record.method.clone().into(),
            params: record.params.clone(),
            peer: Arc::new(peer),
            principal: record.principal.as_deref().map(Into::into),
            progress: None,
            inputs: record.inputs(answers, revision)?,
            ticket: None,
            batch: None,
            done: Mutex::default(),
            held: Mutex::default(),
            granted: Mutex::default(),
            action: Mutex::default(),
            origin: Origin::Request,
            charge: Charge::default(),
        }))
    }

    /// Returns whether the answer to a question of this key is known to the call.
    pub fn is_answered(&self, key: &str) -> bool {
        self.0.inputs.is_answered(key)
    }

    /// Returns the note that [`set_note`](Self::set_note) stored in an earlier round.
    pub fn note(&self) -> Option<String> {
        self.0.inputs.note()
    }

    /// Stores a note of the application for the next round, sealed.
    pub fn set_note(&self, note: Option<String>) {
        self.0.inputs.set_note(note);
    }

    /// Limits how long the questions of this round may wait for answers, in milliseconds. It cannot extend the lifetime
    /// of a state.
    pub fn set_answer_timeout_ms(&self, timeout: u64) {
        self.0.inputs.set_answer_timeout_ms(timeout);
    }

    /// Ends the call without a response, because it was cancelled. Later questions fail, and later progress and log
    /// messages are dropped. A [detached](Self::detach) call goes on.
    pub fn close(&self) {
        self.0.inputs.close();
    }

    /// Makes the call independent of its response: it goes on after it, as a task does. From now on its questions are to be sent,
    /// in either era, and it emits neither progress nor log messages.
    pub fn detach(&self) {
        self.0.inputs.set_detached(true);
    }

    /// Undoes [`detach`](Self::detach), for a call that is over before its response is sent.
    pub fn attach(&self) {
        self.0.inputs.set_detached(false);
    }

    /// Returns whether the call goes on after its response.
    pub fn is_detached(&self) -> bool {
        self.0.inputs.is_detached()
    }

    /// Ends the call, [detached](Self::detach) or not: later questions fail.
    pub fn end(&self) {
        self.0.inputs.end();
    }

    /// Ends the call, and returns its response in the shapes of the client's revision. `now` is in milliseconds of the
    /// Unix epoch.
    pub fn finish(&self, service: &Service, outcome: Outcome, now: u64) -> Finished {
        self.close();
        // Raw objects have no line breaks, and nothing written around them has.
        let one_line = matches!(outcome, Outcome::Complete(_) | Outcome::Cacheable(..));
        let mut bytes = Vec::with_capacity(outcome.room(&self.0.id) + finish::room(self, service));
        print::open_result(&mut bytes, &self.0.id);
        let error = match finish::finish(self, service, outcome, now, &mut bytes) {
            Ok(()) => {
                bytes.push(b'}');
                None
            }
            Err(mut error) => {
                self.0.peer.revision.lower_error(&self.0.method, &mut error);
                bytes.clear();
                print::error(&mut bytes, &self.0.id, &error);
                Some(error.code)
            }
        };
        if !one_line || error.is_some() {
            print::one_line(&mut bytes);
        }
        Finished { bytes, error }
    }

    /// Returns what a state of this call is bound to.
    pub(super) fn binding<'a>(&'a self, service: &'a Service) -> Binding<'a> {
        Binding {
            service: &service.info().name,
            method: &self.0.method,
            params: &self.0.params,
            principal: self.0.principal.as_deref(),
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("id", &self.0.id).field("method", &self.0.method).finish_non_exhaustive()
    }
}

/// Raises the params of a request to canonical shapes: the one place where those of both eras are raised.
pub(super) fn raise_params(
    revision: Revision,
    method: &str,
    params: &mut Option<RawObject>,
) -> Result<(), RpcError> {
    let part = Part::Params(method);
    let Some(sent) = params.as_ref().filter(|params| revision.raises(part, params.as_str())) else {
        return Ok(());
    };
    match revision.raised(part, sent.clone()) {
        Ok(raised) => *params = Some(raised),
        // Params that are nested too deep to be raised are read as they are.
        Err(ReshapeError::Unreadable(_)) => {}
        Err(ReshapeError::Unsayable(unsayable)) => {
            return Err(RpcError::invalid_params(format!("`{method}`: {unsayable}")));
        }
    }
    Ok(())
}
