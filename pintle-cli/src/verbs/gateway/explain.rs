use pintle::{Client, Server, server::Principal};
use serde_json::json;

use super::{file::GatewayFile, names, running::Gateway};
use crate::{
    failure::{Exit, Failure},
    output::Output,
};

impl Gateway {
    /// Prints which rule decides about a call: the words are a principal, the name of a tool and its arguments.
    pub(super) async fn explain(
        &self,
        file: &GatewayFile,
        words: &[String],
        output: &Output,
    ) -> Result<(), Failure> {
        let (principal, name) =
            (words.first().map_or("", String::as_str), words.get(1).map_or("", String::as_str));
        let next = "pintle gateway FILE --explain @local TOOL '{}'";
        let arguments = match words.get(2) {
            None => pintle::types::JsonObject::new(),
            Some(text) => serde_json::from_str(text)
                .map_err(|error| Failure::usage(format!("`{text}` is not a JSON object: {error}"), next))?,
        };
        let caller = match principal {
            "@local" => Principal::Local,
            "@anonymous" => Principal::Anonymous,
            name => Principal::Named(name),
        };
        for (backend, tools) in self.all_tools(file).await? {
            let Some(tool) = tools.iter().find(|tool| tool.name == name) else { continue };
            let explained = self.gates.rules.explain(caller, |_| true, Some(&backend), tool, &arguments);
            let decision = format!("{:?}", explained.decision);
            let rule = explained.rule.unwrap_or_else(|| "the default".to_owned());
            let passed: Vec<_> = explained.passed;
            let json = json!({
                "decision": decision,
                "rule": rule,
                "passed": passed.iter().map(|(rule, why)| json!({"rule": rule, "why": why})).collect::<Vec<_>>(),
            });
            return output.result(&json, |text| {
                for (rule, why) in &passed {
                    text.line(format!("{rule}: does not decide, because of {why}"));
                }
                text.line(format!("{rule}: {decision}"));
            });
        }
        let message = format!("no target that could be connected has a tool `{name}`");
        Err(Failure::new(Exit::Server, message, next))
    }

    /// Connects to all targets, and prints what they offer: which could not be connected, and which names are changed.
    pub(super) async fn check(&self, file: &GatewayFile, output: &Output) -> Result<(), Failure> {
        let found = self.all_tools(file).await?;
        let changed = |tool: &&pintle::types::schema::Tool| {
            tool.title
                .as_deref()
                .is_some_and(|title| names::accepted(title) == tool.name && title != tool.name)
        };
        let rows: Vec<_> = found
            .iter()
            .map(|(backend, tools)| {
                let changed = tools.iter().filter(changed);
                let changed: Vec<_> =
                    changed.map(|tool| (tool.title.clone().unwrap_or_default(), &tool.name)).collect();
                (backend, tools.len(), changed)
            })
            .collect();
        let down: Vec<_> = self.backends().into_iter().filter(|backend| !backend.is_up()).collect();
        let json = json!({
            "targets": rows.iter().map(|(backend, tools, changed)| json!({
                "name": backend,
                "tools": tools,
                "changed": changed.iter().map(|(name, offered)| json!({"name": name, "offered": offered})).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "down": down.iter().map(|backend| backend.name()).collect::<Vec<_>>(),
        });
        output.result(&json, |text| {
            for (backend, tools, changed) in &rows {
                text.line(format!("{backend}: {tools} tools"));
                for (name, offered) in changed {
                    text.line(format!(
                        "  `{}` is offered as `{offered}`",
                        super::target_opening::shown(name)
                    ));
                }
            }
        })?;
        let overlaps = self.overlaps().await;
        if let Some(first) = overlaps.first() {
            overlaps.iter().skip(1).for_each(|overlap| output.note(overlap.as_str()));
            let message = format!("{first}; give one of them another `prefix`, or hide it");
            return Err(Failure::new(Exit::Server, message, "pintle gateway --help"));
        }
        match down.first() {
            None => Ok(()),
            Some(backend) => {
                let message = format!("`{}` cannot be connected", backend.name());
                Err(Failure::new(Exit::Unreachable, message, "pintle doctor TARGET"))
            }
        }
    }

    /// Returns the tools of every target that can be connected, by the name of the target.
    async fn all_tools(
        &self,
        file: &GatewayFile,
    ) -> Result<Vec<(String, Vec<pintle::types::schema::Tool>)>, Failure> {
        let failed =
            |error: pintle::Error| Failure::new(Exit::Server, error.to_string(), "pintle gateway --help");
        self.connect(file).await;
        let mut all = Vec::new();
        for backend in self.backends().into_iter().filter(|backend| backend.is_up()) {
            let server = Server::new(&*self.name, env!("CARGO_PKG_VERSION")).provider(backend.clone());
            let transport = server.in_process().map_err(failed)?;
            let client = Client::new("pintle", env!("CARGO_PKG_VERSION"));
            let tools = client.connect(transport).await.map_err(failed)?.tools().await.map_err(failed)?;
            all.push((backend.name().to_owned(), tools));
        }
        Ok(all)
    }
}
