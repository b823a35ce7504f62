use std::{
    ffi::OsStr,
    path::{MAIN_SEPARATOR, Path},
};

use pintle_host::config::{EntryTransport, NewServer, Platform, ServerEntry, Template};

use super::{Endpoint, Target, launched};
use crate::failure::Failure;

impl Endpoint {
    /// Returns the target as a server for configuration files of hosts, with the options of its connection.
    pub(crate) fn new_server(&self, name: &str) -> Result<NewServer, Failure> {
        let options = &self.options;
        let refused = |message: String| Failure::usage(message, "pintle add --help");
        let unsupported = [
            ("--era", options.era != crate::args::EraArg::Auto),
            ("--revision", options.revision.is_some()),
            ("--timeout", options.timeout.is_some()),
        ];
        if let Some((option, _)) = unsupported.iter().find(|(_, given)| *given) {
            return Err(refused(format!("hosts have nothing like `{option}`: leave it out")));
        }
        let mut server = match &self.target {
            Target::Demo => {
                let own = std::env::current_exe().map_err(|error| Failure::internal(&error))?;
                NewServer::program(name, text(own.as_os_str()).map_err(refused)?, ["demo"])
            }
            Target::Url(url) => NewServer::remote(name, url),
            Target::Program { program, args } => {
                let args: Result<Vec<_>, _> = args.iter().map(|arg| text(arg)).collect();
                let program = absolute(program).map_err(refused)?;
                let (program, args) = launched(Platform::current(), program, args.map_err(refused)?);
                NewServer::program(name, program, args)
            }
            Target::Configured(server) => copy(name, &server.entry).map_err(refused)?,
        };
        for header in &options.headers {
            let (header, content) = header
                .split_once(':')
                .ok_or_else(|| refused("a header is invalid: write `--header 'Name: value'`".to_owned()))?;
            server = server.header(header.trim(), content.trim());
        }
        if let Some(variable) = &options.token_env {
            server = server.token_env(variable);
        }
        for variable in &options.env {
            server = match variable.split_once('=') {
                Some((variable, set)) => server.env(variable, set),
                None => server.inherit_env(variable),
            };
        }
        if let Some(directory) = &options.cwd {
            let directory = std::path::absolute(directory).map_err(|error| refused(error.to_string()))?;
            server = server.current_dir(text(directory.as_os_str()).map_err(refused)?);
        }
        Ok(server)
    }
}

/// Copies an entry to another host, as far as it means the same there.
fn copy(name: &str, entry: &ServerEntry) -> Result<NewServer, String> {
    let plain = |template: &Template| match template.inputs().next().is_some() || has_variables(template) {
        true => Err(format!(
            "the server `{}` has variables, which hosts write differently: write the target instead",
            entry.name
        )),
        false => Ok(template.as_written().to_owned()),
    };
    match &entry.transport {
        EntryTransport::Stdio(stdio) if stdio.env_file.is_none() => {
            let args: Result<Vec<_>, _> = stdio.args.iter().map(plain).collect();
            let mut server = NewServer::program(name, plain(&stdio.command)?, args?);
            for (variable, set) in &stdio.env {
                server = server.env(variable, plain(set)?);
            }
            for variable in &stdio.inherit_env {
                server = server.inherit_env(variable);
            }
            match &stdio.cwd {
                Some(cwd) => Ok(server.current_dir(plain(cwd)?)),
                None => Ok(server),
            }
        }
        EntryTransport::Remote(remote) => {
            let mut server = NewServer::remote(name, plain(&remote.url)?);
            for (header, content) in &remote.headers {
                server = server.header(header, plain(content)?);
            }
            Ok(server)
        }
        _ => Err(format!("the server `{}` cannot be copied: write the target instead", entry.name)),
    }
}

fn has_variables(template: &Template) -> bool {
    ["${", "{env:", "{file:"].iter().any(|start| template.as_written().contains(start))
}

/// Returns a program by its absolute path, unless it is a name to be looked up: hosts start it elsewhere.
fn absolute(program: &OsStr) -> Result<String, String> {
    let is_path = program.to_string_lossy().contains(['/', MAIN_SEPARATOR]);
    match is_path {
        true => {
            let path = std::path::absolute(Path::new(program)).map_err(|error| error.to_string())?;
            text(path.as_os_str())
        }
        false => text(program),
    }
}

fn text(word: &OsStr) -> Result<String, String> {
    let not_text = || format!("`{}` is not valid Unicode, which configuration files require", word.display());
    word.to_str().map(str::to_owned).ok_or_else(not_text)
}
