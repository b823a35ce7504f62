//! Questions of a call to the client.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    task::Waker,
    time::Duration,
};

use pintle_proto::{
    inputs::{Answer, Ask, AskError, Question},
    server::Outcome,
};
use pintle_types::{
    JsonObject, RawObject, RawValue, plain_error,
    schema::{CreateMessageParams, CreateMessageResult, ElicitParams, InputRequest, Root},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::to_raw_value;
use tokio::time::{Instant, timeout_at};
use tracing::Instrument as _;

use super::{Cx, span};
use crate::{
    question_keys, runtime,
    server::core::{driver::sink::PendingAnswer, result_filter, sessions::handle::custom_request},
};

/// The questions of a call.
#[derive(Default)]
pub(super) struct QuestionState {
    /// Whether a question ends the round.
    parked: AtomicBool,
    /// The waker of the task that polls the handler, woken when `parked` is set.
    waker: Mutex<Option<Waker>>,
    /// The number of questions without an answer.
    asking: AtomicU32,
    /// The timeout of questions in milliseconds; 0 is the default of the server.
    timeout_ms: AtomicU64,
    /// The lifetime of the tasks that questions are asked as, in milliseconds; 0 if they are not.
    pub(super) ttl_ms: AtomicU64,
}

impl Cx {
    /// Asks the client a question. `key` identifies the question within the call: use the same key in every round, and
    /// different keys for different questions.
    ///
    /// The code before this line may run again: a stateless client repeats the call with the answer in it. Ask first and act
    /// afterwards, or wrap the action in [`once`](Self::once).
    pub async fn ask(&self, key: &str, question: Question) -> Result<Answer, AskError> {
        let kind = question.kind();
        // Decides whether the question is sent.
        self.detaching();
        match self.ask_for(key, &question).await? {
            Ask::Answered(answer) => Ok(answer),
            Ask::Send(request) => {
                let deadline = self.answer_deadline();
                let _asking = AskingGuard::new(self);
                let request = self.with_key(key, request);
                let span = span::of_question(self, &request.method);
                let answer = self.send_question(key, request, deadline).instrument(span).await?;
                let answer = self.0.call.settle(key, kind, &answer);
                self.record_answers().await;
                answer
            }
            Ask::Park => {
                self.park();
                self.until_over().await;
                Err(AskError::CallOver)
            }
        }
    }

    /// Adds the key of a question to its metadata, for a client that has declared to want it.
    fn with_key(&self, key: &str, mut request: InputRequest) -> InputRequest {
        if question_keys::is_wanted(self.peer().capabilities.extensions.as_ref()) {
            let params = request.params.as_deref().map_or("{}", RawValue::get);
            let params = serde_json::from_str(params).ok().and_then(|mut params: JsonObject| {
                let meta = params.entry("_meta").or_insert_with(|| JsonObject::new().into());
                meta.as_object_mut()?.insert(question_keys::META.to_owned(), key.into());
                to_raw_value(&params).ok()
            });
            request.params = params.or(request.params);
        }
        request
    }

    /// Sets the time that later questions of this call wait for their answers. The default is
    /// [`Timeouts::question`](crate::Timeouts::question). A question that times out is cancelled and returns an error. A
    /// stateless client that repeats the call after that has to start it anew.
    ///
    /// ```
    /// use std::time::Duration;
    /// use pintle::server::{Cx, ToolError};
    ///
    /// async fn wipe(cx: Cx) -> Result<&'static str, ToolError> {
    ///     cx.question_timeout(Duration::from_secs(60));
    ///     let agreed = cx.elicit::<()>("agreed", "Wipe the disk?").await?.accepted().is_some();
    ///     Ok(if agreed { "Wiped." } else { "Left alone." })
    /// }
    /// # let _ = pintle::server::tool("wipe", wipe);
    /// ```
    pub fn question_timeout(&self, timeout: Duration) {
        let timeout = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        self.0.questions.timeout_ms.store(timeout.max(1), Ordering::Relaxed);
    }

    fn effective_question_timeout(&self) -> Duration {
        match self.0.questions.timeout_ms.load(Ordering::Relaxed) {
            // A task has a lifetime of its own.
            0 if self.is_detached() => Duration::MAX,
            0 => self.snapshot().settings.timeouts.question,
            timeout => Duration::from_millis(timeout),
        }
    }

    /// Returns the deadline for the answer to a question that is asked now, and the timeout. `None` is no deadline.
    pub(crate) fn answer_deadline(&self) -> (Option<Instant>, Duration) {
        let timeout = self.effective_question_timeout();
        (Instant::now().checked_add(timeout), timeout)
    }

    pub(super) async fn answer(
        &self,
        waiting: PendingAnswer<'_>,
        (deadline, timeout): (Option<Instant>, Duration),
    ) -> Result<RawObject, AskError> {
        let Some(deadline) = deadline else { return waiting.answer().await };
        match timeout_at(deadline, waiting.answer()).await {
            Ok(answer) => answer,
            Err(_) => {
                let after_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
                Err(AskError::TimedOut { after_ms })
            }
        }
    }

    /// Returns whether the call waits for an answer of its client.
    pub(crate) fn is_asking(&self) -> bool {
        self.0.questions.asking.load(Ordering::Relaxed) > 0
    }

    /// Returns whether the answer to a question is known, has to be awaited or ends the round.
    async fn ask_for(&self, key: &str, question: &Question) -> Result<Ask, AskError> {
        let filtered = self.filtered(question).await;
        let question = filtered.as_ref().unwrap_or(question);
        self.0.call.ask(&self.0.snapshot.service, key, question).inspect_err(|error| self.note_refusal(error))
    }

    /// Returns a question without what is hidden from the caller; `None` if nothing is.
    async fn filtered(&self, question: &Question) -> Option<Question> {
        let Question::Sample(params) = question else { return None };
        let printed = RawObject::from_serialize(&**params).ok()?;
        let rest = result_filter::question(self, &printed).await?;
        let nothing = |_| CreateMessageParams::new(Vec::new(), params.max_tokens);
        Some(Question::Sample(Box::new(rest.decode().unwrap_or_else(nothing))))
    }

    /// Notes that an answer that came with the call was refused. If the call fails because of it, its state can be used again.
    pub(crate) fn note_refusal(&self, error: &AskError) {
        if let (AskError::BadAnswer { .. }, Some(held)) = (error, self.held()) {
            held.refuse();
        }
    }

    /// Requests a completion from the client's model.
    ///
    /// See [`ask`](Self::ask) for what may run twice.
    ///
    /// ```
    /// use pintle::server::{Cx, ToolError};
    /// use pintle::types::schema::{ContentBlock, CreateMessageParams, Role, SamplingMessage};
    ///
    /// async fn shorten(cx: Cx) -> Result<String, ToolError> {
    ///     let question = SamplingMessage::new(Role::User, ContentBlock::text("Shorten this: ..."));
    ///     let written = cx.sample("short", CreateMessageParams::new(vec![question], 200)).await?;
    ///     Ok(written.text())
    /// }
    /// # let _ = pintle::server::tool("shorten", shorten);
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the client does not support sampling (see [`can_sample`](Self::can_sample)) or refuses.
    pub async fn sample(
        &self,
        key: &str,
        request: CreateMessageParams,
    ) -> Result<CreateMessageResult, AskError> {
        match self.ask(key, Question::Sample(Box::new(request))).await? {
            Answer::Sample(result) => Ok(*result),
            _ => Err(AskError::CallOver),
        }
    }

    /// Requests the root directories of the client.
    ///
    /// In a session every use sends a request, so that roots that have changed since are found
    /// (`notifications/roots/list_changed`). In the stateless era the roots of a call are requested once, and each call
    /// requests them anew.
    ///
    /// ```
    /// use pintle::server::{Cx, ToolError};
    ///
    /// async fn where_are_we(cx: Cx) -> Result<String, ToolError> {
    ///     if !cx.can_list_roots() {
    ///         return Ok("Anywhere.".to_owned());
    ///     }
    ///     let roots = cx.roots().await?;
    ///     Ok(roots.into_iter().map(|root| root.uri).collect::<Vec<_>>().join("\n"))
    /// }
    /// # let _ = pintle::server::tool("where", where_are_we);
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the client does not support roots (see [`can_list_roots`](Self::can_list_roots)) or refuses.
    pub async fn roots(&self) -> Result<Vec<Root>, AskError> {
        self.detaching();
        self.call().forget_answer("roots");
        match self.ask("roots", Question::Roots).await? {
            Answer::Roots(result) => Ok(result.roots),
            _ => Err(AskError::CallOver),
        }
    }

    /// Sends the client a request of a method that the protocol does not define. A client answers it with
    /// `Client::method`; any other refuses it. Let clients declare an extension, and send it to those that do.
    ///
    /// Only clients with a session can be sent such requests: without one, a client repeats its call with answers to the questions
    /// of the protocol alone. Each use sends a request, and waits as long as a question.
    ///
    /// ```
    /// use pintle::server::{Cx, ToolError};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize)]
    /// struct Wanted { lines: u32 }
    ///
    /// #[derive(Deserialize)]
    /// struct Selection { text: String }
    ///
    /// async fn explain(cx: Cx) -> Result<String, ToolError> {
    ///     let selection: Selection = cx.request("example.com/selection", Wanted { lines: 10 }).await?;
    ///     Ok(format!("{} characters are selected.", selection.text.len()))
    /// }
    /// # let _ = pintle::server::tool("explain", explain);
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the client has no session, refuses, does not answer, or returns something else; also if the method is
    /// one of the protocol, or the params are not an object.
    pub async fn request<P: Serialize, R: DeserializeOwned>(
        &self,
        method: impl Into<String>,
        params: P,
    ) -> Result<R, AskError> {
        let request =
            custom_request(method.into(), &params).map_err(|reason| AskError::BadQuestion { reason })?;
        let method = request.method.clone();
        if !self.facts().asks_by_request {
            return Err(AskError::NeedsSession { method });
        }
        if self.0.end.is_over.load(Ordering::Acquire) {
            return Err(AskError::CallOver);
        }
        let deadline = self.answer_deadline();
        let _asking = AskingGuard::new(self);
        let span = span::of_question(self, &method);
        let answer = self.send_request(&method, request, deadline).instrument(span).await?;
        answer.decode().map_err(|error| AskError::BadAnswer { key: method, reason: plain_error(&error) })
    }

    /// Returns whether the client can show its user a form.
    pub fn can_elicit(&self) -> bool {
        let elicitation = self.peer().capabilities.elicitation.as_ref();
        elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
    }

    /// Returns whether the client can ask its user to open a URL.
    pub fn can_elicit_url(&self) -> bool {
        self.peer().capabilities.elicitation.as_ref().is_some_and(|modes| modes.url.is_some())
    }

    /// Returns whether the client supports sampling.
    pub fn can_sample(&self) -> bool {
        self.peer().capabilities.sampling.is_some()
    }

    /// Returns whether the client supports sampling with tools.
    pub fn can_sample_with_tools(&self) -> bool {
        self.peer().capabilities.sampling.as_ref().is_some_and(|sampling| sampling.tools.is_some())
    }

    /// Returns whether the client supports `includeContext` in sampling. Clients of revisions that do not declare it may ignore
    /// the member.
    pub fn can_sample_with_context(&self) -> bool {
        self.peer().capabilities.sampling.as_ref().is_some_and(|sampling| sampling.context.is_some())
    }

    /// Returns whether the client supports roots.
    pub fn can_list_roots(&self) -> bool {
        self.peer().capabilities.roots.is_some()
    }

    /// Returns the note that the handler left in the previous round with [`set_note`](Self::set_note).
    pub fn note(&self) -> Option<String> {
        self.0.call.note()
    }

    /// Sets a note for the next round. It is sealed, so that the client cannot read or change it.
    pub fn set_note(&self, note: impl Into<String>) {
        self.0.call.set_note(Some(note.into()));
    }

    /// Asks several questions in one round, and returns all answers by key.
    ///
    /// In the stateless era the round ends if an answer is missing, and the client repeats the call with it.
    ///
    /// ```
    /// use pintle::server::{Answer, Cx, Question, ToolError};
    ///
    /// async fn places(cx: Cx) -> Result<String, ToolError> {
    ///     let answers = cx.ask_all([("roots".to_owned(), Question::Roots)]).await?;
    ///     let Some(Answer::Roots(places)) = answers.get("roots") else { return Ok(String::new()) };
    ///     Ok(format!("{} places", places.roots.len()))
    /// }
    /// # let _ = pintle::server::tool("places", places);
    /// ```
    pub async fn ask_all(
        &self,
        questions: impl IntoIterator<Item = (String, Question)>,
    ) -> Result<std::collections::BTreeMap<String, Answer>, AskError> {
        let mut answers = std::collections::BTreeMap::new();
        let mut sent = Vec::new();
        let mut parked = false;
        for (key, question) in questions {
            let kind = question.kind();
            match self.ask_for(&key, &question).await? {
                Ask::Answered(answer) => drop(answers.insert(key, answer)),
                Ask::Send(request) => {
                    let request = self.with_key(&key, request);
                    sent.push((key, kind, request));
                }
                Ask::Park => parked = true,
            }
        }
        if parked {
            self.park();
            self.until_over().await;
            return Err(AskError::CallOver);
        }
        // All questions are sent before the first answer is awaited.
        let mut waiting = Vec::with_capacity(sent.len());
        let deadline = self.answer_deadline();
        let _asking = AskingGuard::new(self);
        if self.has_around_outgoing() || sent.iter().any(|(_, _, request)| self.may_be_task(request)) {
            let asking = sent.into_iter().map(|(key, kind, request)| async move {
                let answer = self.send_question(&key, request, deadline).await;
                (key, kind, answer)
            });
            for (key, kind, answer) in runtime::join_all(asking).await {
                answers.insert(key.clone(), self.0.call.settle(&key, kind, &answer?)?);
            }
            self.record_answers().await;
            return Ok(answers);
        }
        for (key, kind, request) in sent {
            let pending = self.sink().ask(&key, request).await;
            waiting.push((key, kind, pending));
        }
        for (key, kind, waiting) in waiting {
            let answer = self.answer(waiting, deadline).await?;
            answers.insert(key.clone(), self.0.call.settle(&key, kind, &answer)?);
        }
        self.record_answers().await;
        Ok(answers)
    }

    /// Asks the user to open a URL, for data that must not pass through the client, such as passwords and payments.
    ///
    /// Returns whether the user agreed to open it. Whether the user completed the task there is for the server to find out, and to
    /// report with [`elicitation_complete`](Self::elicitation_complete).
    ///
    /// ```
    /// use pintle::server::{Cx, ToolError};
    ///
    /// async fn pay(cx: Cx) -> Result<&'static str, ToolError> {
    ///     if !cx.can_elicit_url() {
    ///         return Err(ToolError::new("pay at https://example.com/pay/7 and call again"));
    ///     }
    ///     let agreed = cx.elicit_url("pay", "Please pay there.", "https://example.com/pay/7").await?;
    ///     Ok(if agreed { "The page is open." } else { "Not paid." })
    /// }
    /// # let _ = pintle::server::tool("pay", pay);
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the client cannot open URLs (see [`can_elicit_url`](Self::can_elicit_url)).
    pub async fn elicit_url(&self, key: &str, message: &str, url: &str) -> Result<bool, AskError> {
        use pintle_types::schema::{ElicitAction, ElicitUrlParams};
        let mut params = ElicitUrlParams::new(message, url);
        params.elicitation_id = self.0.call.has_elicitation_ids().then(|| self.elicitation_id(key));
        let params = ElicitParams::Url(params);
        match self.ask(key, Question::Elicit(Box::new(params))).await? {
            Answer::Elicit(result) => Ok(result.action == ElicitAction::Accept),
            _ => Err(AskError::CallOver),
        }
    }

    /// Notifies the client that the user has completed what [`elicit_url`](Self::elicit_url) asked for with this key, so that it
    /// need not ask the user. Returns `false` if the client's revision does not have the notification.
    ///
    /// ```
    /// use pintle::server::{Cx, ToolError};
    ///
    /// async fn pay(cx: Cx) -> Result<&'static str, ToolError> {
    ///     if !cx.elicit_url("pay", "Please pay there.", "https://example.com/pay/7").await? {
    ///         return Ok("Not paid.");
    ///     }
    ///     // Here the handler waits for the payment.
    ///     cx.elicitation_complete("pay").await;
    ///     Ok("Paid.")
    /// }
    /// # let _ = pintle::server::tool("pay", pay);
    /// ```
    pub async fn elicitation_complete(&self, key: &str) -> bool {
        let line = self.0.call.elicitation_complete(&self.elicitation_id(key));
        let has_line = line.is_some();
        self.send_notification(line).await;
        has_line
    }

    /// Returns the id of the question with this key, which no other question of any call has.
    fn elicitation_id(&self, key: &str) -> String {
        format!("{}:{key}", self.call_key())
    }

    fn park(&self) {
        // Created now, so that the call key is the same in all rounds.
        self.call_key();
        self.0.call.set_answer_timeout_ms(
            u64::try_from(self.effective_question_timeout().as_millis()).unwrap_or(u64::MAX),
        );
        self.0.questions.parked.store(true, Ordering::Release);
        self.wake();
    }

    pub(super) fn wake(&self) {
        let waker = self.0.questions.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        waker.into_iter().for_each(Waker::wake);
    }

    /// Returns whether a question has ended the round: the client repeats the call with the answer, and the handler is dropped.
    pub fn is_input_required(&self) -> bool {
        self.0.questions.parked.load(Ordering::Acquire)
    }

    /// Returns whether the round ends. If not, `waker` is woken when it does. A running [`once`](Self::once) delays it.
    pub(crate) fn is_parked(&self, waker: &Waker) -> bool {
        *self.0.questions.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
        self.0.questions.parked.load(Ordering::Acquire) && !self.0.call.is_acting()
    }

    /// Ends the round, and waits until the call is over.
    pub(crate) async fn end_round(&self) -> Outcome {
        self.0.questions.parked.store(true, Ordering::Release);
        self.wake();
        self.until_over().await;
        Outcome::Failed(AskError::CallOver.into())
    }

    async fn until_over(&self) {
        loop {
            let notified = self.0.end.over.notified();
            if self.0.end.is_over.load(Ordering::Acquire) {
                return;
            }
            notified.await;
        }
    }
}

/// Marks the call as waiting for its client, until this is dropped.
pub(crate) struct AskingGuard<'a>(&'a Cx);

impl<'a> AskingGuard<'a> {
    pub(crate) fn new(cx: &'a Cx) -> Self {
        cx.0.questions.asking.fetch_add(1, Ordering::Relaxed);
        Self(cx)
    }
}

impl Drop for AskingGuard<'_> {
    fn drop(&mut self) {
        self.0.0.questions.asking.fetch_sub(1, Ordering::Relaxed);
        // The timeout of the call runs again, also if another task of the handler asked.
        self.0.wake();
    }
}
