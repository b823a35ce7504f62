mod apis;
mod backend_entry;
mod changes;
mod disk;
mod fault;
mod include;
mod migrate;
mod own_entries;
mod secret_files;
mod secrets;
mod source;
mod text;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use pintle::server::{Rule, RuleDecision, RuleSet};
use pintle_serve::{
    EntryFault, PromptEntry, ResourceEntry, ServedResources, ServedTools, ServedWorkers, ToolEntry,
    WorkerEntry, parse_one_line, prompt_routes, written_by_others,
};
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

pub(super) use backend_entry::BackendEntry;
use disk::read_limited;
pub(super) use disk::read_text;
use fault::Fault;
use include::add;
pub(super) use own_entries::{OwnEntries, WatchedFiles};
use secret_files::SecretFiles;
pub(super) use source::FileSource;
use text::FileText;

use super::{
    api::{ApiEntry, LoadedApi, OpenFailure},
    protection::AuthEntry,
    target::TargetEntry,
    virtual_server::{VirtualServerEntry, rule_set},
};
use crate::{args::message_size, failure::Failure, output::Output};

/// The JSON Schema of a file. It is not generated here, because that would make the program larger.
const SCHEMA: &str = include_str!("../../../gateway.schema.json");

/// The file of a gateway.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(super) struct GatewayFile {
    /// The version of the format of the file: 1. `--migrate` writes it.
    pub(super) version: Option<u32>,
    /// The name of the gateway, which clients show.
    pub(super) name: Option<String>,
    /// Instructions for the models of clients.
    pub(super) instructions: Option<String>,
    /// A file to which every decision about a completion, read, call or subscription is appended, as a line of JSON.
    pub(super) audit: Option<PathBuf>,
    /// Whether completions, reads, calls and subscriptions are refused while `audit` cannot be written.
    pub(super) audit_required: bool,
    /// A file to which every request is appended, as a line of JSON.
    pub(super) access_log: Option<PathBuf>,
    /// The URL of the gateway without a path, as users open its login pages: that of `auth`, or the address that it listens at on this
    /// machine, by default.
    pub(super) url: Option<String>,
    /// The most bytes of a message, such as `64MiB`; 16 MiB by default.
    #[serde(deserialize_with = "max_message")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub(super) max_message: Option<usize>,
    /// The authorization server whose tokens clients need.
    pub(super) auth: Option<AuthEntry>,
    /// The readers of the names of targets at `/ready` and `/metrics`, beside this machine.
    pub(super) admin: AdminEntry,
    /// Whether `/mcp` offers `search_tools` and `call_tool` in place of the tools.
    pub(super) search: bool,
    /// The tools of the file itself, by their names: commands, HTTP requests, and functions of workers.
    pub(super) tools: BTreeMap<String, ToolEntry>,
    /// The workers, by their names: programs that stay, and run functions for calls of tools.
    pub(super) workers: BTreeMap<String, WorkerEntry>,
    /// The prompts of the file itself, by their names.
    pub(super) prompts: BTreeMap<String, PromptEntry>,
    /// The resources of the file itself, by their names.
    pub(super) resources: BTreeMap<String, ResourceEntry>,
    /// More files: those in TOML or YAML have tools, workers, prompts, resources and APIs, and those in Markdown are prompts. `*` is any part of a name.
    pub(super) include: Vec<String>,
    /// The targets, by their names, which are the prefixes of their tools.
    pub(super) targets: BTreeMap<String, TargetEntry>,
    /// HTTP APIs with an OpenAPI document, by their names, which are the prefixes of their tools.
    pub(super) apis: BTreeMap<String, ApiEntry>,
    /// The documents of the APIs.
    #[serde(skip)]
    pub(super) loaded: BTreeMap<String, LoadedApi>,
    /// The files with secrets of the targets and APIs.
    #[serde(skip)]
    pub(super) secret_files: SecretFiles,
    /// The targets that answer for extensions which several declare, by the names of the extensions.
    pub(super) extensions: BTreeMap<String, String>,
    /// The folder of the file, in which commands run.
    #[serde(skip)]
    pub(super) folder: PathBuf,
    /// The names of the targets, and then those of the APIs, in the order of the file: of two that offer one name, the first is used.
    #[serde(skip)]
    pub(super) order: Vec<String>,
    /// The virtual servers, by their names: each at `/mcp/NAME`, with a choice of targets and tools.
    pub(super) servers: BTreeMap<String, VirtualServerEntry>,
    /// The rules, in their order. Without rules, everybody who can connect may use everything.
    pub(super) rules: Vec<Rule>,
    /// The decision if no rule decides: `hide` by default.
    pub(super) default: Option<RuleDecision>,
}

/// The administrators of a gateway.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(super) struct AdminEntry {
    /// The names of principals.
    principals: Vec<String>,
}

impl AdminEntry {
    pub(super) fn has(&self, principal: &str) -> bool {
        self.principals.iter().any(|name| name == principal)
    }
}

impl GatewayFile {
    /// Reads a file and its documents. Documents that have not changed since `known` was read are taken from there. It blocks.
    pub(super) fn read(path: &Path, known: Option<&Self>) -> Result<Self, Failure> {
        let shown = path.display();
        let unreadable = |reason: String| {
            Failure::usage(format!("`{shown}` cannot be read: {reason}"), "pintle gateway --help")
        };
        // What is judged is what is read, whatever replaces the file meanwhile.
        let (metadata, text) = read_limited(path).map_err(|error| unreadable(error.to_string()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let wrong = |reason: String| {
            Failure::usage(format!("`{shown}` is wrong: {reason}"), format!("pintle gateway {shown} --check"))
        };
        if let Some(remedy) = written_by_others(&metadata) {
            let message = format!("`{shown}` is refused: others than you may write it");
            return Err(Failure::usage(message, format!("{remedy} {shown}")));
        }
        let text = FileText::of(path, &text);
        let mut file = Self::decode(&text, folder).map_err(wrong)?;
        let secrets = file.backends().flat_map(|(_, entry)| entry.secrets());
        let secrets = SecretFiles::read(secrets.map(|(_, value)| value), known.map(|it| &it.secret_files));
        file.secret_files = secrets;
        for name in file.apis.keys().cloned().collect::<Vec<_>>() {
            file.load(&name, folder, known).map_err(|failure| match failure {
                OpenFailure::Secret(failure) => failure,
                OpenFailure::Entry(message) => {
                    wrong(text.fault(&format!("apis.{name}"), &format!("api `{name}`: {message}")))
                }
            })?;
        }
        Ok(file)
    }

    /// Returns whether another one says the same, and only secrets in files beside it may differ.
    pub(super) fn differs_in_secrets_only(&self, other: &Self) -> bool {
        Self { secret_files: other.secret_files.clone(), ..self.clone() } == *other
    }

    pub(super) fn has_folders(&self) -> bool {
        self.resources.values().any(|resource| resource.folder.is_some())
    }

    pub(super) fn has_tasks(&self) -> bool {
        self.tools.values().any(|tool| tool.task)
    }

    /// Returns whether workers or commands log to clients.
    pub(super) fn has_logs(&self) -> bool {
        !self.workers.is_empty() || self.tools.values().any(|tool| tool.log)
    }

    /// Adds tools of one line.
    pub(super) fn add_lines(&mut self, lines: &[String]) -> Result<(), Failure> {
        let wrong = |message: String| {
            Failure::usage(message, "pintle serve -e 'greet(name: string) = echo Hello {name}'")
        };
        for line in lines {
            let (name, entry) = parse_one_line(line).map_err(wrong)?;
            if self.tools.contains_key(&name) {
                return Err(wrong(format!("there are two tools `{name}`: give one another name")));
            }
            self.tools.insert(name, entry);
        }
        self.fault().filter(|_| !lines.is_empty()).map_or(Ok(()), |fault| Err(wrong(fault.message)))
    }

    /// Returns the entries of the file itself, whose tools are those of these workers. It blocks.
    pub(super) fn own_entries(&self, workers: &ServedWorkers) -> Result<OwnEntries, EntryFault> {
        let (tools, prompts) = (self.served_tools(workers)?, prompt_routes(&self.prompts)?);
        let resources = ServedResources::new(&self.resources, &self.folder)?;
        Ok(OwnEntries::new(workers.clone(), tools, prompts, resources))
    }

    /// Returns the tools of the file itself.
    pub(super) fn served_tools(&self, workers: &ServedWorkers) -> Result<ServedTools, EntryFault> {
        ServedTools::with_workers(&self.tools, workers, &self.folder)
    }

    /// Returns the workers of the file. What they write to standard error are details.
    pub(super) fn served_workers(&self, output: &Output) -> Result<ServedWorkers, EntryFault> {
        let output = output.clone();
        let log = move |worker: &str, line: &str| output.detail(format!("{worker}: {line}"));
        ServedWorkers::new(&self.workers, &self.folder, log)
    }

    /// Prints the JSON Schema of the file.
    pub(super) fn print_schema(output: &Output) -> Result<(), Failure> {
        let schema: Value = serde_json::from_str(SCHEMA).map_err(|error| Failure::internal(&error))?;
        output.result(&schema, |text| {
            for line in SCHEMA.lines() {
                text.line(line);
            }
        })
    }

    /// Parses the text of a file in TOML, with paths relative to the current directory.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        Self::decode(&FileText::toml(text), Path::new(""))
    }

    /// Decodes a file in a folder, and reads the files that it includes. An error has the line, and what was meant.
    fn decode(text: &FileText<'_>, folder: &Path) -> Result<Self, String> {
        let mut file: Self = text.decode()?;
        folder.clone_into(&mut file.folder);
        file.order = text.order("targets", file.targets.keys());
        file.order.extend(text.order("apis", file.apis.keys()));
        let included = include::read(&file.folder, &file.include)?;
        file.order.extend(included.apis.keys().cloned());
        add("API", &mut file.apis, included.apis)?;
        add("tool", &mut file.tools, included.tools)?;
        add("worker", &mut file.workers, included.workers)?;
        add("prompt", &mut file.prompts, included.prompts)?;
        add("resource", &mut file.resources, included.resources)?;
        for (name, prompt) in &mut file.prompts {
            let loaded = std::mem::take(prompt).load(folder);
            let wrong =
                |message| text.fault(&format!("prompts.{name}"), &format!("prompt `{name}`: {message}"));
            *prompt = loaded.map_err(wrong)?;
        }
        match file.fault() {
            None => Ok(file),
            Some(Fault { table, message }) => Err(text.fault(&table, &message)),
        }
    }

    /// Returns the URL of the gateway, if the file has it.
    pub(super) fn gateway_url(&self) -> Option<&str> {
        self.url.as_deref().or_else(|| self.auth.as_ref().map(AuthEntry::url))
    }

    /// Returns the rules; without any, everything is allowed.
    pub(super) fn rule_set(&self) -> RuleSet {
        rule_set(&self.rules, self.default)
    }
}

fn max_message<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    message_size(&String::deserialize(deserializer)?).map(Some).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const SMALL: &str = "[targets.demo]\nserver = \"demo\"\n";
    const AUTH: &str = "[auth]\nissuer = \"https://i.example\"\nurl = \"https://mcp.example\"\n";

    /// `PINTLE_BLESS=1` writes it.
    #[test]
    fn the_schema_is_that_of_the_file() {
        let schema = serde_json::to_string_pretty(&schemars::schema_for!(GatewayFile)).unwrap() + "\n";
        if std::env::var_os("PINTLE_BLESS").is_some() {
            fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/gateway.schema.json"), schema).unwrap();
        } else {
            assert!(SCHEMA == schema, "the file has changed: `PINTLE_BLESS=1 cargo test` writes its schema");
        }
    }

    #[test]
    fn a_small_file_is_read() {
        let file = GatewayFile::parse(SMALL).unwrap();
        assert_eq!(file.targets.keys().collect::<Vec<_>>(), ["demo"]);
        assert_eq!(file.rule_set().default, Some(RuleDecision::Allow));
        let ruled = format!("{SMALL}[[rules]]\ntools = [\"demo_*\"]\ndecision = \"allow\"\n");
        assert_eq!(GatewayFile::parse(&ruled).unwrap().rule_set().default, None, "the rest is hidden");
        for ordered in [
            "[targets.zeta]\nserver = \"demo\"\n[targets.alpha]\nserver = \"demo\"\n",
            "[targets.zeta.env]\nA = \"b\"\n[targets.alpha]\nserver = \"demo\"\n[targets.zeta]\nserver = \"demo\"\n",
            "[targets]\nzeta = { server = \"demo\" }\nalpha = { server = \"demo\" }\n",
            "[targets]\n\"zeta\".server = \"demo\"\nalpha.server = \"demo\"\n",
            "targets = { zeta = { server = \"demo\" }, alpha = { server = \"demo\" } }\n",
            "[ targets . zeta ]\nserver = \"demo\"\n[targets.alpha]\nserver = \"demo\"\n",
        ] {
            assert_eq!(GatewayFile::parse(ordered).unwrap().order, ["zeta", "alpha"], "{ordered}");
        }
    }

    #[test]
    fn a_mistake_is_reported_with_its_line_and_what_was_meant() {
        let demo = |more: &str| format!("{SMALL}{more}");
        let exchange = |target: &str, more: &str| {
            let exchange = "[targets.a.exchange]\ntoken_url = \"https://i.example/token\"\nclient_id = \"g\"";
            format!("[targets.a]\n{target}\n{exchange}\n{more}\n")
        };
        let secret =
            "[targets.a]\nurl = \"https://a.example/mcp\"\nheaders = { Authorization = \"Bearer x\" }\n";
        for (text, expected) in [
            ("[targets.demo]\nsrver = \"demo\"\n", "line 2: unknown field `srver`; did you mean `server`?"),
            ("[target.demo]\nserver = \"demo\"\n", "line 1: unknown field `target`; did you mean `targets`?"),
            ("[targets.demo]\nserver = demo\n", "line 2: "),
            ("[targets.demo\n", "line 1: "),
            ("targets = 1", "line 1: invalid type"),
            (
                "[targets.demo]\ncommand = \"demo\"\n",
                "line 2: invalid type: string \"demo\", expected a sequence",
            ),
            ("[targets.a]\n", "line 1: target `a`: it needs exactly one of"),
            ("[targets.a]\nserver = \"demo\"\nurl = \"http://b\"\n", "exactly one of"),
            ("[targets.a_b]\nserver = \"demo\"\n", "line 1: `a_b` cannot be the name of a target"),
            ("", "there are no targets"),
            (
                secret,
                "line 1: target `a`: `Authorization` looks like a secret, which does not belong into this file",
            ),
            (
                "[targets.a]\nurl = \"https://user:hunter2@a.example/mcp\"\n",
                "line 1: target `a`: the user or password of its URL looks like a secret",
            ),
            (
                "[targets.a]\nurl = \"https://a.example/mcp?api_key=hunter2\"\n",
                "the query of its URL looks like",
            ),
            (
                "[targets.a]\ncommand = [\"x\", \"--token\", \"hunter2\"]\n",
                "`--token` of its command looks like",
            ),
            (
                "[targets.a]\nurl = \"https://a\"\nheaders = { X-Auth = \"hunter2\" }\n",
                "`X-Auth` looks like a secret",
            ),
            (
                "[targets.a]\ncommand = [\"x\"]\nenv = { GITHUB_PAT = \"x\" }\n",
                "`GITHUB_PAT` looks like a secret",
            ),
            ("[targets.a]\ncommand = [\"x\"]\nenv = { PGPASS = \"x\" }\n", "`PGPASS` looks like a secret"),
            (
                "[targets.a]\ncommand = [\"x\"]\nenv = { WHO = \"9f86d081884c7d659a2feaa0\" }\n",
                "`WHO` looks like a secret",
            ),
            ("[targets.a]\nurl = \"https://a\"\nmax_programs = 5\n", "is for a target with a program"),
            ("[targets.a]\nserver = \"demo\"\nlifetime = \"5 moons\"\n", "line 3: "),
            (&demo("[extensions]\n\"a.example/b\" = \"no\"\n"), "line 3: `a.example/b` is given to `no`"),
            (&format!("audit_required = true\n{SMALL}"), "line 1: `audit_required` needs a log"),
            (
                "[targets.a]\nserver = \"demo\"\nprefix = \"b\"\n[targets.b]\nserver = \"demo\"\n",
                "line 4: `a` and `b` have the same prefix `b`",
            ),
            (
                &demo("tools.tide.rename = \"ebb.flow\"\n"),
                "line 1: target `demo`: `demo_ebb.flow` is a name that some hosts refuse",
            ),
            (
                &demo("tools.tide.rename = \"ebb\"\ntools.berth.rename = \"ebb\"\n"),
                "line 1: target `demo`: `berth` and `tide` would both be `ebb`; rename one",
            ),
            (
                &demo("[servers.s.tools]\na.rename = \"x\"\nb.rename = \"x\"\n"),
                "server `s`: `a` and `b` would both be `x`; rename one",
            ),
            (
                "[targets.a]\nurl = \"https://a.example/mcp\"\nlogin = \"eech\"\n",
                "line 3: unknown variant `eech`; did you mean `each`?",
            ),
            (
                "[targets.a]\nurl = \"https://a.example/mcp\"\nlogin = 1\n",
                "line 3: invalid type: integer `1`, expected `true`, `false` or `\"each\"`",
            ),
            (
                "[targets.a]\nserver = \"demo\"\nlogin = \"each\"\n",
                "line 1: target `a`: `login` is for a target with a `url`",
            ),
            (
                "[targets.a]\nurl = \"https://a.example/mcp\"\nlogin_client = { issuer = \"https://i\", client_id = \"c\" }\n",
                "line 1: target `a`: `login_client` is for a target with `login = \"each\"`",
            ),
            (
                "url = \"https://a.example/mcp\"\n[targets.a]\nserver = \"demo\"\n",
                "line 1: `https://a.example/mcp` is not the URL of a gateway",
            ),
            ("url = \"http://a.example\"\n[targets.a]\nserver = \"demo\"\n", "write it with `https`"),
            (
                "url = \"https://a.example?b\"\n[targets.a]\nserver = \"demo\"\n",
                "is not the URL of a gateway",
            ),
            (
                &format!("[targets.{}]\nserver = \"demo\"\n", "a".repeat(33)),
                "cannot be the name of a target: use up to 32 letters",
            ),
            (
                &exchange("url = \"https://a.example/mcp\"", "client_secret = { env = \"X\" }"),
                "line 1: target `a`: `exchange` needs the tokens of an authorization server: add `[auth]`",
            ),
            (
                &format!("{}{AUTH}", exchange("server = \"demo\"", "scopes = []")),
                "line 1: target `a`: `exchange` is for a target with a `url` and without `login`",
            ),
            (
                &format!(
                    "{}{AUTH}",
                    exchange("url = \"https://a.example/mcp\"\nlogin = true", "scopes = []")
                ),
                "line 1: target `a`: `exchange` is for a target with a `url` and without `login`",
            ),
            (
                &format!(
                    "{}{AUTH}",
                    exchange("url = \"https://a.example/mcp\"", "client_secret = \"s3cret\"")
                ),
                "line 1: target `a`: `client_secret` does not belong into this file",
            ),
            (
                "[tools.a]\ncommand = [\"a\", \"{b}\"]\narguments = { b = \"string\" }\nask = [\"b\"]\n[[rules]]\narguments = { \"b.c\" = 1 }\ndecision = \"deny\"\n",
                "line 1: tool `a`: a rule judges `b`, which it would not see",
            ),
            (&demo("[[rules]]\nname = \"x\"\n"), "line 3: x: it decides nothing"),
            (
                &demo("[[rules]]\ndecision = \"alow\"\n"),
                "line 4: unknown variant `alow`; did you mean `allow`?",
            ),
            (
                &demo("[[rules]]\nprincipals = [\"@lokal\"]\ndecision = \"allow\"\n"),
                "`@lokal` is not a kind of principal",
            ),
            (
                &demo("[servers.a]\ntargets = [\"dmeo\"]\n"),
                "line 3: server `a`: there is no target `dmeo`; did you mean `demo`?",
            ),
            (&demo("[servers.demo]\n"), "line 3: `demo` is the name of a target and of a server"),
            (&demo("[auth]\nissuer = \"https://login.example\"\n"), "missing field `url`"),
            (
                &demo("[auth]\nissuer = \"http://login.example\"\nurl = \"https://mcp.example\"\n"),
                "line 3: auth: ",
            ),
        ] {
            let error = GatewayFile::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn the_files_of_the_guide_are_right() {
        let guides = [
            include_str!("../../../../docs/gateway.md"),
            include_str!("../../../../docs/openapi.md"),
            include_str!("../../../../docs/serve.md"),
            include_str!("../../../../docs/workers.md"),
        ];
        let files: Vec<_> = guides
            .iter()
            .flat_map(|guide| guide.split("```toml\n").skip(1))
            .filter_map(|rest| rest.split("```").next())
            .collect();
        assert!(files.len() > 13, "{files:?}");
        for file in files {
            // Folders have to exist.
            let mut whole = file.replace("folder = \"guide\"", "folder = \"src\"");
            for name in ["git", "docs"] {
                if !file.contains(&format!("[targets.{name}]")) {
                    whole += &format!("\n[targets.{name}]\nserver = \"demo\"\n");
                }
            }
            GatewayFile::parse(&whole).unwrap_or_else(|error| panic!("{error} in {whole}"));
        }
    }

    #[test]
    fn secrets_are_read_from_files_and_variables() {
        let text = "[targets.a]\nurl = \"https://a.example/mcp\"\n\
                    headers = { Authorization = { env = \"PINTLE_NO_SUCH_VARIABLE\" }, X-Team = \"a\" }\n";
        let target = &GatewayFile::parse(text).unwrap().targets["a"];
        let missing = target.endpoint().unwrap_err();
        assert_eq!(missing.message, "the environment variable `PINTLE_NO_SUCH_VARIABLE` is not set");
    }
}
