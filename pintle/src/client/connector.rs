use std::{
    fmt,
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;

use crate::transport::{Incoming, Transport};

/// Makes connections to one server, as often as needed.
///
/// A closure that returns a future will do.
pub trait Connector: Send + 'static {
    /// What it connects with.
    type Transport: Transport;
    /// A new connection.
    fn connect(&mut self) -> impl Future<Output = io::Result<Self::Transport>> + Send + 'static;
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

/// A transport that can be opened again when its connection is lost.
///
/// ```no_run
/// use pintle::{Client, client::Redial, transport::Stream};
/// use tokio::io::{duplex, split};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let transport = Redial::connect(|| async {
///     // Here: a socket.
///     let (reader, writer) = split(duplex(4096).0);
///     Ok(Stream::new(reader, writer))
/// })
/// .await?;
/// let server = Client::new("demo", "1.0.0").connect(transport).await?;
/// # Ok(()) }
/// ```
pub struct Redial<C: Connector> {
    connector: C,
    live: C::Transport,
    dialling: Option<Dialling<C::Transport>>,
}

type Dialling<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

impl<C: Connector> Redial<C> {
    /// Connects for the first time.
    ///
    /// # Errors
    ///
    /// It could not.
    pub async fn connect(mut connector: C) -> io::Result<Self> {
        let live = connector.connect().await?;
        Ok(Self { connector, live, dialling: None })
    }
}

impl<C: Connector> Transport for Redial<C> {
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Incoming>>> {
        self.live.poll_recv(cx)
    }

    fn send(&mut self, message: Bytes) {
        self.live.send(message);
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.live.poll_flush(cx)
    }

    fn poll_reopen(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let connector = &mut self.connector;
        let dialling = self.dialling.get_or_insert_with(|| Box::pin(connector.connect()));
        let dialled = ready!(dialling.as_mut().poll(cx));
        self.dialling = None;
        self.live = dialled?;
        Poll::Ready(Ok(()))
    }

    fn describe_end(&self) -> Option<String> {
        self.live.describe_end()
    }
}

impl<C: Connector> fmt::Debug for Redial<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redial").field("live", &self.live).finish_non_exhaustive()
    }
}
