use std::{error::Error as StdError, fmt, io, time::Duration};

use pintle_proto::{Violation, client::OpenError};
use pintle_types::RpcError;

use crate::{Ended, timeouts::rounded, transport::Failed};

/// Any error, boxed.
#[cfg(any(feature = "client", feature = "server"))]
pub(crate) type BoxError = Box<dyn StdError + Send + Sync>;

/// A [`std::result::Result`] with [`Error`] as its default error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of clients, servers and transports. Its variant is the kind of failure.
///
/// ```no_run
/// use pintle::Error;
///
/// # #[cfg(feature = "client")]
/// # async fn example(server: pintle::Connection) {
/// match server.call_tool("index", ()).await {
///     // A tool that ran and failed returns a result. Its text is for the model.
///     Ok(result) => println!("{:?}", result.content),
///     Err(Error::Rpc(error)) => println!("the server refused: {} ({:?})", error.message, error.code),
///     Err(Error::Timeout(after)) => println!("no response within {after:?}; the call was cancelled"),
///     Err(Error::Closed(ended)) => println!("reconnect: {ended}"),
///     Err(error) => println!("{error}"),
/// }
/// # }
/// ```
#[non_exhaustive]
#[derive(Debug)]
pub enum Error {
    /// The peer answered with an error. Errors of this kind always come from the peer.
    Rpc(RpcError),
    /// The peer violated the protocol.
    Protocol(Violation),
    /// The connection could not be established.
    Open {
        /// The cause.
        error: OpenError,
        /// Further observations of the server, such as its output and its exit status.
        seen: Option<String>,
    },
    /// There was no response in time.
    Timeout(Duration),
    /// The connection is closed.
    Closed(Ended),
    /// One request failed in transit; the connection stays open.
    Failed(Box<Failed>),
    /// The tool ran and failed. Contains its error text.
    Tool(String),
    /// Reading or writing failed.
    Io(io::Error),
    /// The call is invalid on this connection. The message names what is supported.
    Misuse(String),
    /// A local policy denied the call.
    Refused(String),
    /// A [suspendable](crate::client::Call::suspendable) request waits for input that no handler gave.
    #[cfg(feature = "client")]
    Suspended(Box<crate::suspended_call::SuspendedCall>),
    /// The response does not have the expected shape.
    Decode(String),
}

impl Error {
    /// Returns the HTTP status that the server answered with, if that is why the request failed.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Failed(failed) => failed.status,
            Self::Open { error: OpenError::Garbled { status, .. }, .. } => *status,
            Self::Open { error: OpenError::Rejected { status, .. }, .. } => Some(*status),
            _ => None,
        }
    }

    #[cfg(any(feature = "client", feature = "server"))]
    pub(crate) fn misuse(message: impl Into<String>) -> Self {
        Self::Misuse(message.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rpc(error) => write!(f, "the peer returned an error: {error}"),
            Self::Protocol(violation) => write!(f, "the peer violated the protocol: {violation}"),
            Self::Open { error, seen: None } => error.fmt(f),
            Self::Open { error, seen: Some(seen) } => write!(f, "{error} ({seen})"),
            Self::Timeout(after) => {
                write!(f, "no answer within {:?}: raise the timeout or ask for less", rounded(*after))
            }
            Self::Closed(ended) => write!(f, "the connection is closed: {ended}"),
            Self::Failed(failed) => failed.fmt(f),
            Self::Tool(text) => write!(f, "the tool failed: {text}"),
            Self::Io(error) => write!(f, "the connection failed: {error}"),
            Self::Misuse(message) | Self::Refused(message) => f.write_str(message),
            #[cfg(feature = "client")]
            Self::Suspended(call) => call.fmt(f),
            Self::Decode(reason) => write!(f, "the response is invalid: {reason}"),
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
