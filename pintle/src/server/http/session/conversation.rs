//! The session era: the handshake, and the messages of a session.

use std::{future::Future, io, sync::Arc};

use http::{HeaderName, HeaderValue, Response, StatusCode};
use pintle_proto::{
    Peer,
    http::{Accepts, MCP_SESSION_ID, Refusal, session_status},
    ledger::{FREE, Held},
    server::{Call, Engine, Inbound, Outcome, Performed, Service},
};
use pintle_types::{Frame, Message, Notification, RawObject, RequestId, Response as Answer, RpcError};

use tokio::time::timeout;

use super::{
    Session,
    exchange::{Exchange, Inline},
    id::SessionId,
    nodes::message::MessageBody,
    question_ids::QuestionIds,
    record::NO_SUBSCRIPTIONS,
    registry::Refused,
    store::Sessions,
};
use crate::{
    Ended,
    server::{
        access::peer_address::AddressKey,
        call::{batch, context::RequestContext},
        dispatch,
        http::{
            Body, Http, deferred,
            edge::response::{accepted, json, overloaded, refused, store_failed},
            edge::time::MAX_DURATION,
            post::Admitted,
            request_cx::HttpRequestCx,
            rights,
        },
        sessions::handle::SessionHandle,
        snapshot::Snapshot,
    },
};

/// Answers `initialize`, with a session if the handshake succeeds and sessions are enabled.
pub(in crate::server::http) async fn open(cx: &HttpRequestCx, frame: Frame) -> Admitted {
    let opened = match cx.open(Engine::new_session()) {
        Ok(session) => session,
        Err(refusal) => return Admitted::Answered(refused(&refusal, None)),
    };
    match opened.receive(&cx.snapshot.service, frame) {
        Inbound::Reply(answer) => {
            let id = answer.id.clone();
            Admitted::Answered(keep_opened(cx, opened, id, reply(answer)).await)
        }
        Inbound::Call(call) => {
            let id = Some(call.id().clone());
            let response = initialize(cx, &opened, call).await;
            Admitted::Called(Box::new(keep_opened(cx, opened, id, response).await))
        }
        _ => Admitted::Answered(accepted()),
    }
}

/// Registers a session whose handshake succeeded, and adds its id to the response.
async fn keep_opened(
    cx: &HttpRequestCx,
    opened: Session,
    id: Option<RequestId>,
    mut response: Response<Body>,
) -> Response<Body> {
    if opened.peer().is_none() || !cx.endpoint().sessions {
        return response;
    }
    let session = match cx.keep(opened).await {
        Ok(session) => session,
        Err(refusal) => return refused(&refusal, id.as_ref()),
    };
    if let Err(error) = session.opened(cx.context.extensions()) {
        // No client knows its id; if this fails, it expires.
        let _ = cx.http.0.end(&session, Ended::Stopped).await;
        return reply(Answer::new(id, Err(error)));
    }
    if let Ok(id) = HeaderValue::try_from(session.id.to_string()) {
        response.headers_mut().insert(HeaderName::clone(&MCP_SESSION_ID), id);
    }
    response
}

/// Passes `initialize` through the layers. If they fail it, the session is not open.
async fn initialize(cx: &HttpRequestCx, opened: &Session, call: Call) -> Response<Body> {
    let service = &cx.snapshot.service;
    let (call, outcome) =
        deferred::run(cx, call, |call, params| opened.carry_out(service, call, params)).await;
    let Some(outcome) = outcome else { return accepted() };
    let error = match &outcome {
        Outcome::Failed(error) => Some(error.code),
        _ => None,
    };
    if error.is_some() {
        opened.refuse();
    }
    let (_, answer) = opened.finish(service, &call, outcome);
    answer.map_or_else(accepted, |answer| json(error.map_or(StatusCode::OK, session_status), answer))
}

impl HttpRequestCx {
    /// Creates a session with a new id. It is not registered.
    pub(in crate::server::http) fn open(&self, engine: Engine) -> Result<Session, Refusal> {
        let id = SessionId::random(self.settings.session_prefix).map_err(|_| {
            let error = RpcError::internal("no session can be opened: the system has no random numbers");
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error)
        })?;
        let engine = engine.charged_to(self.account());
        let session = Session::new(id, self.principal.clone(), self.server.clone(), engine);
        let question_ids = if self.settings.nodes.is_some() { QuestionIds::random() } else { None };
        Ok(session.of(&self.http.0, question_ids).at(self.address()))
    }

    /// Returns the address of the client, if it is known.
    pub(in crate::server::http) fn address(&self) -> Option<AddressKey> {
        let peer = self.context.address()?.0.ip();
        let head = self.context.head.as_ref()?;
        Some(AddressKey::of(self.settings.proxies.client(peer, &head.headers)))
    }

    /// Registers a session, and stores it if there is a store.
    pub(in crate::server::http) async fn keep(&self, session: Session) -> Result<Arc<Session>, Refusal> {
        let shared = &self.http.0;
        let session = Arc::new(session);
        if let Some((store, stored)) = shared.settings().store.as_ref().zip(session.stored()) {
            // The next request extends its lifetime.
            let life = shared.settings().uninitialized_session.min(shared.settings().idle_session);
            match store.create(&session.id.to_string(), stored, life).await {
                Ok(true) => session.set_version(1),
                Ok(false) => {
                    return Err(store_failed(&io::Error::other("the id of a new session is in use")));
                }
                Err(error) => return Err(store_failed(&error)),
            }
        }
        shared.join_others(&session).await.map_err(|error| store_failed(&error))?;
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
    let cancelled = cancellations(&snapshot, &frame);
    let inbound = with_cancellations(session, session.receive(&snapshot.service, frame), cancelled);
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
    let cancelled = cancellations(&snapshot, &frame);
    let forwarded = cx.http.0.forwardable(session, &frame);
    let (inbound, change) = session.receive_recorded(&snapshot.service, frame);
    if !forwarded.is_empty()
        && is_for_others(&inbound)
        && let Err(error) = cx.http.0.forward(session, forwarded).await
    {
        return Admitted::Answered(refused(&store_failed(&error), None));
    }
    let inbound = with_cancellations(session, inbound, cancelled);
    let Some(change) = change else {
        return start_exchange(&cx.http, &cx.context, session, &snapshot, inbound, accepts);
    };
    let (http, context, store) = (cx.http.clone(), cx.context.clone(), store.clone());
    let mut pending = PendingInbound { session: session.clone(), inbound: Some(inbound) };
    // In a task, so that a client that disconnects leaves neither an unwritten change nor calls that never start.
    let admitted = tokio::spawn(async move {
        let written = pending.session.write(&*store, http.settings().idle_session).await;
        drop(change);
        http.0.notify_others(pending.session.id, MessageBody::Record);
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

/// Returns whether messages may be for calls of another process.
fn is_for_others(inbound: &Inbound) -> bool {
    match inbound {
        Inbound::Ignore(_) => true,
        Inbound::Many(several) => several.iter().any(is_for_others),
        _ => false,
    }
}

/// Returns the cancellations among messages, if layers want to see them.
pub(super) fn cancellations(snapshot: &Snapshot, frame: &Frame) -> Vec<Notification> {
    if snapshot.layered.is_some() { dispatch::cancellations(frame) } else { Vec::new() }
}

/// Adds cancellations to admitted messages, for the layers to see.
pub(super) fn with_cancellations(
    session: &Session,
    inbound: Inbound,
    cancellations: Vec<Notification>,
) -> Inbound {
    if cancellations.is_empty() {
        return inbound;
    }
    let mut all = match inbound {
        Inbound::Many(several) => several,
        one => vec![one],
    };
    let peer = session.peer();
    all.extend(cancellations.into_iter().map(|notification| Inbound::Notify(notification, peer.clone())));
    Inbound::Many(all)
}

impl Session {
    /// Carries out a request that the layers have passed on, in a session that is not registered yet.
    fn carry_out(&self, service: &Service, call: &Call, params: &RawObject) -> Outcome {
        match self.lock().engine.perform(service, call, params) {
            Ok(Performed::Outcome(outcome)) => outcome,
            Ok(Performed::Listen(_)) => Outcome::Failed(RpcError::invalid_request(NO_SUBSCRIPTIONS)),
            Err(error) => Outcome::Failed(error),
        }
    }

    /// Undoes the handshake.
    fn refuse(&self) {
        self.lock().engine.close_session();
    }

    /// Refuses messages that need rights that the caller lacks.
    pub(in crate::server::http) fn check_rights(
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
        Inbound::Notify(notification, peer) => notify(exchange, session, context, notification, peer),
        Inbound::Ignore(why) => tracing::debug!(why, "a message was ignored"),
        Inbound::Listen(listen) => {
            let error = RpcError::invalid_request(NO_SUBSCRIPTIONS);
            let answer = Answer::new(Some(listen.call.id().clone()), Err(error));
            session.forget(&listen.call);
            exchange.reply(Message::Response(answer).to_vec());
        }
        // Batches do not nest.
        Inbound::Many(_) => {}
    }
}

/// Runs the handler of a notification in a task, so that it does not end with the connection. The order of two notifications is
/// preserved if the client waits for the response to the first.
fn notify(
    exchange: &mut Exchange,
    session: &Session,
    context: &Arc<RequestContext>,
    notification: Notification,
    peer: Option<Arc<Peer>>,
) {
    let snapshot = exchange.snapshot.clone();
    if snapshot.layered.is_some() {
        let principal = session.principal.as_deref();
        let call = Call::of_notification(&snapshot.service, notification, peer, principal);
        let (method, bytes) = (call.method().to_owned(), call.params().as_str().len());
        let cx =
            deferred::notification_cx(&session.server, &snapshot, context, call, exchange.session().sink());
        return spawn_notification(exchange, &method, bytes, dispatch::notify(cx));
    }
    let Some(handler) = session.server.notification_handler(&notification.method) else { return };
    let method = notification.method.clone();
    let bytes = notification.params.as_ref().map_or(0, |params| params.as_str().len());
    let live = exchange.session().sink().session().cloned().map(SessionHandle::new);
    spawn_notification(exchange, &method, bytes, async move { handler(notification, peer, live).await });
}

/// The bytes that a notification is charged for besides its params, so that their number is bounded too.
const HANDLER: usize = FREE + (16 << 10);

/// Runs the handler of a notification, or its layers.
fn spawn_notification(
    exchange: &mut Exchange,
    method: &str,
    bytes: usize,
    handling: impl Future<Output = ()> + Send + 'static,
) {
    let ceiling = exchange.snapshot.service.bounds().ceiling(Held::Notification);
    let charge = match exchange.session().account().charge(Held::Notification, HANDLER + bytes, ceiling) {
        Ok(charge) => charge,
        Err(full) => return tracing::warn!(method, reason = %full, "a notification was dropped"),
    };
    // The client may have disconnected, so the limit is that of a detached call.
    let limit = exchange.shared.settings().detached_call.min(MAX_DURATION);
    exchange.wait_for(crate::runtime::spawn(async move {
        let _charge = charge;
        if timeout(limit, handling).await.is_err() {
            tracing::warn!("a notification's handler took longer than {limit:?} and was ended");
        }
    }));
}

fn reply(answer: Answer) -> Response<Body> {
    let status = answer.result.as_ref().err().map_or(StatusCode::OK, |error| session_status(error.code));
    json(status, Message::Response(answer).to_vec())
}
