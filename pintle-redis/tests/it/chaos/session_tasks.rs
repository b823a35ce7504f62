//! Tasks of a client with a session of 2025-11-25: each is created at one process; its result is waited for, and its questions answered, at
//! others.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    session_client::{CallEnd, RETRY, SessionClient},
    stateless_tasks::TASK_LIMIT,
    world::Store,
};

/// The response to a request about a task.
enum TaskReply {
    Result(Value),
    /// An error of the task, or of the request.
    Error(String),
    /// There is no such task, or no such session.
    Unknown,
    /// The process could not be reached, or could not reach the store, or has died.
    Later,
}

impl SessionClient {
    /// Runs a tool as a task, and waits for its result or cancels it.
    pub(super) async fn task(&mut self) -> Result<(), String> {
        let tool = *self.random.choose(&["order", "order", "rent"]);
        let key = format!("task {} of {}", self.next_id, self.name);
        let params = json!({"name": tool, "arguments": {"key": key}, "task": {"ttl": 120_000}});
        let id = match self.about_task("tools/call", params).await? {
            TaskReply::Result(created) => created["task"]["taskId"].as_str().map(str::to_owned),
            TaskReply::Error(reason) => return Err(format!("`{tool}`: {reason}")),
            TaskReply::Unknown | TaskReply::Later => {
                self.tally.count("task: not created");
                return Ok(());
            }
        };
        let id = id.ok_or_else(|| format!("`{tool}` did not become a task"))?;
        if self.random.below(4) == 0 {
            return self.cancel_task(&id).await;
        }
        let start = Instant::now();
        while start.elapsed() < TASK_LIMIT {
            match self.about_task("tasks/result", json!({"taskId": id})).await? {
                TaskReply::Result(result) => return self.completed(&id, &key, &result).await,
                TaskReply::Unknown => return self.forgotten(&id),
                TaskReply::Later => {}
                // If the task goes on, it is asked for again.
                TaskReply::Error(reason) => match self.task_status(&id).await?.as_deref() {
                    Some("failed") if tool == "rent" || reason.contains("outcome unknown") => {
                        let reason: String = reason.chars().take(60).collect();
                        self.tally.count(format!("task of `{tool}`: failed: `{reason}`"));
                        return Ok(());
                    }
                    None | Some("working" | "input_required") => {
                        let reason: String = reason.chars().take(60).collect();
                        self.tally.count(format!("task: asked again after `{reason}`"));
                    }
                    Some(status) => return Err(format!("the task of `{tool}` is {status}: {reason}")),
                },
            }
            if self.session().is_none() {
                return Ok(());
            }
            sleep(RETRY).await;
        }
        Err(format!("the task `{id}` of `{tool}` never ended"))
    }

    /// Checks the result of a task, and that it is the same at another process.
    async fn completed(&mut self, id: &str, key: &str, result: &Value) -> Result<(), String> {
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let answers = text.strip_prefix(&format!("{key}: ")).and_then(|rest| rest.strip_suffix(", true"));
        match answers.map(|answers| answers.split(", ").collect::<Vec<_>>()).as_deref() {
            Some([what, place]) if what.starts_with(&self.name) && place.starts_with(&self.name) => {
                self.tally.count("task: completed");
            }
            _ if result["isError"] == true => {
                let text: String = text.chars().take(60).collect();
                self.tally.count(format!("task: `{text}`"));
            }
            _ => return Err(format!("the task of `{key}` returned `{text}`")),
        }
        match self.about_task("tasks/result", json!({"taskId": id})).await? {
            TaskReply::Result(again) if again["content"] == result["content"] => {}
            TaskReply::Result(again) => return Err(format!("a task returned {result} and {again}")),
            TaskReply::Error(reason) => return Err(format!("a task returned {result}, and then: {reason}")),
            TaskReply::Unknown => return self.forgotten(id),
            TaskReply::Later => {}
        }
        match self.about_task("tasks/list", json!({})).await? {
            TaskReply::Result(list) => {
                let is_listed = |task: &Value| task["taskId"] == id;
                match list["tasks"].as_array().is_some_and(|tasks| tasks.iter().any(is_listed)) {
                    true => Ok(()),
                    false => self.forgotten(id),
                }
            }
            TaskReply::Error(reason) => Err(format!("tasks/list: {reason}")),
            TaskReply::Unknown | TaskReply::Later => Ok(()),
        }
    }

    async fn cancel_task(&mut self, id: &str) -> Result<(), String> {
        let start = Instant::now();
        while start.elapsed() < TASK_LIMIT {
            sleep(Duration::from_millis(self.random.below(300))).await;
            // It may be cancelled by a request whose response was lost, or have failed.
            match self.about_task("tasks/cancel", json!({"taskId": id})).await? {
                TaskReply::Result(_) => break,
                TaskReply::Error(reason) if reason.contains("has ended") => break,
                TaskReply::Error(reason) => return Err(format!("tasks/cancel: {reason}")),
                TaskReply::Unknown => return self.forgotten(id),
                TaskReply::Later if self.session().is_none() => return Ok(()),
                TaskReply::Later => {}
            }
        }
        match self.task_status(id).await?.as_deref() {
            Some("cancelled") => self.tally.count("task: cancelled"),
            Some("failed") => self.tally.count("task: failed before it was cancelled"),
            None => self.tally.count("task: cancelled, and not seen"),
            Some(status) => return Err(format!("a task that was cancelled is {status}")),
        }
        Ok(())
    }

    /// Returns the status of a task. `None` if nobody can be asked.
    async fn task_status(&mut self, id: &str) -> Result<Option<String>, String> {
        match self.about_task("tasks/get", json!({"taskId": id})).await? {
            TaskReply::Result(task) => Ok(task["status"].as_str().map(str::to_owned)),
            TaskReply::Error(reason) => Err(format!("tasks/get: {reason}")),
            TaskReply::Unknown => self.forgotten(id).map(|()| None),
            TaskReply::Later => Ok(None),
        }
    }

    fn forgotten(&mut self, id: &str) -> Result<(), String> {
        self.tally.count("task: forgotten");
        match self.store {
            Store::Forgetful => Ok(()),
            Store::Durable => Err(format!("the task `{id}` is unknown")),
        }
    }

    async fn about_task(&mut self, method: &str, params: Value) -> Result<TaskReply, String> {
        let response = match self.ask_for(method, params, true).await? {
            CallEnd::Response(response, _) => response,
            CallEnd::Error("404") => return Ok(TaskReply::Unknown),
            CallEnd::Error(_) => return Ok(TaskReply::Later),
            CallEnd::Silent => return Err(format!("the stream of `{method}` ended without a response")),
        };
        Ok(match response["error"]["message"].as_str() {
            None => TaskReply::Result(response["result"].clone()),
            Some(reason) if reason.contains("no such task") => TaskReply::Unknown,
            Some(reason)
                if reason.contains("cannot be reached now")
                    || reason.starts_with("the process that ran the call is gone") =>
            {
                TaskReply::Later
            }
            Some(reason) => TaskReply::Error(reason.to_owned()),
        })
    }
}
