use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use pintle::{
    client::{Answer, ElicitUrl},
    types::{
        RpcError,
        schema::{CreateMessageParams, CreateMessageResult, ElicitFormParams, ElicitUrlParams},
    },
};
use serde_json::Value;

use super::{
    asked::Asked,
    fill_in::fill_in,
    form::{Filled, Form},
    given::GivenAnswers,
    page::show_page,
    sampling::sample,
};
use crate::{args::QuestionArgs, output::Output};

/// Answers questions: with what was given, by asking the user, or not at all.
pub(super) struct Answerer {
    pub(super) given: GivenAnswers,
    options: QuestionArgs,
    /// Whether the user has agreed to open pages: the page of a call that is resumed.
    accepts_pages: AtomicBool,
    output: Output,
    /// The problem with the given answers, if there is one.
    problem: Mutex<Option<String>>,
}

/// The reason for which a question has no answer.
pub(super) enum Unanswered {
    /// Nobody is there to be asked.
    NotAsked,
    /// The answers that were given do not fit. One line.
    Wrong(String),
}

impl Answerer {
    pub(super) async fn new(
        options: QuestionArgs,
        words: &[String],
        output: &Output,
    ) -> Result<Self, String> {
        let words: Vec<_> = words.iter().chain(&options.answers).cloned().collect();
        let given = GivenAnswers::read(&words, options.file.as_deref()).await?;
        let accepts_pages = AtomicBool::new(false);
        let (output, problem) = (output.clone(), Mutex::default());
        Ok(Self { given, options, accepts_pages, output, problem })
    }

    pub(super) fn options(&self) -> &QuestionArgs {
        &self.options
    }

    pub(super) fn output(&self) -> &Output {
        &self.output
    }

    /// Sets whether pages are accepted without a question.
    pub(super) fn accept_pages(&self, accept: bool) {
        self.accepts_pages.store(accept, Ordering::Relaxed);
    }

    /// Returns the answer to a form.
    pub(super) async fn form(&self, server: &str, params: &ElicitFormParams) -> Result<Answer, Unanswered> {
        if self.options.decline {
            return Ok(Answer::Decline);
        }
        let form = Form::new(params);
        let given = match form.fill(&self.given) {
            Ok(Filled::Whole(values)) => return Ok(Answer::accept(&values)),
            Ok(Filled::Partly(values)) => values,
            Err(reason) => return Err(self.wrong(reason)),
        };
        if !self.asks() {
            return Err(match given.is_empty() {
                true => Unanswered::NotAsked,
                false => {
                    let is_missing = |name: &&str| {
                        form.field(name).is_some_and(|field| field.required && !given.contains_key(*name))
                    };
                    let missing = super::given::quoted_names(form.names().filter(is_missing));
                    self.wrong(format!("an answer is missing: the server asks for {missing} too"))
                }
            });
        }
        let mut turn = self.output.console().turn(&self.output).await;
        Ok(fill_in(server, &form, given, &mut turn).await)
    }

    /// Returns the answer to a page.
    pub(super) async fn page(&self, server: &str, page: &ElicitUrl) -> Result<Answer, Unanswered> {
        if let Some(answer) = self.decided() {
            return Ok(answer);
        }
        if !self.asks() {
            return Err(Unanswered::NotAsked);
        }
        let mut turn = self.output.console().turn(&self.output).await;
        Ok(show_page(server, page, !self.options.no_browser, &mut turn).await)
    }

    /// Returns the answer to a page of a call that is resumed: the user has seen its URL.
    pub(super) async fn stored_page(
        &self,
        server: &str,
        page: &ElicitUrlParams,
    ) -> Result<Answer, Unanswered> {
        if let Some(answer) = self.decided() {
            return Ok(answer);
        }
        if !self.asks() {
            return Err(Unanswered::NotAsked);
        }
        let mut turn = self.output.console().turn(&self.output).await;
        Ok(super::page::confirm_page(server, page, &mut turn).await)
    }

    /// Runs the command for requests to a model.
    pub(super) async fn sample(&self, params: &CreateMessageParams) -> Result<CreateMessageResult, RpcError> {
        let Some(command) = &self.options.sample_with else {
            return Err(RpcError::internal("there is no `--sample-with`"));
        };
        let sampled = sample(command, params).await;
        if let Err(error) = &sampled {
            self.wrong(error.message.to_string());
        }
        sampled
    }

    /// Takes what was wrong with the given answers.
    pub(super) fn take_problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn decided(&self) -> Option<Answer> {
        match (self.options.decline, self.accepts_pages.load(Ordering::Relaxed)) {
            (true, _) => Some(Answer::Decline),
            (false, true) => Some(Answer::Accept(Value::Null)),
            (false, false) => None,
        }
    }

    fn asks(&self) -> bool {
        !self.options.no_input && self.output.is_interactive()
    }

    fn wrong(&self, reason: String) -> Unanswered {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.clone());
        Unanswered::Wrong(reason)
    }
}

impl Unanswered {
    /// Returns what is sent to nobody: the call is suspended.
    pub(super) fn into_error(self) -> RpcError {
        RpcError::internal(match self {
            Self::NotAsked => "nobody is there to be asked".to_owned(),
            Self::Wrong(reason) => reason,
        })
    }
}

/// A question of a session that was not answered, which ends the verb.
pub(super) struct Halt {
    pub(super) asked: Asked,
    pub(super) problem: Option<String>,
}
