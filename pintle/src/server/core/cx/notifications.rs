//! Progress reports and log messages of a running call.

use std::sync::{MutexGuard, PoisonError};

use bytes::Bytes;
use pintle_types::schema::LoggingLevel;
use serde::Serialize;

use super::Cx;
use crate::server::core::driver::{
    rate::Rate,
    sink::{CallEvent, CallSink},
};

/// The progress report that was held back, the number of lost log messages, and the rate limits of both.
#[derive(Default)]
pub(super) struct HeldNotifications {
    progress: Rate,
    /// The newest report that was held back.
    held: Option<HeldProgress>,
    #[cfg(feature = "logging")]
    log: Rate,
    /// The number of log messages that were dropped.
    lost: u64,
}

struct HeldProgress {
    done: f64,
    total: Option<f64>,
    message: Option<String>,
}

impl Cx {
    /// Reports progress to the client: `done` of `total`. It is sent only if the client requested progress, and only if `done`
    /// increases.
    ///
    /// Report as often as you like: reports are skipped if the client does not read them fast enough, except for the last.
    pub async fn progress(&self, done: f64, total: impl Into<Option<f64>>) {
        self.report(done, total.into(), None).await;
    }

    /// Reports progress with a message: see [`progress`](Self::progress).
    pub async fn progress_with(&self, done: f64, total: impl Into<Option<f64>>, message: &str) {
        self.report(done, total.into(), Some(message)).await;
    }

    async fn report(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        if let CallSink::Detached(events) = self.sink() {
            events.report(done, total, message);
            return tokio::task::coop::consume_budget().await;
        }
        if !self.wants_progress() {
            return;
        }
        {
            // Serialized and sent under the lock, so that concurrent reports arrive in order.
            let mut notifications = self.held_notifications();
            let notifications = notifications.get_or_insert_default();
            let sent = notifications.progress.take()
                && self.sink().try_notify(|| self.0.call.progress(done, total, message));
            if sent {
                notifications.held.take_if(|held| held.done <= done);
            } else if notifications.held.as_ref().is_none_or(|held| done > held.done) {
                notifications.held = Some(HeldProgress { done, total, message: message.map(str::to_owned) });
            }
        }
        // A handler that only reports yields to other tasks.
        tokio::task::coop::consume_budget().await;
    }

    /// Returns the notifications that were held back and have to be sent before the response.
    pub(crate) fn last_notifications(&self) -> Vec<Bytes> {
        let Some(notifications) = self.held_notifications().take() else { return Vec::new() };
        let HeldNotifications { held, lost, .. } = *notifications;
        let progress =
            held.and_then(|held| self.0.call.progress(held.done, held.total, held.message.as_deref()));
        progress.into_iter().chain(self.lost_line(lost)).map(Bytes::from).collect()
    }

    fn held_notifications(&self) -> MutexGuard<'_, Option<Box<HeldNotifications>>> {
        self.0.notifications.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a log message with the number of lost log messages, if there are any.
    fn lost_line(&self, lost: u64) -> Option<Vec<u8>> {
        if lost == 0 {
            return None;
        }
        let data = serde_json::json!({ "msg": format!("{lost} messages were lost"), "lost": lost });
        self.log_line(LoggingLevel::Warning, Some("pintle"), &data)
    }

    /// Returns whether the client requested progress reports.
    pub fn wants_progress(&self) -> bool {
        self.0.call.wants_progress()
    }

    /// Sends a log message, if the client requested messages of this level and the server declares
    /// [`logging`](crate::Server::logging).
    ///
    /// ```
    /// use pintle::{server::Cx, types::schema::LoggingLevel};
    ///
    /// async fn backup(cx: Cx) -> &'static str {
    ///     cx.log(LoggingLevel::Info, Some("backup"), &serde_json::json!({"files": 3})).await;
    ///     "done"
    /// }
    /// # let _ = pintle::server::tool("backup", backup);
    /// ```
    pub async fn log(&self, level: LoggingLevel, logger: Option<&str>, data: &impl Serialize) {
        self.send_notification(self.log_line(level, logger, data)).await;
    }

    /// Returns whether log messages of this level are sent to the client.
    pub fn wants_log(&self, level: LoggingLevel) -> bool {
        self.0.call.peer().log_level.is_some_and(|wanted| level >= wanted) && self.logs()
    }

    pub(crate) fn logs(&self) -> bool {
        self.0.snapshot.service.capabilities().logging.is_some()
    }

    fn log_line(&self, level: LoggingLevel, logger: Option<&str>, data: &impl Serialize) -> Option<Vec<u8>> {
        self.detaching();
        self.logs().then(|| self.0.call.log(level, logger, data)).flatten()
    }

    pub(crate) async fn send_notification(&self, line: Option<Vec<u8>>) {
        if let Some(line) = line {
            self.sink().send(CallEvent::Notification(line.into())).await;
        }
    }
}

/// For the layer that forwards `tracing` events.
#[cfg(feature = "logging")]
impl Cx {
    /// Returns whether log messages of any level are sent to the client.
    pub(crate) fn wants_any_log(&self) -> bool {
        self.0.call.peer().log_level.is_some() && self.logs()
    }

    /// Sends a log message without waiting. It is dropped if the sink is full or the rate limit is exceeded; the next message
    /// is preceded by the number of dropped ones.
    pub(crate) fn log_if_room(&self, level: LoggingLevel, logger: &str, data: &impl Serialize) {
        let mut notifications = self.held_notifications();
        let notifications = notifications.get_or_insert_default();
        if !self.sink().has_capacity() || !notifications.log.take() {
            notifications.lost += 1;
            return;
        }
        let lost = std::mem::take(&mut notifications.lost);
        if let Some(line) = self.lost_line(lost)
            && !self.sink().try_send(CallEvent::Notification(line.into()))
        {
            notifications.lost = lost + 1;
            return;
        }
        if let Some(line) = self.log_line(level, Some(logger), data)
            && !self.sink().try_send(CallEvent::Notification(line.into()))
        {
            notifications.lost += 1;
        }
    }
}
