//! Transports: how messages get from one peer to the other.
//!
//! A [`Transport`] moves whole messages and does not look inside them. Most are made from a byte stream ([`Stream`]). A custom
//! one implements three methods, or is made from two queues with [`channels`] and `async` code.
//! `pintle_testing::kits::transport` checks a custom transport; a [`MessageLog`](crate::message_log::MessageLog) logs the messages
//! of any transport.

mod channels;
#[cfg(feature = "child")]
mod child;
mod deadline_pauses;
mod driven;
pub(crate) mod ended;
mod failed;
mod logged;
mod memory;
#[cfg(any(feature = "http-client", feature = "child", feature = "http-server", feature = "net"))]
pub(crate) mod open_files;
mod oversized;
pub(crate) mod push_demand;
mod push_state;
#[cfg(feature = "net")]
mod socket;
#[cfg(feature = "stdio")]
mod stdio;
mod stream;
#[cfg(feature = "stdio")]
mod threads;

use std::{
    fmt, io,
    task::{Context, Poll},
};

use bytes::Bytes;

pub use channels::{Channels, channels};
#[cfg(feature = "child")]
pub use child::{Child, ChildCommand, Exit, RunOutput, Stage, Stderr};
pub use failed::{Delivery, Failed};
pub use logged::LoggedTransport;
pub use memory::{Memory, memory};
pub use oversized::{Oversized, Skipped};
#[cfg(feature = "net")]
pub use socket::{Listener, listen_tcp, tcp};
#[cfg(all(feature = "net", unix))]
pub use socket::{listen_unix, unix};
#[cfg(feature = "stdio")]
pub use stdio::Stdio;
pub use stream::Stream;

pub use crate::message_log::transport_kind::TransportKind;

#[cfg(feature = "http-client")]
pub(crate) use deadline_pauses::DeadlinePause;
pub(crate) use deadline_pauses::DeadlinePauses;
pub(crate) use driven::{Driven, DrivenTransport, MessageContext, StreamPause, driven};
pub(crate) use push_demand::PushDemand;
pub(crate) use push_state::PushState;

/// A bidirectional connection that carries whole messages.
///
/// Three methods are required: [`send`](Self::send) queues, [`poll_flush`](Self::poll_flush) writes,
/// [`poll_recv`](Self::poll_recv) reads. One task polls them, so that reading continues while a slow peer delays writing.
/// Dropping the transport closes it.
///
/// A transport of your own has no notion of HTTP: to add something to what [`client::http::Http`](crate::client) sends, give it
/// an HTTP client of your own instead of wrapping it. [`client::Reconnect`](crate::client) makes a transport connect again. The
/// peer of a custom transport is anonymous to a server unless `Server::serve_to` is given who it is. Messages above the
/// driver's limit are discarded; a transport that should not even buffer them needs a limit of its own.
///
/// A transport that counts the bytes sent through another one:
///
/// ```
/// use std::{io, task::{Context, Poll}};
/// use bytes::Bytes;
/// use pintle::transport::{Incoming, Transport};
///
/// #[derive(Debug)]
/// struct Counting<T> {
///     inner: T,
///     bytes: usize,
/// }
///
/// impl<T: Transport> Transport for Counting<T> {
///     fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Incoming>>> {
///         self.inner.poll_recv(cx)
///     }
///
///     fn send(&mut self, message: Bytes) {
///         self.bytes += message.len();
///         self.inner.send(message);
///     }
///
///     fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
///         self.inner.poll_flush(cx)
///     }
/// }
/// # let _ = |inner: pintle::transport::Memory| Counting { inner, bytes: 0 }.bytes;
/// ```
pub trait Transport: fmt::Debug + Send + 'static {
    /// Polls for the next incoming message; `None` is the end of the connection.
    ///
    /// No message may be lost if the caller stops polling and resumes later. The waker of the last poll is woken when a
    /// message arrives, including one that arrives while another is being sent.
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Incoming>>>;

    /// Queues a message: JSON on one line, without the line terminator.
    ///
    /// Does not block. The caller bounds what is queued, and flushes.
    fn send(&mut self, message: Bytes);

    /// Writes the queued messages. Ready when all of them are written.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Closes the connection and waits until its resources are released, such as a child process.
    ///
    /// Nothing is sent or received afterwards. If it is not called, dropping the transport closes it in the background.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }

    /// Returns why the connection ended, for the error message, if anything is known.
    fn close_reason(&self) -> Option<String> {
        None
    }

    /// Adapts the transport to what drives a connection. It can be neither implemented nor called outside of this crate.
    #[doc(hidden)]
    fn into_driven(self: Box<Self>) -> Driven {
        Driven(Box::new(driven::LimitedTransport::new(self)))
    }
}

/// An event from [`Transport::poll_recv`].
#[expect(clippy::exhaustive_enums, reason = "a message, one that is too large, or the lack of one")]
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// A message, not parsed.
    Message(Bytes),
    /// A message above the size limit. It was discarded; the messages after it are complete.
    Oversized(Oversized),
    /// A request that will not be answered, while the connection stays open. Ignored if the answer has arrived.
    Failed(Box<Failed>),
}

impl Incoming {
    /// A message, or [`Oversized`](Self::Oversized) if it is above the limit.
    fn within(message: Bytes, limit: usize) -> Self {
        if message.len() > limit {
            return Self::Oversized(Oversized::of(&message, limit));
        }
        Self::Message(message)
    }
}

impl Transport for Box<dyn Transport> {
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Incoming>>> {
        (**self).poll_recv(cx)
    }

    fn send(&mut self, message: Bytes) {
        (**self).send(message);
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        (**self).poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        (**self).poll_close(cx)
    }

    fn close_reason(&self) -> Option<String> {
        (**self).close_reason()
    }

    fn into_driven(self: Box<Self>) -> Driven {
        (*self).into_driven()
    }
}
