use crate::RequestId;
use crate::common::object;

object! {
    /// The params of `notifications/cancelled`.
    #[derive(Debug, Default)]
    CancelledParams {
        /// The id of the request. Absent for a task, which is cancelled in another way.
        request_id?: RequestId,
        /// The reason, for logs and people.
        reason?: String,
        ..meta
    }
}

impl CancelledParams {
    /// Creates params that cancel a request.
    pub fn new(request_id: impl Into<RequestId>) -> Self {
        Self { request_id: Some(request_id.into()), ..Self::default() }
    }
}
