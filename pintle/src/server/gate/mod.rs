//! The gate: one decision about every use of every entry, on lists, completions, reads, subscriptions and calls.

pub(crate) mod admission;
pub(crate) mod confirmation;
pub(crate) mod decision;
mod private_result;
pub(crate) mod registry;
pub(crate) mod request;

pub(crate) mod unique_json;
