use std::fmt;

/// The kind of a transport.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum TransportKind {
    /// The standard streams of this process.
    Stdio,
    /// The standard streams of a child process.
    Child,
    /// A TCP connection.
    Tcp,
    /// A Unix socket.
    Unix,
    /// Two ends in one process.
    Memory,
    /// HTTP.
    Http,
    /// A custom transport.
    Other,
}

impl TransportKind {
    /// Returns the name in lower case, such as `stdio`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Child => "child",
            Self::Tcp => "tcp",
            Self::Unix => "unix",
            Self::Memory => "memory",
            Self::Http => "http",
            Self::Other => "other",
        }
    }

    /// Returns the value of the attribute `network.transport` of OpenTelemetry, if there is one.
    #[cfg(any(feature = "client", feature = "server"))]
    pub(crate) fn network_transport(self) -> Option<&'static str> {
        match self {
            Self::Stdio | Self::Child => Some("pipe"),
            Self::Tcp | Self::Http => Some("tcp"),
            Self::Unix => Some("unix"),
            Self::Memory | Self::Other => None,
        }
    }
}

impl fmt::Display for TransportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
