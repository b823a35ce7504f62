//! The state of one connection of a relay: calls, lists, limits, holders, sharing, log levels, watched resources and tasks.

pub(super) mod calls;
pub(super) mod catalogue;
pub(super) mod holders;
pub(super) mod limits;
pub(super) mod log_levels;
pub(super) mod paged_lists;
pub(super) mod sharing;
pub(super) mod watched;
pub(super) mod watched_tasks;
