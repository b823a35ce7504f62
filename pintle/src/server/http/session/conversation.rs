//! The session era: the handshake, and the messages of a session.

use std::{
    future::{Future, poll_fn},
    io,
    sync::Arc,
};

use http::{HeaderName, HeaderValue, Response, StatusCode};
use pintle_proto::{
    Peer,
    http::{Accepts, MCP_SESSION_ID, Refusal, session_status},
    ledger::{FREE, Held},
    server::{Call, Engine, Inbound, Outcome},
};
use pintle_types::{Frame, Message, Notification, RequestId, Response as Answer, RpcError};

use tokio::{task::JoinHandle, time::timeout};

use super::{Session, exchange::Exchange, id::SessionId, question_ids::QuestionIds, registry::Refused};
use crate::{
    Ended,
    server::{
        Cx,
        access::peer_address::AddressKey,
        core::{
            dispatch,
            driver::{
                batch,
                call_driver::{CallDriver, CallStep},
                context::RequestContext,
                own_sink::OwnSink,
                sink::CallSink,
            },
            refused::record,
            snapshot::Snapshot,
        },
        http::{
            Body,
            edge::{
                response::{accepted, json, overloaded, refused, store_failed},
                time::MAX_DURATION,
            },
            node_events::ForwardedMessage,
            post::Admitted,
            request_cx::HttpRequestCx,
            rights,
        },
    },
};

/// Answers `initialize`, with a session if the handshake succeeds and sessions are enabled.
pub(in crate::server::http) async fn open(cx: &HttpRequestCx, frame: Frame) -> Response<Body> {
    let opened = match cx.open(Engine::new_session()) {
        Ok(session) => session,
        Err(refusal) => return refused(&refusal, None),
    };
    match opened.receive(&cx.snapshot.service, frame) {
        Inbound::Call(call) => {
            // It has a span of its own.
            drop(cx.context.take_received());
            let id = Some(call.id().clone());
            let response = initialize(cx, &opened, call).await;
            keep_opened(cx, opened, id, response).await
        }
        Inbound::Reply(answer) => reply(answer),
        _ => accepted(),
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

/// Runs `initialize`, which opens the session unless it fails.
async fn initialize(cx: &HttpRequestCx, opened: &Session, call: Call) -> Response<Body> {
    let sink = CallSink::Own(OwnSink::default());
    let mut driver = CallDriver::start(&cx.server, &cx.snapshot, &cx.context, call, sink);
    let outcome = loop {
        match poll_fn(|task| driver.poll_registered(&cx.http.0.calls, task)).await {
            // There is no stream for notifications.
            CallStep::Event(_) => {}
            CallStep::Done(outcome) => break outcome,
            CallStep::Cancelled => return accepted(),
        }
    };
    let outcome = opened.apply(&mut opened.lock(), &cx.snapshot, driver.cx(), outcome);
    let status = match &outcome {
        Outcome::Failed(error) => session_status(error.code),
        _ => StatusCode::OK,
    };
    let (_, answer) = opened.finish(&cx.snapshot.service, driver.call(), outcome);
    answer.map_or_else(accepted, |answer| json(status, answer))
}

impl HttpRequestCx {
    /// Creates a session with a new id. It is not registered.
    pub(in crate::server::http) fn open(&self, engine: Engine) -> Result<Session, Refusal> {
        let id = SessionId::random(self.settings.session_prefix).map_err(|_| {
            let error =
                RpcError::internal("no session can be opened: the system's random number generator failed");
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
            match store.create(&session.id.to_string(), &stored, life).await {
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

/// Admits the messages of a session. Some are forwarded to other processes first.
pub(in crate::server::http) fn admit(
    cx: &HttpRequestCx,
    session: &Arc<Session>,
    frame: Frame,
    accepts: Accepts,
) -> Result<Admitted, Box<Forwarding>> {
    let snapshot = session.server.snapshot();
    if let Err(response) = session.check_rights(&snapshot, &cx.context, &frame) {
        return Ok(Admitted::Answered(*response));
    }
    let cancelled = dispatch::cancellations(&session.server, &snapshot, &frame);
    let messages = cx.http.0.forwardable(session, &frame);
    let inbound = session.receive(&snapshot.service, frame);
    record(cx.context.take_received(), || cx.context.connection_facts(), &inbound);
    let is_forwarded = !messages.is_empty() && is_for_others(&inbound);
    let inbound = with_cancellations(session, inbound, cancelled);
    if is_forwarded {
        let pending = PendingInbound { session: session.clone(), inbound: Some(inbound) };
        return Err(Box::new(Forwarding { snapshot, messages, pending }));
    }
    Ok(start_exchange(cx, session, &snapshot, inbound, accepts))
}

/// Admitted messages, some of which are forwarded to other processes before they take effect here.
pub(in crate::server::http) struct Forwarding {
    snapshot: Arc<Snapshot>,
    messages: Vec<ForwardedMessage>,
    pending: PendingInbound,
}

impl Forwarding {
    pub(in crate::server::http) async fn send(
        self: Box<Self>,
        cx: &HttpRequestCx,
        accepts: Accepts,
    ) -> Admitted {
        let Self { snapshot, messages, mut pending } = *self;
        if let Err(error) = cx.http.0.forward(&pending.session, messages).await {
            return Admitted::Answered(refused(&store_failed(&error), None));
        }
        let inbound = pending.inbound.take().unwrap_or(Inbound::Ignore("nothing was admitted"));
        start_exchange(cx, &pending.session, &snapshot, inbound, accepts)
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

fn start_exchange(
    cx: &HttpRequestCx,
    session: &Arc<Session>,
    snapshot: &Arc<Snapshot>,
    inbound: Inbound,
    accepts: Accepts,
) -> Admitted {
    if let Inbound::Reply(answer) = inbound {
        return Admitted::Answered(reply(answer));
    }
    let streams = accepts.events && !cx.settings.json_only;
    let mut exchange = Exchange::new(&cx.http.0, session, snapshot, streams);
    decide(&mut exchange, session, &cx.context, inbound);
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
        // Batches do not nest, and a subscription is a call first.
        Inbound::Many(_) | Inbound::Listen(_) => {}
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
    if !dispatch::wants(&session.server, &snapshot, &notification.method) {
        return;
    }
    let bytes = notification.params.as_ref().map_or(0, |params| params.as_str().len());
    let (method, principal) = (notification.method.clone(), session.principal.as_deref());
    let call = Call::of_notification(&snapshot.service, notification, peer, principal);
    let sink = exchange.session().sink();
    // Nobody receives its events.
    sink.close();
    let cx = Cx::new(call, session.server.clone(), snapshot, context.clone(), CallSink::Own(sink));
    let handling = spawn_notification(exchange, &method, bytes, dispatch::notify(cx));
    handling.into_iter().for_each(|handling| exchange.wait_for(handling));
}

/// The bytes that a notification is charged for besides its params, so that their number is bounded too.
const HANDLER: usize = FREE + (16 << 10);

/// Runs the handler of a notification, or its layers, in a task.
pub(super) fn spawn_notification(
    exchange: &Exchange,
    method: &str,
    bytes: usize,
    handling: impl Future<Output = ()> + Send + 'static,
) -> Option<JoinHandle<()>> {
    let ceiling = exchange.snapshot.service.bounds().ceiling(Held::Notification);
    let charge = match exchange.session().account().charge(Held::Notification, HANDLER + bytes, ceiling) {
        Ok(charge) => charge,
        Err(full) => {
            tracing::warn!(method, reason = %full, "a notification was dropped");
            return None;
        }
    };
    // The client may have disconnected, so the limit is that of a detached call.
    let limit = exchange.shared.settings().detached_call.min(MAX_DURATION);
    Some(crate::runtime::spawn(async move {
        let _charge = charge;
        if timeout(limit, handling).await.is_err() {
            tracing::warn!("a notification's handler took longer than {limit:?} and was ended");
        }
    }))
}

fn reply(answer: Answer) -> Response<Body> {
    let status = answer.result.as_ref().err().map_or(StatusCode::OK, |error| session_status(error.code));
    json(status, Message::Response(answer).to_vec())
}
