use serde::{Deserialize, Serialize};

use crate::RequestId;

/// What ties progress to the request that asked for it: a string or an integer, and it stays what it was.
#[expect(clippy::exhaustive_structs, reason = "a request id by another name")]
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct ProgressToken(pub RequestId);

impl<T: Into<RequestId>> From<T> for ProgressToken {
    fn from(token: T) -> Self {
        Self(token.into())
    }
}
