use serde::{Deserialize, Serialize};

use crate::{JsonObject, Meta, RequestId};

/// The params of `notifications/cancelled`.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelledParams {
    /// The id of the request. Absent for a task, which is cancelled in another way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// The reason, for logs and people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl CancelledParams {
    /// Creates params that cancel a request.
    pub fn new(request_id: impl Into<RequestId>) -> Self {
        Self { request_id: Some(request_id.into()), ..Self::default() }
    }
}
