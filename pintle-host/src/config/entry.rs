use std::{fmt, time::Duration};

use super::{Source, Template};

/// A server of a configuration file.
///
/// `Debug` prints neither arguments nor the values of variables and headers.
#[non_exhaustive]
#[derive(Clone)]
pub struct ServerEntry {
    /// The name.
    pub name: String,
    /// Where the entry is.
    pub source: Source,
    /// The folder of the project that the entry is for, in files that hold the servers of several (`~/.claude.json`).
    pub project: Option<String>,
    /// Whether the user wants it. [`Group::open`](crate::Group::open) skips entries that are disabled.
    pub enabled: bool,
    /// How to reach it.
    pub transport: EntryTransport,
    /// How long the server may take to start.
    pub startup_timeout: Option<Duration>,
    /// How long a call may take.
    pub call_timeout: Option<Duration>,
    /// The tools that the user allows.
    pub tools: ToolFilter,
    pub(super) raw: serde_json::Value,
}

/// How to reach a server.
#[non_exhaustive]
#[derive(Clone)]
pub enum EntryTransport {
    /// A program to start.
    Stdio(StdioEntry),
    /// A server at a URL.
    Remote(RemoteEntry),
}

/// A program to start.
#[non_exhaustive]
#[derive(Clone)]
pub struct StdioEntry {
    /// The program.
    pub command: Template,
    /// The arguments.
    pub args: Vec<Template>,
    /// The variables to set in its environment.
    pub env: Vec<(String, Template)>,
    /// The variables to pass on from the environment of this process.
    pub inherit_env: Vec<String>,
    /// The folder to start it in.
    pub cwd: Option<Template>,
    /// A file with more variables for its environment (`.env`); those of `env` come first.
    pub env_file: Option<Template>,
}

/// A server at a URL.
#[non_exhaustive]
#[derive(Clone)]
pub struct RemoteEntry {
    /// The URL.
    pub url: Template,
    /// The headers of every request.
    pub headers: Vec<(String, Template)>,
    /// The transport that the entry names. A client finds out by itself.
    pub kind: Option<RemoteKind>,
}

/// The transport of a server at a URL.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RemoteKind {
    /// Streamable HTTP.
    Http,
    /// The two endpoints of the oldest revision.
    Sse,
}

/// The tools of a server that the user allows. By default all of them.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ToolFilter {
    /// Only these, if there is a list.
    pub allow: Option<Vec<String>>,
    /// All but these.
    pub deny: Vec<String>,
}

impl ServerEntry {
    /// The entry as it is in the file, with the members that this crate does not know. It may contain secrets.
    pub fn raw(&self) -> &serde_json::Value {
        &self.raw
    }

    /// The texts of the entry that may contain variables.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        let (stdio, remote) = match &self.transport {
            EntryTransport::Stdio(stdio) => (Some(stdio), None),
            EntryTransport::Remote(remote) => (None, Some(remote)),
        };
        let stdio = stdio.into_iter().flat_map(|stdio| {
            let env = stdio.env.iter().map(|(_, value)| value);
            let paths = stdio.cwd.iter().chain(&stdio.env_file);
            std::iter::once(&stdio.command).chain(&stdio.args).chain(env).chain(paths)
        });
        let remote = remote.into_iter().flat_map(|remote| {
            std::iter::once(&remote.url).chain(remote.headers.iter().map(|(_, value)| value))
        });
        stdio.chain(remote)
    }
}

impl ToolFilter {
    /// Whether a tool is allowed, by the server's own name for it.
    pub fn allows(&self, tool: &str) -> bool {
        let listed = |list: &[String]| list.iter().any(|name| name == "*" || name == tool);
        self.allow.as_deref().is_none_or(listed) && !listed(&self.deny)
    }
}

impl fmt::Debug for ServerEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerEntry")
            .field("name", &self.name)
            .field("source", &self.source)
            .field("project", &self.project)
            .field("enabled", &self.enabled)
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for EntryTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio(stdio) => stdio.fmt(f),
            Self::Remote(remote) => remote.fmt(f),
        }
    }
}

impl fmt::Debug for StdioEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioEntry")
            // Some write arguments here too.
            .field("command", &self.command.as_written().split(' ').next())
            .field("args", &self.args.len())
            .field("env", &self.env.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("inherit_env", &self.inherit_env)
            .field("cwd", &self.cwd.as_ref().map(Template::as_written))
            .finish()
    }
}

impl fmt::Debug for RemoteEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteEntry")
            .field("url", &without_secrets(self.url.as_written()))
            .field("headers", &self.headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("kind", &self.kind)
            .finish()
    }
}

/// A URL without its query and without user and password.
pub(super) fn without_secrets(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = host.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => url.to_owned(),
    }
}
