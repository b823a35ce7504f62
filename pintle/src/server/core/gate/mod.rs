//! The gate: one decision about every use of every entry, on lists, completions, reads, subscriptions and calls.
//!
//! `admit` decides before a handler runs, `Gates::shows` in lists. Required rights are part of it. No other code decides who may use what,
//! except `http/rights.rs`, which finds out earlier whether the response is a 403. Links of a result to what a provider may have whose lists
//! are stale are judged when it has read them, once and within a time (`unread_lists.rs`); after that by their URIs.

pub(crate) mod admission;
pub(crate) mod confirmation;
pub(crate) mod decision;
pub(crate) mod registry;
pub(crate) mod request;
pub(crate) mod seen_states;
