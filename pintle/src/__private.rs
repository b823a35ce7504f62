//! What the attributes print paths to. Not for people: it may change with any version.

pub use schemars;
pub use serde;

use std::future::Future;

use crate::server::{IntoPromptResult, IntoResourceResult, IntoToolResult, TextArgument, ToolArgument};

/// Says at the type of a parameter what is wrong with it.
pub fn takes<T: ToolArgument>() {}

/// The same, of a parameter that is read from a text.
pub fn takes_text<T: TextArgument>() {}

/// Says at a function what is wrong with its future. What comes back is right in any case, so nothing else is said.
pub fn must_be_send<F>(future: F) -> impl Future<Output = F::Output> + Send
where
    // The compiler shows this line, and with it what to write.
    F: Future + Send, // use `Arc` for `Rc`, a lock for `RefCell`, and drop guards before `.await`
{
    future
}

/// Says at a function's result type what is wrong with it, and nothing else, as above.
pub fn gives<R: IntoToolResult>(result: R) -> impl IntoToolResult {
    result
}

/// The same, of a prompt.
pub fn gives_prompt<R: IntoPromptResult>(result: R) -> impl IntoPromptResult {
    result
}

/// The same, of a resource.
pub fn gives_resource<R: IntoResourceResult>(result: R) -> impl IntoResourceResult {
    result
}
