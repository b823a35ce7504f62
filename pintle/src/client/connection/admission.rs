use std::{sync::Arc, time::Duration};

use pintle_proto::client::Change;
use pintle_types::{RawObject, method, schema::Tool};

use super::{Connection, slot::OutputSlot};
use crate::{
    Error, Result,
    client::tools::{Decided, PolicyHook, Proposal, ToolsVersion, decide},
};

/// Limit of decisions on one call whose tool keeps changing.
const MAX_DECISIONS: u32 = 4;

/// A call that the client's policy allowed, and the definition that it decided on.
#[derive(Debug)]
pub(in crate::client) struct Admission {
    tool: Option<Arc<Tool>>,
    version: ToolsVersion,
}

impl Admission {
    pub(in crate::client) fn version(&self) -> ToolsVersion {
        self.version
    }
}

impl Connection {
    /// Asks the client's policy. `None` if it does not apply.
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

    /// Asks the policy again if the tool may have changed. Called before a request is sent a second time.
    pub(in crate::client) async fn readmit(
        &self,
        admission: &mut Option<Admission>,
        params: &RawObject,
    ) -> Result<()> {
        let Some(policy) = &self.shared().settings.policy else { return Ok(()) };
        if let Some(admitted) = admission.take_if(|admitted| !self.shared().is_current(admitted.version)) {
            *admission = Some(Box::pin(self.judge(policy, params, Some(admitted))).await?);
        }
        Ok(())
    }

    /// Asks the policy again unless the tool is known to be unchanged. Called before a request continues after the user was
    /// asked, which may have taken long.
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
            let (tool, version) = self.look_up(&name).await;
            // What was decided on this very tool holds.
            if before.as_ref().is_some_and(|before| before.tool == tool) {
                return Ok(Admission { tool, version });
            }
            let proposal = Proposal { connection: self.name(), name: &name, params, tool: tool.as_deref() };
            let holds = match decide(policy, &proposal).await? {
                Decided::AtOnce => self.shared().is_current(version),
                // The tool may have changed while somebody thought about it.
                Decided::Later => self.shared().fresh_tool(&name).is_some_and(|(known, _)| known == tool),
            };
            let admission = Admission { tool, version };
            if holds {
                return Ok(admission);
            }
            before = Some(admission);
        }
        Err(Error::Refused(format!("`{name}` changes faster than it can be decided on: try again later")))
    }

    /// Returns the definition of a tool, as it was last listed. Lists the tools if it is unknown; `None` if that fails.
    pub async fn find_tool(&self, name: &str) -> Option<Arc<Tool>> {
        match self.shared().tool(name) {
            Some(tool) => Some(tool),
            None => self.look_up(name).await.0,
        }
    }

    /// Lists the tools, and returns the definition of one as the server has it: the layers may have changed the list.
    pub(super) async fn list_tool(&self, name: &str, wait: Duration) -> Result<Option<Arc<Tool>>> {
        let found = OutputSlot::default();
        let mut list = self.tools().timeout(wait);
        list.options.looked_up = Some((name.into(), found.clone()));
        list.await?;
        Ok(found.take())
    }

    /// Returns the current definition of a tool. Lists the tools if it is unknown or may be outdated; `None` if that fails.
    pub(in crate::client) async fn look_up(&self, name: &str) -> (Option<Arc<Tool>>, ToolsVersion) {
        let shared = self.shared();
        if let Some(fresh) = shared.fresh_tool(name) {
            return fresh;
        }
        let version = shared.tools_version();
        if shared.server_facts().capabilities.as_ref().is_some_and(|can| can.tools.is_none()) {
            return (None, version);
        }
        shared.with_cache(|cache, _| cache.forget(&Change::Tools));
        match self.list_tool(name, shared.settings.timeouts.call).await {
            Ok(tool) => (tool, version),
            Err(error) => {
                tracing::debug!(%error, name, "the policy decides without knowing the tool");
                (None, version)
            }
        }
    }
}
