use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pintle::{
    client::{Answer, Change, Client, ElicitUrl, Question},
    types::{
        RpcError,
        schema::{
            ContentBlock, CreateMessageParams, CreateMessageResult, ElicitFormParams, LoggingMessageParams,
        },
    },
};

/// An answer that is ready before its question comes.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    about: Subject,
    reply: Reply,
}

/// The identification of a question.
#[derive(Clone, Debug)]
enum Subject {
    /// A part of the text.
    Text(String),
    /// The key.
    Key(String),
}

#[derive(Clone, Debug)]
enum Reply {
    Form(Answer),
    Page(Answer),
    /// To a form or a page.
    Either(Answer),
    Sample(Box<CreateMessageResult>),
}

impl Line {
    pub(crate) fn form(message: impl Into<String>, answer: Answer) -> Self {
        Self { about: Subject::Text(message.into()), reply: Reply::Form(answer) }
    }

    pub(crate) fn page(url: impl Into<String>, answer: Answer) -> Self {
        Self { about: Subject::Text(url.into()), reply: Reply::Page(answer) }
    }

    pub(crate) fn sample(text: impl Into<String>, reply: CreateMessageResult) -> Self {
        Self { about: Subject::Text(text.into()), reply: Reply::Sample(Box::new(reply)) }
    }

    pub(crate) fn answer(key: impl Into<String>, answer: Answer) -> Self {
        Self { about: Subject::Key(key.into()), reply: Reply::Either(answer) }
    }

    pub(crate) fn model_answer(key: impl Into<String>, reply: CreateMessageResult) -> Self {
        Self { about: Subject::Key(key.into()), reply: Reply::Sample(Box::new(reply)) }
    }

    fn is_about(&self, key: Option<&str>, text: &str) -> bool {
        match &self.about {
            Subject::Text(part) => text.contains(part),
            Subject::Key(wanted) => key == Some(wanted),
        }
    }

    /// The line as it is written in a test.
    fn shown(&self) -> String {
        let verb = match (&self.reply, &self.about) {
            (Reply::Form(_), _) => "form",
            (Reply::Page(_), _) => "page",
            (Reply::Either(_), _) => "answer",
            (Reply::Sample(_), Subject::Text(_)) => "sample",
            (Reply::Sample(_), Subject::Key(_)) => "model_answer",
        };
        let (Subject::Text(about) | Subject::Key(about)) = &self.about;
        format!("`.{verb}({about:?}, ..)`")
    }
}

/// The state of a script on one connection: the answers left, and what was received.
#[derive(Debug, Default)]
pub(crate) struct ScriptRun(Mutex<Inside>);

#[derive(Debug, Default)]
pub(crate) struct Inside {
    lines: Vec<Line>,
    /// Deviations from the script, which fail the test.
    pub(crate) faults: Vec<String>,
    pub(crate) questions: Vec<String>,
    pub(crate) logs: Vec<LoggingMessageParams>,
    pub(crate) changes: VecDeque<Change>,
}

impl ScriptRun {
    pub(crate) fn new(lines: Vec<Line>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Inside { lines, ..Inside::default() })))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets this client answer from the script.
    pub(crate) fn play(self: &Arc<Self>, client: Client) -> Client {
        let [form, page, sample] = [self.clone(), self.clone(), self.clone()];
        client
            .on_elicit(move |question| std::future::ready(form.form(&question)))
            .on_elicit_url(move |question| std::future::ready(page.page(&question)))
            .on_sample(move |question| std::future::ready(sample.sample(&question)))
            .sample_with_tools(true)
    }

    /// Describes the unused answers, if there are any.
    pub(crate) fn unused(&self) -> Option<String> {
        let inside = self.lock();
        let unused: Vec<_> = inside.lines.iter().map(Line::shown).collect();
        (!unused.is_empty())
            .then(|| format!("never asked for: {}; remove it, or find out why", unused.join(", ")))
    }

    fn form(&self, question: &Question<ElicitFormParams>) -> Result<Answer, RpcError> {
        let fields = question.requested_schema.properties.iter().map(|(name, _)| format!("`{name}`"));
        let fields: Vec<_> = fields.collect();
        let asked = match fields.as_slice() {
            [] => "a form without fields".to_owned(),
            fields => format!("a form with {}", fields.join(", ")),
        };
        let key = question.key.as_deref();
        let answer = self.take(&asked, "form", key, &question.message, |reply| match reply {
            Reply::Form(answer) | Reply::Either(answer) => Some(answer.clone()),
            _ => None,
        });
        if let (Ok(Answer::Accept(content)), false) = (&answer, fields.is_empty()) {
            for name in content.as_object().into_iter().flat_map(|content| content.keys()) {
                if !fields.contains(&format!("`{name}`")) {
                    let fault = format!(
                        "the answer to {:?} fills in `{name}`, and the form has only {}",
                        question.message,
                        fields.join(", ")
                    );
                    self.lock().faults.push(fault);
                }
            }
        }
        answer
    }

    fn page(&self, question: &Question<ElicitUrl>) -> Result<Answer, RpcError> {
        let asked = format!("a page ({:?})", question.message);
        self.take(&asked, "page", question.key.as_deref(), &question.url, |reply| match reply {
            Reply::Page(answer) | Reply::Either(answer) => Some(answer.clone()),
            _ => None,
        })
    }

    fn sample(&self, question: &Question<CreateMessageParams>) -> Result<CreateMessageResult, RpcError> {
        let text = question.messages.iter().flat_map(|message| message.content.as_slice());
        let text: Vec<_> = text.filter_map(ContentBlock::as_text).collect();
        let key = question.key.as_deref();
        self.take("a word of the model", "sample", key, &text.join("\n"), |reply| match reply {
            Reply::Sample(result) => Some((**result).clone()),
            _ => None,
        })
    }

    /// Takes the first matching answer. Each answer is used once, so that repeated input requests are answered in turn.
    fn take<T>(
        &self,
        asked: &str,
        verb: &str,
        key: Option<&str>,
        text: &str,
        fits: impl Fn(&Reply) -> Option<T>,
    ) -> Result<T, RpcError> {
        let mut inside = self.lock();
        inside.questions.push(text.to_owned());
        let found = inside.lines.iter().enumerate().find_map(|(at, line)| {
            line.is_about(key, text).then(|| fits(&line.reply)).flatten().map(|reply| (at, reply))
        });
        if let Some((at, reply)) = found {
            inside.lines.remove(at);
            return Ok(reply);
        }
        let left: Vec<_> = inside.lines.iter().map(Line::shown).collect();
        let left = if left.is_empty() { "nothing".to_owned() } else { left.join(", ") };
        let key = key.map(|key| format!(" with the key `{key}`")).unwrap_or_default();
        let fault = format!(
            "the server asked for {asked}{key} and no answer fits: {text:?}; add `.{verb}({text:?}, ..)`; left in the \
             script: {left}"
        );
        inside.faults.push(fault.clone());
        Err(RpcError::internal(fault))
    }
}
