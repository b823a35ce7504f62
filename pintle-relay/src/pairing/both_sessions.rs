use pintle::server::Outcome;

use crate::{request::RelayedRequest, tasks::session::TaskUse, upstream::failure::Failure};

/// A call of a client with a session to a server with sessions: the client is asked what the server asks, while the call runs.
pub(super) struct BothSessions<'a>(pub(super) RelayedRequest<'a>);

impl BothSessions<'_> {
    pub(super) async fn forward(self) -> Result<Outcome, Failure> {
        let call = self.0.start(TaskUse::IfRequired).await?;
        self.0.finish(call).await
    }
}
