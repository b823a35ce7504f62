//! Tasks of a client without sessions: each is created at one process, and polled, answered and cancelled at others.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    session_client::RETRY,
    stateless_client::{Answered, StatelessClient},
    wire::LIMIT,
    world::Store,
};

/// The time after which a task counts as never ended: several processes in a row may die with it, and each is missed after its lease.
pub(super) const TASK_LIMIT: Duration = Duration::from_secs(3 * LIMIT.as_secs());

/// The response to a request about a task.
enum TaskReply {
    Task(Value),
    /// There is no such task.
    Unknown,
    /// The process could not be reached, or could not reach the store.
    Later,
}

impl StatelessClient {
    /// Runs a tool as a task, and answers its questions or cancels it.
    pub(super) async fn task(&mut self) -> Result<(), String> {
        let tool = *self.random.choose(&["order", "order", "rent"]);
        let key = format!("task {} of {}", self.next_id, self.name);
        let cancels = self.random.below(4) == 0;
        let created = self.call(json!({"name": tool, "arguments": {"key": key}})).await?;
        let Answered::Result(task, _) = &created else {
            self.count_failure("stateless task", &created);
            return Ok(());
        };
        let Some(id) = task["taskId"].as_str() else { return Err(format!("`{tool}` returned {task}")) };
        let Some(ended) = self.end_of(id, &key, cancels).await? else { return Ok(()) };
        let status = ended["status"].as_str().unwrap_or_default();
        match (status, ended["error"]["message"].as_str()) {
            ("completed", None) => {
                let text = ended["result"]["content"][0]["text"].as_str().unwrap_or_default();
                if ended["result"]["isError"] == true {
                    let text: String = text.chars().take(60).collect();
                    self.tally.count(format!("stateless task: `{text}`"));
                } else if text == format!("{key}: {key} what, {key} where, true") {
                    self.tally.count("stateless task: completed");
                } else {
                    return Err(format!("the task of `{key}` returned `{text}`"));
                }
            }
            ("cancelled", None) if cancels => self.tally.count("stateless task: cancelled"),
            ("failed", Some(reason)) if tool == "rent" || reason.contains("unknown") => {
                let reason: String = reason.chars().take(60).collect();
                self.tally.count(format!("stateless task of `{tool}`: failed: `{reason}`"));
            }
            _ => return Err(format!("the task of `{tool}` ended as {ended}")),
        }
        self.stays(id, &ended).await
    }

    /// Polls a task until it has ended. Returns `None` if the store has forgotten it.
    async fn end_of(&mut self, id: &str, key: &str, cancels: bool) -> Result<Option<Value>, String> {
        let (start, mut last) = (Instant::now(), Value::Null);
        while start.elapsed() < TASK_LIMIT {
            let task = match self.about_task("tasks/get", json!({"taskId": id})).await? {
                TaskReply::Task(task) => task,
                TaskReply::Unknown => return self.forgotten(id),
                TaskReply::Later => {
                    sleep(RETRY).await;
                    continue;
                }
            };
            match task["status"].as_str() {
                Some("completed" | "failed" | "cancelled") => return Ok(Some(task)),
                Some("input_required") if cancels => {
                    self.about_task("tasks/cancel", json!({"taskId": id})).await?;
                }
                Some("input_required") => {
                    let asked = task["inputRequests"].as_object().cloned().unwrap_or_default();
                    let answers = asked.keys().map(|asked| (asked.clone(), answer(key, asked)));
                    let answers = Value::Object(answers.collect());
                    // If it is not accepted, the question is there again.
                    self.about_task("tasks/update", json!({"taskId": id, "inputResponses": answers})).await?;
                }
                Some("working") => {}
                _ => return Err(format!("the task is {task}")),
            }
            last = task;
            sleep(Duration::from_millis(50 + self.random.below(200))).await;
        }
        Err(format!("a task never ended: {last}"))
    }

    /// Checks that a task that has ended is the same at every process.
    async fn stays(&mut self, id: &str, ended: &Value) -> Result<(), String> {
        for _ in 0..3 {
            match self.about_task("tasks/get", json!({"taskId": id})).await? {
                TaskReply::Task(task) if task == *ended => {}
                TaskReply::Task(task) => return Err(format!("a task that was {ended} is {task}")),
                TaskReply::Unknown => return self.forgotten(id).map(drop),
                TaskReply::Later => {}
            }
        }
        Ok(())
    }

    fn forgotten(&mut self, id: &str) -> Result<Option<Value>, String> {
        self.tally.count("stateless task: forgotten");
        match self.store {
            Store::Forgetful => Ok(None),
            Store::Durable => Err(format!("the task `{id}` is unknown")),
        }
    }

    async fn about_task(&mut self, method: &str, params: Value) -> Result<TaskReply, String> {
        Ok(match self.ask_for(method, params).await? {
            Answered::Result(task, _) => TaskReply::Task(task),
            Answered::Failed(_) => TaskReply::Later,
            Answered::Error(reason) if reason.contains("cannot be reached now") => TaskReply::Later,
            Answered::Error(reason) if reason.contains("no such task") => TaskReply::Unknown,
            Answered::Error(reason) => return Err(format!("{method}: {reason}")),
        })
    }
}

/// Returns the answer to a question of the task with this key.
fn answer(key: &str, question: &str) -> Value {
    let text = json!({"type": "text", "text": format!("{key} {question}")});
    json!({"role": "assistant", "model": "m", "content": text})
}
