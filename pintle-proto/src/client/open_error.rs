use std::fmt;

use pintle_types::{RpcError, method};

use crate::{Revision, Violation};

/// The error for a connection that could not be opened.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub enum OpenError {
    /// The server did not answer.
    Silent {
        /// The method of the last request sent.
        method: &'static str,
    },
    /// The server disconnected.
    Exited {
        /// The method of the last request sent.
        method: &'static str,
    },
    /// The server responded with an error.
    Refused {
        /// The method of the request.
        method: &'static str,
        /// The error.
        error: RpcError,
    },
    /// The server does not know `server/discover`, which every server of the stateless era supports.
    TooOld {
        /// The error.
        error: RpcError,
    },
    /// The server responded with something other than JSON-RPC.
    Garbled {
        /// The method of the request.
        method: &'static str,
        /// The HTTP status, if there is one.
        status: Option<u16>,
    },
    /// The server refused the request with an HTTP status and a reason.
    Rejected {
        /// The method of the request.
        method: &'static str,
        /// The HTTP status.
        status: u16,
        /// The reason from the response body, for display.
        reason: Box<str>,
    },
    /// Client and server have no revision in common.
    NothingInCommon {
        /// The revisions that the client allows.
        ours: Vec<Revision>,
        /// The revisions that the server supports.
        theirs: Vec<Box<str>>,
    },
    /// The server violated the protocol.
    Violation(Violation),
    /// The client's settings leave no revision to try.
    NothingToOffer,
    /// The opening received an event that it was not waiting for: a bug of its driver.
    OutOfStep,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent { method: method::SERVER_DISCOVER } => f.write_str(
                "the server did not answer `server/discover`: if it may speak only older revisions, allow them with \
                 the mode `auto`, else increase the timeout",
            ),
            Self::Silent { method } => write!(
                f,
                "the server did not answer `{method}`: check that it is an MCP server and is not waiting for something \
                 else, or increase the timeout"
            ),
            Self::Exited { method } => write!(
                f,
                "the server disconnected when it was sent `{method}`: look at what it wrote to its standard error"
            ),
            Self::TooOld { error } => write!(
                f,
                "the server does not know `server/discover`: {error}: it seems to speak only older revisions; allow \
                 them with the mode `auto`"
            ),
            Self::Refused { method, error } => write!(f, "the server refused `{method}`: {error}"),
            Self::Garbled { method, status: Some(status) } => write!(
                f,
                "the response to `{method}` has HTTP status {status} and no JSON-RPC message: check that the URL is that \
                 of an MCP endpoint"
            ),
            Self::Garbled { method, status: None } => {
                write!(f, "the response to `{method}` is not a JSON-RPC message: check that it is an MCP server")
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
            Self::Violation(violation) => write!(f, "the server violated the protocol: {violation}"),
            Self::NothingToOffer => {
                f.write_str("the mode and the list of revisions leave nothing to try: allow a revision of that mode")
            }
            Self::OutOfStep => f.write_str("the opening received an event that it was not waiting for"),
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
