//! A POST whose body has come: what it is, and where it goes.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, request::Parts};
use pintle_proto::{
    Revision, Stamp,
    http::{Accepts, Body as Shape, Head, Post, Refusal, RequestHead, name_in, name_member, route},
};
use pintle_types::{Frame, Malformed, Message, Request, RequestId};

use super::{
    Body, conversation,
    response::{accepted, refused},
    service::Asked,
    session::{Session, SessionId},
    stateless,
};
use crate::server::around::{Around, HttpHead};

pub(super) async fn answer(asked: Asked, parts: Parts, bytes: &Bytes, accepts: Accepts) -> Response<Body> {
    let frame = match Frame::parse(bytes, asked.state.service.bounds().batch) {
        Ok(frame) => frame,
        Err(malformed) => return unreadable(&malformed),
    };
    let head = Head::new(&parts.method, &parts.uri, &parts.headers);
    let way = match way(&asked, &head, &frame) {
        Ok(way) => way,
        Err(refusal) => return refused(&refusal, id_of(&frame)),
    };
    let session = match way {
        Way::Stateless | Way::Ignored | Way::Initialize => None,
        Way::Sessionless(revision) => asked.alone(revision),
        Way::Session(id) => {
            let batch = matches!(frame, Frame::Batch(_));
            let found = asked.session(&head, id).await;
            match found.and_then(|session| takes(batch, &session).map(|()| session)) {
                Ok(session) => Some(session),
                Err(refusal) => return refused(&refusal, id_of(&frame)),
            }
        }
    };
    match (way, session, frame) {
        (Way::Stateless, _, Frame::One(Message::Request(request))) => {
            let around = Arc::new(around(parts));
            stateless::answer(asked, around, request, accepts).await
        }
        (_, Some(session), frame) => {
            let around = Arc::new(around(parts));
            conversation::answer(&asked, &session, &around, frame, accepts).await
        }
        (Way::Initialize, None, frame) => conversation::open(&asked, &parts.extensions, frame).await,
        (_, None, _) => accepted(),
    }
}

/// Where a message goes, and nothing borrowed from its head.
#[derive(Clone, Copy)]
enum Way {
    Stateless,
    Ignored,
    Initialize,
    Session(SessionId),
    Sessionless(Revision),
}

fn way(asked: &Asked, head: &Head<'_>, frame: &Frame) -> Result<Way, Refusal> {
    let names = asked.state.service.name_sources();
    let mut endpoint = asked.endpoint();
    endpoint.names = &names;
    let post = match frame {
        Frame::Batch(_) => route(head, &Shape::Batch, &endpoint)?,
        Frame::One(Message::Notification(_)) => route(head, &Shape::Notification, &endpoint)?,
        Frame::One(Message::Response(_)) => route(head, &Shape::Response, &endpoint)?,
        Frame::One(Message::Request(request)) => {
            let params = request.params.as_ref();
            let member = name_member(&request.method, &names);
            let name = member.zip(params).and_then(|(member, params)| name_in(params, member));
            // What these borrow lives only here.
            if let Some(known) = asked.state.service.remembers(request) {
                let shape = RequestHead::new(&request.method, Some(known.as_str()), true, name.as_deref());
                return Way::of(asked, &route(head, &Shape::Request(shape), &endpoint)?);
            }
            let stamp = Stamp::read(params).map_err(Refusal::bad_request)?;
            let version = stamp.version().map_err(Refusal::bad_request)?;
            let shape = RequestHead::new(
                &request.method,
                version.as_deref(),
                stamp.has_capabilities(),
                name.as_deref(),
            );
            return Way::of(asked, &route(head, &Shape::Request(shape), &endpoint)?);
        }
    };
    Way::of(asked, &post)
}

impl Way {
    fn of(asked: &Asked, post: &Post<'_>) -> Result<Self, Refusal> {
        Ok(match post {
            Post::Stateless { .. } => Self::Stateless,
            Post::Ignored => Self::Ignored,
            Post::Initialize => Self::Initialize,
            Post::Session { id } => Self::Session(SessionId::parse(id).ok_or_else(Refusal::unknown_session)?),
            Post::Sessionless { version } => {
                let spoken =
                    asked.state.service.revisions().iter().find(|spoken| spoken.as_str() == *version);
                Self::Sessionless(*spoken.ok_or_else(Refusal::unknown_session)?)
            }
            _ => return Err(Refusal::unknown_session()),
        })
    }
}

fn takes(batch: bool, session: &Session) -> Result<(), Refusal> {
    if batch && !session.takes_batches() { Err(Refusal::batch()) } else { Ok(()) }
}

/// What handlers may know of the request.
pub(super) fn around(parts: Parts) -> Around {
    let Parts { method, uri, headers, extensions, .. } = parts;
    Around { extensions, head: Some(HttpHead::new(method, uri, headers)) }
}

/// The id to answer with, if it is one request.
pub(super) fn id_of(frame: &Frame) -> Option<&RequestId> {
    match frame {
        Frame::One(Message::Request(Request { id, .. })) => Some(id),
        _ => None,
    }
}

fn unreadable(malformed: &Malformed) -> Response<Body> {
    let refusal = Refusal::bad_request(malformed.error.clone());
    refused(&refusal, malformed.id.as_ref())
}
