use std::future::ready;

use pintle::{
    server::{Cx, ToolError},
    types::JsonObject,
};
use serde::{Deserialize, Serialize};

use super::message::{OnceValue, WorkerQuestion};

/// The most entries of a call.
const MAX_ENTRIES: usize = 32;

/// The questions and actions of a call so far, for its next run.
///
/// Each entry is an action of the call that runs once, so that it is sealed into the state of a call without a session.
#[derive(Debug, Default)]
pub(super) struct Journal {
    length: usize,
    /// The answers of the user, by the keys of their questions.
    pub(super) answers: JsonObject,
    /// The values of actions that are not repeated, by their keys.
    pub(super) once: JsonObject,
}

#[derive(Deserialize, Serialize)]
pub(super) enum JournalEntry {
    Once(OnceValue),
    Question(WorkerQuestion),
}

impl Journal {
    /// Reads the journal of a call. A question without an answer is asked again.
    pub(super) async fn read(cx: &Cx) -> Result<Self, ToolError> {
        let mut journal = Self::default();
        while let Some(entry) = cx.once_value(&journal.next_key())? {
            journal.take(cx, entry).await?;
        }
        Ok(journal)
    }

    /// Adds an entry. A question is asked.
    pub(super) async fn add(&mut self, cx: &Cx, entry: JournalEntry) -> Result<(), ToolError> {
        match &entry {
            JournalEntry::Once(value) if self.once.contains_key(&value.key) => return Ok(()),
            JournalEntry::Question(question) if self.answers.contains_key(&question.key) => {
                return Err(ToolError::new(format!(
                    "the worker asked `{}` again, which is answered: have it read `answers` first",
                    question.key
                )));
            }
            JournalEntry::Question(question) => drop(question.form().map_err(ToolError::new)?),
            JournalEntry::Once(_) => {}
        }
        if self.length == MAX_ENTRIES {
            return Err(ToolError::new(format!(
                "the worker wrote more than {MAX_ENTRIES} questions and values of `once` for a call: write fewer"
            )));
        }
        let entry = cx.once(&self.next_key(), ready(entry)).await?;
        self.take(cx, entry).await
    }

    async fn take(&mut self, cx: &Cx, entry: JournalEntry) -> Result<(), ToolError> {
        self.length += 1;
        match entry {
            JournalEntry::Once(OnceValue { key, value }) => drop(self.once.insert(key, value)),
            JournalEntry::Question(question) => {
                let answer = question.ask(cx).await?;
                self.answers.insert(question.key, answer);
            }
        }
        Ok(())
    }

    fn next_key(&self) -> String {
        format!("worker.{}", self.length)
    }
}
