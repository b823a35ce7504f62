//! Words that a shell completes. Nothing is started and nobody is connected to: tools come from a cache that `ls` and `call` fill.

mod candidates;
mod catalogue;

pub(crate) use candidates::candidates;
pub(crate) use catalogue::{cache_names, cache_tool, cache_tools};
