//! Options that verbs share, and errors of the command line.

mod connect;
mod flags;
mod global;
mod help;
mod log;
mod near;
mod questions;
mod target;
mod usage;

pub(crate) use connect::{ConnectArgs, EraArg, message_limits, message_size};
pub(crate) use flags::{flag_of, mark_flags};
pub(crate) use global::{GlobalArgs, with_more_time};
pub(crate) use help::{HELP, examples, help_of};
pub(crate) use log::LogArgs;
pub(crate) use near::near;
pub(crate) use pintle_serve::duration;
pub(crate) use pintle_serve::quoted;
pub(crate) use questions::QuestionArgs;
pub(crate) use target::TargetArgs;
pub(crate) use usage::usage_failure;
