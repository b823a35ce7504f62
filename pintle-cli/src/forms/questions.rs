use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use pintle::{
    Client, Error,
    client::{Answer, ElicitUrl, Question, SuspendedCall},
    types::{
        RpcError, method,
        schema::{
            CallToolResult, ElicitAction, ElicitFormParams, ElicitParams, ElicitResult, ListRootsResult,
        },
    },
};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    answerer::{Answerer, Halt, Unanswered},
    asked::{Asked, name_of},
    missing_option::{missing_options, missing_options_of},
};
use crate::{
    args::QuestionArgs,
    connection::{AnswerFuture, Answers, QuestionSlot, SlotGuard, VerbConnection},
    failure::{Exit, Failure},
    output::Output,
    suspended::{SuspendedRecord, SuspendedStore},
    targets::Endpoint,
};

/// The questions of a server during one verb, and their answers.
pub(crate) struct Questions {
    answerer: Arc<Answerer>,
    asks_by_request: Arc<AtomicBool>,
    /// The name of the server, once it is known.
    server: String,
    halts: (mpsc::Sender<Halt>, mpsc::Receiver<Halt>),
    /// Has this verb answer the questions on a shared connection.
    guard: Option<SlotGuard>,
}

/// The verb and the words that were typed, for what to type next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Typed<'a> {
    pub(crate) verb: &'a str,
    pub(crate) words: &'a [&'a str],
}

impl Questions {
    /// Reads the answers that were given. `words` are further ones.
    pub(crate) async fn new(
        options: QuestionArgs,
        words: &[String],
        output: &Output,
    ) -> Result<Self, Failure> {
        if let Some(missing) = options.roots.iter().find(|root| !root.is_dir()) {
            let message = format!("`--root`: `{}` is not a directory", missing.display());
            return Err(Failure::usage(message, "pintle call --help"));
        }
        let answerer = Answerer::new(options, words, output).await;
        let answerer = answerer.map_err(|message| Failure::usage(message, "pintle call --help"))?;
        // The first one ends the verb; others wait in vain.
        let halts = mpsc::channel(1);
        let answerer = Arc::new(answerer);
        Ok(Self { answerer, asks_by_request: Arc::default(), server: name_of(None), halts, guard: None })
    }

    /// Sets whether the page of a call that is resumed is accepted.
    pub(crate) fn accept_pages(&self, accept: bool) {
        self.answerer.accept_pages(accept);
    }

    /// Adds handlers to a client. What there is no answer to is not declared: requests to a model, and roots.
    pub(crate) fn attach(&self, client: Client) -> Client {
        let (form, page) = (self.handler(), self.handler());
        let client = client
            .on_elicit(move |question| form.form(question))
            .on_elicit_url(move |question| page.page(question));
        self.attach_options(client)
    }

    /// Adds handlers to a client whose connection verbs share: the verb that runs answers forms and pages. Without one they are
    /// cancelled.
    pub(crate) fn attach_shared(&self, client: Client, slot: &QuestionSlot) -> Client {
        let cancelled = |server: &str, output: &Output| {
            output.note(format_args!("{server} asked something while no verb was running: it was cancelled"));
            Ok(Answer::Cancel)
        };
        let (form, page) = (slot.clone(), slot.clone());
        let (form_output, page_output) = (self.answerer.output().clone(), self.answerer.output().clone());
        let client = client
            .on_elicit(move |question: Question<_>| {
                let (slot, output) = (form.clone(), form_output.clone());
                async move {
                    let server = name_of(question.server.as_deref());
                    let answer = slot.answer(|answers| answers.form(question)).await;
                    answer.unwrap_or_else(|| cancelled(&server, &output))
                }
            })
            .on_elicit_url(move |question: Question<_>| {
                let (slot, output) = (page.clone(), page_output.clone());
                async move {
                    let server = name_of(question.server.as_deref());
                    let answer = slot.answer(|answers| answers.page(question)).await;
                    answer.unwrap_or_else(|| cancelled(&server, &output))
                }
            });
        self.attach_options(client)
    }

    fn attach_options(&self, mut client: Client) -> Client {
        let model = self.handler();
        let options = self.answerer.options();
        if options.sample_with.is_some() {
            client = client.on_sample(move |question| {
                let handler = model.clone();
                async move { handler.answerer.sample(&question.params).await }
            });
        }
        match options.roots.is_empty() {
            true => client,
            false => client.roots(options.roots.clone()),
        }
    }

    /// Notes how the server asks: a call whose questions are requests cannot be resumed.
    pub(crate) fn connected(&mut self, connection: &VerbConnection) {
        self.guard = connection.questions().map(|slot| slot.fill(Arc::new(self.handler())));
        self.server = name_of(connection.server_info().as_deref());
        self.asks_by_request.store(connection.facts().asks_by_request, Ordering::Relaxed);
    }

    /// Runs a call until it is done, or the server asks what nobody answers.
    ///
    /// Without a session the call is stored then, to be resumed. With a session it is dropped, which cancels it.
    pub(crate) async fn until_done<T>(
        &mut self,
        call: impl Future<Output = pintle::Result<T>>,
        endpoint: &Endpoint,
        typed: Typed<'_>,
        output: &Output,
    ) -> Result<pintle::Result<T>, Failure> {
        let done = tokio::select! {
            // What is asked while the result arrives is not needed any more.
            biased;
            done = call => done,
            Some(halt) = self.halts.1.recv() => {
                let why = "with a session the call cannot be resumed: give the answers with the call";
                return Err(unanswered(&halt.asked, halt.problem, Err(why.to_owned()), endpoint, typed, output));
            }
        };
        match done {
            Err(Error::Suspended(call)) => Err(self.suspend(*call, endpoint, typed, output)),
            done => Ok(done),
        }
    }

    /// Turns the error of a call into a failure. If the server asked for what no option provides, that option is what to type.
    pub(crate) fn explain(&self, error: &Error, endpoint: &Endpoint, typed: Typed<'_>) -> Failure {
        let options = missing_options(error, self.answerer.options());
        with_options(endpoint.explain(error), &options, endpoint, typed)
    }

    /// Adds what to type to the failure of a tool that asked for what no option provides.
    pub(crate) fn explain_failed(
        &self,
        failure: Failure,
        result: &CallToolResult,
        endpoint: &Endpoint,
        typed: Typed<'_>,
    ) -> Failure {
        let options = missing_options_of(result, self.answerer.options());
        with_options(failure, &options, endpoint, typed)
    }

    /// Returns the answers to the questions of a call that is resumed.
    pub(crate) async fn answers(&self, record: &SuspendedRecord) -> Result<Vec<(String, Value)>, NoAnswers> {
        let server = record.server.as_str();
        let mut answers = Vec::new();
        for question in &record.call.requests {
            let answer = match question.method.as_str() {
                method::ELICITATION_CREATE => {
                    let params = question.params.decode::<ElicitParams>();
                    let params = params.map_err(|error| NoAnswers::Wrong(error.to_string()))?;
                    let answer = match &params {
                        ElicitParams::Form(form) => self.answerer.form(server, form).await,
                        ElicitParams::Url(page) => self.answerer.stored_page(server, page).await,
                        _ => Err(Unanswered::Wrong("a question that this version does not know".to_owned())),
                    };
                    to_value(&elicit_result(answer?))
                }
                method::SAMPLING_CREATE_MESSAGE => {
                    let params = question.params.decode();
                    let params = params.map_err(|error| NoAnswers::Wrong(error.to_string()))?;
                    let sampled = self.answerer.sample(&params).await;
                    to_value(&sampled.map_err(|error| NoAnswers::Wrong(error.message.to_string()))?)
                }
                _ => {
                    let roots = pintle::client::Roots::new(self.answerer.options().roots.clone());
                    let roots = roots.map_err(|error| NoAnswers::Wrong(error.to_string()))?;
                    to_value(&ListRootsResult::new(roots.list()))
                }
            };
            answers.push((question.key.clone(), answer));
        }
        Ok(answers)
    }

    /// Returns the failure of a call that is left as it is stored.
    pub(crate) fn still_suspended(
        &self,
        token: &str,
        record: &SuspendedRecord,
        problem: NoAnswers,
        endpoint: &Endpoint,
        output: &Output,
    ) -> Failure {
        let asked = Asked::of_call(record.server.clone(), &record.call);
        let problem = match problem {
            NoAnswers::NotAsked => None,
            NoAnswers::Wrong(reason) => Some(reason),
        };
        let typed = Typed { verb: "resume", words: &[] };
        unanswered(&asked, problem, Ok(token.to_owned()), endpoint, typed, output)
    }

    /// Fails if an answer was given that nothing asked for.
    pub(crate) fn check_used(&self, next: &str) -> Result<(), Failure> {
        self.answerer.given.check_used().map_err(|message| Failure::usage(message, next))
    }

    fn suspend(
        &self,
        call: SuspendedCall,
        endpoint: &Endpoint,
        typed: Typed<'_>,
        output: &Output,
    ) -> Failure {
        let asked = Asked::of_call(self.server.clone(), &call);
        let problem = self.answerer.take_problem();
        let record = SuspendedRecord::new(endpoint.reference(), call, self.server.clone());
        let saved = SuspendedStore::of_user().and_then(|store| store.save(&record));
        let saved = saved.map_err(|reason| format!("the call cannot be resumed: {reason}"));
        unanswered(&asked, problem, saved, endpoint, typed, output)
    }

    fn handler(&self) -> Handler {
        let (answerer, asks_by_request) = (self.answerer.clone(), self.asks_by_request.clone());
        Handler { answerer, asks_by_request, halt: self.halts.0.clone() }
    }
}

/// The reason for which a stored call was not answered.
pub(crate) enum NoAnswers {
    NotAsked,
    Wrong(String),
}

impl From<Unanswered> for NoAnswers {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::NotAsked => Self::NotAsked,
            Unanswered::Wrong(reason) => Self::Wrong(reason),
        }
    }
}

#[derive(Clone)]
struct Handler {
    answerer: Arc<Answerer>,
    asks_by_request: Arc<AtomicBool>,
    halt: mpsc::Sender<Halt>,
}

impl Answers for Handler {
    fn form(&self, question: Question<ElicitFormParams>) -> AnswerFuture {
        let handler = self.clone();
        Box::pin(async move {
            let Question { server, params, key, .. } = question;
            let server = name_of(server.as_deref());
            let answer = handler.answerer.form(&server, &params).await;
            handler.reply(answer, server, key.as_deref(), &params).await
        })
    }

    fn page(&self, question: Question<ElicitUrl>) -> AnswerFuture {
        let handler = self.clone();
        Box::pin(async move {
            let Question { server, params, key, .. } = question;
            let server = name_of(server.as_deref());
            let answer = handler.answerer.page(&server, &params).await;
            handler.reply(answer, server, key.as_deref(), &params.params).await
        })
    }
}

impl Handler {
    /// Returns an answer. Without one, the call is suspended, or the verb ends if the call cannot be resumed.
    async fn reply(
        self,
        answer: Result<Answer, Unanswered>,
        server: String,
        key: Option<&str>,
        params: &impl Serialize,
    ) -> Result<Answer, RpcError> {
        let unanswered = match answer {
            Ok(answer) => return Ok(answer),
            Err(unanswered) => unanswered,
        };
        if !self.asks_by_request.load(Ordering::Relaxed) {
            return Err(unanswered.into_error());
        }
        let asked = Asked::elicitation(server, key, to_value(params));
        // If it is closed, the verb has ended.
        let _ = self.halt.send(Halt { asked, problem: self.answerer.take_problem() }).await;
        std::future::pending().await
    }
}

/// Replaces what to type next by the line that was typed with further options.
fn with_options(failure: Failure, options: &str, endpoint: &Endpoint, typed: Typed<'_>) -> Failure {
    if options.is_empty() {
        return failure;
    }
    Failure { next: endpoint.line_with_options(typed.verb, typed.words, options), ..failure }
}

/// Prints the questions for programs, and returns the failure of the verb. `saved` is the token, or why there is none.
fn unanswered(
    asked: &Asked,
    problem: Option<String>,
    saved: Result<String, String>,
    endpoint: &Endpoint,
    typed: Typed<'_>,
    output: &Output,
) -> Failure {
    if problem.is_none()
        && let Err(failure) = output.input_required(&asked.to_json(saved.as_deref().ok()))
    {
        return failure;
    }
    let examples = asked.example_words();
    let next = match &saved {
        Ok(token) => endpoint.resume_line(token, &examples),
        Err(_) => {
            let words = typed.words.iter().map(|word| (*word).to_owned());
            let answers = examples.into_iter().filter(|word| word != "--accept");
            let answers = answers.flat_map(|word| ["--answer".to_owned(), word]);
            let mut words: Vec<_> = words.chain(answers).collect();
            if words.len() == typed.words.len() {
                words.push("--decline".to_owned());
            }
            endpoint.line(typed.verb, &words.iter().map(String::as_str).collect::<Vec<_>>())
        }
    };
    let (message, lines) = asked.lines();
    let failure = match problem {
        Some(problem) => Failure::usage(problem, next).detail(message),
        None => Failure::new(Exit::NeedsInput, message, next),
    };
    let failure = lines.into_iter().fold(failure, Failure::detail);
    match saved {
        Ok(token) => failure.data("resume", token.into()),
        Err(reason) => failure.detail(reason),
    }
}

fn elicit_result(answer: Answer) -> ElicitResult {
    match answer {
        Answer::Accept(content) => {
            let mut result = ElicitResult::new(ElicitAction::Accept);
            if let Value::Object(content) = content {
                result.content = Some(content);
            }
            result
        }
        Answer::Decline => ElicitResult::new(ElicitAction::Decline),
        Answer::Cancel => ElicitResult::new(ElicitAction::Cancel),
    }
}

fn to_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
