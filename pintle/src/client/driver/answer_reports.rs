//! Notifications of answers to the server's questions: their progress, and the status of those that run as tasks.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use pintle_types::{RawObject, RequestId, method, schema::ProgressToken};
use tokio::sync::mpsc;

use super::{BUDGET, Driver};
use crate::client::{
    asking::{BoxFuture, QuestionProgress, TaskTable},
    layer::{Cx, MessageFuture},
    state::ConnectionState,
};

/// Limit of reports that were not sent yet. Handlers wait when it is reached.
const MAX_REPORTS: usize = 16;

/// A notification of an answer.
#[derive(Debug)]
enum AnswerReport {
    /// Progress, sent while its question is open.
    Progress(RequestId, RawObject),
    /// Progress of a task.
    TaskProgress(RawObject),
    /// The status of a task.
    TaskStatus(RawObject),
}

/// The reports of handlers.
#[derive(Debug)]
pub(super) struct AnswerReports {
    sender: mpsc::Sender<AnswerReport>,
    receiver: mpsc::Receiver<AnswerReport>,
}

impl AnswerReports {
    fn new() -> Self {
        let (sender, receiver) = mpsc::channel(MAX_REPORTS);
        Self { sender, receiver }
    }

    /// Creates the reports of a client whose answers may run as tasks, and the tasks. `None` for other clients.
    pub(super) fn of_tasks(shared: &Arc<ConnectionState>) -> Option<(Box<Self>, Arc<TaskTable>)> {
        let limits = shared.settings.answer_tasks?;
        let reports = Box::new(Self::new());
        let notify =
            reports.notification(shared, method::NOTIFICATIONS_TASKS_STATUS, AnswerReport::TaskStatus);
        let table = TaskTable::new(limits, shared.settings.limits.queued_bytes, notify);
        Some((reports, Arc::new(table)))
    }

    /// Returns a function that sends notifications of this method, through the layers.
    fn notification(
        &self,
        shared: &Arc<ConnectionState>,
        method: &'static str,
        report: impl Fn(RawObject) -> AnswerReport + Clone + Send + Sync + 'static,
    ) -> impl Fn(RawObject) -> BoxFuture<()> + Send + Sync + 'static {
        let (reports, shared) = (self.sender.clone(), shared.clone());
        let perform = move |cx: Cx| -> MessageFuture {
            let (reports, report) = (reports.clone(), report(cx.into_params()));
            Box::pin(async move {
                // After the end of the connection nobody reads it.
                let _ = reports.send(report).await;
                Ok(RawObject::empty())
            })
        };
        move |params| {
            let cx = Cx::sent(shared.cx_origin(), method.into(), params, perform.clone()).notification();
            let sending = shared.settings.layers.start(cx);
            Box::pin(async move { drop(sending.await) })
        }
    }
}

impl Driver {
    /// Returns the progress reports of an answer, if the server requested them.
    pub(super) fn progress_of(
        &mut self,
        question: &RequestId,
        params: &RawObject,
    ) -> Option<QuestionProgress> {
        let meta: RawObject = params.decode_member("_meta").ok()??;
        let token: ProgressToken = meta.decode_member("progressToken").ok()??;
        // The question of a task is closed before the task has begun.
        let is_task = self.tasks.is_some() && params.get("task").is_some();
        let reports = self.reports.get_or_insert_with(|| Box::new(AnswerReports::new()));
        let question = question.clone();
        let report = move |params| match is_task {
            true => AnswerReport::TaskProgress(params),
            false => AnswerReport::Progress(question.clone(), params),
        };
        let send = reports.notification(&self.shared, method::NOTIFICATIONS_PROGRESS, report);
        Some(QuestionProgress::new(token, send))
    }

    /// Sends reports, up to a budget. Returns whether there may be more.
    pub(super) fn poll_reports(&mut self, cx: &mut Context<'_>) -> bool {
        for _ in 0..BUDGET {
            let Some(reports) = self.reports.as_mut().filter(|_| !self.backlog) else { return false };
            match reports.receiver.poll_recv(cx) {
                Poll::Ready(Some(report)) => self.send_report(report),
                Poll::Ready(None) | Poll::Pending => return false,
            }
        }
        true
    }

    /// Sends the reports that handlers made before an answer.
    pub(super) fn flush_reports(&mut self) {
        while let Some(reports) = &mut self.reports
            && let Ok(report) = reports.receiver.try_recv()
        {
            self.send_report(report);
        }
    }

    fn send_report(&mut self, report: AnswerReport) {
        let (method, params) = match report {
            AnswerReport::Progress(question, _) if !self.questions.contains_key(&question) => return,
            AnswerReport::Progress(_, params) | AnswerReport::TaskProgress(params) => {
                (method::NOTIFICATIONS_PROGRESS, params)
            }
            AnswerReport::TaskStatus(params) => (method::NOTIFICATIONS_TASKS_STATUS, params),
        };
        if let Ok(notification) = self.engine.notify(method, Some(params)) {
            self.send_notification(notification);
        }
    }
}
