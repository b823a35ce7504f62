use std::{future::ready, io};

use pintle::{
    Client, Server,
    client::http::Http,
    relay::Relay,
    transport::{Child, ChildCommand},
};
use pintle_host::config::ResolvedServer;

use super::{Endpoint, Target};
use crate::{demo, failure::Failure, output::Output};

impl Endpoint {
    /// Opens the target as the server behind a relay, which opens further connections as its clients need them.
    pub(crate) async fn relay(&self, client: Client, output: &Output) -> Result<Relay, Failure> {
        let opened = match &self.target {
            Target::Demo => {
                let server: Server = demo::server(&demo::Harbour::default());
                Relay::connect(client, move || ready(server.in_process().map_err(io::Error::other))).await
            }
            Target::Url(url) => {
                let (endpoint, url) = (self.clone(), url.clone());
                let open = move || endpoint.authorized(endpoint.http_of_url(&url)?, &url);
                self.relay_to_url(client, open).await?
            }
            Target::Program { program, args } => {
                let (program, args) = (program.clone(), args.clone());
                self.relay_to_program(client, output, move || Child::command(&program).args(&args)).await
            }
            Target::Configured(server) => match server.resolve(output).await? {
                ResolvedServer::Stdio(stdio) => {
                    self.relay_to_program(client, output, move || stdio.command()).await
                }
                ResolvedServer::Remote(remote) => {
                    let endpoint = self.clone();
                    let open = move || endpoint.authorized(endpoint.http_of_entry(&remote)?, &remote.url);
                    self.relay_to_url(client, open).await?
                }
                _ => return Err(Failure::internal(&"an entry of an unknown kind")),
            },
        };
        opened.map_err(|error| self.explain(&error))
    }

    async fn relay_to_url(
        &self,
        client: Client,
        open: impl Fn() -> Result<Http, Failure> + Send + 'static,
    ) -> Result<pintle::Result<Relay>, Failure> {
        // What cannot be used at all is reported as the other verbs do.
        drop(open()?);
        Ok(Relay::connect(client, move || ready(open().map_err(io_error))).await)
    }

    async fn relay_to_program(
        &self,
        client: Client,
        output: &Output,
        command: impl Fn() -> ChildCommand + Send + 'static,
    ) -> pintle::Result<Relay> {
        let (endpoint, output) = (self.clone(), output.clone());
        Relay::connect(client, move || ready(endpoint.start(command(), &output).map_err(io_error))).await
    }
}

fn io_error(failure: Failure) -> io::Error {
    io::Error::other(failure.message)
}
