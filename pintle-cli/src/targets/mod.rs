//! Targets: which server a verb talks to, and how it is reached.

mod address;
mod approval;
mod configured;
mod connect;
mod destination;
mod endpoint;
mod explain;
mod launch;
mod launcher;
mod new_server;
mod program_limits;
mod program_starts;
mod reference;
mod relayed;
mod resolve;
mod resolved;
pub(crate) mod secrets;
mod summary;

use std::{ffi::OsString, fmt};

use pintle_host::config::EntryTransport;

pub(crate) use approval::UntrustedFile;
pub(crate) use configured::{ConfiguredServer, Inventory, ListedServer, directories, inventory};
pub(crate) use connect::log_text;
pub(crate) use destination::Destination;
pub(crate) use endpoint::Endpoint;
pub(crate) use launch::{Launch, LaunchedProgram, LaunchedUrl};
pub(crate) use launcher::launched;
pub(crate) use program_limits::ProgramLimits;
pub(crate) use program_starts::ProgramStarts;
pub(crate) use reference::TargetReference;
use resolve::resolve;
pub(crate) use resolved::ResolvedTarget;
use resolved::ResolvedUrl;

/// A server that a verb can connect to.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// The demo server, in this process.
    Demo,
    /// A server at a URL.
    Url(String),
    /// A program to start.
    Program { program: OsString, args: Vec<OsString> },
    /// A server of a configuration file.
    Configured(Box<ConfiguredServer>),
}

impl Target {
    /// Returns whether it is reached at a URL.
    fn has_url(&self) -> bool {
        match self {
            Self::Url(_) => true,
            Self::Configured(server) => matches!(server.entry.transport, EntryTransport::Remote(_)),
            Self::Demo | Self::Program { .. } => false,
        }
    }

    /// Returns whether a program is started for it.
    fn has_program(&self) -> bool {
        match self {
            Self::Program { .. } => true,
            Self::Configured(server) => matches!(server.entry.transport, EntryTransport::Stdio(_)),
            Self::Demo | Self::Url(_) => false,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Demo => f.write_str("the demo server in this process"),
            Self::Url(url) => write!(f, "the URL {}", address::without_secrets(url)),
            Self::Program { program, args } => {
                write!(f, "the program {}", program.display())?;
                args.iter().try_for_each(|arg| write!(f, " {}", arg.display()))
            }
            Self::Configured(server) => {
                let entry = &server.entry;
                write!(f, "the server `{}` of {}: ", entry.name, entry.source)?;
                // Arguments, headers and the rest of the URL may be secrets.
                match &entry.transport {
                    EntryTransport::Stdio(stdio) => write!(f, "the program {}", stdio.command.as_written()),
                    EntryTransport::Remote(remote) => {
                        write!(f, "the URL {}", address::without_secrets(remote.url.as_written()))
                    }
                    _ => f.write_str("a transport that this version does not know"),
                }
            }
        }
    }
}
