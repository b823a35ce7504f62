//! A client that is open already, for tests that begin there.

use pintle_types::{Message, Notification, RawObject, Request, Response};

use super::{
    Engine, Inbound, Profile,
    opening::{Opened, Verdict},
};
use crate::Limits;

pub(super) fn engine(revision: &str, capabilities: &str) -> Engine {
    let profile = Profile::new(object(r#"{"name":"t","version":"1"}"#), object(capabilities));
    let mut engine = Engine::new(profile, Limits::default());
    let verdict: Verdict = revision.parse().unwrap();
    let revision = verdict.revision();
    let (info, capabilities, instructions, has_sessions) = (None, None, None, false);
    engine.settle(&Opened { revision, info, capabilities, instructions, verdict, has_sessions });
    engine
}

pub(super) fn receive(engine: &mut Engine, line: &str) -> Inbound {
    engine.receive(Message::parse(line.as_bytes()))
}

pub(super) fn object(text: &str) -> RawObject {
    text.parse().unwrap()
}

/// What goes over the wire.
pub(super) fn printed(message: impl Into<Sent>) -> String {
    message.into().0.to_string()
}

pub(super) struct Sent(Message);

impl From<Request> for Sent {
    fn from(request: Request) -> Self {
        Self(Message::Request(request))
    }
}

impl From<Notification> for Sent {
    fn from(notification: Notification) -> Self {
        Self(Message::Notification(notification))
    }
}

impl From<Response> for Sent {
    fn from(response: Response) -> Self {
        Self(Message::Response(response))
    }
}
