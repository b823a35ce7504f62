//! The session era: the handshake, and what comes in a session.

use std::{collections::HashSet, sync::Arc};

use http::{HeaderName, HeaderValue, Response, StatusCode};
use pintle_proto::{
    Peer,
    http::{Accepts, MCP_SESSION_ID, Refusal, session_status},
    server::{Engine, Inbound, Ticket},
};
use pintle_types::{Frame, Message, Notification, Response as Answer, RpcError};

use super::{
    Body,
    exchange::Exchange,
    response::{accepted, json, refused},
    service::Asked,
    session::{Session, SessionId},
};
use crate::server::around::Around;

/// Answers `initialize`, with a session if it was welcome.
pub(super) fn open(asked: &Asked, around: &Around, frame: Frame) -> Response<Body> {
    let shared = &asked.http.0;
    let Ok(id) = SessionId::random() else {
        let error = RpcError::internal("no session can be opened: the system has no random numbers");
        return refused(&Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error), None);
    };
    let session = Session::new(id, asked.principal.clone(), asked.server.clone(), Engine::new());
    let Inbound::Reply(answer) = session.receive(&asked.state.service, frame) else { return accepted() };
    if session.peer().is_none() {
        return reply(answer);
    }
    let session = Arc::new(session);
    shared.listening.add(&session.ear);
    if !shared.sessions.add(session.clone(), shared.settings.most_sessions) {
        let said = "there are as many sessions as there may be: try again later, or end one with DELETE";
        let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, RpcError::internal(said));
        return refused(&refusal, answer.id.as_ref());
    }
    shared.keep_tidy();
    session.opened(&around.extensions);
    let mut response = reply(answer);
    if let Ok(id) = HeaderValue::try_from(id.to_string()) {
        response.headers_mut().insert(HeaderName::clone(&MCP_SESSION_ID), id);
    }
    response
}

/// Answers what came in a session.
pub(super) async fn answer(
    asked: &Asked,
    session: &Arc<Session>,
    around: &Arc<Around>,
    frame: Frame,
    accepts: Accepts,
) -> Response<Body> {
    let shared = &asked.http.0;
    let state = session.server.state();
    let inbound = match session.receive(&state.service, frame) {
        // Most often.
        Inbound::Reply(answer) => return reply(answer),
        Inbound::Many(several) => several,
        one => vec![one],
    };
    let cancelled = |inbound: &Inbound| match inbound {
        Inbound::Cancel(ticket) => Some(*ticket),
        _ => None,
    };
    let cancelled: HashSet<Ticket> = inbound.iter().filter_map(cancelled).collect();
    let mut exchange = Exchange::new(session, &state, accepts.events && !shared.settings.json_only);
    for inbound in inbound {
        match inbound {
            // A batch may cancel what it begins: that is not begun at all, or the batch would wait for it.
            Inbound::Call(call) if call.ticket().is_some_and(|ticket| cancelled.contains(&ticket)) => {
                exchange.skip(&call);
            }
            Inbound::Call(call) => exchange.add(around, call),
            Inbound::Reply(answer) => exchange.reply(Message::Response(answer).to_vec()),
            Inbound::BatchReply(bytes) => exchange.reply(bytes),
            Inbound::Answer(answer) => session.answer(answer),
            Inbound::Cancel(ticket) => session.cancel(ticket),
            Inbound::Notify(notification, peer) => notify(session, notification, peer).await,
            Inbound::Ignore(why) => tracing::debug!(why, "a message was ignored"),
            // Requests that stand alone go another way, and batches do not nest.
            Inbound::Listen(_) | Inbound::Many(_) => {}
        }
    }
    exchange.run(shared, accepts).await
}

/// Has a notification handled, in a task: it must not end with the connection. The client may count on the order of
/// two if it waits for the answer to the first.
async fn notify(session: &Session, notification: Notification, peer: Option<Arc<Peer>>) {
    if let Some(handler) = session.server.hears(&notification.method) {
        // One that panics is told of by the runtime.
        let _ = tokio::spawn(async move { handler(notification, peer).await }).await;
    }
}

fn reply(answer: Answer) -> Response<Body> {
    let status = answer.result.as_ref().err().map_or(StatusCode::OK, |error| session_status(error.code));
    json(status, Message::Response(answer).to_vec())
}
