//! The records of calls.

use std::time::UNIX_EPOCH;

use pintle_proto::inputs::{CallRecord, RecordedRights};
use pintle_types::method;

use super::Cx;
use crate::server::Authenticated;

impl Cx {
    /// Returns whether the tool that is called was declared as [resumable](crate::server::ToolRoute::resumable): then
    /// [`DetachedCall::rerun`](crate::server::DetachedCall::rerun) can run the call again. A call of a mounted server cannot.
    pub fn is_resumable(&self) -> bool {
        self.tool().is_some_and(|called| called.tool.is_resumable()) && self.mount().is_none()
    }

    /// Returns the record of the call as it is now, for [`DetachedCall::rerun`](crate::server::DetachedCall::rerun).
    pub fn record(&self) -> CallRecord {
        let mut record = self.call().record(&self.outermost_snapshot().service);
        record.rights = self.left().get::<Authenticated>().map(|caller| recorded_rights(self, caller));
        record
    }

    /// Returns whether the answer to the question of this key is part of the [record](Self::record).
    pub fn is_answered(&self, key: &str) -> bool {
        self.call().is_answered(key)
    }
}

/// Returns the rights of a caller that the tool needs.
fn recorded_rights(cx: &Cx, caller: &Authenticated) -> RecordedRights {
    let mut rights = RecordedRights::default();
    rights.local = caller.principal().is_none();
    let tool =
        cx.tool().map(|called| called.tool.name().to_owned()).filter(|_| cx.method() == method::TOOLS_CALL);
    let route = tool.and_then(|name| cx.snapshot().catalogue.tools.get(&name).cloned());
    let needed = route.iter().flat_map(|route| route.options.required.rights());
    rights.names = needed.filter(|right| caller.has(right)).map(str::to_owned).collect();
    rights.until = caller.expires_at().map(|until| {
        let since = until.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    });
    rights
}
