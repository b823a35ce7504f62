//! Facts about the body of a POST that its refusal depends on.

use pintle_types::{Frame, Malformed, MalformedKind, Message, Request, RequestId};

/// Returns whether a body has to be answered. A batch may have to be, if only because a message in it is malformed.
pub(super) fn expects_response(frame: &Frame) -> bool {
    matches!(frame, Frame::One(Message::Request(_)) | Frame::Batch(_))
}

/// Returns the id of a single request.
pub(super) fn request_id(frame: &Frame) -> Option<&RequestId> {
    match frame {
        Frame::One(Message::Request(Request { id, .. })) => Some(id),
        _ => None,
    }
}

/// Returns the id to refuse a malformed message with. The id of a response is one of the server's, so it is not returned.
pub(super) fn malformed_id(malformed: &Malformed) -> Option<&RequestId> {
    malformed.id.as_ref().filter(|_| malformed.kind != MalformedKind::Answer)
}
