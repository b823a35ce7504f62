use std::io;

use pintle::{
    Client, Connection, Timeouts,
    client::{Mode, http::Http},
    transport::{Child, ChildCommand, Stderr},
    types::schema::LoggingLevel,
};
use pintle_host::config::EntryTransport;

use super::{Endpoint, ResolvedTarget, ResolvedUrl, Target};
use crate::{
    args::{ConnectArgs, EraArg},
    auth::{Logins, NoConsent},
    connection::VerbConnection,
    failure::{Exit, Failure},
    output::{Output, Text, Tone},
};

impl Endpoint {
    /// Returns a client with the options of the connection. A verb may add handlers before it connects.
    pub(crate) fn client(&self, output: &Output) -> Client {
        let mode = match self.options.era {
            EraArg::Auto | EraArg::Both => Mode::Auto,
            EraArg::Stateless => Mode::Modern,
            EraArg::Session => Mode::Legacy,
        };
        let mut client =
            Client::new("pintle", env!("CARGO_PKG_VERSION")).mode(mode).timeouts(self.timeouts());
        if let Some(revision) = self.options.revision {
            client = client.revisions([revision]);
        }
        if let Some(log) = output.message_log() {
            client = client.message_log(log.clone());
        }
        let level = match output.verbosity() {
            0 => return client,
            1 => LoggingLevel::Info,
            _ => LoggingLevel::Debug,
        };
        let (log, noise) = (output.clone(), output.clone());
        client
            .log_level(level)
            .on_log(move |message| {
                let logger = message.logger.as_deref().unwrap_or("server");
                log.detail(labelled(&format!("{logger}: "), &log_text(&message.data)));
            })
            .on_noise(move |line| noise.detail(labelled("not a message: ", line.params)))
    }

    /// Connects a client to the target. A connection that is open already is used as it is, and the client is not.
    pub(crate) async fn connect(&self, client: &Client, output: &Output) -> Result<VerbConnection, Failure> {
        match &self.options.open {
            Some(open) => Ok(open.clone().into()),
            None => Ok(self.open(client, output).await?.into()),
        }
    }

    async fn open(&self, client: &Client, output: &Output) -> Result<Connection, Failure> {
        output.detail(labelled("target: ", &self.target.to_string()));
        let connected = match self.resolved(output).await? {
            ResolvedTarget::InProcess(server) => match server.in_process() {
                Ok(transport) => client.connect(transport).await,
                Err(error) => Err(error),
            },
            ResolvedTarget::Program(command) => client.connect(self.start(command, output)?).await,
            ResolvedTarget::Url(url) => client.connect(self.authorized(&url)?).await,
        };
        let connection = connected.map_err(|error| self.explain(&error))?;
        output.detail(labelled("revision: ", connection.revision().as_str()));
        Ok(connection)
    }

    /// Returns the transport of a server at a URL without a stored login, and the URL as logins have it.
    pub(crate) async fn unauthorized_http(
        &self,
        verb: &str,
        output: &Output,
    ) -> Result<(Http, String), Failure> {
        let not_a_url = || {
            let message = format!("`{verb}` is for servers at a URL, and this is {}", self.target);
            Failure::usage(message, "pintle auth ls")
        };
        match self.resolved(output).await? {
            ResolvedTarget::Url(url) => Ok((self.http(&url)?, url.plain())),
            ResolvedTarget::InProcess(_) | ResolvedTarget::Program(_) => Err(not_a_url()),
        }
    }

    /// Returns the transport of a server at a URL with the stored login, unless the options or the entry have a token.
    pub(super) fn authorized(&self, url: &ResolvedUrl) -> Result<Http, Failure> {
        let http = self.http(url)?;
        if self.has_token() || self.has_configured_token() {
            return Ok(http);
        }
        match Logins::load().find(&url.plain()) {
            Some(login) => Ok(http.auth(login.oauth(NoConsent)?)),
            None => Ok(http),
        }
    }

    /// Returns whether the options have a token.
    pub(super) fn has_token(&self) -> bool {
        let is_token = |header: &String| {
            header.split(':').next().is_some_and(|name| name.trim().eq_ignore_ascii_case("authorization"))
        };
        self.options.token_env.is_some() || self.options.headers.iter().any(is_token)
    }

    /// Returns whether the entry of a configuration file has a token.
    pub(super) fn has_configured_token(&self) -> bool {
        let Target::Configured(server) = &self.target else { return false };
        match &server.entry.transport {
            EntryTransport::Remote(remote) => {
                remote.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
            }
            _ => false,
        }
    }

    /// Returns whether the entry of a configuration file has headers or variables, which may be secrets.
    pub(super) fn has_configured_secrets(&self) -> bool {
        let Target::Configured(server) = &self.target else { return false };
        match &server.entry.transport {
            EntryTransport::Remote(remote) => !remote.headers.is_empty(),
            EntryTransport::Stdio(stdio) => {
                !stdio.env.is_empty() || !stdio.inherit_env.is_empty() || stdio.env_file.is_some()
            }
            _ => true,
        }
    }

    /// Starts a program with the options of the connection.
    pub(super) fn start(&self, mut command: ChildCommand, output: &Output) -> Result<Child, Failure> {
        let lines = output.clone();
        command = command.stderr(Stderr::lines(move |line| lines.detail(labelled("stderr: ", line))));
        for variable in &self.options.env {
            command = match variable.split_once('=') {
                Some((name, value)) => command.env(name, value),
                None => command.inherit_env([variable]),
            };
        }
        if let Some(directory) = &self.options.cwd {
            command = command.current_dir(directory);
        }
        let failed =
            |error: io::Error| Failure::new(Exit::Unreachable, error.to_string(), self.next_if_unreachable());
        command.spawn().map_err(failed)
    }

    /// Adds the headers and the token of the options.
    pub(super) fn with_headers(&self, mut http: Http) -> Result<Http, Failure> {
        let ConnectArgs { headers, token_env, .. } = &self.options;
        for header in headers {
            let invalid = || {
                // What is not a name may be a secret.
                let name = header.split_once(':').map(|(name, _)| format!("`{name}` ")).unwrap_or_default();
                Failure::usage(
                    format!("a header {name}is invalid: write `--header 'Name: value'`"),
                    self.line_with("info", "--header 'Name: value'"),
                )
            };
            let (name, value) = header.split_once(':').ok_or_else(invalid)?;
            let name = http::HeaderName::try_from(name.trim()).map_err(|_| invalid())?;
            let mut value = http::HeaderValue::from_str(value.trim()).map_err(|_| invalid())?;
            value.set_sensitive(true);
            http = http.headers([(name, value)]);
        }
        if let Some(name) = token_env {
            let token = std::env::var(name).ok().filter(|token| !token.is_empty()).ok_or_else(|| {
                Failure::usage(
                    format!("the environment variable `{name}` has no token"),
                    format!("export {name}=…"),
                )
            })?;
            http = http.bearer(token).map_err(|_| {
                Failure::usage(
                    format!("the token in `{name}` has characters that a header cannot have"),
                    format!("echo ${name} | cat -v"),
                )
            })?;
        }
        Ok(http)
    }

    fn timeouts(&self) -> Timeouts {
        let mut timeouts = Timeouts::default();
        if let Target::Configured(server) = &self.target {
            let entry = &server.entry;
            timeouts.initialize = entry.startup_timeout.unwrap_or(timeouts.initialize);
            timeouts.call = entry.call_timeout.unwrap_or(timeouts.call);
            timeouts.call_max = timeouts.call_max.max(timeouts.call);
        }
        if let Some(timeout) = self.options.timeout {
            timeouts.call = timeout;
            timeouts.call_max = timeouts.call_max.max(timeout);
            timeouts.initialize = timeout;
            timeouts.probe = timeouts.probe.min(timeout);
        }
        timeouts
    }
}

fn labelled(label: &str, text: &str) -> Text {
    let mut line = Text::new();
    line.tone(Tone::Faint, label).add(text);
    line
}

/// Formats the data of a log message: a text as it is, anything else as JSON.
pub(crate) fn log_text(data: &serde_json::Value) -> String {
    data.as_str().map_or_else(|| data.to_string(), str::to_owned)
}
