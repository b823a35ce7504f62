//! The logs of a gateway: of decisions, and of requests.

mod access_log;
mod json_log;

pub(super) use access_log::AccessLog;
pub(super) use json_log::{JsonLog, cut, logged};
