//! What the attributes print paths to. Not for people: it may change with any version.

pub use schemars;
pub use serde;

use std::future::Future;

use crate::server::{IntoToolResult, ToolArgument};

/// Says at the type of a parameter what is wrong with it.
pub fn takes<T: ToolArgument>() {}

/// Says at a function what is wrong with its future. What comes back is right in any case, so nothing else is said.
pub fn waits<F: Future + Send>(future: F) -> impl Future<Output = F::Output> + Send {
    future
}

/// Says at a function's result type what is wrong with it, and nothing else, as above.
pub fn gives<R: IntoToolResult>(result: R) -> impl IntoToolResult {
    result
}
