use std::collections::BTreeMap;

use super::GatewayFile;
use crate::{failure::Failure, verbs::gateway::secret::SecretValue};

impl GatewayFile {
    /// Returns the entries with an environment, by their names.
    fn environments(&self) -> impl Iterator<Item = (&String, &BTreeMap<String, SecretValue>)> {
        let tools = self.tools.iter().map(|(name, tool)| (name, &tool.env));
        let workers = self.workers.iter().map(|(name, worker)| (name, &worker.env));
        let resources = self.resources.iter().map(|(name, resource)| (name, &resource.env));
        tools.chain(workers).chain(resources)
    }

    /// Reads the secrets that targets, tools and workers need.
    pub(in crate::verbs::gateway) fn read_secrets(&self) -> Result<(), Failure> {
        for target in self.targets.values() {
            target.endpoint()?;
        }
        let mut values = self.environments().flat_map(|(_, env)| env.values());
        Ok(values.try_for_each(|value| value.read().map(drop))?)
    }

    /// Refuses to serve tools with secrets, or targets with credentials, to everybody who can connect.
    pub(in crate::verbs::gateway) fn not_for_everybody(&self) -> Result<(), Failure> {
        let is_secret = |value: &SecretValue| matches!(value, SecretValue::Source(_));
        if let Some((name, _)) = self.environments().find(|(_, env)| env.values().any(is_secret)) {
            let message = format!(
                "`{name}` uses a secret of this machine, which would be served to everybody who can connect: add `[auth]`, or `--bearer-env`"
            );
            return Err(Failure::usage(message, "pintle gateway --help"));
        }
        self.backends().try_for_each(|(name, entry)| entry.not_for_everybody(name))
    }
}
