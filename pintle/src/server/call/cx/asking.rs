//! What a call asks of the client.

use std::{
    sync::{PoisonError, atomic::Ordering},
    task::Waker,
    time::Duration,
};

use pintle_proto::{
    inputs::{Answer, Ask, AskError, Question},
    server::Outcome,
};
use pintle_types::{
    RawObject,
    schema::{CreateMessageParams, CreateMessageResult, ElicitParams, Root},
};
use tokio::time::{Instant, timeout_at};

use super::Cx;
use crate::server::call::sink::PendingAnswer;

impl Cx {
    /// Asks the client something. `key` names the question: the same one in every round, another for another question.
    ///
    /// The code before this line may run again: a stateless client makes the call anew with the answer in it. Ask
    /// first, act after; or wrap the act in [`once`](Self::once).
    pub async fn ask(&self, key: &str, question: Question) -> Result<Answer, AskError> {
        let kind = question.kind();
        match self.ask_for(key, &question)? {
            Ask::Answered(answer) => Ok(answer),
            Ask::Send(request) => {
                let deadline = self.answer_deadline();
                let _asking = AskingGuard::new(self);
                let answer = self.answer(self.0.sink.ask(request).await, deadline).await?;
                self.0.call.settle(key, kind, &answer)
            }
            Ask::Park => {
                self.park();
                self.until_over().await;
                Err(AskError::CallOver)
            }
        }
    }

    /// From here on, questions of this call wait so long for their answers, and not as long as
    /// [`Timeouts::question`](crate::Timeouts::question) says. A question whose time is up is taken back, and asking is an
    /// error; a client that makes the call again after that is told to make it anew.
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
        self.0.question_timeout_ms.store(timeout.max(1), Ordering::Relaxed);
    }

    fn effective_question_timeout(&self) -> Duration {
        match self.0.question_timeout_ms.load(Ordering::Relaxed) {
            0 => self.0.snapshot.settings.question,
            timeout => Duration::from_millis(timeout),
        }
    }

    /// When the answer to a question that is asked now must be there, and how long that is. `None` is never.
    fn answer_deadline(&self) -> (Option<Instant>, Duration) {
        let timeout = self.effective_question_timeout();
        (Instant::now().checked_add(timeout), timeout)
    }

    async fn answer(
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

    /// Whether the call waits for its client to answer something.
    pub(crate) fn is_asking(&self) -> bool {
        self.0.asking.load(Ordering::Relaxed) > 0
    }

    /// Asks the protocol where the answer is.
    fn ask_for(&self, key: &str, question: &Question) -> Result<Ask, AskError> {
        self.0.call.ask(&self.0.snapshot.service, key, question).inspect_err(|error| self.note_refusal(error))
    }

    /// If an answer that came with the call does not fit, and the call fails because of it, the state that it came with is
    /// not used up.
    pub(crate) fn note_refusal(&self, error: &AskError) {
        if let (AskError::BadAnswer { .. }, Some(held)) = (error, self.held()) {
            held.refuse();
        }
    }

    /// Has the client's model write something.
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
    /// If the client has no model for us ([`can_sample`](Self::can_sample) tells), or it said no.
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

    /// Which directories the client works in.
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
    /// If the client does not tell ([`can_list_roots`](Self::can_list_roots) says so), or it said no.
    pub async fn roots(&self) -> Result<Vec<Root>, AskError> {
        match self.ask("roots", Question::Roots).await? {
            Answer::Roots(result) => Ok(result.roots),
            _ => Err(AskError::CallOver),
        }
    }

    /// Whether the client can show its user a form.
    pub fn can_elicit(&self) -> bool {
        let elicitation = self.peer().capabilities.elicitation.as_ref();
        elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
    }

    /// Whether the client can have its user open a URL.
    pub fn can_elicit_url(&self) -> bool {
        self.peer().capabilities.elicitation.as_ref().is_some_and(|modes| modes.url.is_some())
    }

    /// Whether the client has a model that writes for us.
    pub fn can_sample(&self) -> bool {
        self.peer().capabilities.sampling.is_some()
    }

    /// Whether that model can be offered tools.
    pub fn can_sample_with_tools(&self) -> bool {
        self.peer().capabilities.sampling.as_ref().is_some_and(|sampling| sampling.tools.is_some())
    }

    /// Whether the client tells where it works.
    pub fn can_list_roots(&self) -> bool {
        self.peer().capabilities.roots.is_some()
    }

    /// What the handler left with [`set_note`](Self::set_note) in the round before: the explicit way to keep state.
    pub fn note(&self) -> Option<String> {
        self.0.call.note()
    }

    /// Leaves words for the next round, sealed.
    pub fn set_note(&self, note: impl Into<String>) {
        self.0.call.set_note(Some(note.into()));
    }

    /// Asks several things and ends the round: the explicit form, for those who would rather write the rounds out.
    ///
    /// `Ok` with all answers if they are here; otherwise the call ends and is made again.
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
            match self.ask_for(&key, &question)? {
                Ask::Answered(answer) => drop(answers.insert(key, answer)),
                Ask::Send(request) => sent.push((key, kind, request)),
                Ask::Park => parked = true,
            }
        }
        if parked {
            self.park();
            self.until_over().await;
            return Err(AskError::CallOver);
        }
        // All of them are on their way before the first answer is waited for.
        let mut waiting = Vec::with_capacity(sent.len());
        let deadline = self.answer_deadline();
        let _asking = AskingGuard::new(self);
        for (key, kind, request) in sent {
            waiting.push((key, kind, self.0.sink.ask(request).await));
        }
        for (key, kind, waiting) in waiting {
            let answer = self.answer(waiting, deadline).await?;
            answers.insert(key.clone(), self.0.call.settle(&key, kind, &answer)?);
        }
        Ok(answers)
    }

    /// Has the user open a URL, for what must not pass through the client: passwords, payments, consent elsewhere.
    ///
    /// `true` if the user agreed to open it; that it is done is for the server to find out.
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
    /// If the client opens no pages for its user ([`can_elicit_url`](Self::can_elicit_url) tells).
    pub async fn elicit_url(&self, key: &str, message: &str, url: &str) -> Result<bool, AskError> {
        use pintle_types::schema::{ElicitAction, ElicitUrlParams};
        let params = ElicitParams::Url(ElicitUrlParams::new(message, url));
        match self.ask(key, Question::Elicit(Box::new(params))).await? {
            Answer::Elicit(result) => Ok(result.action == ElicitAction::Accept),
            _ => Err(AskError::CallOver),
        }
    }

    fn park(&self) {
        // What other systems know the call by is the same in the next round, whoever asks for it first.
        self.call_key();
        self.0.call.set_answer_timeout_ms(
            u64::try_from(self.effective_question_timeout().as_millis()).unwrap_or(u64::MAX),
        );
        self.0.parked.store(true, Ordering::Release);
        self.wake();
    }

    pub(super) fn wake(&self) {
        let waker = self.0.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        waker.into_iter().for_each(Waker::wake);
    }

    /// Whether the round is to end; if not, `waker` will hear of it. What is to be done once is not cut short.
    pub(crate) fn is_parked(&self, waker: &Waker) -> bool {
        *self.0.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
        self.0.parked.load(Ordering::Acquire) && !self.0.call.is_acting()
    }

    /// Ends the round with what is known by now.
    pub(crate) async fn end_round(&self) -> Outcome {
        self.0.parked.store(true, Ordering::Release);
        self.wake();
        self.until_over().await;
        Outcome::Failed(AskError::CallOver.into())
    }

    async fn until_over(&self) {
        loop {
            let notified = self.0.over.notified();
            if self.0.is_over.load(Ordering::Acquire) {
                return;
            }
            notified.await;
        }
    }
}

/// Says that the call waits for its client, until it is dropped.
struct AskingGuard<'a>(&'a Cx);

impl<'a> AskingGuard<'a> {
    fn new(cx: &'a Cx) -> Self {
        cx.0.asking.fetch_add(1, Ordering::Relaxed);
        Self(cx)
    }
}

impl Drop for AskingGuard<'_> {
    fn drop(&mut self) {
        self.0.0.asking.fetch_sub(1, Ordering::Relaxed);
        // The time of the call goes on from here, also if a task of its own has asked.
        self.0.wake();
    }
}
