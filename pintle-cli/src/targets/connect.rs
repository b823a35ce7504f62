use std::io;

use pintle::{
    Client, Connection, Timeouts,
    client::{Mode, http::Http},
    transport::{Child, ChildCommand, Stderr},
    types::schema::LoggingLevel,
};
use pintle_host::config::ResolvedServer;

use super::{Endpoint, Target};
use crate::{
    args::{ConnectArgs, EraArg},
    demo,
    failure::{Exit, Failure},
    output::{Output, Text, Tone},
};

impl Endpoint {
    /// Returns a client with the options of the connection. A verb may add handlers before it connects.
    pub(crate) fn client(&self, output: &Output) -> Client {
        let mode = match self.options.era {
            EraArg::Auto => Mode::Auto,
            EraArg::Stateless => Mode::Modern,
            EraArg::Session => Mode::Legacy,
        };
        let mut client =
            Client::new("pintle", env!("CARGO_PKG_VERSION")).mode(mode).timeouts(self.timeouts());
        if let Some(revision) = self.options.revision {
            client = client.revisions([revision]);
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

    /// Connects a client to the target.
    pub(crate) async fn connect(&self, client: &Client, output: &Output) -> Result<Connection, Failure> {
        output.detail(labelled("target: ", &self.target.to_string()));
        let connected = match &self.target {
            Target::Demo => match demo::server(&demo::Harbour::default()).in_process() {
                Ok(transport) => client.connect(transport).await,
                Err(error) => Err(error),
            },
            Target::Url(url) => {
                let http =
                    Http::new(url).map_err(|error| Failure::usage(error.to_string(), "pintle --help"))?;
                client.connect(self.with_headers(http)?).await
            }
            Target::Program { program, args } => {
                client.connect(self.start(Child::command(program).args(args), output)?).await
            }
            Target::Configured(server) => match server.resolve(output).await? {
                ResolvedServer::Stdio(stdio) => client.connect(self.start(stdio.command(), output)?).await,
                ResolvedServer::Remote(remote) => {
                    let http = remote
                        .http()
                        .map_err(|error| Failure::usage(error.to_string(), self.line("info", &[])))?;
                    client.connect(self.with_headers(http)?).await
                }
                _ => return Err(Failure::internal(&"an entry of an unknown kind")),
            },
        };
        let connection = connected.map_err(|error| self.explain(&error))?;
        output.detail(labelled("revision: ", connection.revision().as_str()));
        Ok(connection)
    }

    /// Starts a program with the options of the connection.
    fn start(&self, mut command: ChildCommand, output: &Output) -> Result<Child, Failure> {
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
    fn with_headers(&self, mut http: Http) -> Result<Http, Failure> {
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
