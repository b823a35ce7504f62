use std::fmt;

use pintle_types::{RpcError, method};

use crate::{Revision, Violation};

/// Why a connection could not be opened.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub enum OpenError {
    /// The server did not answer.
    Silent {
        /// What it was asked last.
        method: &'static str,
    },
    /// The server went away.
    Exited {
        /// What it was asked last.
        method: &'static str,
    },
    /// The server said no.
    Refused {
        /// What it was asked.
        method: &'static str,
        /// What it said.
        error: RpcError,
    },
    /// The server does not know the question that every server of the stateless era knows.
    TooOld {
        /// What it said.
        error: RpcError,
    },
    /// The server answered with something that is no JSON-RPC.
    Garbled {
        /// What it was asked.
        method: &'static str,
        /// The HTTP status, if there is one.
        status: Option<u16>,
    },
    /// Over HTTP: the server refused, and said why.
    Rejected {
        /// What it was asked.
        method: &'static str,
        /// The HTTP status.
        status: u16,
        /// What it said, as it is to be shown.
        reason: Box<str>,
    },
    /// There is no revision that both sides speak.
    NothingInCommon {
        /// What this client may speak here.
        ours: Vec<Revision>,
        /// What the server says that it speaks.
        theirs: Vec<Box<str>>,
    },
    /// The server broke the protocol.
    Violation(Violation),
    /// The client's own settings leave no revision to try.
    NothingToOffer,
    /// The opening was told of something that it was not waiting for: a mistake of whoever drives it.
    OutOfStep,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent { method: method::SERVER_DISCOVER } => f.write_str(
                "the server did not answer `server/discover`: if it may be one of the older revisions, allow them with \
                 the mode `auto`, else allow it more time",
            ),
            Self::Silent { method } => write!(
                f,
                "the server did not answer `{method}`: check that it is an MCP server and is not waiting for something \
                 else, or allow it more time"
            ),
            Self::Exited { method } => write!(
                f,
                "the server went away when it was sent `{method}`: look at what it wrote to its standard error"
            ),
            Self::TooOld { error } => write!(
                f,
                "the server does not know `server/discover`: {error}: it seems to speak only older revisions; allow \
                 them with the mode `auto`"
            ),
            Self::Refused { method, error } => write!(f, "the server refused `{method}`: {error}"),
            Self::Garbled { method, status: Some(status) } => write!(
                f,
                "`{method}` was answered with HTTP status {status} and no JSON-RPC message: check that the URL is that \
                 of an MCP endpoint"
            ),
            Self::Garbled { method, status: None } => {
                write!(f, "`{method}` was answered with something that is no JSON-RPC message: check that it is an MCP server")
            }
            Self::Rejected { method, status, reason } => {
                write!(f, "the server refused `{method}` with HTTP status {status}: {reason}")?;
                match status {
                    404 | 405 => f.write_str("; check that the URL is that of an MCP endpoint"),
                    _ => Ok(()),
                }
            }
            Self::NothingInCommon { ours, theirs } => {
                f.write_str("no revision in common: this client speaks ")?;
                list(f, ours.iter().map(|revision| revision.as_str()))?;
                f.write_str(", the server speaks ")?;
                list(f, theirs.iter().map(|name| &**name))?;
                f.write_str(": allow more revisions, or update the older side")
            }
            Self::Violation(violation) => write!(f, "the server broke the protocol: {violation}"),
            Self::NothingToOffer => {
                f.write_str("the mode and the list of revisions leave nothing to try: allow a revision of that mode")
            }
            Self::OutOfStep => f.write_str("the opening was told of something that it was not waiting for"),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused { error, .. } | Self::TooOld { error } => Some(error),
            Self::Violation(violation) => Some(violation),
            _ => None,
        }
    }
}

fn list<'a>(f: &mut fmt::Formatter<'_>, names: impl Iterator<Item = &'a str>) -> fmt::Result {
    let mut none = true;
    for name in names {
        write!(f, "{}`{name}`", if none { "" } else { ", " })?;
        none = false;
    }
    if none { f.write_str("none that it names") } else { Ok(()) }
}
