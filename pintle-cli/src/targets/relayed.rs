use std::{future::ready, io};

use pintle::{
    Client,
    client::{
        Connector,
        http::{Auth, Http},
    },
    transport::{Child, ChildCommand},
};
use pintle_host::config::{EntryTransport, Template};
use pintle_relay::Relay;

use super::{Endpoint, ProgramStarts, ResolvedTarget, Target, secrets};
use crate::{
    auth::{BackgroundLogin, Logins},
    failure::Failure,
    output::Output,
};

impl Endpoint {
    /// Opens the target as the server behind a relay, which opens further connections as its clients need them.
    pub(crate) async fn relay(
        &self,
        target: ResolvedTarget,
        client: Client,
        auth: Option<impl Auth>,
        starts: ProgramStarts,
        output: &Output,
    ) -> Result<Relay, Failure> {
        let opened = match target {
            ResolvedTarget::InProcess(server) => {
                Relay::connect(client, move || ready(server.in_process().map_err(io::Error::other))).await
            }
            ResolvedTarget::Program(command) => {
                let (endpoint, output) = (self.clone(), output.clone());
                Relay::connect(client, ProgramConnector { endpoint, command, starts, output }).await
            }
            ResolvedTarget::Url(url) => {
                // What cannot be used at all is reported as the other verbs do. All connections share their sockets.
                let http = self.http(&url)?;
                let http = match auth {
                    Some(auth) => http.auth(auth),
                    None => http,
                };
                Relay::connect(client, UrlConnector { http, starts }).await
            }
        };
        opened.map_err(|error| self.explain(&error))
    }

    /// Returns the login for a server at a URL, unless the options or the entry have a token.
    pub(crate) fn background_login(
        &self,
        target: &ResolvedTarget,
        no_browser: bool,
        output: &Output,
    ) -> Result<Option<BackgroundLogin>, Failure> {
        match target {
            ResolvedTarget::Url(url) if !self.has_token() && !self.has_configured_token() => {
                BackgroundLogin::new(url.plain(), self.reach(url), no_browser, output).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Returns whether the user has logged in to the server, as `pintle login` does.
    pub(crate) fn has_login(&self, target: &ResolvedTarget) -> bool {
        matches!(target, ResolvedTarget::Url(url) if Logins::load().find(&url.plain()).is_some())
    }

    /// Refuses to serve a target to everybody who can connect, if that would give them the rights of its owner there.
    pub(crate) fn not_for_everybody(&self, name: &str, uses_login: bool, verb: &str) -> Result<(), Failure> {
        let options = &self.options;
        let rights = match () {
            () if options.token_env.is_some() => "the token of `--token-env`",
            () if !options.headers.is_empty() => "its headers",
            () if !options.env.is_empty() => "its variables",
            () if self.has_configured_secrets() => "the headers or variables of its configuration",
            () if self.has_written_secret() => "the secret in its URL or its words",
            () if uses_login => "your login",
            () => return Ok(()),
        };
        let message = format!("anybody could use `{name}` with {rights}: leave out `--insecure-no-auth`");
        Err(Failure::usage(message, format!("pintle {verb} --help")))
    }

    /// Returns whether the URL or the words of the target have what looks like a secret.
    fn has_written_secret(&self) -> bool {
        let words = |words: &mut dyn Iterator<Item = &str>| secrets::in_words(words).is_some();
        match &self.target {
            Target::Demo => false,
            Target::Url(url) => secrets::in_url(url).is_some(),
            Target::Program { args, .. } => words(&mut args.iter().filter_map(|word| word.to_str())),
            Target::Configured(server) => match &server.entry.transport {
                EntryTransport::Remote(remote) => secrets::in_url(remote.url.as_written()).is_some(),
                EntryTransport::Stdio(stdio) => words(&mut stdio.args.iter().map(Template::as_written)),
                _ => true,
            },
        }
    }
}

/// The source of the programs of a relay.
#[derive(Clone)]
struct ProgramConnector {
    endpoint: Endpoint,
    command: ChildCommand,
    starts: ProgramStarts,
    output: Output,
}

impl ProgramConnector {
    async fn start(self, caller: Option<String>) -> io::Result<Child> {
        let slot = self.starts.begin(caller.as_deref()).await?;
        self.endpoint.start(self.starts.command_in(slot, &self.command), &self.output).map_err(io_error)
    }
}

impl Connector for ProgramConnector {
    type Transport = Child;

    fn connect(&mut self) -> impl Future<Output = io::Result<Child>> + Send + 'static {
        self.clone().start(None)
    }

    fn connect_for(
        &mut self,
        caller: Option<&str>,
    ) -> impl Future<Output = io::Result<Child>> + Send + 'static {
        self.clone().start(caller.map(str::to_owned))
    }
}

/// The source of the connections of a relay to a URL.
#[derive(Clone)]
struct UrlConnector {
    http: Http,
    starts: ProgramStarts,
}

impl UrlConnector {
    async fn open(self, caller: Option<String>) -> io::Result<Http> {
        let slot = self.starts.begin_connection(caller.as_deref()).await?;
        Ok(self.http.holding(slot))
    }
}

impl Connector for UrlConnector {
    type Transport = Http;

    fn connect(&mut self) -> impl Future<Output = io::Result<Http>> + Send + 'static {
        self.clone().open(None)
    }

    fn connect_for(
        &mut self,
        caller: Option<&str>,
    ) -> impl Future<Output = io::Result<Http>> + Send + 'static {
        self.clone().open(caller.map(str::to_owned))
    }
}

fn io_error(failure: Failure) -> io::Error {
    io::Error::other(failure.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_to_a_url_has_its_slot_until_it_is_gone() {
        let http = Http::new("http://127.0.0.1:1/mcp").unwrap();
        let connector = UrlConnector { http, starts: ProgramStarts::new(1, "`max_programs`") };
        let mut open = Vec::new();
        let full = loop {
            match connector.clone().open(None).await {
                Ok(http) if open.len() < 10_000 => open.push(http),
                Ok(_) => panic!("there is no limit"),
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::ResourceBusy);
        open.truncate(1);
        drop(connector.clone().open(None).await.unwrap());
    }
}
