//! The check of a tool's result against its output schema.

use std::{sync::Arc, time::Duration};

use pintle_types::{
    RawObject, method,
    schema::{CallToolResult, Tool},
};
use tokio::time::timeout;

use super::{Connection, call::undecodable};
use crate::{Result, client::tools::output};

impl Connection {
    /// Checks a result against the output schema of its tool. An unknown tool is looked up if the result has structured content; if
    /// that fails, or takes longer than `wait`, the result passes.
    async fn check_output(&self, name: &str, result: &CallToolResult, wait: Duration) -> Result<()> {
        if result.is_error == Some(true) {
            return Ok(());
        }
        match self.shared().tool(name) {
            Some(tool) => match self.matches(&tool, result) {
                Err(error) if self.shared().fresh_tool(name).is_none() => {
                    self.check_again(name, result, wait).await.unwrap_or(Err(error))
                }
                checked => checked,
            },
            None if result.structured_content.is_some() => {
                self.look_up_once(wait).await;
                self.shared().tool(name).map_or(Ok(()), |tool| self.matches(&tool, result))
            }
            None => Ok(()),
        }
    }

    /// Whether a result of a tool may have to be checked: a tool has an output schema, or may have one.
    pub(in crate::client) fn may_check(&self, result: &RawObject) -> bool {
        self.shared().has_output_schemas() || result.get("structuredContent").is_some()
    }

    /// Checks the result of a call against the output schema of its tool.
    pub(in crate::client) async fn check_result(
        &self,
        params: &RawObject,
        result: &RawObject,
        wait: Duration,
    ) -> Result<()> {
        let name: String = params.decode_member("name").ok().flatten().unwrap_or_default();
        let has_schema = self.shared().tool(&name).map(|tool| tool.output_schema.is_some());
        if !has_schema.unwrap_or_else(|| result.get("structuredContent").is_some()) {
            return Ok(());
        }
        let read = CallToolResult::from_raw(result, |meta| self.shared().meta(meta));
        let read = read.map_err(|error| undecodable(method::TOOLS_CALL, &error))?;
        self.check_output(&name, &read, wait).await
    }

    fn matches(&self, tool: &Tool, result: &CallToolResult) -> Result<()> {
        let Some(schema) = &tool.output_schema else { return Ok(()) };
        output::check(&*self.shared().settings.output, &tool.name, schema, result)
    }

    /// Checks a result against the current schema, because the known one may be outdated. `None` if it cannot be fetched.
    async fn check_again(&self, name: &str, result: &CallToolResult, wait: Duration) -> Option<Result<()>> {
        let tool = self.list_tool(name, wait).await.ok()?;
        Some(tool.map_or(Ok(()), |tool| self.matches(&tool, result)))
    }

    /// Lists the tools, unless that was done since they last changed. Concurrent calls wait for the same list.
    async fn look_up_once(&self, wait: Duration) {
        let state = self.shared();
        if state.server_facts().capabilities.as_ref().is_some_and(|can| can.tools.is_none()) {
            return;
        }
        let lookup: Arc<_> = state.output_lookup();
        let listed = lookup.get_or_init(|| async {
            if let Err(error) = self.tools().await {
                tracing::debug!(%error, "the output schemas of the tools are not known: results are not checked");
            }
        });
        if timeout(wait, listed).await.is_err() {
            // Later calls do not wait for it again.
            let _ = lookup.set(());
            tracing::debug!("the tools were not listed in time: a result is not checked");
        }
    }
}
