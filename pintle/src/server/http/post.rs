//! A POST whose body has come: what it is, and where it goes.

use http::Response;
use pintle_proto::{
    Revision,
    http::{Accepts, Body as Shape, Head, Post, Refusal, RequestHead, name_in, name_member, route},
    server::{Call, Stamped},
};
use pintle_types::{Frame, Malformed, MalformedKind, Message, Request, RequestId};

use super::{
    Body,
    edge::{
        content::Content,
        response::{accepted, closed, refused},
    },
    rights,
    service::Asked,
    session::{Session, conversation, exchange::Exchange, id::SessionId},
    stateless,
};

/// Answers what came.
pub(super) async fn answer(
    asked: &Asked,
    head: &Head<'_>,
    content: Content,
    accepts: Accepts,
) -> Response<Body> {
    match begin(asked, head, content, accepts).await {
        Begun::Answered(response) => response,
        Begun::Alone(call) => stateless::run(asked, call, accepts).await,
        Begun::InSession(exchange) => exchange.run(&asked.http.0, accepts).await,
    }
}

/// What came of a message so far.
pub(super) enum Begun {
    /// All that there is to answer.
    Answered(Response<Body>),
    /// A call that ends with its request.
    Alone(Call),
    /// What goes on in a session.
    InSession(Exchange),
}

async fn begin(asked: &Asked, head: &Head<'_>, content: Content, accepts: Accepts) -> Begun {
    if let Err(response) = rights::check_body(asked.context.left(), content.bytes()) {
        return Begun::Answered(*response);
    }
    let frame = match content.parse(asked.state.service.bounds().batch) {
        Ok(frame) => frame,
        Err(malformed) => return Begun::Answered(unreadable(&malformed)),
    };
    if asks(&frame) && asked.http.0.calls.is_closed() {
        return Begun::Answered(refused(&closed(), id_of(&frame)));
    }
    let (way, stamped) = match way(asked, head, &frame) {
        Ok(way) => way,
        Err(refusal) => return Begun::Answered(refused(&refusal, id_of(&frame))),
    };
    if let Way::Stateless = way {
        return match frame {
            Frame::One(Message::Request(request)) => {
                stateless::begin(asked, request, stamped.as_ref(), accepts)
            }
            _ => Begun::Answered(accepted()),
        };
    }
    // Not held while something is waited for.
    drop(stamped);
    let session = match way {
        Way::Stateless | Way::Ignored => return Begun::Answered(accepted()),
        Way::Initialize => return Begun::Answered(Box::pin(conversation::open(asked, frame)).await),
        Way::Sessionless(revision) => match asked.alone(revision) {
            Some(session) => session,
            None => return Begun::Answered(accepted()),
        },
        Way::Session(id) => {
            let batch = matches!(frame, Frame::Batch(_));
            let found = asked.session(head, id).await;
            match found.and_then(|session| takes(batch, &session).map(|()| session)) {
                Ok(session) => session,
                Err(refusal) => return Begun::Answered(refused(&refusal, id_of(&frame))),
            }
        }
    };
    match &asked.settings.store {
        None => conversation::begin(asked, &session, frame, accepts),
        Some(store) => Box::pin(conversation::begin_written(asked, &session, store, frame, accepts)).await,
    }
}

/// Where a message goes, and nothing borrowed from its head.
#[derive(Clone, Copy)]
enum Way {
    /// If its revision is not spoken here, admitting says so.
    Stateless,
    Ignored,
    Initialize,
    Session(SessionId),
    Sessionless(Revision),
}

/// Returns where a message goes, and what a request says of its sender.
fn way(asked: &Asked, head: &Head<'_>, frame: &Frame) -> Result<(Way, Option<Stamped>), Refusal> {
    let names = asked.state.service.name_sources();
    let mut endpoint = asked.endpoint();
    endpoint.names = &names;
    let post = match frame {
        Frame::Batch(_) => route(head, &Shape::Batch, &endpoint)?,
        Frame::One(Message::Notification(_)) => route(head, &Shape::Notification, &endpoint)?,
        Frame::One(Message::Response(_)) => route(head, &Shape::Response, &endpoint)?,
        Frame::One(Message::Request(request)) => {
            // What these borrow lives only here.
            let stamped = asked.state.service.stamped(request).map_err(Refusal::bad_request)?;
            let version = stamped.version();
            // A session's requests do not repeat it in their heads.
            let params = request.params.as_ref().filter(|_| version.is_some());
            let member = params.and_then(|_| name_member(&request.method, &names));
            let name = member.zip(params).and_then(|(member, params)| name_in(params, member));
            let shape =
                RequestHead::new(&request.method, version, stamped.has_capabilities(), name.as_deref());
            let post = route(head, &Shape::Request(shape), &endpoint)?;
            let way = Way::of(asked, &post)?;
            return Ok((way, Some(stamped)));
        }
    };
    Ok((Way::of(asked, &post)?, None))
}

impl Way {
    fn of(asked: &Asked, post: &Post<'_>) -> Result<Self, Refusal> {
        let spoken = |version: &str| {
            asked.state.service.revisions().iter().find(|spoken| spoken.as_str() == version).copied()
        };
        Ok(match post {
            Post::Stateless { .. } => Self::Stateless,
            Post::Ignored => Self::Ignored,
            Post::Initialize => Self::Initialize,
            Post::Session { id } => Self::Session(SessionId::parse(id).ok_or_else(Refusal::unknown_session)?),
            Post::Sessionless { version } => {
                Self::Sessionless(spoken(version).ok_or_else(Refusal::unknown_session)?)
            }
            _ => return Err(Refusal::unknown_session()),
        })
    }
}

fn takes(batch: bool, session: &Session) -> Result<(), Refusal> {
    if batch && !session.takes_batches() { Err(Refusal::batch()) } else { Ok(()) }
}

/// Whether it is to be answered. Something of a batch may be, if only because it is malformed.
pub(super) fn asks(frame: &Frame) -> bool {
    matches!(frame, Frame::One(Message::Request(_)) | Frame::Batch(_))
}

/// The id to answer with, if it is one request.
pub(super) fn id_of(frame: &Frame) -> Option<&RequestId> {
    match frame {
        Frame::One(Message::Request(Request { id, .. })) => Some(id),
        _ => None,
    }
}

/// The id to refuse it with: that of an answer is one of ours, and nobody waits under it.
pub(super) fn owed(malformed: &Malformed) -> Option<&RequestId> {
    malformed.id.as_ref().filter(|_| malformed.kind != MalformedKind::Answer)
}

fn unreadable(malformed: &Malformed) -> Response<Body> {
    let refusal = Refusal::bad_request(malformed.error.clone());
    refused(&refusal, owed(malformed))
}
