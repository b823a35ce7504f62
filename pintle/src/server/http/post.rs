//! A POST whose body was read: parses it, decides where its messages go, and answers.

use std::ops::ControlFlow;

use http::Response;
use pintle_proto::{
    Revision,
    http::{
        Accepts, Head, Post, PostBody, Refusal, RequestHead, name_in, name_member, route, stateless_status,
    },
    server::{Call, Stamped},
};
use pintle_types::{Frame, Message, RpcError};

use super::{
    Body,
    edge::{
        content::Content,
        response::{accepted, closed, refused},
    },
    frame::{expects_response, malformed_id, request_id},
    request_cx::HttpRequestCx,
    rights,
    session::{Session, conversation, exchange::Exchange, id::SessionId},
    stateless,
};
use crate::server::{
    Caller, Cx,
    core::{
        dispatch,
        driver::{own_sink::OwnSink, sink::CallSink},
        hooks::refuse_request,
        refused::record_response,
    },
};

/// Answers a POST.
pub(super) async fn answer(
    cx: &HttpRequestCx,
    head: &Head<'_>,
    content: Content,
    accepts: Accepts,
) -> Response<Body> {
    let admitted = admit(cx, head, content, accepts).await;
    match admitted {
        Admitted::Answered(response) => {
            let refusal = response.body().complete().unwrap_or_default();
            record_response(cx.context.take_received(), || cx.context.connection_facts(), refusal);
            response
        }
        Admitted::Stateless(call) => stateless::run(cx, call, accepts).await,
        Admitted::InSession(exchange) => exchange.run(&cx.http.0, accepts).await,
    }
}

/// The messages of a POST after admission.
pub(super) enum Admitted {
    /// Nothing is left to run.
    Answered(Response<Body>),
    /// A call that ends with its request.
    Stateless(Call),
    /// The calls of a session.
    InSession(Exchange),
}

/// Admits the messages of a body.
async fn admit(cx: &HttpRequestCx, head: &Head<'_>, content: Content, accepts: Accepts) -> Admitted {
    if let Err(response) = rights::check_body(cx.context.left(), content.bytes()) {
        return Admitted::Answered(*response);
    }
    let frame = match content.parse(cx.snapshot.service.bounds().batch) {
        Ok(frame) => frame,
        Err(malformed) => {
            let refusal = Refusal::bad_request(malformed.error.clone());
            return Admitted::Answered(refused(&refusal, malformed_id(&malformed)));
        }
    };
    let (destination, frame) = match place(cx, head, frame) {
        ControlFlow::Break(admitted) => return admitted,
        ControlFlow::Continue(placed) => placed,
    };
    let session = match destination {
        Destination::Stateless | Destination::Ignored => {
            return Admitted::Answered(Box::pin(ignored(cx, frame)).await);
        }
        Destination::Initialize => {
            return Admitted::Answered(Box::pin(conversation::open(cx, frame)).await);
        }
        Destination::Sessionless(revision) => match cx.transient_session(revision) {
            Some(session) => session,
            None => return Admitted::Answered(accepted()),
        },
        Destination::Session(id) => {
            let batch = matches!(frame, Frame::Batch(_));
            let found = Box::pin(cx.session(head, id)).await;
            match found.and_then(|session| check_batch(batch, &session).map(|()| session)) {
                Ok(session) => session,
                Err(refusal) => return Admitted::Answered(refused(&refusal, request_id(&frame))),
            }
        }
    };
    // What is admitted is not held across an `.await`.
    let forwarding = match conversation::admit(cx, &session, frame, accepts) {
        Ok(admitted) => return admitted,
        Err(forwarding) => forwarding,
    };
    Box::pin(forwarding.send(cx, accepts)).await
}

/// Admits or refuses a stateless request, or returns where the messages go. Nothing of this is held across an `.await`.
fn place(cx: &HttpRequestCx, head: &Head<'_>, frame: Frame) -> ControlFlow<Admitted, (Destination, Frame)> {
    cx.context.note_received(&frame);
    if expects_response(&frame) && cx.http.0.calls.is_closed() {
        return ControlFlow::Break(Admitted::Answered(refused(&closed(), request_id(&frame))));
    }
    let (destination, stamped) = match destination(cx, head, &frame) {
        Ok(found) => found,
        Err(refusal) => {
            return ControlFlow::Break(Admitted::Answered(refused(&refusal, request_id(&frame))));
        }
    };
    if matches!(destination, Destination::Stateless | Destination::Ignored | Destination::Sessionless(_))
        && let Some(error) = refused_by_hook(cx)
    {
        let refusal = Refusal::new(stateless_status(error.code), error);
        return ControlFlow::Break(Admitted::Answered(refused(&refusal, request_id(&frame))));
    }
    match (destination, frame) {
        (Destination::Stateless, Frame::One(Message::Request(request))) => {
            ControlFlow::Break(match stateless::admit(cx, request, stamped.as_ref()) {
                Ok(call) => Admitted::Stateless(call),
                Err(response) => Admitted::Answered(*response),
            })
        }
        placed => ControlFlow::Continue(placed),
    }
}

/// Returns the error of a hook that refuses a request without a session.
fn refused_by_hook(cx: &HttpRequestCx) -> Option<RpcError> {
    refuse_request(&cx.snapshot, &cx.server, || Caller {
        principal: cx.principal.clone(),
        extensions: cx.context.extensions().clone(),
    })
}

/// Accepts a message that has no effect. Layers see it if it is a notification.
async fn ignored(cx: &HttpRequestCx, frame: Frame) -> Response<Body> {
    if let Frame::One(Message::Notification(notification)) = frame
        && dispatch::wants(&cx.server, &cx.snapshot, &notification.method)
    {
        let call = Call::of_notification(&cx.snapshot.service, notification, None, cx.principal.as_deref());
        let sink = OwnSink::default();
        // Nobody receives its events.
        sink.close();
        let (server, snapshot) = (cx.server.clone(), cx.snapshot.clone());
        dispatch::notify(Cx::new(call, server, snapshot, cx.context.clone(), CallSink::Own(sink))).await;
    }
    accepted()
}

/// Where the messages of a POST go: a [`Post`] that borrows nothing from the head.
#[derive(Clone, Copy)]
enum Destination {
    /// A request of the stateless era. Its revision is checked on admission.
    Stateless,
    Ignored,
    Initialize,
    Session(SessionId),
    Sessionless(Revision),
}

/// Returns where the messages of a POST go, and the `_meta` of a request.
fn destination(
    cx: &HttpRequestCx,
    head: &Head<'_>,
    frame: &Frame,
) -> Result<(Destination, Option<Stamped>), Refusal> {
    let names = cx.snapshot.service.name_sources();
    let mut endpoint = cx.endpoint();
    endpoint.names = &names;
    let post = match frame {
        Frame::Batch(_) => route(head, &PostBody::Batch, &endpoint)?,
        Frame::One(Message::Notification(_)) => route(head, &PostBody::Notification, &endpoint)?,
        Frame::One(Message::Response(_)) => route(head, &PostBody::Response, &endpoint)?,
        Frame::One(Message::Request(request)) => {
            let stamped = cx.snapshot.service.stamped(request).map_err(Refusal::bad_request)?;
            let version = stamped.version();
            // Only stateless requests repeat the name in their heads.
            let params = request.params.as_ref().filter(|_| version.is_some());
            let member = params.and_then(|_| name_member(&request.method, &names));
            let name = member.zip(params).and_then(|(member, params)| name_in(params, member));
            let shape =
                RequestHead::new(&request.method, version, stamped.has_capabilities(), name.as_deref());
            let post = route(head, &PostBody::Request(shape), &endpoint)?;
            let destination = Destination::of(cx, &post)?;
            return Ok((destination, Some(stamped)));
        }
    };
    Ok((Destination::of(cx, &post)?, None))
}

impl Destination {
    fn of(cx: &HttpRequestCx, post: &Post<'_>) -> Result<Self, Refusal> {
        let revision = |version: &str| {
            cx.snapshot.service.revisions().iter().find(|revision| revision.as_str() == version).copied()
        };
        Ok(match post {
            Post::Stateless { .. } => Self::Stateless,
            Post::Ignored => Self::Ignored,
            Post::Initialize => Self::Initialize,
            Post::Session { id } => Self::Session(SessionId::parse(id).ok_or_else(Refusal::unknown_session)?),
            Post::Sessionless { version } => {
                Self::Sessionless(revision(version).ok_or_else(Refusal::unknown_session)?)
            }
            _ => return Err(Refusal::unknown_session()),
        })
    }
}

fn check_batch(batch: bool, session: &Session) -> Result<(), Refusal> {
    if batch && !session.takes_batches() { Err(Refusal::batch()) } else { Ok(()) }
}
