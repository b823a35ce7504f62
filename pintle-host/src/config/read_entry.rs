use std::time::Duration;

use super::{
    ConfigError, ConfigErrorKind, EntryTransport, RemoteEntry, RemoteKind, ServerEntry, Source, StdioEntry,
    Template, ToolFilter,
    template::{Syntax, is_variable},
    tree::{Node, NodeValue},
};

/// Names of the member that holds a URL: of most hosts, Windsurf, Gemini and mcporter.
const URL: &[&str] = &["url", "serverUrl", "httpUrl", "baseUrl"];

/// Reads an entry of any host: their members differ in name and hardly ever in meaning.
pub(super) fn read(
    name: &str,
    source: &Source,
    node: &Node,
    syntax: Syntax,
) -> Result<ServerEntry, ConfigError> {
    let reader = EntryReader { node, source, syntax };
    let read = || -> Result<ServerEntry, ConfigError> {
        if node.table().is_none() {
            return Err(reader.invalid(node, format!("an entry has to be an object, not {}", node.kind())));
        }
        Ok(ServerEntry {
            name: name.to_owned(),
            source: source.clone(),
            project: None,
            enabled: !reader.flag("disabled")?.unwrap_or(false) && reader.flag("enabled")?.unwrap_or(true),
            transport: reader.transport()?,
            startup_timeout: reader.duration(&[
                ("startup_timeout_ms", 1),
                ("startup_timeout_sec", 1000),
                ("connectionTimeout", 1),
            ])?,
            call_timeout: reader.duration(&[("tool_timeout_sec", 1000), ("requestTimeout", 1)])?,
            tools: reader.tools()?,
            raw: node.to_json(),
        })
    };
    read().map_err(|error| error.of_server(name))
}

struct EntryReader<'a> {
    node: &'a Node,
    source: &'a Source,
    syntax: Syntax,
}

impl<'a> EntryReader<'a> {
    fn transport(&self) -> Result<EntryTransport, ConfigError> {
        let named = self.first(&["type", "transport"]);
        let kind = match named {
            None => None,
            Some((member, node)) => match node.text() {
                Some("stdio" | "local") => Some(None),
                Some("http" | "streamable-http" | "streamableHttp" | "streamable_http" | "remote") => {
                    Some(Some(RemoteKind::Http))
                }
                Some("sse") => Some(Some(RemoteKind::Sse)),
                // A name may be shown: it is the member's only meaning.
                Some(other) => {
                    let reason = format!("`{member}` is `{other}`: write `stdio`, `http` or `sse`");
                    return Err(self.error(node, ConfigErrorKind::Unsupported, reason));
                }
                None => return Err(self.wrong(member, node, "a string")),
            },
        };
        let (command, url) = (self.node.get("command"), self.first(URL));
        match (kind, command, url) {
            (Some(None), Some(command), _) | (None, Some(command), None) => self.stdio(command),
            (Some(Some(kind)), _, Some(url)) => self.remote(url, Some(kind)),
            (None, None, Some(url)) => self.remote(url, None),
            (None, Some(_), Some((member, _))) => {
                let reason = format!("there is a `command` and a `{member}`: remove one, or add a `type`");
                Err(self.invalid(self.node, reason))
            }
            (Some(Some(_)), _, None) => Err(self.invalid(self.node, "`url` is missing")),
            (Some(None), None, _) => Err(self.invalid(self.node, "`command` is missing")),
            (None, None, None) => Err(self.invalid(
                self.node,
                "the entry starts nothing: it needs a `command` or a `url` (extensions of an editor have neither)",
            )),
        }
    }

    fn stdio(&self, command: &'a Node) -> Result<EntryTransport, ConfigError> {
        // As one list (OpenCode), as an object (Zed, once), or as a string.
        let (program, mut args, inner) = match &command.value {
            NodeValue::Text(program) => (self.template(program), Vec::new(), None),
            NodeValue::List(_) => {
                let mut all = self.texts("command", command)?.into_iter();
                let program =
                    all.next().ok_or_else(|| self.invalid(command, "`command` is an empty list"))?;
                (program, all.collect(), None)
            }
            NodeValue::Table(_) => {
                let inner = Self { node: command, source: self.source, syntax: self.syntax };
                let path = command.get("path").and_then(Node::text);
                let path = path.ok_or_else(|| self.invalid(command, "`command.path` is missing"))?;
                (self.template(path), inner.args()?, Some(inner))
            }
            _ => return Err(self.wrong("command", command, "a string")),
        };
        if program.as_written().is_empty() {
            return Err(self.invalid(command, "`command` is empty"));
        }
        args.extend(self.args()?);
        let mut env = self.pairs(&["env", "environment"])?;
        if let Some(inner) = inner {
            env.extend(inner.pairs(&["env"])?);
        }
        let (cwd, env_file) = (self.text("cwd")?, self.text("envFile")?);
        let inherit_env = self.inherited()?;
        Ok(EntryTransport::Stdio(StdioEntry { command: program, args, env, inherit_env, cwd, env_file }))
    }

    fn remote(
        &self,
        (member, url): (&str, &'a Node),
        kind: Option<RemoteKind>,
    ) -> Result<EntryTransport, ConfigError> {
        let url = self.template(url.text().ok_or_else(|| self.wrong(member, url, "a string"))?);
        let mut headers = self.pairs(&["headers", "http_headers"])?;
        if let Some(node) = self.node.get("env_http_headers") {
            let pairs = node.table().ok_or_else(|| self.wrong("env_http_headers", node, "an object"))?;
            for pair in pairs {
                headers.push((pair.name.clone(), self.variable("", "env_http_headers", &pair.node)?));
            }
        }
        for member in ["bearer_token_env_var", "bearerTokenEnv"] {
            if let Some(node) = self.node.get(member) {
                headers.push(("Authorization".to_owned(), self.variable("Bearer ", member, node)?));
            }
        }
        if let Some(node) = self.node.get("bearerToken") {
            let token = node.text().ok_or_else(|| self.wrong("bearerToken", node, "a string"))?;
            headers.push(("Authorization".to_owned(), self.template(&format!("Bearer {token}"))));
        }
        Ok(EntryTransport::Remote(RemoteEntry { url, headers, kind }))
    }

    fn text(&self, member: &str) -> Result<Option<Template>, ConfigError> {
        let Some(node) = self.node.get(member) else { return Ok(None) };
        let text = node.text().ok_or_else(|| self.wrong(member, node, "a string"))?;
        Ok(Some(self.template(text)))
    }

    fn args(&self) -> Result<Vec<Template>, ConfigError> {
        self.node.get("args").map_or(Ok(Vec::new()), |node| self.texts("args", node))
    }

    /// The names of variables to pass on (Codex): strings, or objects with a `name`.
    fn inherited(&self) -> Result<Vec<String>, ConfigError> {
        let Some(node) = self.node.get("env_vars") else { return Ok(Vec::new()) };
        let NodeValue::List(names) = &node.value else { return Err(self.wrong("env_vars", node, "a list")) };
        let name = |node: &Node| node.text().or_else(|| node.get("name")?.text()).map(str::to_owned);
        names.iter().map(|node| name(node).ok_or_else(|| self.wrong("env_vars", node, "a string"))).collect()
    }

    fn tools(&self) -> Result<ToolFilter, ConfigError> {
        let list = |names: &[&str]| -> Result<Option<Vec<String>>, ConfigError> {
            let Some((member, node)) = self.first(names) else { return Ok(None) };
            // Elsewhere `tools` is an object of settings.
            let NodeValue::List(names) = &node.value else {
                return if member == "tools" { Ok(None) } else { Err(self.wrong(member, node, "a list")) };
            };
            let name = |node: &Node| node.text().map(str::to_owned);
            let names =
                names.iter().map(|node| name(node).ok_or_else(|| self.wrong(member, node, "a string")));
            names.collect::<Result<_, _>>().map(Some)
        };
        let allow = list(&["enabled_tools", "includeTools", "tools"])?;
        let deny = list(&["disabled_tools", "excludeTools", "disabledTools"])?.unwrap_or_default();
        Ok(ToolFilter { allow, deny })
    }

    fn flag(&self, member: &str) -> Result<Option<bool>, ConfigError> {
        match self.node.get(member) {
            None => Ok(None),
            Some(Node { value: NodeValue::Bool(flag), .. }) => Ok(Some(*flag)),
            Some(node) => Err(self.wrong(member, node, "a boolean")),
        }
    }

    /// The first of these members, in units of so many milliseconds.
    fn duration(&self, members: &[(&str, u32)]) -> Result<Option<Duration>, ConfigError> {
        for (member, unit) in members {
            let Some(node) = self.node.get(member) else { continue };
            let NodeValue::Number(number) = &node.value else {
                return Err(self.wrong(member, node, "a number"));
            };
            let millis = number.as_f64().unwrap_or(0.0) * f64::from(*unit);
            let duration = Duration::try_from_secs_f64(millis / 1000.0);
            let duration = duration.ok().filter(|duration| !duration.is_zero());
            let duration =
                duration.ok_or_else(|| self.invalid(node, format!("`{member}` is out of range")))?;
            return Ok(Some(duration));
        }
        Ok(None)
    }

    fn texts(&self, member: &str, node: &Node) -> Result<Vec<Template>, ConfigError> {
        let NodeValue::List(nodes) = &node.value else { return Err(self.wrong(member, node, "a list")) };
        let text = |(at, node): (usize, &Node)| match node.text() {
            Some(text) => Ok(self.template(text)),
            None => Err(self.wrong(&format!("{member}[{at}]"), node, "a string")),
        };
        nodes.iter().enumerate().map(text).collect()
    }

    /// Names with texts, such as headers. A number or a boolean is its text, and null is nothing.
    fn pairs(&self, members: &[&str]) -> Result<Vec<(String, Template)>, ConfigError> {
        let mut pairs = Vec::new();
        let Some((member, node)) = self.first(members) else { return Ok(pairs) };
        for pair in node.table().ok_or_else(|| self.wrong(member, node, "an object"))? {
            let text = match &pair.node.value {
                NodeValue::Null => continue,
                NodeValue::Bool(value) => value.to_string(),
                NodeValue::Number(value) => value.to_string(),
                NodeValue::Text(text) => text.clone(),
                _ => return Err(self.wrong(&format!("{member}.{}", pair.name), &pair.node, "a string")),
            };
            pairs.push((pair.name.clone(), self.template(&text)));
        }
        Ok(pairs)
    }

    /// A text that is the value of the variable that the member names.
    fn variable(&self, before: &str, member: &str, node: &Node) -> Result<Template, ConfigError> {
        let name = node.text().filter(|name| is_variable(name));
        let name = name
            .ok_or_else(|| self.invalid(node, format!("`{member}` has to name an environment variable")))?;
        Ok(Template::new(format!("{before}${{{name}}}"), Syntax::Dollar))
    }

    fn template(&self, text: &str) -> Template {
        Template::new(text, self.syntax)
    }

    fn first<'n>(&self, members: &[&'n str]) -> Option<(&'n str, &'a Node)> {
        members.iter().find_map(|member| Some((*member, self.node.get(member)?)))
    }

    fn wrong(&self, member: &str, node: &Node, expected: &str) -> ConfigError {
        self.invalid(node, format!("`{member}` has to be {expected}, not {}", node.kind()))
    }

    fn invalid(&self, node: &Node, reason: impl Into<String>) -> ConfigError {
        self.error(node, ConfigErrorKind::Invalid, reason)
    }

    fn error(&self, node: &Node, kind: ConfigErrorKind, reason: impl Into<String>) -> ConfigError {
        ConfigError::at(&Source { file: self.source.file.clone(), line: node.line }, kind, reason)
    }
}
