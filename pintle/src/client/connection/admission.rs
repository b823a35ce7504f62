use std::sync::Arc;

use pintle_proto::client::Change;
use pintle_types::{RawObject, method, schema::Tool};

use super::Connection;
use crate::{
    Error, Result,
    client::tools::{Decided, PolicyHook, Proposal, ToolsVersion, decide},
};

/// How often one call is decided on, if the tool is another one each time.
const MAX_DECISIONS: u32 = 4;

/// A call that the client's policy let pass, and what it knew of the tool.
#[derive(Debug)]
pub(in crate::client) struct Admission {
    tool: Option<Arc<Tool>>,
    stamp: ToolsVersion,
}

impl Admission {
    pub(in crate::client) fn stamp(&self) -> ToolsVersion {
        self.stamp
    }
}

impl Connection {
    /// Whether the client's policy lets this request pass. `None` where it has no say.
    pub(in crate::client) async fn admit(
        &self,
        method: &str,
        params: &RawObject,
    ) -> Result<Option<Admission>> {
        let (Some(policy), method::TOOLS_CALL) = (&self.shared().settings.policy, method) else {
            return Ok(None);
        };
        Box::pin(self.judge(policy, params, None)).await.map(Some)
    }

    /// Decides anew if the tool may be another one than it was: before a request is sent a second time.
    pub(in crate::client) async fn readmit(
        &self,
        admission: &mut Option<Admission>,
        params: &RawObject,
    ) -> Result<()> {
        let Some(policy) = &self.shared().settings.policy else { return Ok(()) };
        if let Some(admitted) = admission.take_if(|admitted| !self.shared().is_since(admitted.stamp)) {
            *admission = Some(Box::pin(self.judge(policy, params, Some(admitted))).await?);
        }
        Ok(())
    }

    /// Decides anew unless the tool is known to be the one that it was: before a request goes on after the user was asked
    /// something, which may have taken long.
    pub(in crate::client) async fn readmit_after_asking(
        &self,
        admission: &mut Option<Admission>,
        params: &RawObject,
    ) -> Result<()> {
        let (Some(policy), Some(admitted)) = (&self.shared().settings.policy, admission.take()) else {
            return Ok(());
        };
        *admission = Some(Box::pin(self.judge(policy, params, Some(admitted))).await?);
        Ok(())
    }

    async fn judge(
        &self,
        policy: &PolicyHook,
        params: &RawObject,
        mut before: Option<Admission>,
    ) -> Result<Admission> {
        let name: String = params.decode_member("name").ok().flatten().unwrap_or_default();
        for _ in 0..MAX_DECISIONS {
            let (tool, stamp) = self.look_up(&name).await;
            // What was decided on this very tool holds.
            if before.as_ref().is_some_and(|before| before.tool == tool) {
                return Ok(Admission { tool, stamp });
            }
            let proposal = Proposal { name: &name, params, tool: tool.as_deref() };
            let holds = match decide(policy, &proposal).await? {
                Decided::AtOnce => self.shared().is_since(stamp),
                // The tool may have changed while somebody thought about it.
                Decided::Later => self.shared().fresh_tool(&name).is_some_and(|(known, _)| known == tool),
            };
            let admission = Admission { tool, stamp };
            if holds {
                return Ok(admission);
            }
            before = Some(admission);
        }
        Err(Error::Refused(format!("`{name}` changes faster than it can be decided on: try again later")))
    }

    /// What the server says of a tool now. Listed if that is not known, or may be old; nothing if that fails.
    async fn look_up(&self, name: &str) -> (Option<Arc<Tool>>, ToolsVersion) {
        let shared = self.shared();
        if let Some(fresh) = shared.fresh_tool(name) {
            return fresh;
        }
        let stamp = shared.stamp();
        if shared.facts().capabilities.as_ref().is_some_and(|can| can.tools.is_none()) {
            return (None, stamp);
        }
        shared.with_cache(|cache, _| cache.forget(&Change::Tools));
        match self.tools().await {
            // As it is remembered: the last of a name counts.
            Ok(tools) => (tools.into_iter().rfind(|tool| tool.name == name).map(Arc::new), stamp),
            Err(error) => {
                tracing::debug!(%error, name, "the policy decides without knowing the tool");
                (None, stamp)
            }
        }
    }
}
