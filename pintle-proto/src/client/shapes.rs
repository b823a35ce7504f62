//! The shapes of the server's revision: what is sent is lowered to them, and what came raised from them, in both eras.

use pintle_types::RawObject;

use super::send_error::SendError;
use crate::{Part, Revision, revision::ReshapeError};

/// Returns a canonical payload in the shapes of `revision`.
pub(super) fn lower(revision: Revision, part: Part<'_>, payload: RawObject) -> Result<RawObject, SendError> {
    revision.lowered(part, payload).map_err(|error| match error {
        ReshapeError::Unreadable(error) => SendError::Unreadable { reason: error.to_string().into() },
        ReshapeError::Unsayable(unsayable) => SendError::Unsayable(unsayable),
    })
}

/// Returns a payload of `revision` in canonical shapes, or says why it has none.
pub(super) fn raise(revision: Revision, part: Part<'_>, payload: RawObject) -> Result<RawObject, Box<str>> {
    revision.raised(part, payload).map_err(|error| error.to_string().into())
}
