use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use http::StatusCode;
use pintle::server::{Cx, Next, Outcome, Principal, Target};
use serde::Serialize;
use tokio::time::Instant;

use super::{
    super::metrics::RequestMetrics,
    answered_by::AnsweredBy,
    json_log::{JsonLog, cut, logged},
};
use crate::listen::RequestMark;

/// A log of every request, if there is a file for it, and their metrics. It has no arguments and no results, and of URIs no query.
#[derive(Clone)]
pub(in super::super) struct AccessLog {
    file: Option<JsonLog>,
    metrics: Arc<RequestMetrics>,
}

/// A line of the log.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AccessRecord<'a> {
    /// The milliseconds since 1970, at the end of the request.
    time_ms: u64,
    principal: Cow<'a, str>,
    path: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<Cow<'a, str>>,
    /// The name or URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backend: Option<&'a str>,
    /// `ok`, `tool_error`, `asks`, `error`, `cancelled`, or `refused` before it was a request of the protocol.
    status: &'static str,
    /// The code of the error, or the HTTP status of a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<i64>,
    duration_ms: u64,
}

impl AccessLog {
    pub(in super::super) fn new(file: Option<JsonLog>, metrics: Arc<RequestMetrics>) -> Self {
        Self { file, metrics }
    }

    /// Returns the file, if there is one.
    pub(in super::super) fn file(&self) -> Option<&JsonLog> {
        self.file.as_ref()
    }

    /// Handles a request to a path, and logs it.
    pub(in super::super) async fn around(self, path: Arc<str>, cx: Cx, next: Next) -> Outcome {
        // A search logs what is called with it.
        if cx.is_notification() || cx.extensions().get::<AnsweredBy>().is_some() {
            return next.run(cx).await;
        }
        if let Some(mark) = cx.extensions().get::<RequestMark>() {
            mark.set();
        }
        let answered_by = AnsweredBy::default();
        let cx = cx.with(answered_by.clone());
        self.metrics.begun();
        // Cancelled calls are dropped.
        let running = LoggedRequest {
            log: self,
            path,
            start: Instant::now(),
            cx: cx.clone(),
            answered_by,
            is_logged: AtomicBool::new(false),
        };
        let outcome = next.run(cx).await;
        let (status, code) = status_of(&outcome);
        running.write(status, code);
        outcome
    }

    /// Logs a request that was refused before its message was read.
    pub(in super::super) fn refused(&self, path: &str, status: StatusCode, start: Instant) {
        self.metrics.refused(status);
        let Some(file) = &self.file else { return };
        file.write(&AccessRecord {
            time_ms: now(),
            principal: "@anonymous".into(),
            path: logged(path),
            method: None,
            name: None,
            backend: None,
            status: "refused",
            code: Some(status.as_u16().into()),
            duration_ms: millis(start),
        });
    }
}

/// A request that is being handled. Dropping it before it is logged logs that it asks, or was cancelled.
struct LoggedRequest {
    log: AccessLog,
    path: Arc<str>,
    start: Instant,
    cx: Cx,
    answered_by: AnsweredBy,
    is_logged: AtomicBool,
}

impl LoggedRequest {
    fn write(&self, status: &'static str, code: Option<i64>) {
        if self.is_logged.swap(true, Ordering::AcqRel) {
            return;
        }
        self.log.metrics.completed(self.cx.method(), status, self.start.elapsed());
        let Some(file) = &self.log.file else { return };
        let target = self.cx.target();
        file.write(&AccessRecord {
            time_ms: now(),
            principal: match self.cx.identity() {
                Principal::Local => "@local".into(),
                Principal::Anonymous => "@anonymous".into(),
                Principal::Named(name) => cut(name),
            },
            path: Cow::Borrowed(&self.path),
            method: Some(logged(self.cx.method())),
            name: target.as_ref().and_then(logged_name),
            backend: self.answered_by.get(),
            status,
            code,
            duration_ms: millis(self.start),
        });
    }
}

impl Drop for LoggedRequest {
    fn drop(&mut self) {
        // A question to a client without a session ends the handler: the client calls again with the answer.
        let asks = self.cx.is_input_required();
        self.write(if asks { "asks" } else { "cancelled" }, None);
    }
}

fn status_of(outcome: &Outcome) -> (&'static str, Option<i64>) {
    match outcome {
        Outcome::InputRequired | Outcome::Relayed(_) => ("asks", None),
        Outcome::NotFound { .. } => ("error", Some(-32002)),
        Outcome::Failed(error) => ("error", Some(i64::from(error.code.0))),
        outcome if outcome.is_error() => ("tool_error", None),
        _ => ("ok", None),
    }
}

/// Returns the name of a target in the log; `None` if it has to stay secret.
fn logged_name<'a>(target: &'a Target<'_>) -> Option<Cow<'a, str>> {
    match target {
        // Who knows the id of a task may be allowed to use it.
        Target::Task(_) => None,
        target => Some(logged(target.name())),
    }
}

fn millis(start: Instant) -> u64 {
    start.elapsed().as_millis().try_into().unwrap_or(u64::MAX)
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis().try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_the_id_of_a_task_nor_a_query_is_logged() {
        for (target, logged) in [
            (Target::Tool("git_push".into()), Some("git_push")),
            (Target::Prompt("review".into()), Some("review")),
            (Target::Resource("note://1?key=s3cret".into()), Some("note://1")),
            (Target::Template("note://{id}{?key}".into()), Some("note://{id}{")),
            (Target::Task("s3cret".into()), None),
        ] {
            assert_eq!(logged_name(&target).as_deref(), logged, "{target:?}");
        }
    }
}
