use std::fmt;

use pintle::{Client, Connection};

use super::{
    ConfigError, ConfigErrorKind, EntryTransport, ServerEntry, Source, Template, Variables,
    entry::without_secrets, env_file, template::ExpandError,
};

/// A server whose variables have their values. From [`ServerEntry::resolve`].
///
/// `Debug` prints neither arguments nor the values of variables and headers.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum ResolvedServer {
    /// A program to start.
    Stdio(StdioServer),
    /// A server at a URL.
    Remote(RemoteServer),
}

/// A program to start.
#[non_exhaustive]
#[derive(Clone)]
pub struct StdioServer {
    /// The program.
    pub command: String,
    /// The arguments.
    pub args: Vec<String>,
    /// The variables to set in its environment.
    pub env: Vec<(String, String)>,
    /// The variables to pass on.
    pub inherit_env: Vec<String>,
    /// The folder to start it in.
    pub cwd: Option<String>,
}

/// A server at a URL.
#[non_exhaustive]
#[derive(Clone)]
pub struct RemoteServer {
    /// The URL.
    pub url: String,
    /// The headers of every request.
    pub headers: Vec<(String, String)>,
    source: Source,
    name: String,
}

impl ServerEntry {
    /// Replaces the variables by their values, and reads the `envFile` of a program.
    ///
    /// # Errors
    ///
    /// A variable has no value, or the file cannot be read. The error names it, the server and the file.
    pub fn resolve(&self, variables: &Variables) -> Result<ResolvedServer, ConfigError> {
        let expand = |text: &Template| text.expand(variables).map_err(|error| self.unresolved(error));
        let pairs = |pairs: &[(String, Template)]| -> Result<Vec<_>, ConfigError> {
            pairs.iter().map(|(name, value)| Ok((name.clone(), expand(value)?))).collect()
        };
        Ok(match &self.transport {
            EntryTransport::Stdio(stdio) => ResolvedServer::Stdio(StdioServer {
                command: expand(&stdio.command)?,
                args: stdio.args.iter().map(expand).collect::<Result<_, _>>()?,
                env: {
                    let mut env = Vec::new();
                    if let Some(file) = &stdio.env_file {
                        let read = env_file::read(expand(file)?.as_ref());
                        env = read.map_err(|reason| {
                            let error = ConfigError::at(&self.source, ConfigErrorKind::Invalid, reason);
                            error.of_server(&self.name)
                        })?;
                    }
                    // The last of a name counts.
                    env.extend(pairs(&stdio.env)?);
                    env
                },
                inherit_env: stdio.inherit_env.clone(),
                cwd: stdio.cwd.as_ref().map(expand).transpose()?,
            }),
            EntryTransport::Remote(remote) => ResolvedServer::Remote(RemoteServer {
                url: expand(&remote.url)?,
                headers: pairs(&remote.headers)?,
                source: self.source.clone(),
                name: self.name.clone(),
            }),
        })
    }

    /// Connects to the server. The connection has the name of the entry.
    ///
    /// The standard error of a program goes to this process's. To set that or anything else of the transport, such as OAuth, take
    /// [`StdioServer::command`] or [`RemoteServer::http`] and [`Client::connect`].
    ///
    /// ```no_run
    /// # async fn example() -> pintle::Result<()> {
    /// use pintle::Client;
    /// use pintle_host::config::{ConfigFile, Variables};
    ///
    /// let file = ConfigFile::read(".mcp.json")?;
    /// let entry = file.server("git").expect("it is configured");
    /// let git = entry.connect(&Client::new("demo", "1.0.0"), &Variables::process()).await?;
    /// println!("{}", git.call_tool("status", ()).await?.text());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// A variable has no value, the program did not start, or the server did not open the connection.
    pub async fn connect(&self, client: &Client, variables: &Variables) -> pintle::Result<Connection> {
        let (client, resolved) = (self.client(client), self.resolve(variables)?);
        match resolved {
            #[cfg(feature = "child")]
            ResolvedServer::Stdio(stdio) => {
                client.connect_as(self.name.as_str(), stdio.command().spawn()?).await
            }
            #[cfg(feature = "http")]
            ResolvedServer::Remote(remote) => client.connect_as(self.name.as_str(), remote.http()?).await,
            #[allow(unreachable_patterns, reason = "a build may lack a transport")]
            _ => {
                drop(client);
                let reason =
                    "this build cannot connect to it: add the feature `child` or `http` of `pintle-host`";
                let error = ConfigError::at(&self.source, ConfigErrorKind::Unsupported, reason);
                Err(error.of_server(&self.name).into())
            }
        }
    }

    /// The client with what the entry asks for.
    fn client(&self, client: &Client) -> Client {
        client.clone().map_timeouts(|timeouts| {
            self.startup_timeout.into_iter().for_each(|startup| timeouts.initialize = startup);
            if let Some(call) = self.call_timeout {
                timeouts.call = call;
                timeouts.call_max = timeouts.call_max.max(call);
            }
        })
    }

    fn unresolved(&self, error: ExpandError) -> ConfigError {
        let (kind, reason) = match error {
            ExpandError::Variable(name) => {
                let reason =
                    format!("the variable `{name}` is not set: set it, or write `${{{name}:-a default}}`");
                (ConfigErrorKind::UnsetVariable(name), reason)
            }
            ExpandError::Input(id) => {
                let reason =
                    format!("the input `{id}` is not given: ask for it, and give it with `Variables::input`");
                (ConfigErrorKind::UnsetInput(id), reason)
            }
            ExpandError::Folder(name) => {
                let reason = format!("`${{{name}}}` is unknown here: give it with `Variables::workspace`");
                (ConfigErrorKind::UnsetVariable(name.to_owned()), reason)
            }
            ExpandError::TooLong => {
                (ConfigErrorKind::Limit, "a text is longer than 1 MiB with its variables".to_owned())
            }
            ExpandError::Unsupported(what) => {
                (ConfigErrorKind::Unsupported, format!("{what} is not supported: write `{{env:NAME}}`"))
            }
        };
        ConfigError::at(&self.source, kind, reason).of_server(&self.name)
    }
}

#[cfg(feature = "child")]
impl StdioServer {
    /// The command, to be started as a [`Child`](pintle::transport::Child).
    pub fn command(&self) -> pintle::transport::ChildCommand {
        let command = pintle::transport::Child::command(&self.command)
            .args(&self.args)
            .inherit_env(self.inherit_env.iter().filter(|name| !name.contains('*')));
        let command = self.env.iter().fold(command, |command, (name, value)| command.env(name, value));
        match &self.cwd {
            Some(cwd) => command.current_dir(cwd),
            None => command,
        }
    }
}

#[cfg(feature = "http")]
impl RemoteServer {
    /// The transport, to which authorization may be added before it is connected.
    ///
    /// # Errors
    ///
    /// The URL or a header is invalid. The error does not contain their values.
    pub fn http(&self) -> Result<pintle::client::http::Http, ConfigError> {
        let invalid = |reason: String| {
            ConfigError::at(&self.source, ConfigErrorKind::Invalid, reason).of_server(&self.name)
        };
        let mut http =
            pintle::client::http::Http::new(&self.url).map_err(|error| invalid(error.to_string()))?;
        for (name, value) in &self.headers {
            let header = http::HeaderName::try_from(name.as_str());
            let header = header.map_err(|_| invalid("a header has an invalid name".to_owned()))?;
            let value = http::HeaderValue::from_str(value);
            let mut value =
                value.map_err(|_| invalid(format!("the value of the header `{header}` is invalid")))?;
            value.set_sensitive(true);
            http = http.headers([(header, value)]);
        }
        Ok(http)
    }
}

impl From<ConfigError> for pintle::Error {
    fn from(error: ConfigError) -> Self {
        Self::Misuse(error.to_string())
    }
}

impl fmt::Debug for StdioServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioServer")
            .field("command", &self.command.split(' ').next())
            .field("args", &self.args.len())
            .field("env", &self.env.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("inherit_env", &self.inherit_env)
            .field("cwd", &self.cwd)
            .finish()
    }
}

impl fmt::Debug for RemoteServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteServer")
            .field("name", &self.name)
            .field("source", &self.source)
            .field("url", &without_secrets(&self.url))
            .field("headers", &self.headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .finish()
    }
}
