use std::{error::Error as StdError, fmt, io, time::Duration};

use pintle_proto::{Violation, client::OpenError};
use pintle_types::RpcError;

use crate::{Ended, timeouts::rounded, transport::Failed};

/// What calls return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something did not work: whose fault it was, and what to do.
///
/// ```no_run
/// use pintle::Error;
///
/// # #[cfg(feature = "client")]
/// # async fn example(server: pintle::Connection) {
/// match server.call_tool("index", ()).await {
///     // A tool that ran and failed is a result. Its text is for the model.
///     Ok(result) => println!("{:?}", result.content),
///     Err(Error::Rpc(error)) => println!("the server refused: {} ({:?})", error.message, error.code),
///     Err(Error::Timeout(after)) => println!("nothing came in {after:?}, and the server was told to stop"),
///     Err(Error::Closed(ended)) => println!("connect again: {ended}"),
///     Err(error) => println!("{error}"),
/// }
/// # }
/// ```
#[non_exhaustive]
#[derive(Debug)]
pub enum Error {
    /// The peer answered with an error. Never made up on this side.
    Rpc(RpcError),
    /// The peer broke the protocol.
    Protocol(Violation),
    /// The connection could not be opened.
    Open {
        /// What the opening ran into.
        error: OpenError,
        /// What else was seen of the server: noise that it printed, how it ended.
        seen: Option<String>,
    },
    /// No answer came in time.
    Timeout(Duration),
    /// The connection is closed: how it ended is known.
    Closed(Ended),
    /// One request failed on the way; the connection goes on.
    Failed(Box<Failed>),
    /// The tool ran and failed. This is what it said.
    Tool(String),
    /// Reading or writing failed.
    Io(io::Error),
    /// What was asked for cannot be: it says what instead.
    Misuse(String),
    /// A policy of this side said no.
    Refused(String),
    /// What came back does not have the expected shape.
    Decode(String),
}

impl Error {
    #[cfg(any(feature = "client", feature = "server"))]
    pub(crate) fn misuse(said: impl Into<String>) -> Self {
        Self::Misuse(said.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rpc(error) => write!(f, "the peer said: {error}"),
            Self::Protocol(violation) => write!(f, "the peer broke the protocol: {violation}"),
            Self::Open { error, seen: None } => error.fmt(f),
            Self::Open { error, seen: Some(seen) } => write!(f, "{error} ({seen})"),
            Self::Timeout(after) => {
                write!(f, "no answer within {:?}: raise the timeout or ask for less", rounded(*after))
            }
            Self::Closed(ended) => write!(f, "the connection is closed: {ended}"),
            Self::Failed(failed) => failed.fmt(f),
            Self::Tool(said) => write!(f, "the tool failed: {said}"),
            Self::Io(error) => write!(f, "the connection failed: {error}"),
            Self::Misuse(said) | Self::Refused(said) => f.write_str(said),
            Self::Decode(said) => write!(f, "the answer does not fit: {said}"),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Rpc(error) => Some(error),
            Self::Open { error, .. } => Some(error),
            Self::Protocol(violation) => Some(violation),
            Self::Io(error) => Some(error),
            Self::Failed(failed) => Some(failed),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<RpcError> for Error {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}
