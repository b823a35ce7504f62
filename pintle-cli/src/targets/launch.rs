use std::{ffi::OsString, path::PathBuf};

use http::{HeaderMap, HeaderName, HeaderValue};
use pintle_host::config::ResolvedServer;

use super::{Endpoint, Target};
use crate::{failure::Failure, output::Output};

/// The program or the URL that a host has for a target.
#[derive(Debug)]
pub(crate) enum Launch {
    Program(LaunchedProgram),
    Url(LaunchedUrl),
}

/// A program as it is started.
#[derive(Debug)]
pub(crate) struct LaunchedProgram {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    /// The variables of its entry.
    pub(crate) env: Vec<(String, String)>,
    pub(crate) cwd: Option<PathBuf>,
}

/// A URL with the headers of its entry.
pub(crate) struct LaunchedUrl {
    pub(crate) url: String,
    headers: Vec<(String, String)>,
}

impl std::fmt::Debug for LaunchedUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LaunchedUrl").field(&super::address::without_secrets(&self.url)).finish()
    }
}

impl LaunchedUrl {
    pub(crate) fn header_map(&self) -> Result<HeaderMap, Failure> {
        let mut map = HeaderMap::new();
        for (name, value) in &self.headers {
            let invalid = || {
                let message = format!("the header `{name}` of the entry is invalid");
                Failure::usage(message, "pintle servers")
            };
            let mut value = HeaderValue::from_str(value).map_err(|_| invalid())?;
            value.set_sensitive(true);
            map.append(HeaderName::try_from(name).map_err(|_| invalid())?, value);
        }
        Ok(map)
    }
}

impl Endpoint {
    /// Returns what a host starts or connects to. A project's file has to be approved for it.
    pub(crate) async fn launch(&self, output: &Output) -> Result<Launch, Failure> {
        let program = |program: OsString, args: Vec<OsString>| {
            Launch::Program(LaunchedProgram { program, args, env: Vec::new(), cwd: None })
        };
        Ok(match &self.target {
            Target::Demo => {
                let own = std::env::current_exe().map_err(|error| Failure::internal(&error))?;
                program(own.into(), vec!["demo".into()])
            }
            Target::Url(url) => Launch::Url(LaunchedUrl { url: url.clone(), headers: Vec::new() }),
            Target::Program { program: name, args } => program(name.clone(), args.clone()),
            Target::Configured(server) => match server.resolve(&self.options.inputs, output).await? {
                ResolvedServer::Stdio(stdio) => Launch::Program(LaunchedProgram {
                    program: stdio.command.into(),
                    args: stdio.args.into_iter().map(Into::into).collect(),
                    env: stdio.env,
                    cwd: stdio.cwd.map(PathBuf::from),
                }),
                ResolvedServer::Remote(remote) => {
                    Launch::Url(LaunchedUrl { url: remote.url, headers: remote.headers })
                }
                _ => return Err(Failure::internal(&"an entry of an unknown kind")),
            },
        })
    }
}
