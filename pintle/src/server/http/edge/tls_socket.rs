use std::{
    fmt, io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::server::TlsFacts;

/// A byte stream with the facts of its TLS connection, for [`HttpServer::tls`](crate::server::http::HttpServer::tls).
///
/// The facts are an extension of every request on it: see [`Cx::tls`](crate::server::Cx::tls).
///
/// ```
/// use pintle::server::{TlsFacts, http::TlsSocket};
///
/// // With `tokio-rustls`: `let socket = acceptor.accept(socket).await?`, and `socket.get_ref().1` knows the facts.
/// let (socket, _client) = tokio::io::duplex(1024);
/// let socket = TlsSocket::new(socket, TlsFacts::new().version("TLSv1.3"));
/// ```
pub struct TlsSocket {
    io: Pin<Box<dyn ByteStream>>,
    facts: Arc<TlsFacts>,
}

trait ByteStream: AsyncRead + AsyncWrite + Send {}

impl<IO: AsyncRead + AsyncWrite + Send> ByteStream for IO {}

impl TlsSocket {
    /// Creates a byte stream from the one of a TLS library.
    pub fn new(io: impl AsyncRead + AsyncWrite + Send + 'static, facts: TlsFacts) -> Self {
        Self { io: Box::pin(io), facts: Arc::new(facts) }
    }

    /// Returns the facts.
    pub fn facts(&self) -> &TlsFacts {
        &self.facts
    }

    pub(super) fn shared_facts(&self) -> Arc<TlsFacts> {
        self.facts.clone()
    }
}

impl AsyncRead for TlsSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.io.as_mut().poll_read(cx, buf)
    }
}

impl AsyncWrite for TlsSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.io.as_mut().poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.io.as_mut().poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.as_mut().poll_shutdown(cx)
    }
}

impl fmt::Debug for TlsSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSocket").field("facts", &self.facts).finish_non_exhaustive()
    }
}
