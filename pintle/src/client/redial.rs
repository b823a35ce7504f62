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
    line: Line<C::Transport>,
    /// What each new connection is limited to.
    limit: Option<usize>,
}

enum Line<T> {
    Live(T),
    /// Being connected. What is sent meanwhile waits.
    Dialling(Dialling<T>, Vec<Bytes>),
    /// It could not be connected, and said so.
    Dead,
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
        Ok(Self { connector, line: Line::Live(live), limit: None })
    }

    fn poll_live(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<&mut C::Transport>> {
        if let Line::Dialling(dialling, queued) = &mut self.line {
            let dialled = ready!(dialling.as_mut().poll(cx));
            let queued = std::mem::take(queued);
            self.line = Line::Dead;
            let mut live = dialled?;
            self.limit.into_iter().for_each(|bytes| live.limit_messages(bytes));
            queued.into_iter().for_each(|message| live.send(message));
            self.line = Line::Live(live);
        }
        Poll::Ready(match &mut self.line {
            Line::Live(live) => Ok(live),
            Line::Dialling(..) | Line::Dead => Err(io::ErrorKind::NotConnected.into()),
        })
    }
}

impl<C: Connector> Transport for Redial<C> {
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Incoming>>> {
        ready!(self.poll_live(cx))?.poll_recv(cx)
    }

    fn send(&mut self, message: Bytes) {
        match &mut self.line {
            Line::Live(live) => live.send(message),
            Line::Dialling(_, queued) => queued.push(message),
            Line::Dead => {}
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_live(cx))?.poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.line {
            Line::Live(live) => live.poll_close(cx),
            Line::Dialling(..) | Line::Dead => Poll::Ready(Ok(())),
        }
    }

    fn why_ended(&self) -> Option<String> {
        match &self.line {
            Line::Live(live) => live.why_ended(),
            Line::Dialling(..) | Line::Dead => None,
        }
    }

    fn ended_unread(&self) -> bool {
        matches!(&self.line, Line::Live(live) if live.ended_unread())
    }

    fn limit_messages(&mut self, bytes: usize) {
        self.limit = Some(bytes);
        if let Line::Live(live) = &mut self.line {
            live.limit_messages(bytes);
        }
    }

    fn restart(&mut self) -> io::Result<()> {
        self.line = Line::Dialling(Box::pin(self.connector.connect()), Vec::new());
        Ok(())
    }
}

impl<C: Connector> fmt::Debug for Redial<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redial").finish_non_exhaustive()
    }
}
