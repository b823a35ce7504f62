//! A worker: a program that stays, and runs functions for calls.

mod entry;
mod journal;
mod message;
mod open_call;
mod plan;
mod pool;
mod process;
mod runner;
mod served;
mod settings;

use std::{sync::Arc, time::Duration};

use pintle::{
    server::{Cx, ToolError},
    types::{JsonObject, schema::CallToolResult},
};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::Semaphore;

pub use entry::WorkerEntry;
pub use plan::WorkerPlan;
pub use served::ServedWorkers;

use crate::{CallFault, OutputKind, ToolEntry, turn::turn};
use journal::{Journal, JournalEntry};
use message::{WorkerMessage, result_of};
use pool::WorkerPool;

/// The function of a worker that a tool calls.
#[derive(Debug)]
pub(crate) struct WorkerTool {
    pool: Arc<WorkerPool>,
    function: String,
    timeout: Duration,
}

/// The line of a call.
#[derive(Serialize)]
struct CallLine<'a> {
    call: u64,
    tool: &'a str,
    arguments: &'a JsonObject,
    answers: &'a JsonObject,
    once: &'a JsonObject,
}

impl WorkerTool {
    /// Checks the entry of a tool.
    pub(crate) fn new(
        tool: &str,
        worker: &str,
        entry: &ToolEntry,
        workers: &ServedWorkers,
        timeout: Duration,
    ) -> Result<Self, String> {
        if let Some(member) = not_of_workers(entry) {
            return Err(format!("it has a `worker`, and `{member}` is for a `command`: remove one of them"));
        }
        let Some(pool) = workers.pool(worker) else {
            return Err(format!(
                "there is no worker `{worker}`: add `[workers.{worker}]` with `command = [\"PROGRAM\"]`"
            ));
        };
        let function = entry.function.as_deref().unwrap_or(tool).to_owned();
        Ok(Self { pool: pool.clone(), function, timeout })
    }

    /// Returns the call as the worker gets it.
    pub(crate) fn plan(&self, arguments: &JsonObject) -> Result<WorkerPlan, CallFault> {
        let line = self.line(1, arguments, &Journal::default());
        Ok(WorkerPlan {
            worker: self.pool.settings.name.clone(),
            line: line.map_err(|error| CallFault(error.to_string()))?,
            command: self.pool.settings.plan.clone(),
        })
    }

    fn line(&self, call: u64, arguments: &JsonObject, journal: &Journal) -> serde_json::Result<String> {
        let (answers, once) = (&journal.answers, &journal.once);
        serde_json::to_string(&CallLine { call, tool: &self.function, arguments, answers, once })
    }

    /// Runs the function for a call, again after each question, and returns its result. A run takes a turn of `running`, and a question
    /// none.
    pub(crate) async fn call(
        &self,
        cx: &Cx,
        arguments: &JsonObject,
        running: &Semaphore,
    ) -> Result<CallToolResult, ToolError> {
        let mut journal = Journal::read(cx).await?;
        loop {
            if let Some(value) = self.run(cx, arguments, &mut journal, running).await? {
                let wrong = |reason| format!("worker `{}` wrote {reason}", self.pool.settings.name);
                return result_of(value).map_err(|reason| ToolError::new(wrong(reason)));
            }
        }
    }

    /// Runs the function once. Returns `None` if it has asked, and the journal has the answer.
    async fn run(
        &self,
        cx: &Cx,
        arguments: &JsonObject,
        journal: &mut Journal,
        running: &Semaphore,
    ) -> Result<Option<Value>, ToolError> {
        let name = &self.pool.settings.name;
        let begun = async {
            let turn = running.acquire().await?;
            Ok((turn, self.pool.run(|id| Ok(self.line(id, arguments, journal)?), self.timeout).await?))
        };
        let (turn, mut run) = turn(&format!("worker `{name}`"), begun).await?;
        while let Some(event) = run.events.recv().await {
            match event.map_err(ToolError::new)? {
                WorkerMessage::Result(value) => return Ok(Some(value)),
                WorkerMessage::Question(question) => {
                    drop((turn, run));
                    journal.add(cx, JournalEntry::Question(question)).await?;
                    return Ok(None);
                }
                WorkerMessage::Error(text) => return Err(ToolError::new(text)),
                WorkerMessage::Once(value) => journal.add(cx, JournalEntry::Once(value)).await?,
                WorkerMessage::Progress { done, total, text: None } => cx.progress(done, total).await,
                WorkerMessage::Progress { done, total, text: Some(text) } => {
                    cx.progress_with(done, total, &text).await;
                }
                WorkerMessage::Log { level, data } => cx.log(level, Some(name), &data).await,
            }
        }
        Err(ToolError::new(format!("worker `{name}` has ended: call again")))
    }
}

/// Returns a member of an entry that is not for workers.
fn not_of_workers(entry: &ToolEntry) -> Option<&'static str> {
    let members = [
        ("output", entry.output != OutputKind::default()),
        ("max_output", entry.max_output.is_some()),
        // A worker writes its own.
        ("once", entry.once.is_some()),
    ];
    let member = members.into_iter().find_map(|(name, is_set)| is_set.then_some(name));
    entry.member_of_commands().or(member)
}
