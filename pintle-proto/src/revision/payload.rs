use std::{borrow::Cow, fmt};

use pintle_types::RawObject;
use serde_json::Value;

use super::{Part, Revision, Unsayable};

/// The error for a payload that cannot be converted.
#[derive(Debug)]
pub(crate) enum ReshapeError {
    /// The payload cannot be parsed, for example because it is nested too deep.
    Unreadable(serde_json::Error),
    /// The target revision cannot express it.
    Unsayable(Unsayable),
}

impl fmt::Display for ReshapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => error.fmt(f),
            Self::Unsayable(unsayable) => unsayable.fmt(f),
        }
    }
}

impl Revision {
    /// Returns a canonical payload in the shapes of this revision. One that needs no change is not parsed.
    pub(crate) fn lowered(self, part: Part<'_>, payload: RawObject) -> Result<RawObject, ReshapeError> {
        if !self.lowers(part, payload.as_str()) {
            return Ok(payload);
        }
        reshaped(&payload, |value| self.lower(part, value))
    }

    /// Returns a payload of this revision in canonical shapes. One that needs no change is not parsed.
    pub(crate) fn raised(self, part: Part<'_>, payload: RawObject) -> Result<RawObject, ReshapeError> {
        if !self.raises(part, payload.as_str()) {
            return Ok(payload);
        }
        reshaped(&payload, |value| self.raise(part, value))
    }

    /// Returns the text of a payload of this revision in canonical shapes. A text that is not an object is returned
    /// unchanged.
    pub(crate) fn raised_text<'a>(self, part: Part<'_>, text: &'a str) -> Result<Cow<'a, str>, ReshapeError> {
        if !self.raises(part, text) {
            return Ok(Cow::Borrowed(text));
        }
        match text.parse::<RawObject>() {
            Ok(payload) => Ok(reshaped(&payload, |value| self.raise(part, value))?.into_string().into()),
            Err(_) => Ok(Cow::Borrowed(text)),
        }
    }
}

fn reshaped(
    payload: &RawObject,
    reshape: impl FnOnce(&mut Value) -> Result<(), Unsayable>,
) -> Result<RawObject, ReshapeError> {
    let mut value: Value = payload.decode().map_err(ReshapeError::Unreadable)?;
    reshape(&mut value).map_err(ReshapeError::Unsayable)?;
    RawObject::from_serialize(&value).map_err(ReshapeError::Unreadable)
}
