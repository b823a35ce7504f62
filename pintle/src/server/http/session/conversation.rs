//! The session era: the handshake, and the messages of a session.

use std::sync::Arc;

use http::{HeaderName, HeaderValue, Response, StatusCode};
use pintle_proto::{
    Peer,
    http::{Accepts, MCP_SESSION_ID, Refusal, session_status},
    server::{Engine, Inbound},
};
use pintle_types::{Frame, Message, Notification, Response as Answer, RpcError};

use tokio::time::timeout;

use super::{
    Session,
    exchange::{Exchange, Inline},
    id::SessionId,
    registry::Refused,
    store::Sessions,
};
use crate::server::{
    call::{batch, context::RequestContext},
    http::{
        Body, Http,
        edge::response::{accepted, json, overloaded, refused, store_failed},
        edge::time::MAX_DURATION,
        origin::AddressKey,
        post::Admitted,
        request_cx::HttpRequestCx,
        rights,
    },
    snapshot::Snapshot,
};

/// Answers `initialize`, with a session if the handshake succeeds and sessions are enabled.
pub(in crate::server::http) async fn open(cx: &HttpRequestCx, frame: Frame) -> Response<Body> {
    let opened = match cx.open(Engine::new_session()) {
        Ok(session) => session,
        Err(refusal) => return refused(&refusal, None),
    };
    let Inbound::Reply(answer) = opened.receive(&cx.snapshot.service, frame) else { return accepted() };
    if opened.peer().is_none() || !cx.endpoint().sessions {
        return reply(answer);
    }
    let session = match cx.keep(opened).await {
        Ok(session) => session,
        Err(refusal) => return refused(&refusal, answer.id.as_ref()),
    };
    session.opened(cx.context.extensions());
    let mut response = reply(answer);
    if let Ok(id) = HeaderValue::try_from(session.id.to_string()) {
        response.headers_mut().insert(HeaderName::clone(&MCP_SESSION_ID), id);
    }
    response
}

impl HttpRequestCx {
    /// Creates a session with a random id. It is not registered.
    pub(in crate::server::http) fn open(&self, engine: Engine) -> Result<Session, Refusal> {
        let id = SessionId::random().map_err(|_| {
            let error = RpcError::internal("no session can be opened: the system has no random numbers");
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error)
        })?;
        let session = Session::new(id, self.principal.clone(), self.server.clone(), engine);
        Ok(session.at(self.address()))
    }

    /// Returns the address of the client, if it is known.
    pub(in crate::server::http) fn address(&self) -> Option<AddressKey> {
        let peer = self.context.address()?.0.ip();
        let head = self.context.head.as_ref()?;
        Some(AddressKey::of(self.http.settings().proxies.client(peer, &head.headers)))
    }

    /// Registers a session, and stores it if there is a store.
    pub(in crate::server::http) async fn keep(&self, session: Session) -> Result<Arc<Session>, Refusal> {
        let shared = &self.http.0;
        let session = Arc::new(session);
        if let Some((store, stored)) = shared.settings().store.as_ref().zip(session.stored()) {
            // The next request extends its lifetime.
            let life = shared.settings().uninitialized_session.min(shared.settings().idle_session);
            let put = store.put(&session.id.to_string(), stored, life).await;
            put.map_err(|error| store_failed(&error))?;
            session.set_written();
        }
        shared.change_hub.add(&session.inbox);
        let refused = match shared.admit(session.clone()).await {
            Ok(session) => return Ok(session),
            Err(refused) => refused,
        };
        if let Some(store) = &shared.settings().store {
            // No client knows its id; if this fails, it expires.
            let _ = store.remove(&session.id.to_string()).await;
        }
        Err(no_room(refused))
    }
}

/// Returns the refusal of a session that exceeds a limit.
pub(in crate::server::http) fn no_room(refused: Refused) -> Refusal {
    let (status, message) = match refused {
        Refused::Full => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the limit of sessions is reached: try again later, or end a session with DELETE",
        ),
        Refused::TooMany => (
            StatusCode::TOO_MANY_REQUESTS,
            "the limit of sessions per client is reached: end a session with DELETE, or try again later",
        ),
    };
    overloaded(status, message)
}

/// Admits the messages of a session.
pub(in crate::server::http) fn admit(
    cx: &HttpRequestCx,
    session: &Arc<Session>,
    frame: Frame,
    accepts: Accepts,
) -> Admitted {
    let snapshot = session.server.snapshot();
    if let Err(response) = session.check_rights(&snapshot, &cx.context, &frame) {
        return Admitted::Answered(*response);
    }
    let inbound = session.receive(&snapshot.service, frame);
    start_exchange(&cx.http, &cx.context, session, &snapshot, inbound, accepts)
}

/// Admits the messages of a session, and stores the changes that they make to the session before anything runs.
pub(in crate::server::http) async fn admit_stored(
    cx: &HttpRequestCx,
    session: &Arc<Session>,
    store: &Arc<dyn Sessions>,
    frame: Frame,
    accepts: Accepts,
) -> Admitted {
    let snapshot = session.server.snapshot();
    if let Err(response) = session.check_rights(&snapshot, &cx.context, &frame) {
        return Admitted::Answered(*response);
    }
    let (inbound, change) = session.receive_recorded(&snapshot.service, frame);
    let Some(change) = change else {
        return start_exchange(&cx.http, &cx.context, session, &snapshot, inbound, accepts);
    };
    let (http, context, store) = (cx.http.clone(), cx.context.clone(), store.clone());
    let mut pending = PendingInbound { session: session.clone(), inbound: Some(inbound) };
    // In a task, so that a client that disconnects leaves neither an unwritten change nor calls that never start.
    let admitted = tokio::spawn(async move {
        let written = pending.session.write(&*store, http.settings().idle_session).await;
        drop(change);
        let refusal = match written {
            Ok(true) => None,
            Ok(false) => Some(Refusal::unknown_session()),
            Err(error) => Some(store_failed(&error)),
        };
        if let Some(refusal) = refusal {
            return Err(Admitted::Answered(refused(&refusal, None)));
        }
        let inbound = pending.inbound.take().unwrap_or(Inbound::Ignore("nothing was admitted"));
        match start_exchange(&http, &context, &pending.session, &snapshot, inbound, accepts) {
            Admitted::InSession(exchange) => Ok(Inline::new(exchange)),
            answered => Err(answered),
        }
    });
    match admitted.await {
        Ok(Ok(inline)) => {
            inline.into_exchange().map_or_else(|| Admitted::Answered(accepted()), Admitted::InSession)
        }
        Ok(Err(answered)) => answered,
        Err(_) => Admitted::Answered(refused(&store_panicked(), None)),
    }
}

impl Session {
    /// Refuses messages that need rights that the caller lacks.
    pub(super) fn check_rights(
        &self,
        snapshot: &Snapshot,
        context: &RequestContext,
        frame: &Frame,
    ) -> Result<(), Box<Response<Body>>> {
        rights::check_frame(snapshot, context, frame, || self.peer(), self.principal.as_deref())
    }
}

/// Messages that the engine has admitted and that have not started. If this is dropped, the ids of the calls are free again.
struct PendingInbound {
    session: Arc<Session>,
    inbound: Option<Inbound>,
}

impl Drop for PendingInbound {
    fn drop(&mut self) {
        self.inbound.take().into_iter().for_each(|inbound| give_up(&self.session, inbound));
    }
}

/// Ends calls that were admitted and not started. Answers and cancellations are passed on, because the engine has consumed them
/// and would not accept them again.
fn give_up(session: &Session, inbound: Inbound) {
    match inbound {
        Inbound::Call(call) => session.forget(&call),
        Inbound::Listen(listen) => session.forget(&listen.call),
        Inbound::Answer(answer) => session.answer(answer),
        Inbound::Cancel(ticket) => session.cancel(ticket),
        Inbound::Many(several) => several.into_iter().for_each(|inbound| give_up(session, inbound)),
        Inbound::Reply(_) | Inbound::BatchReply(_) | Inbound::Notify(..) | Inbound::Ignore(_) => {}
    }
}

fn store_panicked() -> Refusal {
    let error = RpcError::internal("the session could not be stored: see the server's log");
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error)
}

fn start_exchange(
    http: &Http,
    context: &Arc<RequestContext>,
    session: &Arc<Session>,
    snapshot: &Arc<Snapshot>,
    inbound: Inbound,
    accepts: Accepts,
) -> Admitted {
    if let Inbound::Reply(answer) = inbound {
        return Admitted::Answered(reply(answer));
    }
    let streams = accepts.events && !http.settings().json_only;
    let mut exchange = Exchange::new(&http.0, session, snapshot, streams);
    decide(&mut exchange, session, context, inbound);
    Admitted::InSession(exchange)
}

/// Applies admitted messages: calls are added to the exchange, all others take effect at once. It does not wait, because a closed
/// connection would drop the future, and with it calls that it must not cancel.
pub(in crate::server::http) fn decide(
    exchange: &mut Exchange,
    session: &Session,
    context: &Arc<RequestContext>,
    inbound: Inbound,
) {
    let several = match inbound {
        Inbound::Many(several) => several,
        one => return decide_one(exchange, session, context, one),
    };
    for inbound in batch::without_cancelled(several) {
        match inbound {
            Ok(inbound) => decide_one(exchange, session, context, inbound),
            Err(call) => exchange.skip(&call),
        }
    }
}

fn decide_one(exchange: &mut Exchange, session: &Session, context: &Arc<RequestContext>, inbound: Inbound) {
    match inbound {
        Inbound::Call(call) => exchange.add(context, call),
        Inbound::Reply(answer) => exchange.reply(Message::Response(answer).to_vec()),
        Inbound::BatchReply(bytes) => exchange.reply(bytes),
        Inbound::Answer(answer) => session.answer(answer),
        Inbound::Cancel(ticket) => session.cancel(ticket),
        Inbound::Notify(notification, peer) => notify(exchange, session, notification, peer),
        Inbound::Ignore(why) => tracing::debug!(why, "a message was ignored"),
        Inbound::Listen(listen) => {
            let message = "subscriptions are not served in a session: send `subscriptions/listen` as a stateless request";
            let answer = Answer::new(Some(listen.call.id().clone()), Err(RpcError::invalid_request(message)));
            session.forget(&listen.call);
            exchange.reply(Message::Response(answer).to_vec());
        }
        // Batches do not nest.
        Inbound::Many(_) => {}
    }
}

/// Runs the handler of a notification in a task, so that it does not end with the connection. The order of two notifications is
/// preserved if the client waits for the response to the first.
fn notify(exchange: &mut Exchange, session: &Session, notification: Notification, peer: Option<Arc<Peer>>) {
    let Some(handler) = session.server.notification_handler(&notification.method) else { return };
    let Ok(permit) = exchange.shared.notices.clone().try_acquire_owned() else {
        tracing::warn!(
            method = &*notification.method,
            "a notification was dropped: too many are being handled"
        );
        return;
    };
    // The client may have disconnected, so the limit is that of a detached call.
    let limit = exchange.shared.settings().detached_call.min(MAX_DURATION);
    exchange.wait_for(tokio::spawn(async move {
        let _permit = permit;
        if timeout(limit, handler(notification, peer)).await.is_err() {
            tracing::warn!("a notification's handler took longer than {limit:?} and was ended");
        }
    }));
}

fn reply(answer: Answer) -> Response<Body> {
    let status = answer.result.as_ref().err().map_or(StatusCode::OK, |error| session_status(error.code));
    json(status, Message::Response(answer).to_vec())
}
