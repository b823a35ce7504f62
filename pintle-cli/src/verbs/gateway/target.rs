use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, time::Duration};

use pintle::{
    Server,
    server::{EntryEdit, ListKind, Prefix, Provider, ReportPart, ResultLimit, Transform},
};
use pintle_oauth::client::Reach;
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

use super::{
    exchange::ExchangeEntry,
    login::{LoginClientEntry, LoginEntry},
    names,
    secret::{NOT_HERE, SecretValue, named, written},
};
use crate::{
    args::{ConnectArgs, EraArg, TargetArgs, duration},
    failure::Failure,
    targets::{Endpoint, ProgramLimits, secrets},
};

/// A target: exactly one of `command`, `url` and `server`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[cfg_attr(test, derive(JsonSchema))]
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
    /// The era of the connection: `auto` by default, `stateless` or `session`.
    era: EraEntry,
    /// Variables in the environment of the program.
    env: BTreeMap<String, SecretValue>,
    /// The directory to start the program in.
    cwd: Option<PathBuf>,
    /// The time without a call after which the program of a session ends, or its connection to the URL, such as `10m`, which is the
    /// default.
    #[serde(deserialize_with = "duration_text")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    idle: Option<Duration>,
    /// The age at which a program ends, or a connection to the URL, between two calls, such as `24h`, which is the default.
    #[serde(deserialize_with = "duration_text")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    lifetime: Option<Duration>,
    /// The limit of programs of the target that run at the same time: 64 by default. A principal has at most three quarters of them.
    max_programs: Option<u16>,
    /// How long a call waits for a program of the target, or a connection to it, when all are in use: `5s` by default.
    #[serde(deserialize_with = "duration_text")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    max_wait: Option<Duration>,
    /// Whether the URL may lead to a private address although it is not written as one: a name in an internal network.
    allow_private: bool,
    /// The login to the server at the URL: `true` for that of the user of a gateway of one user, or `each` for one of each principal.
    login: LoginEntry,
    /// The client of the authorization server of the target, if it is registered there already.
    login_client: Option<LoginClientEntry>,
    /// How tokens of clients are exchanged for tokens of the server at the URL.
    exchange: Option<ExchangeEntry>,
    /// Whether `/ready` is 503 while the target cannot be used: by default if it is a program or `server`, and not at a URL.
    required: Option<bool>,
    /// Headers of every request to the URL.
    headers: BTreeMap<String, SecretValue>,
    /// The limit of bytes of the result of a tool. The rest is a link to the whole, which its caller can read for ten minutes.
    max_result_bytes: Option<usize>,
    /// Patterns of the tools that are offered; all by default.
    only: Vec<String>,
    /// Patterns of the tools that are not offered.
    hide: Vec<String>,
    /// Changes of single tools, by the names that the target has for them.
    tools: BTreeMap<String, ToolChangeEntry>,
    /// Which prompts are offered.
    prompts: ChoiceEntry,
    /// Which resources are offered, also of those that a template has, by their URIs.
    resources: ChoiceEntry,
    /// Which resource templates are offered, with all of their resources.
    templates: ChoiceEntry,
}

/// A choice of entries of one kind, by the names or URIs that they have.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(super) struct ChoiceEntry {
    /// Patterns of those that are offered; all by default.
    only: Vec<String>,
    /// Patterns of those that are not offered.
    hide: Vec<String>,
}

/// Removes the entries of a list that are not offered.
pub(super) fn chosen<P: Provider>(
    mut changed: Transform<P>,
    list: ListKind,
    only: &[String],
    hide: &[String],
) -> Transform<P> {
    if !only.is_empty() {
        changed = changed.only(list, only.iter().map(String::as_str));
    }
    hide.iter().fold(changed, |changed, pattern| changed.hide(list, pattern.as_str()))
}

impl ChoiceEntry {
    /// Removes the entries of a list that are not offered.
    pub(super) fn of<P: Provider>(&self, changed: Transform<P>, list: ListKind) -> Transform<P> {
        chosen(changed, list, &self.only, &self.hide)
    }
}

/// The eras in which a target is connected.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
enum EraEntry {
    // The newest that the target has.
    #[default]
    Auto,
    Stateless,
    // Some servers ask questions only there.
    Session,
}

/// Changes of a tool.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(super) struct ToolChangeEntry {
    /// Another name, without the prefix.
    rename: Option<String>,
    title: Option<String>,
    description: Option<String>,
    /// Arguments that callers cannot set, with their values.
    fix: BTreeMap<String, Value>,
    /// Values of arguments that callers omit.
    default: BTreeMap<String, Value>,
}

impl TargetEntry {
    /// Returns what is wrong with the target of this name.
    pub(super) fn fault(&self, name: &str) -> Option<String> {
        let given = [!self.command.is_empty(), self.url.is_some(), self.server.is_some()];
        if given.into_iter().filter(|given| *given).count() != 1 {
            return Some("it needs exactly one of `command`, `url` and `server`".into());
        }
        if self.url.is_some() && self.max_programs.is_some() {
            return Some("`max_programs` is for a target with a program".into());
        }
        if self.max_programs == Some(0) {
            return Some("`max_programs` has to be at least 1".into());
        }
        if self.login != LoginEntry::Nobody && self.url.is_none() {
            return Some("`login` is for a target with a `url`".into());
        }
        if let Some(client) = &self.login_client {
            let fault = client.fault();
            let wrong = || "`login_client` is for a target with `login = \"each\"`".to_owned();
            if fault.is_some() || self.login != LoginEntry::Each {
                return Some(fault.unwrap_or_else(wrong));
            }
        }
        if let Some(exchange) = &self.exchange {
            let is_alone = self.url.is_some() && self.login == LoginEntry::Nobody;
            let fault = exchange.fault();
            let wrong = || "`exchange` is for a target with a `url` and without `login`".to_owned();
            if fault.is_some() || !is_alone {
                return Some(fault.unwrap_or_else(wrong));
            }
        }
        for tool in self.tools.values() {
            let prefix = self.prefix_text(name);
            let fault = tool.fault(|renamed| match prefix {
                "" => renamed.to_owned(),
                prefix => format!("{prefix}_{renamed}"),
            });
            if fault.is_some() {
                return fault;
            }
        }
        let faults = self.transform(Server::new("check", "0")).report(ReportPart::Faults);
        faults.into_iter().next().or_else(|| self.written_secret())
    }

    /// Returns whether the other entry of a target has the same connection, so that only what is offered differs.
    pub(super) fn is_connected_like(&self, other: &Self) -> bool {
        let connection = |entry: &Self| Self {
            prefix: None,
            prefix_uris: false,
            max_result_bytes: None,
            only: Vec::new(),
            hide: Vec::new(),
            tools: BTreeMap::new(),
            prompts: ChoiceEntry::default(),
            resources: ChoiceEntry::default(),
            templates: ChoiceEntry::default(),
            ..entry.clone()
        };
        connection(self) == connection(other)
    }

    /// Returns whether the connection of this entry may be used until that of the next one is there: not if the next one takes away what
    /// it may reach, or whose rights it has there.
    pub(super) fn may_stay_for(&self, next: &Self) -> bool {
        let keeps = |before: &BTreeMap<String, SecretValue>, after: &BTreeMap<String, SecretValue>| {
            let mut secrets = before.iter().filter(|(_, value)| matches!(value, SecretValue::Source(_)));
            secrets.all(|(name, _)| after.contains_key(name))
        };
        (next.allow_private || !self.allow_private)
            && self.login == next.login
            && self.exchange.is_some() == next.exchange.is_some()
            && keeps(&self.headers, &next.headers)
            && keeps(&self.env, &next.env)
    }

    /// Returns the values that may be secrets, with the settings that have them.
    pub(super) fn secrets(&self) -> Vec<(String, &SecretValue)> {
        let headers = named("headers", &self.headers);
        let login = self.login_client.iter().filter_map(LoginClientEntry::secret);
        let exchange = self.exchange.iter().filter_map(ExchangeEntry::secret);
        let login = login.map(|secret| ("login_client.client_secret".to_owned(), secret));
        let exchange = exchange.map(|secret| ("exchange.client_secret".to_owned(), secret));
        headers.chain(named("env", &self.env)).chain(login).chain(exchange).collect()
    }

    /// Returns what looks like a secret in the entry, and where it belongs.
    fn written_secret(&self) -> Option<String> {
        if let Some(written) = written(self.headers.iter().chain(&self.env)) {
            return Some(written);
        }
        if let Some(part) = self.url.as_deref().and_then(secrets::in_url) {
            return Some(format!(
                "{part} of its URL {NOT_HERE}: send it in `headers`, or configure the server in a host and write `server = \"NAME\"`"
            ));
        }
        let word = secrets::in_words(self.command.iter().skip(1).map(String::as_str))?;
        Some(format!(
            "{word} of its command {NOT_HERE}: write `env = {{ NAME = {{ env = \"VARIABLE\" }} }}`, and have the program read it there"
        ))
    }

    /// Refuses to serve the target of this name to everybody who can connect, if that would give them the rights of its owner there.
    pub(super) fn not_for_everybody(&self, name: &str) -> Result<(), Failure> {
        self.endpoint()?.not_for_everybody(name, self.has_login(), "gateway")
    }

    /// Returns the endpoint, with the secrets that it needs.
    pub(super) fn endpoint(&self) -> Result<Endpoint, Failure> {
        let era = match self.era {
            EraEntry::Auto => EraArg::Auto,
            EraEntry::Stateless => EraArg::Stateless,
            EraEntry::Session => EraArg::Session,
        };
        let mut connect = ConnectArgs { cwd: self.cwd.clone(), era, ..ConnectArgs::default() };
        for (name, value) in &self.headers {
            connect.headers.push(format!("{name}: {}", value.read()?));
        }
        for (name, value) in &self.env {
            connect.env.push(format!("{name}={}", value.read()?));
        }
        connect.command = self.command.iter().map(OsString::from).collect();
        let words = self.url.iter().chain(&self.server).cloned().collect();
        let (endpoint, _) = Endpoint::take("gateway", TargetArgs { words, connect })?;
        Ok(if self.allow_private { endpoint } else { endpoint.guarded() })
    }

    /// Returns the limits of its programs and connections.
    pub(super) fn limits(&self) -> ProgramLimits {
        let Self { idle, lifetime, max_programs, max_wait, .. } = *self;
        ProgramLimits { idle, lifetime, max_programs, max_wait }
    }

    /// Returns the text before the `_` of the names of tools and prompts; it is empty if there is no prefix.
    pub(super) fn prefix_text<'a>(&'a self, name: &'a str) -> &'a str {
        self.prefix.as_deref().unwrap_or(name)
    }

    /// Returns whether the target is a server at a URL, and no program of this machine.
    pub(super) fn has_url(&self) -> bool {
        self.url.is_some()
    }

    /// Returns whether the gateway is not ready without the target. One at a URL is as far away from every other gateway.
    pub(super) fn is_required(&self) -> bool {
        self.required.unwrap_or(!self.has_url())
    }

    /// Returns the exchange of tokens, and the URL that the new ones are for.
    pub(super) fn exchange(&self) -> Option<(&ExchangeEntry, &str)> {
        self.exchange.as_ref().zip(self.url.as_deref())
    }

    /// Returns whether the user of the gateway logs in to the server.
    pub(super) fn has_login(&self) -> bool {
        self.login == LoginEntry::User
    }

    /// Returns the networks that logins may reach, if they are limited.
    pub(super) fn reach(&self) -> Option<Reach> {
        self.url.as_deref().filter(|_| !self.allow_private).map(Reach::as_written)
    }

    /// Returns the URL that each principal logs in for, and the client that is registered for it.
    pub(super) fn login_of_each(&self) -> Option<(&str, Option<&LoginClientEntry>)> {
        let url = self.url.as_deref().filter(|_| self.login == LoginEntry::Each)?;
        Some((url, self.login_client.as_ref()))
    }

    /// Returns the prefix of the target of this name.
    pub(super) fn prefix(&self, name: &str) -> Prefix {
        let prefix = match self.prefix_text(name) {
            "" => Prefix::none(),
            prefix => Prefix::new(prefix),
        };
        if self.prefix_uris { prefix.uris() } else { prefix }
    }

    /// Returns a provider with the changes of this entry.
    pub(super) fn transform<P: Provider>(&self, provider: P) -> Transform<P> {
        // A template without one would answer for the URIs of all other targets.
        let changed = Transform::new(provider).literal_schemes();
        let changed = chosen(changed, ListKind::Tools, &self.only, &self.hide);
        let changed = self.prompts.of(changed, ListKind::Prompts);
        let changed = self.resources.of(changed, ListKind::Resources);
        let mut changed = self.templates.of(changed, ListKind::Templates);
        for (name, tool) in &self.tools {
            changed = changed.tool(name, tool.edit());
        }
        match self.max_result_bytes {
            Some(bytes) => changed.max_result(ResultLimit::new(bytes)),
            None => changed,
        }
    }
}

/// Reads a time as options of the command are written.
pub(super) fn duration_text<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Duration>, D::Error> {
    let text = Option::<String>::deserialize(reader)?;
    text.map(|text| duration(&text).map_err(D::Error::custom)).transpose()
}

impl ToolChangeEntry {
    /// Returns what is wrong with the changes. `offered` returns the name that clients have for a new name.
    pub(super) fn fault(&self, offered: impl Fn(&str) -> String) -> Option<String> {
        let renamed = self.rename.as_deref()?;
        let offered = offered(renamed);
        (!names::is_kept(&offered)).then(|| {
            format!(
                "`{offered}` is a name that some hosts refuse, or one that ends as shortened names do: use up to {} letters, digits, `_` and `-`",
                names::MAX_NAME
            )
        })
    }

    pub(super) fn edit(&self) -> EntryEdit {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_is_no_part_of_the_connection_and_what_is_taken_away_does_not_stay() {
        let entry = |lines: &str| -> TargetEntry { toml::from_str(lines).unwrap() };
        let url = "url = \"https://a.example/mcp\"\n";
        let (key, other_key) = ("headers.K = { env = \"A\" }\n", "headers.K = { env = \"B\" }\n");
        for (before, after, is_same, stays) in [
            (
                "",
                "prefix = \"b\"\nhide = [\"x\"]\ntools.x.title = \"X\"\nresources.only = [\"y\"]\n",
                true,
                true,
            ),
            ("", "era = \"session\"\n", false, true),
            ("", "idle = \"5m\"\n", false, true),
            ("", "allow_private = true\n", false, true),
            ("allow_private = true\n", "", false, false),
            ("", key, false, true),
            (key, other_key, false, true),
            (key, "", false, false),
            ("headers.K = \"v\"\n", "", false, true),
            ("login = true\n", "login = \"each\"\n", false, false),
        ] {
            let (before, after) = (entry(&format!("{url}{before}")), entry(&format!("{url}{after}")));
            assert_eq!(before.is_connected_like(&after), is_same, "{after:?}");
            assert_eq!(before.may_stay_for(&after), stays, "{after:?}");
        }
    }
}
