//! How messages get from one side to the other.
//!
//! A [`Transport`] moves whole messages and knows nothing of what they say. Most are made from a byte stream
//! ([`Stream`]); a custom one is three verbs, and [`channels`] makes one of two queues for those who would rather write
//! `async` code.

mod channels;
mod memory;
mod stream;

use std::{
    fmt, io,
    task::{Context, Poll},
};

use bytes::Bytes;

pub use channels::{Channels, channels};
pub use memory::{Memory, memory};
pub use stream::Stream;

/// A connection that carries whole messages, both ways at once.
///
/// Three verbs: [`send`](Self::send) queues, [`poll_flush`](Self::poll_flush) writes, [`poll_recv`](Self::poll_recv)
/// reads. They are polled by one task, so that reading goes on while a slow peer makes writing wait; dropping the
/// transport closes it.
pub trait Transport: fmt::Debug + Send + 'static {
    /// Takes the next message that came in, or `None` at the end.
    ///
    /// Nothing may be lost when the caller stops polling and comes back later.
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Incoming>>>;

    /// Queues a message: JSON on one line, without the line's end.
    ///
    /// Never waits. Whoever sends sees to it that not too much is queued, and flushes.
    fn send(&mut self, message: Bytes);

    /// Writes what is queued. Ready when nothing is left.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Starts the other side again, or connects to it again, after the connection ended. What was queued is gone.
    ///
    /// Most transports are good for one connection only, and say [`Unsupported`](io::ErrorKind::Unsupported).
    fn poll_reopen(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let _ = cx;
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }

    /// What is known of how the connection ended, such as a process's exit status. Half a sentence, for an error.
    fn describe_end(&self) -> Option<String> {
        None
    }
}

/// What came in.
#[expect(clippy::exhaustive_enums, reason = "a message, or one that nobody wants to hold")]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Incoming {
    /// A message, not looked at.
    Message(Bytes),
    /// A message of more bytes than are taken. It was skipped; the next one is whole again.
    Oversized,
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

    fn poll_reopen(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        (**self).poll_reopen(cx)
    }

    fn describe_end(&self) -> Option<String> {
        (**self).describe_end()
    }
}
