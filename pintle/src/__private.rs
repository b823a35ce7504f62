//! Items that the expansion of the attributes uses. Not part of the public API: they may change in any version.

pub use schemars;
pub use serde;

use std::future::Future;

use crate::server::{IntoPromptResult, IntoResourceResult, IntoToolResult, TextArgument, ToolArgument};

/// Reports an unsuitable parameter type at that type.
pub fn takes<T: ToolArgument>() {}

/// Reports an unsuitable type of a parameter that is parsed from a string.
pub fn takes_text<T: TextArgument>() {}

/// Reports a future that is not `Send` at its function. The returned type is always `Send`, so no further error follows.
pub fn must_be_send<F>(future: F) -> impl Future<Output = F::Output> + Send
where
    // The compiler shows this line, and with it what to write.
    F: Future + Send, // use `Arc` for `Rc`, a lock for `RefCell`, and drop guards before `.await`
{
    future
}

/// Reports an unsuitable result type of a tool at that type, without further errors.
pub fn gives<R: IntoToolResult>(result: R) -> impl IntoToolResult {
    result
}

/// Reports an unsuitable result type of a prompt at that type, without further errors.
pub fn gives_prompt<R: IntoPromptResult>(result: R) -> impl IntoPromptResult {
    result
}

/// Reports an unsuitable result type of a resource at that type, without further errors.
pub fn gives_resource<R: IntoResourceResult>(result: R) -> impl IntoResourceResult {
    result
}
