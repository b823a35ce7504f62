//! What is known of a server's tools, and what is checked before and after a call.

pub(super) mod output;
mod policy;
mod registry;

pub use output::OutputCheck;
pub use policy::{Hints, Policy, Proposal};

pub(super) use policy::{Decided, PolicyHook, decide};
pub(super) use registry::{KnownTool, ToolPage, ToolRegistry, ToolsVersion};
