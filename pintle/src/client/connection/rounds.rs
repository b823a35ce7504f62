//! Answers to the input requests of a call.

use std::{sync::Arc, time::Duration};

use http::Extensions;
use pintle_proto::client::InputRequired;
use pintle_types::{
    RawObject, RpcError, method,
    schema::{ElicitAction, ElicitResult},
};
use tokio::{task::JoinSet, time::timeout};

use crate::{
    Error, Result,
    client::{
        asking::{Asker, Handlers},
        state::{ConnectionState, Event},
    },
};

/// Answers all input requests of one round, concurrently. Dropping the future aborts the handlers.
///
/// The inner error is the reason for which one has no answer.
pub(in crate::client) async fn answer(
    shared: &Arc<ConnectionState>,
    handlers: Handlers,
    asked: &InputRequired,
    extensions: &Extensions,
) -> Result<Result<Vec<(Box<str>, RawObject)>, String>> {
    let mut thinking = JoinSet::new();
    let asker = Asker { extensions: extensions.clone(), ..shared.asker() };
    for question in asked.requests.iter().cloned() {
        let asker = Asker { key: Some(question.key.as_ref().into()), ..asker.clone() };
        let (handlers, shared) = (handlers.clone(), shared.clone());
        thinking.spawn(async move {
            let answer = shared.answer(handlers, asker, &question.method, question.params).await;
            (question.key, answer)
        });
    }
    let mut answers = Vec::with_capacity(asked.requests.len());
    while let Some(thought) = thinking.join_next().await {
        // Panics are caught inside; what is left is a runtime that is going down.
        let Ok((key, answer)) = thought else { return Err(Error::Closed(shared.how_ended())) };
        match answer {
            Ok(answer) => answers.push((key, answer)),
            Err(error) => return Ok(Err(unanswered(&key, &error))),
        }
    }
    Ok(Ok(answers))
}

/// Asks the user to open URLs first. Returns whether the request may be sent again.
pub(in crate::client) async fn show_pages(
    shared: &Arc<ConnectionState>,
    handlers: Handlers,
    urls: &[RawObject],
    wait: Duration,
) -> Result<bool> {
    let events = shared.hub.listen();
    let mut left: Vec<String> = Vec::new();
    for params in urls {
        let answer =
            shared.answer(handlers.clone(), shared.asker(), method::ELICITATION_CREATE, params.clone()).await;
        let answer = answer.map_err(|error| Error::Refused(unanswered("url", &error)))?;
        match answer.decode::<ElicitResult>() {
            Ok(result) if result.action == ElicitAction::Accept => {}
            _ => return Ok(false),
        }
        left.extend(params.decode_member::<String>("elicitationId").ok().flatten());
    }
    // That the user agreed does not mean that it is done; the server may say when it is, or not.
    let done = async {
        while !left.is_empty() {
            let Some(event) = events.next().await else { return };
            let Event::Notification(notification) = event else { continue };
            if notification.method == method::NOTIFICATIONS_ELICITATION_COMPLETE {
                let params = notification.params.unwrap_or_default();
                let id: Option<String> = params.decode_member("elicitationId").ok().flatten();
                left.retain(|waited| Some(waited) != id.as_ref());
            }
        }
    };
    // If it did not say so in time, trying shows.
    let _ = timeout(wait, done).await;
    Ok(true)
}

fn unanswered(key: &str, error: &RpcError) -> String {
    format!("the server's question `{key}` was not answered: {error}")
}
