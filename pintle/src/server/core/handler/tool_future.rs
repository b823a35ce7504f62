use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;
use pintle_proto::server::{Body, Outcome};
use pintle_types::{
    RawObject, RpcError,
    schema::{CallToolResult, ContentBlock, TextContent},
};

use super::result_size::{self, PrintError};
use crate::server::{Cx, IntoToolResult, ToolError};

pin_project! {
    /// The future of a tool's handler that validates and prints the result.
    pub(crate) struct ToolFuture<F> {
        #[pin]
        running: F,
        cx: Cx,
    }
}

impl<F> ToolFuture<F> {
    pub(crate) fn new(running: F, cx: Cx) -> Self {
        Self { running, cx }
    }
}

impl<F, R> Future for ToolFuture<F>
where
    F: Future<Output = Result<R, Outcome>>,
    R: IntoToolResult,
{
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Outcome> {
        let this = self.project();
        this.running.poll(task).map(|result| match result {
            Ok(result) => match result.into_text() {
                Ok(text) => complete_text(this.cx, text),
                Err(result) => {
                    let name = this.cx.tool().map_or("", |called| called.tool.name());
                    complete(this.cx, result.into_result_of(name))
                }
            },
            Err(outcome) => outcome,
        })
    }
}

/// Completes a call with a text. A result is created only if it has to be validated (see `bench/LEDGER.md`).
fn complete_text(cx: &Cx, text: String) -> Outcome {
    if cx.tool().is_some_and(|called| called.tool.has_output_schema()) {
        return complete(cx, text.into_tool_result());
    }
    match result_size::check(cx, Ok(CallToolResult::raw_text(&text))) {
        Ok(text) => Outcome::Complete(Body::Text(text)),
        Err(error) => refuse(error),
    }
}

fn complete(cx: &Cx, result: Result<CallToolResult, Outcome>) -> Outcome {
    let result = match result {
        Ok(result) => result,
        Err(outcome) => return outcome,
    };
    if let Some(called) = cx.tool()
        && let Err(fault) = called.tool.check_result(&result)
    {
        let message = format!("the tool's result does not fit its output schema: {fault}");
        tracing::error!(tool = called.tool.name(), "{message}");
        return ToolError::new(message)
            .outcome(None)
            .map_or_else(|outcome| outcome, |result| print(cx, result.to_raw()));
    }
    print(cx, result.to_raw())
}

fn print(cx: &Cx, result: serde_json::Result<RawObject>) -> Outcome {
    match result_size::check(cx, result) {
        Ok(result) => Outcome::Complete(result.into()),
        Err(error) => refuse(error),
    }
}

/// Ends a call whose result cannot be sent.
fn refuse(error: PrintError) -> Outcome {
    let printed = match error {
        PrintError::Failed(reason) => Err(reason),
        too_large @ PrintError::TooLarge { .. } => {
            let text = ContentBlock::Text(TextContent::new(too_large.to_string()));
            let mut error = CallToolResult::new(vec![text]);
            error.is_error = Some(true);
            error.to_raw().map_err(|error| error.to_string())
        }
    };
    match printed {
        Ok(result) => Outcome::Complete(result.into()),
        Err(reason) => Outcome::Failed(RpcError::internal(format!("the result cannot be printed: {reason}"))),
    }
}
