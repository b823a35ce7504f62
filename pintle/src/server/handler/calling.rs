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

use super::size::{self, Unprinted};
use crate::server::{Cx, IntoToolResult, ToolError};

pin_project! {
    /// A tool's handler on its way to a result, which is printed when it is there.
    pub(crate) struct Calling<F> {
        #[pin]
        running: F,
        cx: Cx,
    }
}

impl<F> Calling<F> {
    pub(crate) fn new(running: F, cx: Cx) -> Self {
        Self { running, cx }
    }
}

impl<F, R> Future for Calling<F>
where
    F: Future<Output = Result<R, Outcome>>,
    R: IntoToolResult,
{
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Outcome> {
        let calling = self.project();
        calling.running.poll(task).map(|result| match result {
            Ok(result) => match result.into_text() {
                Ok(text) => say(calling.cx, text),
                Err(result) => complete(calling.cx, result.into_tool_result()),
            },
            Err(outcome) => outcome,
        })
    }
}

/// Ends a call with a text. A typed result is made only for a check against an output schema.
fn say(cx: &Cx, text: String) -> Outcome {
    if cx.tool().is_some_and(|called| called.route.tool.output_schema.is_some()) {
        return complete(cx, text.into_tool_result());
    }
    match size::checked(cx, Ok(CallToolResult::raw_text(&text))) {
        Ok(text) => Outcome::Complete(Body::Text(text)),
        Err(unprinted) => refuse(unprinted),
    }
}

fn complete(cx: &Cx, result: Result<CallToolResult, Outcome>) -> Outcome {
    let result = match result {
        Ok(result) => result,
        Err(outcome) => return outcome,
    };
    if let Some(called) = cx.tool()
        && let Err(fault) = called.route.ready.check.after(&result)
    {
        let said = format!("the tool's result does not fit its output schema: {fault}");
        tracing::error!(tool = called.route.tool.name, "{said}");
        return ToolError::new(said)
            .outcome()
            .map_or_else(|outcome| outcome, |told| print(cx, told.to_raw()));
    }
    print(cx, result.to_raw())
}

fn print(cx: &Cx, result: serde_json::Result<RawObject>) -> Outcome {
    match size::checked(cx, result) {
        Ok(result) => Outcome::Complete(result.into()),
        Err(unprinted) => refuse(unprinted),
    }
}

/// Ends a call whose result cannot be sent.
fn refuse(unprinted: Unprinted) -> Outcome {
    let printed = match unprinted {
        Unprinted::Failed(reason) => Err(reason),
        too_large @ Unprinted::TooLarge { .. } => {
            let text = ContentBlock::Text(TextContent::new(too_large.to_string()));
            let mut told = CallToolResult::new(vec![text]);
            told.is_error = Some(true);
            told.to_raw().map_err(|error| error.to_string())
        }
    };
    match printed {
        Ok(result) => Outcome::Complete(result.into()),
        Err(reason) => Outcome::Failed(RpcError::internal(format!("the result cannot be printed: {reason}"))),
    }
}
