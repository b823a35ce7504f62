use std::{ffi::OsString, path::PathBuf};

use pintle_host::config::ResolvedServer;

use super::{Endpoint, Target};
use crate::{
    args::{ConnectArgs, EraArg},
    auth::Logins,
    failure::Failure,
    output::Output,
};

/// The program or the URL of a target, with its variables replaced.
#[derive(Clone, Debug)]
pub(crate) enum Destination {
    InProcess,
    Program {
        program: OsString,
        cwd: Option<PathBuf>,
        /// The names of the variables that are set or passed on, in addition to the usual ones.
        variables: Vec<String>,
    },
    Url {
        url: String,
        /// Where the token comes from, if there is one.
        token: Option<&'static str>,
    },
}

impl Endpoint {
    /// Returns where the target leads to. A project's file has to be approved for it.
    pub(crate) async fn destination(&self, output: &Output) -> Result<Destination, Failure> {
        let ConnectArgs { env, cwd, .. } = &self.options;
        let name = |variable: &String| variable.split('=').next().unwrap_or_default().to_owned();
        let typed = env.iter().map(name);
        Ok(match &self.target {
            Target::Demo => Destination::InProcess,
            Target::Url(url) => self.at_url(url.clone()),
            Target::Program { program, .. } => Destination::Program {
                program: program.clone(),
                cwd: cwd.clone(),
                variables: typed.collect(),
            },
            Target::Configured(server) => match server.resolve(&self.options.inputs, output).await? {
                ResolvedServer::Stdio(stdio) => {
                    let set = stdio.env.iter().map(|(name, _)| name.clone());
                    Destination::Program {
                        program: stdio.command.clone().into(),
                        cwd: cwd.clone().or(stdio.cwd.map(PathBuf::from)),
                        variables: set.chain(stdio.inherit_env).chain(typed).collect(),
                    }
                }
                ResolvedServer::Remote(remote) => self.at_url(remote.url),
                _ => return Err(Failure::internal(&"an entry of an unknown kind")),
            },
        })
    }

    fn at_url(&self, url: String) -> Destination {
        let has_login = || Logins::load().find(&super::address::without_secrets(&url)).is_some();
        let token = match () {
            () if self.has_token() => Some("the options"),
            () if self.has_configured_token() => Some("the configuration"),
            () if has_login() => Some("the login"),
            () => None,
        };
        Destination::Url { url, token }
    }

    /// Returns the endpoint with another era.
    pub(crate) fn with_era(&self, era: EraArg) -> Self {
        let mut endpoint = self.clone();
        endpoint.options.era = era;
        endpoint
    }
}
