use std::sync::Arc;

use pintle_proto::server::Change;

use super::{Audience, notice::Notice};

/// A server that another one is mounted in, and that is notified of its changes.
pub(crate) trait ChangeLink: Send + Sync {
    /// Returns whether the outer server still exists.
    fn is_alive(&self) -> bool;
    fn publish(&self, change: &Change);
    /// Publishes a change to the selected listeners of this process.
    fn publish_to(&self, change: &Change, audience: &Audience<'_>);
    fn publish_notice(&self, notice: &Arc<Notice>);
    /// Has the outer server read the capabilities and instructions of the inner one again.
    fn refresh(&self);
}
