use pintle_proto::Revision;
use pintle_types::{Frame, Message, Request, RequestId, Response, RpcError, keys, method};
use serde_json::Value;
use tracing::Span;

use super::{RequestFacts, SpanKind, failed, is_enabled, span};
use crate::message_log::transport_kind::TransportKind;

/// The params in bytes up to which they are copied for a span. Longer ones are left out.
const MAX_COPIED: usize = 16 << 10;

/// The requests of a received message, for the spans of those that no handler answers. Empty if no subscriber wants spans.
#[derive(Debug, Default)]
pub(crate) struct ReceivedRequests(Vec<Request>);

/// The facts of a connection for the spans of its requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionFacts<'a> {
    /// The revision, once it is negotiated.
    pub(crate) revision: Option<Revision>,
    /// The id of the session over HTTP.
    pub(crate) session: Option<&'a [u8]>,
    pub(crate) transport: TransportKind,
}

/// The requests of a message that were answered without a handler, with their errors. The others became calls.
#[derive(Debug, Default)]
pub(crate) struct AnsweredRequests {
    calls: Vec<RequestId>,
    errors: Vec<(RequestId, RpcError)>,
}

impl AnsweredRequests {
    /// Adds a request that became a call, which has its own span.
    pub(crate) fn add_call(&mut self, id: &RequestId) {
        self.calls.push(id.clone());
    }

    /// Adds a response.
    pub(crate) fn add_response(&mut self, response: &Response) {
        if let (Some(id), Err(error)) = (&response.id, &response.result) {
            self.errors.push((id.clone(), error.clone()));
        }
    }

    /// Adds a response or a batch of responses, as it is sent.
    #[cfg(feature = "server")]
    pub(crate) fn add_bytes(&mut self, bytes: &[u8]) {
        let add = |this: &mut Self, message: &Message| {
            if let Message::Response(response) = message {
                this.add_response(response);
            }
        };
        match Frame::parse(bytes, usize::MAX) {
            Ok(Frame::One(message)) => add(self, &message),
            Ok(Frame::Batch(messages)) => messages.iter().flatten().for_each(|message| add(self, message)),
            Err(_) => {}
        }
    }
}

impl ReceivedRequests {
    /// Collects the requests of a message, if a subscriber wants spans.
    #[inline]
    pub(crate) fn of(frame: &Frame) -> Self {
        if is_enabled() { Self::collect(frame) } else { Self::default() }
    }

    fn collect(frame: &Frame) -> Self {
        let copy = |message: &Message| match message {
            Message::Request(request) => {
                let params = request.params.as_ref().filter(|params| params.as_str().len() <= MAX_COPIED);
                Some(Request::new(request.id.clone(), request.method.clone(), params.cloned()))
            }
            _ => None,
        };
        Self(match frame {
            Frame::One(message) => copy(message).into_iter().collect(),
            Frame::Batch(messages) => messages.iter().flatten().filter_map(copy).collect(),
        })
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Creates the spans of the requests that were answered without a handler. A span ends when it is dropped.
    pub(crate) fn spans(self, facts: ConnectionFacts<'_>, answered: &AnsweredRequests) -> Vec<Span> {
        let without_call = self.0.into_iter().filter(|request| !answered.calls.contains(&request.id));
        without_call
            .map(|Request { id, method, params, .. }| {
                // A name that the protocol does not know is the client's, and of any length.
                let known = method::find(&method).map_or("_OTHER", |_| &method);
                let stated = params.as_ref().and_then(|params| {
                    let meta: Value = params.decode_member("_meta").ok()??;
                    meta.get(keys::PROTOCOL_VERSION)?.as_str()?.parse::<Revision>().ok()
                });
                let span = span(SpanKind::Server, || RequestFacts {
                    method: known,
                    params: params.as_ref(),
                    id: Some(&id),
                    revision: stated.or(facts.revision).map(Revision::as_str),
                    session: facts.session,
                    transport: facts.transport,
                });
                if let Some((_, error)) = answered.errors.iter().find(|(answered, _)| *answered == id) {
                    failed(&span, error);
                }
                span
            })
            .collect()
    }
}
