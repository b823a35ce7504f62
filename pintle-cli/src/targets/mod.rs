//! Targets: which server a verb talks to, and how it is reached.

mod address;
mod connect;
mod endpoint;
mod explain;
mod resolve;

use std::{ffi::OsString, fmt};

pub(crate) use connect::log_text;
pub(crate) use endpoint::Endpoint;
pub(crate) use resolve::resolve;

/// A server that a verb can connect to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Target {
    /// The demo server, in this process.
    Demo,
    /// A server at a URL.
    Url(String),
    /// A program to start.
    Program { program: OsString, args: Vec<OsString> },
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
        }
    }
}
