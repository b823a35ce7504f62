use std::time::Duration;

use pintle::{forward::Rounds, server::Outcome, types::RpcError};
use tokio::time::sleep;

use super::polled_task;
use crate::{
    calls::questions::ask_all, own_tasks::RequestedTask, request::RelayedRequest, tasks,
    upstream::failure::Failure,
};

/// A call of a client with a session to a server without sessions: the client is asked what ends a round, and the call is repeated with
/// the answers. If the client requests a task, it gets one at once, whatever the server makes of the call.
pub(super) struct SessionToStateless<'a> {
    pub(super) request: RelayedRequest<'a>,
    pub(super) task: Option<RequestedTask>,
}

impl SessionToStateless<'_> {
    pub(super) async fn forward(self) -> Result<Outcome, Failure> {
        let Self { request, task } = self;
        let RelayedRequest { relay, cx } = request;
        let mut next = request.params();
        let mut declared = request.capabilities();
        if let Some(task) = task {
            next = next.without(&["task"]);
            if relay.detach(cx, task.ttl).await {
                declared = polled_task::declare(&declared.capabilities);
            }
        }
        // Most calls have one round.
        let mut rounds: Option<Rounds> = None;
        loop {
            let result = match request.call_as((cx.method(), &next), &declared).await {
                // A client with a session has no tasks of the extension: the relay waits for this one.
                Err(Failure::Error(error)) if polled_task::is_needed(&error, &declared.capabilities) => {
                    declared = polled_task::declare(&declared.capabilities);
                    Box::pin(request.call_as((cx.method(), &next), &declared)).await?
                }
                result => result?,
            };
            if result.get("resultType") == Some(tasks::RESULT_TYPE) {
                let polled = polled_task::result(request, &declared.capabilities, &result);
                return Ok(request.complete(Box::pin(polled).await?));
            }
            if result.get("resultType") != Some("\"input_required\"") {
                return Ok(request.complete(result));
            }
            let asked = request.read_questions(&result)?;
            let answers = ask_all(cx, &asked).await?;
            let limit = || request.downstream().max_rounds();
            let rounds = rounds.get_or_insert_with(|| Rounds::new(next.clone(), limit()));
            let round =
                rounds.next(&asked, answers).map_err(|error| RpcError::internal(error.to_string()))?;
            sleep(Duration::from_millis(round.wait_ms)).await;
            next = round.params;
        }
    }
}
