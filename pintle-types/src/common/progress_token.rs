use serde::{Deserialize, Serialize};

use crate::RequestId;

/// The token that associates progress with a request: a string or an integer, kept unchanged.
#[expect(clippy::exhaustive_structs, reason = "a request id by another name")]
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct ProgressToken(pub RequestId);

impl<T: Into<RequestId>> From<T> for ProgressToken {
    fn from(token: T) -> Self {
        Self(token.into())
    }
}
