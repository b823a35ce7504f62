//! A POST whose body has come: what it is, and where it goes.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode, request::Parts};
use pintle_proto::{
    Stamp,
    http::{Accepts, Body as Shape, Head, Post, Refusal, RequestHead, name_in, name_member, route},
};
use pintle_types::{Frame, Malformed, Message, Request, RequestId};

use super::{
    Body,
    response::{accepted, json, refused},
    service::Asked,
    stateless,
};
use crate::server::around::{Around, HttpHead};

pub(super) async fn answer(asked: Asked, parts: Parts, bytes: &Bytes, accepts: Accepts) -> Response<Body> {
    let frame = match Frame::parse(bytes, asked.state.service.bounds().batch) {
        Ok(frame) => frame,
        Err(malformed) => return unreadable(&malformed),
    };
    let way = match way(&asked, &parts, &frame) {
        Ok(way) => way,
        Err(refusal) => return refused(&refusal, id_of(&frame)),
    };
    match (way, frame) {
        (Way::Stateless, Frame::One(Message::Request(request))) => {
            let around = Arc::new(around(parts));
            stateless::answer(asked, around, request, accepts).await
        }
        (Way::Ignored, _) => accepted(),
        (_, frame) => refused(&Refusal::unknown_session(), id_of(&frame)),
    }
}

/// Where a message goes, and nothing borrowed from its head.
enum Way {
    Stateless,
    Ignored,
    Session,
}

fn way(asked: &Asked, parts: &Parts, frame: &Frame) -> Result<Way, Refusal> {
    let head = Head::new(&parts.method, &parts.uri, &parts.headers);
    let names = asked.state.service.name_sources();
    let mut endpoint = asked.endpoint();
    endpoint.names = &names;
    let post = match frame {
        Frame::Batch(_) => route(&head, &Shape::Batch, &endpoint),
        Frame::One(Message::Notification(_)) => route(&head, &Shape::Notification, &endpoint),
        Frame::One(Message::Response(_)) => route(&head, &Shape::Response, &endpoint),
        Frame::One(Message::Request(request)) => {
            let params = request.params.as_ref();
            let stamp = Stamp::read(params).map_err(Refusal::bad_request)?;
            let version = stamp.version().map_err(Refusal::bad_request)?;
            let member = name_member(&request.method, &names);
            let name = member.zip(params).and_then(|(member, params)| name_in(params, member));
            let shape = RequestHead::new(
                &request.method,
                version.as_deref(),
                stamp.has_capabilities(),
                name.as_deref(),
            );
            // What it borrows lives only here.
            return route(&head, &Shape::Request(shape), &endpoint).map(|post| Way::of(&post));
        }
    };
    post.map(|post| Way::of(&post))
}

impl Way {
    fn of(post: &Post<'_>) -> Self {
        match post {
            Post::Stateless { .. } => Self::Stateless,
            Post::Ignored => Self::Ignored,
            _ => Self::Session,
        }
    }
}

/// What handlers may know of the request.
fn around(parts: Parts) -> Around {
    let Parts { method, uri, headers, extensions, .. } = parts;
    Around { extensions, head: Some(HttpHead::new(method, uri, headers)) }
}

/// The id to answer with, if it is one request.
fn id_of(frame: &Frame) -> Option<&RequestId> {
    match frame {
        Frame::One(Message::Request(Request { id, .. })) => Some(id),
        _ => None,
    }
}

fn unreadable(malformed: &Malformed) -> Response<Body> {
    let refusal = Refusal::bad_request(malformed.error.clone());
    refused(&refusal, malformed.id.as_ref())
}
