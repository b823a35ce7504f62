use std::{future::ready, io};

use pintle::{Client, client::http::Auth, relay::Relay};

use super::{Endpoint, ProgramStarts, ResolvedTarget};
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
                let start = move || {
                    let slot = starts.begin()?;
                    // Its slot is free when the program is gone, with all that it has started.
                    let command = command.clone().on_exit(move |exit| slot.ended(exit));
                    endpoint.start(command, &output).map_err(io_error)
                };
                Relay::connect(client, move || ready(start())).await
            }
            ResolvedTarget::Url(url) => {
                // What cannot be used at all is reported as the other verbs do. All connections share their sockets.
                let http = self.http(&url)?;
                let http = match auth {
                    Some(auth) => http.auth(auth),
                    None => http,
                };
                Relay::connect(client, move || ready(Ok(http.clone()))).await
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
                BackgroundLogin::new(url.plain(), no_browser, output).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Returns what gives clients of a bridge the rights of its owner at the target, if anything does.
    pub(crate) fn owner_rights(&self, target: &ResolvedTarget) -> Option<&'static str> {
        let options = &self.options;
        let is_login = || match target {
            ResolvedTarget::Url(url) => Logins::load().find(&url.plain()).is_some(),
            _ => false,
        };
        match () {
            () if options.token_env.is_some() => Some("the token of `--token-env`"),
            () if !options.headers.is_empty() => Some("the headers of `--header`"),
            () if !options.env.is_empty() => Some("the variables of `--env`"),
            () if self.has_configured_secrets() => Some("the headers or variables of its configuration"),
            () if is_login() => Some("your login"),
            () => None,
        }
    }
}

fn io_error(failure: Failure) -> io::Error {
    io::Error::other(failure.message)
}
