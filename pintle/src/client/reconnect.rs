use std::{
    fmt,
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;

use crate::{
    message_log::ConnectionLog,
    transport::{Driven, DrivenTransport, Incoming, Transport, TransportKind, driven},
};

/// A source of connections to one server.
///
/// Implemented by closures that return a future of a transport.
pub trait Connector: Send + 'static {
    /// The type of its connections.
    type Transport: Transport;
    /// Opens a new connection.
    fn connect(&mut self) -> impl Future<Output = io::Result<Self::Transport>> + Send + 'static;

    /// Opens a new connection of a relay, on behalf of an authenticated principal if there is one. A connector whose connections are
    /// limited overrides it, so that one principal does not have them all.
    fn connect_for(
        &mut self,
        principal: Option<&str>,
    ) -> impl Future<Output = io::Result<Self::Transport>> + Send + 'static {
        let _ = principal;
        self.connect()
    }
}

impl<F, Fut, T> Connector for F
where
    F: FnMut() -> Fut + Send + 'static,
    Fut: Future<Output = io::Result<T>> + Send + 'static,
    T: Transport,
{
    type Transport = T;

    fn connect(&mut self) -> impl Future<Output = io::Result<T>> + Send + 'static {
        self()
    }
}

/// A transport that connects again when its connection is lost.
///
/// ```no_run
/// use pintle::{Client, client::Reconnect, transport::Stream};
/// use tokio::io::{duplex, split};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let transport = Reconnect::connect(|| async {
///     // Here: a socket.
///     let (reader, writer) = split(duplex(4096).0);
///     Ok(Stream::new(reader, writer))
/// })
/// .await?;
/// let server = Client::new("demo", "1.0.0").connect(transport).await?;
/// # Ok(()) }
/// ```
pub struct Reconnect<C: Connector> {
    connector: C,
    state: ReconnectState,
    /// The limit of a message's size, for each new connection.
    limit: Option<usize>,
    /// The log of messages, if the transport logs them itself.
    log: Option<ConnectionLog>,
}

enum ReconnectState {
    Connected(Box<dyn DrivenTransport>),
    /// A connection is being made. Messages sent in the meantime are queued.
    Connecting(Connecting, Vec<Bytes>),
    /// The last attempt failed, and its error was returned.
    Failed,
}

type Connecting = Pin<Box<dyn Future<Output = io::Result<Box<dyn DrivenTransport>>> + Send>>;

impl<C: Connector> Reconnect<C> {
    /// Opens the first connection.
    ///
    /// # Errors
    ///
    /// The connection could not be established.
    pub async fn connect(mut connector: C) -> io::Result<Self> {
        let connected = driven(connector.connect().await?);
        Ok(Self { connector, state: ReconnectState::Connected(connected), limit: None, log: None })
    }

    fn poll_connected(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<&mut dyn DrivenTransport>> {
        if let ReconnectState::Connecting(connecting, queued) = &mut self.state {
            let connected = ready!(connecting.as_mut().poll(cx));
            let queued = std::mem::take(queued);
            self.state = ReconnectState::Failed;
            let mut transport = connected?;
            self.limit.into_iter().for_each(|bytes| transport.limit_messages(bytes));
            if let Some(log) = &self.log {
                transport.log_messages(log);
            }
            queued.into_iter().for_each(|message| transport.send(message));
            self.state = ReconnectState::Connected(transport);
        }
        Poll::Ready(match &mut self.state {
            ReconnectState::Connected(transport) => Ok(&mut **transport),
            ReconnectState::Connecting(..) | ReconnectState::Failed => {
                Err(io::ErrorKind::NotConnected.into())
            }
        })
    }
}

impl<C: Connector> Transport for Reconnect<C> {
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Incoming>>> {
        ready!(self.poll_connected(cx))?.poll_recv(cx)
    }

    fn send(&mut self, message: Bytes) {
        match &mut self.state {
            ReconnectState::Connected(transport) => transport.send(message),
            ReconnectState::Connecting(_, queued) => queued.push(message),
            ReconnectState::Failed => {}
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_connected(cx))?.poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.state {
            ReconnectState::Connected(transport) => transport.poll_close(cx),
            ReconnectState::Connecting(..) | ReconnectState::Failed => Poll::Ready(Ok(())),
        }
    }

    fn close_reason(&self) -> Option<String> {
        match &self.state {
            ReconnectState::Connected(transport) => transport.close_reason(),
            ReconnectState::Connecting(..) | ReconnectState::Failed => None,
        }
    }

    fn into_driven(self: Box<Self>) -> Driven {
        Driven(self)
    }
}

impl<C: Connector> DrivenTransport for Reconnect<C> {
    fn kind(&self) -> TransportKind {
        match &self.state {
            ReconnectState::Connected(transport) => transport.kind(),
            ReconnectState::Connecting(..) | ReconnectState::Failed => TransportKind::Other,
        }
    }

    fn log_messages(&mut self, log: &ConnectionLog) -> bool {
        let ReconnectState::Connected(transport) = &mut self.state else { return false };
        let logs = transport.log_messages(log);
        self.log = logs.then(|| log.clone());
        logs
    }

    fn ended_unread(&self) -> bool {
        matches!(&self.state, ReconnectState::Connected(transport) if transport.ended_unread())
    }

    fn limit_messages(&mut self, bytes: usize) {
        self.limit = Some(bytes);
        if let ReconnectState::Connected(transport) = &mut self.state {
            transport.limit_messages(bytes);
        }
    }

    fn restart(&mut self) -> io::Result<()> {
        let connecting = self.connector.connect();
        let connecting = async { connecting.await.map(driven) };
        self.state = ReconnectState::Connecting(Box::pin(connecting), Vec::new());
        Ok(())
    }
}

impl<C: Connector> fmt::Debug for Reconnect<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reconnect").finish_non_exhaustive()
    }
}
