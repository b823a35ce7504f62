/// The facts of a TLS connection, as far as the code that accepted it knows them.
///
/// An extension of every request over a [`TlsSocket`](crate::server::http); handlers read it with
/// [`Cx::tls`](crate::server::Cx::tls). For other transports, add it with [`Caller::with`](crate::server::Caller::with).
///
/// ```
/// use pintle::server::{Cx, TlsFacts, tool};
///
/// let facts = TlsFacts::new().version("TLSv1.3").alpn("h2").server_name("example.com").client_certificate(true);
/// let whoami = tool("whoami", |cx: Cx| async move {
///     let certified = cx.tls().is_some_and(|tls| tls.client_certificate == Some(true));
///     if certified { "You have a certificate." } else { "You have none." }
/// });
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TlsFacts {
    /// The version of the protocol, such as `TLSv1.3`.
    pub version: Option<String>,
    /// The protocol that was negotiated (ALPN), such as `h2`.
    pub alpn: Option<String>,
    /// The host name that the client asked for (SNI). The client chooses it.
    pub server_name: Option<String>,
    /// Whether the client has presented a certificate. The code that accepted the connection has verified it, or not.
    pub client_certificate: Option<bool>,
}

impl TlsFacts {
    /// Creates facts of which none is known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the version.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Sets the negotiated protocol.
    #[must_use]
    pub fn alpn(mut self, protocol: impl Into<String>) -> Self {
        self.alpn = Some(protocol.into());
        self
    }

    /// Sets the host name.
    #[must_use]
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// Sets whether the client has presented a certificate.
    #[must_use]
    pub fn client_certificate(mut self, presented: bool) -> Self {
        self.client_certificate = Some(presented);
        self
    }
}
