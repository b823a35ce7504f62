//! Conversion between canonical shapes and those of the server's revision, in both eras.

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

/// Returns a payload of `revision` in canonical shapes, or the reason why it cannot be converted.
pub(super) fn raise(revision: Revision, part: Part<'_>, payload: RawObject) -> Result<RawObject, Box<str>> {
    revision.raised(part, payload).map_err(|error| error.to_string().into())
}
