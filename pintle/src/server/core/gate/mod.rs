//! The gate: one decision about every use of every entry, on lists, completions, reads, subscriptions and calls.

pub(crate) mod admission;
mod argument_schema;
pub(crate) mod arguments;
pub(crate) mod confirmation;
pub(crate) mod decision;
pub(crate) mod registry;
pub(crate) mod request;
pub(crate) mod seen_states;
pub(crate) mod unique_json;
