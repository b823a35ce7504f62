use std::{borrow::Cow, sync::Arc, time::Duration};

use pintle_proto::client::RequestOutcome;
use pintle_types::{RawObject, method};
use tokio::time::{Instant, timeout_at};

use super::options::RequestOptions;
use crate::{
    Error,
    client::{
        driver::CallRequest,
        state::{CallFailure, CallReceiver, CallSender, CallUpdate, ConnectionState},
    },
    timeouts::after,
};

/// Why a request has no outcome.
#[derive(Debug)]
pub(in crate::client) enum Missing {
    Failed(CallFailure),
    Timeout(Duration),
}

impl From<CallFailure> for Missing {
    fn from(failure: CallFailure) -> Self {
        Self::Failed(failure)
    }
}

pub(in crate::client) fn failed(missing: Missing) -> Error {
    match missing {
        Missing::Failed(CallFailure::Unsent(error)) => Error::Misuse(error.to_string()),
        Missing::Failed(CallFailure::Misused(message)) => Error::Misuse(message),
        Missing::Failed(CallFailure::Failed(failed)) => Error::Failed(failed),
        Missing::Failed(CallFailure::Closed(ended)) => Error::Closed(ended),
        Missing::Failed(CallFailure::Refused(message)) => Error::Refused(message),
        Missing::Failed(CallFailure::Outdated) => {
            Error::Refused("the server's tools changed before the call was sent: call again".into())
        }
        Missing::Timeout(after) => Error::Timeout(after),
    }
}

impl RequestOptions {
    pub(in crate::client) fn ask<'a>(
        &self,
        shared: &ConnectionState,
        method: Cow<'static, str>,
        params: Cow<'a, RawObject>,
        post: CallSender,
    ) -> CallRequest<'a> {
        let (log_level, post) = (self.log_level(shared), self.attach(post));
        CallRequest { method, params, progress: self.progress, log_level, decided_on: None, post }
    }

    pub(in crate::client) fn deadline(&self, started: Instant) -> Instant {
        after(started, self.timeout)
    }

    /// Waits for the outcome, and runs the callbacks of what comes before.
    pub(in crate::client) async fn wait(
        &self,
        mut pending: CallReceiver,
        started: Instant,
    ) -> Result<RequestOutcome, Missing> {
        let shared: Arc<ConnectionState> = pending.shared().clone();
        let mut begun = shared.deadline_pauses.ended();
        let mut deadline = self.deadline(started);
        let mut latest = after(started, self.max_timeout.max(self.timeout));
        loop {
            let update = match self.timeout {
                // A forwarded request waits for another client, and needs no timer.
                Duration::MAX => Ok(pending.next().await),
                _ => timeout_at(deadline, pending.next()).await,
            };
            match update {
                Ok(CallUpdate::Progress(params)) => {
                    let (options, method) = (self.clone(), method::NOTIFICATIONS_PROGRESS);
                    let deliver = move |params| options.show_progress(params);
                    Box::pin(shared.pass_notification(method, params, deliver)).await;
                    if self.extends {
                        deadline = after(Instant::now(), self.timeout).min(latest);
                    }
                }
                Ok(CallUpdate::Log(params)) => {
                    let (options, method) = (self.clone(), method::NOTIFICATIONS_MESSAGE);
                    let deliver = move |params| options.show_log(params);
                    Box::pin(shared.pass_notification(method, params, deliver)).await;
                }
                Ok(CallUpdate::StreamPaused(wait)) => self.show_stream_pause(wait),
                Ok(CallUpdate::End(end, noticed)) => {
                    let dropped = pending.dropped();
                    if dropped > 0 {
                        tracing::debug!(
                            dropped,
                            "notifications of a call came faster than they were handled"
                        );
                    }
                    if !shared.notices.has_reached(noticed) {
                        Box::pin(shared.notices.reached(noticed)).await;
                    }
                    return end.map_err(Missing::Failed);
                }
                // While the server waits for an answer of ours the time is not its own.
                Err(_) if shared.was_held_up(begun) => {
                    begun = shared.deadline_pauses.ended();
                    deadline = after(Instant::now(), self.timeout);
                    latest = latest.max(deadline);
                }
                Err(_) => {
                    pending.because("timed out");
                    return Err(Missing::Timeout(started.elapsed()));
                }
            }
        }
    }
}
