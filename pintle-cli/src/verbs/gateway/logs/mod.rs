//! The logs of a gateway: of decisions, and of requests.

mod access_log;
mod answered_by;
mod json_log;
mod open_logs;

pub(super) use access_log::AccessLog;
pub(super) use answered_by::AnsweredBy;
pub(super) use json_log::{JsonLog, cut, logged};
pub(super) use open_logs::{CurrentLogs, LogPaths, OpenLogs};
