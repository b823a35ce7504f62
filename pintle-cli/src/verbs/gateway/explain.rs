use std::sync::{Arc, Mutex, PoisonError};

use pintle::{
    Client, Server,
    server::{Access, Authenticated, Caller, Decision, Explanation, Gate, GateRequest, Principal, Rules},
    transport::memory,
    types::{JsonObject, RawObject, method},
};
use serde_json::{Value, json};

use super::{file::GatewayFile, names, running::Gateway};
use crate::{
    failure::{Exit, Failure},
    output::{Output, counted},
};

const NEXT: &str = "pintle gateway FILE --explain @local TOOL '{}'";

/// A gate that notes what rules decide about a call or read, and denies it.
struct ExplainingGate {
    rules: Vec<Rules>,
    noted: Arc<Mutex<Vec<Explanation>>>,
}

impl Gate for ExplainingGate {
    fn decide(&self, request: &GateRequest<'_>) -> Decision {
        if matches!(request.access, Access::Call | Access::Read) {
            let explained = self.rules.iter().map(|rules| rules.explain_request(request));
            self.noted.lock().unwrap_or_else(PoisonError::into_inner).extend(explained);
        }
        Decision::Deny("it is only explained".to_owned())
    }
}

/// A request that is explained: the words of `--explain`, and the server that is asked.
pub(super) struct ExplainedRequest<'a> {
    caller: Principal<'a>,
    name: &'a str,
    arguments: JsonObject,
    server: Option<&'a str>,
}

impl<'a> ExplainedRequest<'a> {
    /// Reads a principal, a name and arguments.
    pub(super) fn read(words: &'a [String], server: Option<&'a str>) -> Result<Self, Failure> {
        let word = |at: usize| words.get(at).map_or("", String::as_str);
        let arguments = match words.get(2) {
            None => JsonObject::new(),
            Some(text) => serde_json::from_str(text)
                .map_err(|error| Failure::usage(format!("`{text}` is not a JSON object: {error}"), NEXT))?,
        };
        let caller = match word(0) {
            "@local" => Principal::Local,
            "@anonymous" => Principal::Anonymous,
            name => Principal::Named(name),
        };
        Ok(Self { caller, name: word(1), arguments, server })
    }

    /// Returns the request for each kind of entry.
    fn requests(&self) -> [(&'static str, &'static str, Value); 3] {
        let named = json!({"name": self.name, "arguments": self.arguments});
        [
            ("tool", method::TOOLS_CALL, named.clone()),
            ("prompt", method::PROMPTS_GET, named),
            ("resource", method::RESOURCES_READ, json!({"uri": self.name})),
        ]
    }
}

/// The decisions about an entry of a kind.
struct ExplainedEntry {
    kind: &'static str,
    by: Vec<Explanation>,
}

impl ExplainedEntry {
    fn json(&self) -> Value {
        let by = self.by.iter().map(|one| {
            let passed = one.passed.iter().map(|(rule, why)| json!({"rule": rule, "why": why}));
            json!({"decision": format!("{:?}", one.decision), "rule": rule(one), "passed": passed.collect::<Vec<_>>()})
        });
        json!({"kind": self.kind, "decision": format!("{:?}", self.decision()), "rules": by.collect::<Vec<_>>()})
    }

    /// Returns the strictest decision.
    fn decision(&self) -> Decision {
        let all = self.by.iter().map(|one| one.decision.clone());
        all.fold(Decision::Allow, Decision::or_stricter)
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for one in &self.by {
            let passed = one.passed.iter();
            lines.extend(passed.map(|(rule, why)| format!("{rule}: does not decide, because of {why}")));
            lines.push(format!("{}: {:?}", rule(one), one.decision));
        }
        if self.by.len() > 1 {
            lines.push(format!("the strictest counts: {:?}", self.decision()));
        }
        lines
    }
}

fn rule(explained: &Explanation) -> &str {
    explained.rule.as_deref().unwrap_or("the default")
}

impl Gateway {
    /// Prints which rule decides about a call of a tool or prompt, or a read of a resource.
    pub(super) async fn explain(
        &self,
        file: &GatewayFile,
        request: &ExplainedRequest<'_>,
        output: &Output,
    ) -> Result<(), Failure> {
        self.connect(file).await;
        let rights = Self::rights_of_rules(file, request);
        let is_known = rights.is_empty() || !matches!(request.caller, Principal::Named(_));
        let all = self.explained(file, request, request.caller != Principal::Anonymous).await?;
        let none = match is_known {
            true => None,
            false => Some(self.explained(file, request, false).await?),
        };
        let json = json!({
            "explained": all.iter().map(ExplainedEntry::json).collect::<Vec<_>>(),
            "withoutRights": none.iter().flatten().map(ExplainedEntry::json).collect::<Vec<_>>(),
        });
        output.result(&json, |text| {
            let lines = |entries: &[ExplainedEntry]| -> Vec<String> {
                let kind = |entry: &ExplainedEntry| (entries.len() > 1).then(|| format!("as a {}:", entry.kind));
                entries.iter().flat_map(|entry| kind(entry).into_iter().chain(entry.lines())).collect()
            };
            let with = lines(&all);
            let without = none.as_deref().map(lines).filter(|without| *without != with);
            if !is_known {
                let rights = rights.join("`, `");
                text.line(match without {
                    Some(_) => format!("rights are in the token of the principal, and not known here. With `{rights}`:"),
                    None => format!("the same with and without the rights `{rights}`, which are in the token of the principal:"),
                });
            }
            for line in with {
                text.line(line);
            }
            if let Some(without) = without {
                text.line("without them:".to_owned());
                for line in without {
                    text.line(line);
                }
            }
        })
    }

    /// Has the gate judge a request, which does not run.
    async fn explained(
        &self,
        file: &GatewayFile,
        request: &ExplainedRequest<'_>,
        has_rights: bool,
    ) -> Result<Vec<ExplainedEntry>, Failure> {
        let failed = |error: pintle::Error| Failure::new(Exit::Server, error.to_string(), NEXT);
        let noted: Arc<Mutex<Vec<Explanation>>> = Arc::default();
        let server = self.explaining_server(file, request.server, noted.clone())?;
        let caller = match request.caller {
            Principal::Local => Caller::local(),
            Principal::Anonymous => Caller::new(),
            Principal::Named(name) => {
                Caller::new().with(Authenticated::new(name).rights(move |_| has_rights))
            }
        };
        let (ours, theirs) = memory();
        let _serving = server.serve_to(ours, caller).map_err(failed)?;
        let client =
            Client::new("pintle", env!("CARGO_PKG_VERSION")).connect(theirs).await.map_err(failed)?;
        let (mut found, mut refused) = (Vec::new(), None);
        for (kind, method, params) in request.requests() {
            let Ok(params) = RawObject::from_serialize(&params) else { continue };
            let answer = client.call_raw(method, params).await;
            let by = std::mem::take(&mut *noted.lock().unwrap_or_else(PoisonError::into_inner));
            match (by.is_empty(), answer) {
                (false, _) => found.push(ExplainedEntry { kind, by }),
                (true, Err(error)) => refused = refused.or(Some(error)),
                (true, Ok(_)) => {}
            }
        }
        if found.is_empty() {
            let reason = refused.map(|error| format!(": {error}")).unwrap_or_default();
            let message = format!(
                "neither the file nor a target that is connected has a tool, prompt or resource `{}`{reason}",
                request.name
            );
            return Err(Failure::new(Exit::Server, message, NEXT));
        }
        Ok(found)
    }

    /// Returns a server as clients have it at a path, with a gate that explains.
    fn explaining_server(
        &self,
        file: &GatewayFile,
        name: Option<&str>,
        noted: Arc<Mutex<Vec<Explanation>>>,
    ) -> Result<Server, Failure> {
        let wrong = |error: pintle::Error| Failure::usage(error.to_string(), NEXT);
        let mut gate = ExplainingGate { rules: vec![self.gates.rules.clone()], noted };
        let base = || Server::new(&*self.settings().name, env!("CARGO_PKG_VERSION"));
        let backends = self.backends();
        if let Some(entry) = name.and_then(|name| file.servers.get(name)) {
            gate.rules.push(Rules::new(entry.rule_set()).map_err(wrong)?);
            return Ok(base().provider(entry.offered(base().gate(gate), &self.gates.own, &backends)));
        }
        let chosen: Vec<_> =
            backends.into_iter().filter(|backend| name.is_none_or(|name| backend.name() == name)).collect();
        if chosen.is_empty()
            && let Some(name) = name
        {
            let message = format!("the file has no server or target `{name}`");
            return Err(Failure::usage(message, NEXT));
        }
        let server = match name {
            None => base().gate(gate).provider(self.gates.own.clone()),
            Some(_) => base().gate(gate),
        };
        Ok(chosen.into_iter().fold(server, |server, backend| server.provider(backend)))
    }

    /// Returns the rights that rules name.
    fn rights_of_rules(file: &GatewayFile, request: &ExplainedRequest<'_>) -> Vec<String> {
        let own = request.server.and_then(|name| file.servers.get(name)).map(|entry| entry.rule_set().rules);
        let rules = file.rules.iter().cloned().chain(own.into_iter().flatten());
        let mut rights: Vec<String> = rules.flat_map(|rule| rule.rights).collect();
        rights.sort();
        rights.dedup();
        rights
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
                text.line(format!("{backend}: {}", counted(*tools, "tool", "tools")));
                for (name, offered) in changed {
                    text.line(format!("  `{}` is offered as `{offered}`", super::backend::shown(name)));
                }
            }
        })?;
        let overlaps = self.overlaps();
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
            let server =
                Server::new(&*self.settings().name, env!("CARGO_PKG_VERSION")).provider(backend.clone());
            let transport = server.in_process().map_err(failed)?;
            let client = Client::new("pintle", env!("CARGO_PKG_VERSION"));
            let tools = client.connect(transport).await.map_err(failed)?.tools().await.map_err(failed)?;
            all.push((backend.name().to_owned(), tools));
        }
        Ok(all)
    }
}
