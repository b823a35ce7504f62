//! The known tools of a server, the policy before a call, and the output check after it.

pub(super) mod output;
mod policy;
mod registry;

pub use output::OutputCheck;
pub use policy::{Hints, Policy, Proposal};

pub(super) use policy::{Decided, PolicyHook, decide};
pub(super) use registry::{KnownTool, ToolPage, ToolRegistry, ToolsVersion};
