use std::{collections::BTreeMap, ffi::OsString, fs, path::Path, path::PathBuf};

use pintle::server::{EntryEdit, ListKind, Prefix, Provider, Rule, RuleDecision, RuleSet, Rules, Transform};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    args::{ConnectArgs, TargetArgs},
    failure::Failure,
    targets::Endpoint,
};

/// The limit of bytes of a file.
const MAX_BYTES: u64 = 1 << 20;

/// The file of a gateway.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct GatewayFile {
    /// The name of the gateway, which clients show.
    pub(super) name: Option<String>,
    /// Instructions for the models of clients.
    pub(super) instructions: Option<String>,
    /// A file to which every decision about a completion, read or call is appended, as a line of JSON.
    pub(super) audit: Option<PathBuf>,
    /// Whether `/mcp` offers `search_tools` and `call_tool` in place of the tools.
    pub(super) search: bool,
    /// The targets, by their names, which are the prefixes of their tools.
    pub(super) targets: BTreeMap<String, TargetEntry>,
    /// The rules, in their order. Without rules, everybody who can connect may use everything.
    pub(super) rules: Vec<Rule>,
    /// The decision if no rule decides: `hide` by default.
    pub(super) default: Option<RuleDecision>,
}

/// A target: exactly one of `command`, `url` and `server`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TargetEntry {
    /// A program and its arguments.
    command: Vec<String>,
    /// The URL of a server.
    url: Option<String>,
    /// The name of a server that a host on this machine has configured, or `demo`.
    server: Option<String>,
    /// The prefix of the names of tools and prompts, in place of the name of the target; an empty text for none.
    prefix: Option<String>,
    /// Whether URIs of resources have the prefix too.
    prefix_uris: bool,
    /// Variables in the environment of the program.
    env: BTreeMap<String, SecretValue>,
    /// The directory to start the program in.
    cwd: Option<PathBuf>,
    /// Headers of every request to the URL.
    headers: BTreeMap<String, SecretValue>,
    /// Patterns of the tools that are offered; all by default.
    only: Vec<String>,
    /// Patterns of the tools that are not offered.
    hide: Vec<String>,
    /// Changes of single tools, by the names that the target has for them.
    tools: BTreeMap<String, ToolEntry>,
}

/// Changes of a tool.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, default)]
struct ToolEntry {
    /// Another name, without the prefix.
    rename: Option<String>,
    title: Option<String>,
    description: Option<String>,
    /// Arguments that callers cannot set, with their values.
    fix: BTreeMap<String, Value>,
    /// Values of arguments that callers omit.
    default: BTreeMap<String, Value>,
}

/// A text, or where a secret is.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(untagged)]
enum SecretValue {
    /// A text that is not a secret.
    Text(String),
    Source(SecretSource),
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
enum SecretSource {
    /// The name of an environment variable.
    Env(String),
    /// The path of a file.
    File(PathBuf),
}

impl GatewayFile {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let unreadable = |reason: String| {
            Failure::usage(format!("`{shown}` cannot be read: {reason}"), "pintle gateway --help")
        };
        let size = fs::metadata(path).map_err(|error| unreadable(error.to_string()))?.len();
        if size > MAX_BYTES {
            return Err(unreadable(format!("it has {size} bytes, and {MAX_BYTES} are allowed")));
        }
        let text = fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
        Self::parse(&text).map_err(|reason| {
            Failure::usage(format!("`{shown}` is wrong: {reason}"), format!("pintle gateway {shown} --check"))
        })
    }

    /// Parses the text of a file. An error has the line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let file: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().and_then(|span| text.get(..span.start));
            let line = line.map(|before| before.matches('\n').count() + 1);
            let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
            format!("{line}{}", error.message().trim())
        })?;
        file.fault().map_or(Ok(file), Err)
    }

    /// Returns what is wrong with the file.
    fn fault(&self) -> Option<String> {
        if self.targets.is_empty() {
            return Some(
                "there are no targets: add `[targets.NAME]` with `url = \"…\"` or `command = [\"…\"]`".into(),
            );
        }
        let is_valid = |name: &str| {
            !name.is_empty()
                && name.len() <= 32
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        };
        let mut prefixes = BTreeMap::new();
        for (name, target) in &self.targets {
            // A `_` ends a prefix, so that no two of them can be confused.
            if !is_valid(name) {
                return Some(format!(
                    "`{name}` cannot be the name of a target: use up to 32 letters, digits and `-`"
                ));
            }
            let prefix = target.prefix.as_deref().unwrap_or(name);
            if !prefix.is_empty() && !is_valid(prefix) {
                return Some(format!(
                    "`{prefix}` cannot be a prefix: use up to 32 letters, digits and `-`, or nothing"
                ));
            }
            if let Some(other) = prefixes.insert(prefix, name).filter(|_| !prefix.is_empty()) {
                return Some(format!("`{other}` and `{name}` have the same prefix `{prefix}`; change one"));
            }
            let fault = target.fault().map(|fault| format!("target `{name}`: {fault}"));
            if fault.is_some() {
                return fault;
            }
        }
        Rules::new(self.rule_set()).err().map(|error| error.to_string())
    }

    /// Returns the rules; without any, everything is allowed.
    pub(super) fn rule_set(&self) -> RuleSet {
        let mut set = RuleSet::default();
        set.rules.clone_from(&self.rules);
        set.default = match self.rules.is_empty() {
            true => self.default.or(Some(RuleDecision::Allow)),
            false => self.default,
        };
        set
    }
}

impl TargetEntry {
    fn fault(&self) -> Option<String> {
        let given = [!self.command.is_empty(), self.url.is_some(), self.server.is_some()];
        if given.into_iter().filter(|given| *given).count() != 1 {
            return Some("it needs exactly one of `command`, `url` and `server`".into());
        }
        for (name, value) in self.headers.iter().chain(&self.env) {
            if is_secret(name) && matches!(value, SecretValue::Text(_)) {
                return Some(format!(
                    "`{name}` looks like a secret, which does not belong into this file: write `{name} = {{ env = \"VARIABLE\" }}` or `{{ file = \"PATH\" }}`"
                ));
            }
        }
        None
    }

    /// Returns the endpoint, with the secrets that it needs.
    pub(super) fn endpoint(&self) -> Result<Endpoint, Failure> {
        let mut connect = ConnectArgs { cwd: self.cwd.clone(), ..ConnectArgs::default() };
        for (name, value) in &self.headers {
            connect.headers.push(format!("{name}: {}", value.read()?));
        }
        for (name, value) in &self.env {
            connect.env.push(format!("{name}={}", value.read()?));
        }
        connect.command = self.command.iter().map(OsString::from).collect();
        let words = self.url.iter().chain(&self.server).cloned().collect();
        Ok(Endpoint::take("gateway", TargetArgs { words, connect })?.0)
    }

    /// Returns the prefix of the target of this name.
    pub(super) fn prefix(&self, name: &str) -> Prefix {
        let prefix = match self.prefix.as_deref().unwrap_or(name) {
            "" => Prefix::none(),
            prefix => Prefix::new(prefix),
        };
        if self.prefix_uris { prefix.uris() } else { prefix }
    }

    /// Returns a provider with the changes of this entry.
    pub(super) fn transform<P: Provider>(&self, provider: P) -> Transform<P> {
        let mut changed = Transform::new(provider);
        if !self.only.is_empty() {
            changed = changed.only(ListKind::Tools, self.only.iter().map(String::as_str));
        }
        for pattern in &self.hide {
            changed = changed.hide(ListKind::Tools, pattern.as_str());
        }
        for (name, tool) in &self.tools {
            changed = changed.tool(name, tool.edit());
        }
        changed
    }
}

impl ToolEntry {
    fn edit(&self) -> EntryEdit {
        let mut edit = EntryEdit::new();
        if let Some(name) = &self.rename {
            edit = edit.rename(name);
        }
        if let Some(title) = &self.title {
            edit = edit.title(title);
        }
        if let Some(description) = &self.description {
            edit = edit.describe(description);
        }
        let edit = self.fix.iter().fold(edit, |edit, (name, value)| edit.fix(name, value.clone()));
        self.default.iter().fold(edit, |edit, (name, value)| edit.default_value(name, value.clone()))
    }
}

impl SecretValue {
    fn read(&self) -> Result<String, Failure> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::Source(SecretSource::Env(name)) => std::env::var(name).map_err(|_| {
                let message = format!("the environment variable `{name}` is not set");
                Failure::usage(message, format!("export {name}=…"))
            }),
            Self::Source(SecretSource::File(path)) => {
                let text = fs::read_to_string(path).map_err(|error| {
                    let message = format!("the secret in `{}` cannot be read: {error}", path.display());
                    Failure::usage(message, format!("ls -l {}", path.display()))
                })?;
                Ok(text.trim_end_matches(['\r', '\n']).to_owned())
            }
        }
    }
}

/// Returns whether a header or variable of this name is probably a secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["authorization", "cookie", "token", "secret", "password", "passwd", "api-key", "api_key", "apikey"]
        .iter()
        .any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "[targets.demo]\nserver = \"demo\"\n";

    #[test]
    fn a_small_file_is_read() {
        let file = GatewayFile::parse(SMALL).unwrap();
        assert_eq!(file.targets.keys().collect::<Vec<_>>(), ["demo"]);
        assert_eq!(file.rule_set().default, Some(RuleDecision::Allow));
        let ruled = format!("{SMALL}[[rules]]\ntools = [\"demo_*\"]\ndecision = \"allow\"\n");
        assert_eq!(GatewayFile::parse(&ruled).unwrap().rule_set().default, None, "the rest is hidden");
    }

    #[test]
    fn a_mistake_is_reported_with_its_line_and_what_was_meant() {
        for (text, expected) in [
            ("[targets.demo]\nsrver = \"demo\"\n", "line 2: unknown field `srver`"),
            ("targets = 1", "line 1: invalid type"),
            ("[targets.a]\n", "target `a`: it needs exactly one of"),
            ("[targets.a]\nserver = \"demo\"\nurl = \"http://b\"\n", "exactly one of"),
            ("[targets.a_b]\nserver = \"demo\"\n", "cannot be the name of a target"),
            ("", "there are no targets"),
            (
                "[targets.a]\nurl = \"https://a.example/mcp\"\nheaders = { Authorization = \"Bearer x\" }\n",
                "does not belong into this file",
            ),
            (
                "[targets.a]\nserver = \"demo\"\nprefix = \"b\"\n[targets.b]\nserver = \"demo\"\n",
                "the same prefix `b`",
            ),
            ("[targets.a]\nserver = \"demo\"\n[[rules]]\nname = \"x\"\n", "x: it decides nothing"),
        ] {
            let error = GatewayFile::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
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
