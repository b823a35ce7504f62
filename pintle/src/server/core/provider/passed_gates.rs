use std::{fmt, sync::Arc};

use super::entry::ProvidedEntry;
use crate::server::{
    Cx, Server, Target,
    core::{cx::Mounted, snapshot::Snapshot, subscription},
};

/// The gates of a mounted server that an entry was found behind. A request for what they hide is not dispatched to that server, and neither
/// is a subscription, so they report it when the server around it decides.
pub(crate) struct PassedGates {
    pub(crate) server: Server,
    pub(crate) snapshot: Arc<Snapshot>,
    /// The entry as it was found, whoever may see it.
    pub(crate) entry: ProvidedEntry,
    /// The name that it has there.
    pub(crate) target: Target<'static>,
    /// The provider of the mounted server that has it.
    pub(crate) backend: Option<String>,
    pub(crate) hides: bool,
}

impl PassedGates {
    /// Has the gates report a request, if it does not come to them.
    pub(super) fn report(&self, cx: &Cx) {
        if self.hides || subscription::subscribes(cx) {
            let cx = cx.clone().mounted(Mounted::new(&self.server, self.snapshot.clone()));
            self.entry.report(&cx, self.backend.as_deref(), &self.target);
        }
    }
}

impl fmt::Debug for PassedGates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PassedGates").field("target", &self.target).finish_non_exhaustive()
    }
}
