//! Tools: how they are listed and called.

mod call;
mod tool;

pub use call::{CallToolParams, CallToolResult};
pub use tool::{ListToolsResult, TaskSupport, Tool, ToolAnnotations, ToolExecution};
