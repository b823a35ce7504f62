//! What the attributes print paths to. Not for people: it may change with any version.

pub use schemars;
pub use serde;

use crate::server::{IntoToolResult, ToolArgument};

/// Says at the type of a parameter what is wrong with it.
pub fn takes<T: ToolArgument>() {}

/// Says at the result type of a function what is wrong with it.
pub fn gives<R: IntoToolResult>() {}
