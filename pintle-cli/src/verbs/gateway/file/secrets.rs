use pintle_serve::ToolEntry;

use super::GatewayFile;
use crate::{
    failure::Failure,
    targets::secrets,
    verbs::gateway::secret::{NOT_HERE, SecretValue, written},
};

impl GatewayFile {
    /// Returns the texts of tools, workers and resources that may be secrets, with the names of those.
    fn secrets(&self) -> impl Iterator<Item = (&String, &SecretValue)> {
        let of_tools =
            self.tools.iter().flat_map(|(name, tool)| tool.secrets().map(move |(_, value)| (name, value)));
        let workers = self.workers.iter().map(|(name, worker)| (name, &worker.env));
        let resources = self.resources.iter().map(|(name, resource)| (name, &resource.env));
        let others = workers.chain(resources);
        of_tools.chain(others.flat_map(|(name, env)| env.values().map(move |value| (name, value))))
    }

    /// Reads the secrets that targets, tools, workers and resources need.
    pub(in crate::verbs::gateway) fn read_secrets(&self) -> Result<(), Failure> {
        for target in self.targets.values() {
            target.endpoint()?;
        }
        Ok(self.secrets().try_for_each(|(_, value)| value.read().map(drop))?)
    }

    /// Refuses to serve tools with secrets, or targets with credentials, to everybody who can connect.
    pub(in crate::verbs::gateway) fn not_for_everybody(&self) -> Result<(), Failure> {
        if let Some((name, _)) = self.secrets().find(|(_, value)| matches!(value, SecretValue::Source(_))) {
            let message = format!(
                "`{name}` uses a secret of this machine, which would be served to everybody who can connect: add `[auth]`, or `--bearer-env`"
            );
            return Err(Failure::usage(message, "pintle gateway --help"));
        }
        self.backends().try_for_each(|(name, entry)| entry.not_for_everybody(name))
    }
}

/// Returns what looks like a secret in the entry of a tool, and where it belongs.
pub(super) fn written_secret(tool: &ToolEntry) -> Option<String> {
    // The value of an argument is in no file.
    let is_fixed = |value: &SecretValue| !matches!(value, SecretValue::Text(text) if text.contains('{'));
    if let Some(written) = written(tool.secrets().filter(|(_, value)| is_fixed(value))) {
        return Some(written);
    }
    let part = tool.request.as_ref().and_then(|request| secrets::in_url(&request.url))?;
    Some(format!("{part} of its URL {NOT_HERE}: send it in `query` or `headers`"))
}
