//! Progress reports of answers to the server's questions.

use std::task::{Context, Poll};

use pintle_types::{RawObject, RequestId, method, schema::ProgressToken};
use tokio::sync::mpsc;

use super::{BUDGET, Driver};
use crate::{
    Result,
    client::{
        asking::{BoxFuture, QuestionProgress},
        layer::{Cx, LayerFuture},
    },
};

/// Limit of reports that were not sent yet. Handlers wait when it is reached.
const MAX_REPORTS: usize = 16;

/// The reports of handlers, by the id of their question.
#[derive(Debug)]
pub(super) struct ProgressReports {
    sender: mpsc::Sender<(RequestId, RawObject)>,
    receiver: mpsc::Receiver<(RequestId, RawObject)>,
}

impl ProgressReports {
    fn new() -> Self {
        let (sender, receiver) = mpsc::channel(MAX_REPORTS);
        Self { sender, receiver }
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
        let reports = self.reports.get_or_insert_with(|| Box::new(ProgressReports::new())).sender.clone();
        let (question, shared) = (question.clone(), self.shared.clone());
        let send = move |params: RawObject| -> BoxFuture<Result<RawObject>> {
            let (reports, question) = (reports.clone(), question.clone());
            Box::pin(async move {
                // After the end of the connection nobody reads it.
                let _ = reports.send((question, params)).await;
                Ok(RawObject::empty())
            })
        };
        Some(QuestionProgress::new(token, move |params| {
            let Some(layers) = shared.settings.layers.clone() else {
                let sending = send(params);
                return Box::pin(async move { drop(sending.await) });
            };
            let send = send.clone();
            let perform = move |cx: Cx| -> LayerFuture { send(cx.into_params()) };
            let method = method::NOTIFICATIONS_PROGRESS.into();
            let cx = Cx::sent(shared.cx_origin(), method, params, perform).notification();
            Box::pin(async move { drop(layers.run(cx).await) })
        }))
    }

    /// Sends reports, up to a budget. Returns whether there may be more.
    pub(super) fn poll_reports(&mut self, cx: &mut Context<'_>) -> bool {
        for _ in 0..BUDGET {
            let Some(reports) = self.reports.as_mut().filter(|_| !self.backlog) else { return false };
            match reports.receiver.poll_recv(cx) {
                Poll::Ready(Some((question, params))) => self.report_progress(&question, params),
                Poll::Ready(None) | Poll::Pending => return false,
            }
        }
        true
    }

    /// Sends the reports that handlers made before an answer.
    pub(super) fn flush_reports(&mut self) {
        while let Some(reports) = &mut self.reports
            && let Ok((question, params)) = reports.receiver.try_recv()
        {
            self.report_progress(&question, params);
        }
    }

    /// Sends progress of the answer to a question that is open.
    fn report_progress(&mut self, question: &RequestId, params: RawObject) {
        if self.questions.contains_key(question)
            && let Ok(notification) = self.engine.notify(method::NOTIFICATIONS_PROGRESS, Some(params))
        {
            self.send_notification(notification);
        }
    }
}
